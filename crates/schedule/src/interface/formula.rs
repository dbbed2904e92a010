//! [`Formula`]: a function of sizes, as serializable data.

use serde::{Deserialize, Serialize};
use tensorwright_lang::program::{Atom, Index};

use crate::nest::Var;

/// A function of the sizes that vary: a sum of multiples, and a constant.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Formula {
    /// The multiples.
    pub terms: Vec<(i64, Part)>,
    /// The constant.
    pub constant: i64,
}

/// A part of a [`Formula`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Part {
    /// A run-time number, by its position.
    Number(usize),
    /// A quotient by a positive constant, rounded down.
    Div(Formula, i64),
    /// A remainder by a positive constant.
    Mod(Formula, i64),
    /// The lesser of two.
    Min(Formula, Formula),
    /// The greater of two.
    Max(Formula, Formula),
    /// A product with a run-time number.
    Product(Formula, usize),
}

impl Formula {
    /// A sum of multiples and a constant.
    #[must_use]
    pub fn new(terms: impl IntoIterator<Item = (i64, Part)>, constant: i64) -> Self {
        Self { terms: terms.into_iter().collect(), constant }
    }

    /// The formula of an index over run-time numbers; `None` if it has other variables.
    pub(crate) fn of(index: &Index, position: &impl Fn(Var) -> Option<usize>) -> Option<Self> {
        let part = |atom: &Atom| {
            let of = |index: &Index| Self::of(index, position);
            Some(match atom {
                Atom::Axis(var) => Part::Number(position(*var)?),
                Atom::Div(inner, by) => Part::Div(of(inner)?, *by),
                Atom::Mod(inner, by) => Part::Mod(of(inner)?, *by),
                Atom::Min(a, b) => Part::Min(of(a)?, of(b)?),
                Atom::Max(a, b) => Part::Max(of(a)?, of(b)?),
                Atom::Product(inner, factor) => Part::Product(of(inner)?, position(*factor)?),
                Atom::Value(_) => return None,
            })
        };
        let terms = index.terms().iter().map(|term| Some((term.coefficient, part(&term.atom)?)));
        Some(Self { terms: terms.collect::<Option<_>>()?, constant: index.constant_term() })
    }

    /// The value, given the numbers; `None` if one is missing, or on overflow.
    #[must_use]
    pub fn value(&self, numbers: &[i64]) -> Option<i64> {
        self.terms.iter().try_fold(self.constant, |sum, (times, part)| {
            let value = match part {
                Part::Number(position) => *numbers.get(*position)?,
                Part::Div(inner, by) => inner.value(numbers)?.checked_div_euclid(*by)?,
                Part::Mod(inner, by) => inner.value(numbers)?.checked_rem_euclid(*by)?,
                Part::Min(a, b) => a.value(numbers)?.min(b.value(numbers)?),
                Part::Max(a, b) => a.value(numbers)?.max(b.value(numbers)?),
                Part::Product(inner, factor) => {
                    inner.value(numbers)?.checked_mul(*numbers.get(*factor)?)?
                }
            };
            sum.checked_add(times.checked_mul(value)?)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tensorwright_lang::program::AxisId;

    #[test]
    fn formulas_have_the_values_of_their_indices() {
        let (n, m) = (Index::axis(AxisId(7)), Index::axis(AxisId(9)));
        let sum = n.scale(3).unwrap().add(&Index::constant(5)).unwrap();
        let index = sum.div(4).unwrap().add(&sum.rem(6)).unwrap();
        let index = index.add(&sum.clone().min(m.clone()).scale(2).unwrap()).unwrap();
        let index = index.sub(&m.clone().max(n.clone())).unwrap();
        let index = index.add(&n.times(AxisId(9)).unwrap()).unwrap();
        let position = |var: Var| [7, 9].iter().position(|known| *known == var.0);
        let formula = Formula::of(&index, &position).unwrap();
        for (n, m) in [(1, 1), (2, 40), (50, 3), (17, 17)] {
            let at = |axis: Var| if axis.0 == 7 { n } else { m };
            let expected = index.eval::<()>(&at, &mut |_| Ok(0)).unwrap();
            assert_eq!(formula.value(&[n, m]).map(i128::from), Some(expected));
        }
        assert_eq!(formula.value(&[1]), None);
        assert_eq!(formula.value(&[i64::MAX, 2]), None);
        assert_eq!(Formula::of(&Index::axis(AxisId(8)), &position), None);
    }
}
