//! Polynomials over the sizes and integer scalars of a signature: `H - KH + 1`.

use std::collections::BTreeMap;
use std::fmt;

/// A sum of products of names. No coefficient is zero.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Poly {
    /// By product of names, which are sorted; the empty product is the constant.
    terms: BTreeMap<Vec<String>, i64>,
}

/// The most terms; longer sums say nothing to a reader.
const MAX_TERMS: usize = 12;

/// The values of names.
pub(super) type Values = BTreeMap<String, i64>;

impl Poly {
    pub(super) fn constant(value: i64) -> Poly {
        Poly { terms: (value != 0).then(|| (Vec::new(), value)).into_iter().collect() }
    }

    pub(super) fn name(name: &str) -> Poly {
        Poly { terms: BTreeMap::from([(vec![name.to_owned()], 1)]) }
    }

    /// Its value if it has no names.
    pub(super) fn as_constant(&self) -> Option<i64> {
        match self.terms.len() {
            0 => Some(0),
            1 => self.terms.get(&Vec::new()).copied(),
            _ => None,
        }
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.terms.keys().flatten().map(String::as_str)
    }

    /// `Some(true)` if all its terms are positive for positive names, `Some(false)` if all are
    /// negative.
    pub(super) fn is_positive(&self) -> Option<bool> {
        let positive = self.terms.values().filter(|coefficient| **coefficient > 0).count();
        match self.terms.len() {
            0 => None,
            all if positive == all => Some(true),
            _ if positive == 0 => Some(false),
            _ => None,
        }
    }

    pub(super) fn plus(&self, other: &Poly) -> Option<Poly> {
        self.plus_scaled(other, 1)
    }

    pub(super) fn minus(&self, other: &Poly) -> Option<Poly> {
        self.plus_scaled(other, -1)
    }

    fn plus_scaled(&self, other: &Poly, factor: i64) -> Option<Poly> {
        let mut terms = self.terms.clone();
        for (names, coefficient) in &other.terms {
            let sum = terms.entry(names.clone()).or_insert(0);
            *sum = sum.checked_add(coefficient.checked_mul(factor)?)?;
        }
        terms.retain(|_, coefficient| *coefficient != 0);
        (terms.len() <= MAX_TERMS).then_some(Poly { terms })
    }

    pub(super) fn times(&self, other: &Poly) -> Option<Poly> {
        let mut product = Poly::default();
        for (names, coefficient) in &self.terms {
            for (more, factor) in &other.terms {
                let mut names: Vec<String> = names.iter().chain(more).cloned().collect();
                names.sort();
                if names.len() > MAX_TERMS {
                    return None;
                }
                let term = BTreeMap::from([(names, coefficient.checked_mul(*factor)?)]);
                product = product.plus(&Poly { terms: term })?;
            }
        }
        Some(product)
    }

    /// With names replaced; `None` if one has no replacement.
    pub(super) fn substitute(&self, replacements: &BTreeMap<String, Poly>) -> Option<Poly> {
        let mut sum = Poly::default();
        for (names, coefficient) in &self.terms {
            let mut product = Poly::constant(*coefficient);
            for name in names {
                product = product.times(replacements.get(name)?)?;
            }
            sum = sum.plus(&product)?;
        }
        Some(sum)
    }

    pub(super) fn value(&self, values: &Values) -> Option<i64> {
        self.terms.iter().try_fold(0i64, |sum, (names, coefficient)| {
            let product = names
                .iter()
                .try_fold(*coefficient, |product, name| product.checked_mul(*values.get(name)?));
            sum.checked_add(product?)
        })
    }
}

/// Positive terms first, the constant last: `H + 2*p - KH + 1`.
impl fmt::Display for Poly {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.terms.is_empty() {
            return f.write_str("0");
        }
        let mut terms: Vec<(&Vec<String>, i64)> =
            self.terms.iter().map(|(names, coefficient)| (names, *coefficient)).collect();
        terms.sort_by_key(|(names, coefficient)| (names.is_empty(), *coefficient < 0));
        for (number, (names, coefficient)) in terms.into_iter().enumerate() {
            match (number, coefficient < 0) {
                (0, false) => {}
                (0, true) => f.write_str("-")?,
                (_, false) => f.write_str(" + ")?,
                (_, true) => f.write_str(" - ")?,
            }
            let size = coefficient.unsigned_abs();
            match (size, names.join("*")) {
                (_, names) if names.is_empty() => write!(f, "{size}")?,
                (1, names) => f.write_str(&names)?,
                (_, names) => write!(f, "{size}*{names}")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn n(name: &str) -> Poly {
        Poly::name(name)
    }

    fn c(value: i64) -> Poly {
        Poly::constant(value)
    }

    #[test]
    fn sums_and_products_are_in_normal_form() {
        let sum = n("H").minus(&n("KH")).unwrap().plus(&c(1)).unwrap();
        assert_eq!(sum.to_string(), "H - KH + 1");
        assert_eq!(sum.plus(&n("KH")).unwrap().minus(&c(1)).unwrap(), n("H"));
        let product = sum.times(&n("b").minus(&c(2)).unwrap()).unwrap();
        assert_eq!(product.to_string(), "H*b + 2*KH + b - 2*H - KH*b - 2");
        assert_eq!(sum.minus(&sum).unwrap().to_string(), "0");
        assert_eq!(c(0).minus(&n("N")).unwrap().to_string(), "-N");
    }

    #[test]
    fn values_and_substitutions_follow_the_terms() {
        let poly = n("M").times(&n("b")).unwrap().minus(&c(3)).unwrap();
        let values = Values::from([("M".to_owned(), 5), ("b".to_owned(), 4)]);
        assert_eq!(poly.value(&values), Some(17));
        assert_eq!(poly.value(&Values::new()), None, "a name without a value");
        let with = BTreeMap::from([("M".to_owned(), c(2)), ("b".to_owned(), n("N"))]);
        assert_eq!(poly.substitute(&with).unwrap().to_string(), "2*N - 3");
    }

    #[test]
    fn what_overflows_or_grows_too_long_is_nothing() {
        assert_eq!(c(i64::MAX).plus(&c(1)), None);
        assert_eq!(c(i64::MAX).times(&c(2)), None);
        let long = (0..MAX_TERMS).try_fold(c(1), |sum, number| sum.plus(&n(&format!("N{number}"))));
        assert_eq!(long, None);
    }
}
