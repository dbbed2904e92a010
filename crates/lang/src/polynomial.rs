//! Polynomials: formulas over sizes, and index arithmetic to be solved.
//!
//! ```text
//! s*h + kh - p   ->   1*{s,h} + 1*{kh} - 1*{p}
//! ```
//!
//! The caller chooses the atoms: names of sizes, or whole expressions.

use std::fmt;

/// A sum of products in normal form: products are distinct, coefficients are nonzero. Products keep
/// the order in which they were written. `MAX` limits the products of a sum and the atoms of a
/// product; exceeding it, or 64 bits, gives `None`.
#[derive(Debug, Clone)]
pub struct Polynomial<A, const MAX: usize> {
    terms: Vec<Term<A>>,
}

/// A coefficient and a product of atoms.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Term<A> {
    /// The coefficient.
    pub coefficient: i64,
    /// The atoms, sorted.
    pub atoms: Vec<A>,
}

/// `factor*atom + rest`
#[derive(Debug, Clone)]
pub struct Linear<A, const MAX: usize> {
    /// The coefficient of the atom; not zero.
    pub factor: Polynomial<A, MAX>,
    /// The part without the atom.
    pub rest: Polynomial<A, MAX>,
}

impl<A, const MAX: usize> Default for Polynomial<A, MAX> {
    fn default() -> Self {
        Self { terms: Vec::new() }
    }
}

/// Equality up to the order of terms.
impl<A: Ord, const MAX: usize> PartialEq for Polynomial<A, MAX> {
    fn eq(&self, other: &Self) -> bool {
        self.terms.len() == other.terms.len() && self.terms.iter().all(|t| other.terms.contains(t))
    }
}

impl<A: Ord, const MAX: usize> Eq for Polynomial<A, MAX> {}

impl<A, const MAX: usize> From<Term<A>> for Polynomial<A, MAX> {
    fn from(term: Term<A>) -> Self {
        Self { terms: if term.coefficient == 0 { Vec::new() } else { vec![term] } }
    }
}

impl<A: Clone + Ord, const MAX: usize> Polynomial<A, MAX> {
    /// A number.
    #[must_use]
    pub fn constant(value: i64) -> Self {
        Self::from(Term { coefficient: value, atoms: Vec::new() })
    }

    /// An atom.
    #[must_use]
    pub fn atom(atom: impl Into<A>) -> Self {
        Self::from(Term { coefficient: 1, atoms: vec![atom.into()] })
    }

    /// The products.
    #[must_use]
    pub fn terms(&self) -> &[Term<A>] {
        &self.terms
    }

    /// The atoms of all products.
    pub fn atoms(&self) -> impl Iterator<Item = &A> {
        self.terms.iter().flat_map(|term| &term.atoms)
    }

    /// The value, if it is constant.
    #[must_use]
    pub fn as_constant(&self) -> Option<i64> {
        match self.terms.as_slice() {
            [] => Some(0),
            [Term { coefficient, atoms }] if atoms.is_empty() => Some(*coefficient),
            _ => None,
        }
    }

    /// `Some(true)` if all coefficients are positive, so that it is positive for positive atoms;
    /// `Some(false)` if all are negative.
    #[must_use]
    pub fn is_positive(&self) -> Option<bool> {
        let positive = self.terms.iter().filter(|term| term.coefficient > 0).count();
        match self.terms.len() {
            0 => None,
            all if positive == all => Some(true),
            _ if positive == 0 => Some(false),
            _ => None,
        }
    }

    /// The sum of both.
    #[must_use]
    pub fn plus(&self, other: &Self) -> Option<Self> {
        let mut sum = self.clone();
        for term in &other.terms {
            match sum.terms.iter_mut().find(|own| own.atoms == term.atoms) {
                Some(own) => own.coefficient = own.coefficient.checked_add(term.coefficient)?,
                None => sum.terms.push(term.clone()),
            }
        }
        sum.terms.retain(|term| term.coefficient != 0);
        (sum.terms.len() <= MAX).then_some(sum)
    }

    /// The difference of both.
    #[must_use]
    pub fn minus(&self, other: &Self) -> Option<Self> {
        self.plus(&other.scale(-1)?)
    }

    /// A multiple.
    #[must_use]
    pub fn scale(&self, factor: i64) -> Option<Self> {
        self.times(&Self::constant(factor))
    }

    /// The product of both, multiplied out.
    #[must_use]
    pub fn times(&self, other: &Self) -> Option<Self> {
        let mut product = Self::default();
        for a in &self.terms {
            for b in &other.terms {
                let mut atoms: Vec<A> = a.atoms.iter().chain(&b.atoms).cloned().collect();
                if atoms.len() > MAX {
                    return None;
                }
                atoms.sort();
                let coefficient = a.coefficient.checked_mul(b.coefficient)?;
                product = product.plus(&Self::from(Term { coefficient, atoms }))?;
            }
        }
        Some(product)
    }

    /// Splits off the multiples of a divisor, divided by it, from the rest. A divisor of several
    /// terms divides only itself.
    #[must_use]
    pub fn split_by(&self, divisor: &Self) -> (Self, Self) {
        let [divisor] = divisor.terms.as_slice() else {
            let all = !divisor.terms.is_empty() && self == divisor;
            return match all {
                true => (Self::constant(1), Self::default()),
                false => (Self::default(), self.clone()),
            };
        };
        let (mut quotient, mut rest) = (Self::default(), Self::default());
        for term in &self.terms {
            match term.divided_by(divisor) {
                Some(term) => quotient.terms.push(term),
                None => rest.terms.push(term.clone()),
            }
        }
        (quotient, rest)
    }

    /// The linear decomposition by an atom, if it occurs only as a factor and once per product.
    /// `mentions` says which atoms contain it.
    #[must_use]
    pub fn linear_in(
        &self,
        is: impl Fn(&A) -> bool,
        mentions: impl Fn(&A) -> bool,
    ) -> Option<Linear<A, MAX>> {
        let mut linear = Linear { factor: Self::default(), rest: Self::default() };
        for term in &self.terms {
            let inside = term.atoms.iter().filter(|atom| mentions(atom)).count();
            match (inside, term.atoms.iter().position(&is)) {
                (0, _) => linear.rest.terms.push(term.clone()),
                (1, Some(place)) => {
                    let mut factor = term.clone();
                    factor.atoms.remove(place);
                    linear.factor.terms.push(factor);
                }
                _ => return None,
            }
        }
        (!linear.factor.terms.is_empty()).then_some(linear)
    }

    /// The first matching atom with coefficient 1 that is a term by itself, and the rest.
    #[must_use]
    pub fn atom_and_rest(&self, wanted: impl Fn(&A) -> bool) -> Option<(A, Self)> {
        let is_wanted = |term: &Term<A>| match term.atoms.as_slice() {
            [atom] => term.coefficient == 1 && wanted(atom),
            _ => false,
        };
        let place = self.terms.iter().position(is_wanted)?;
        let mut rest = self.clone();
        let atom = rest.terms.remove(place).atoms.pop()?;
        Some((atom, rest))
    }

    /// Substitutes atoms; `None` if one has no replacement.
    #[must_use]
    pub fn substitute<'r>(&self, with: impl Fn(&A) -> Option<&'r Self>) -> Option<Self>
    where
        A: 'r,
    {
        let mut sum = Self::default();
        for Term { coefficient, atoms } in &self.terms {
            let one = Self::constant(*coefficient);
            let product = atoms.iter().try_fold(one, |all, atom| all.times(with(atom)?))?;
            sum = sum.plus(&product)?;
        }
        Some(sum)
    }

    /// Evaluates it; `None` if an atom has no value.
    #[must_use]
    pub fn value(&self, of: impl Fn(&A) -> Option<i64>) -> Option<i64> {
        self.terms.iter().try_fold(0_i64, |sum, Term { coefficient, atoms }| {
            let product = atoms.iter().try_fold(*coefficient, |all, a| all.checked_mul(of(a)?));
            sum.checked_add(product?)
        })
    }
}

impl<A: Clone + Ord> Term<A> {
    fn divided_by(&self, divisor: &Term<A>) -> Option<Term<A>> {
        if self.coefficient.checked_rem(divisor.coefficient)? != 0 {
            return None;
        }
        let mut atoms = self.atoms.clone();
        for atom in &divisor.atoms {
            atoms.remove(atoms.iter().position(|own| own == atom)?);
        }
        Some(Term { coefficient: self.coefficient.checked_div(divisor.coefficient)?, atoms })
    }
}

/// Sorted, positive terms first, the constant last: `H + 2*p - KH + 1`.
impl<A: Ord + fmt::Display, const MAX: usize> fmt::Display for Polynomial<A, MAX> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.terms.is_empty() {
            return f.write_str("0");
        }
        let mut terms: Vec<&Term<A>> = self.terms.iter().collect();
        terms.sort_by_key(|term| (term.atoms.is_empty(), term.coefficient < 0, &term.atoms));
        for (number, Term { coefficient, atoms }) in terms.into_iter().enumerate() {
            match (number, *coefficient < 0) {
                (0, false) => {}
                (0, true) => f.write_str("-")?,
                (_, false) => f.write_str(" + ")?,
                (_, true) => f.write_str(" - ")?,
            }
            let size = coefficient.unsigned_abs();
            let mut factors: Vec<String> = atoms.iter().map(A::to_string).collect();
            if size != 1 || factors.is_empty() {
                factors.insert(0, size.to_string());
            }
            f.write_str(&factors.join("*"))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAX: usize = 12;
    type Poly = Polynomial<String, MAX>;

    fn n(name: &str) -> Poly {
        Poly::atom(name)
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
    fn order_does_not_matter_for_equality_and_is_kept_otherwise() {
        let (ab, ba) = (n("a").plus(&n("b")).unwrap(), n("b").plus(&n("a")).unwrap());
        assert_eq!(ab, ba);
        assert_ne!(ab, ab.scale(2).unwrap());
        let first = |sum: &Poly| sum.terms()[0].atoms[0].clone();
        assert_eq!((first(&ab).as_str(), first(&ba).as_str()), ("a", "b"));
    }

    #[test]
    fn values_and_substitutions_follow_the_terms() {
        let poly = n("M").times(&n("b")).unwrap().minus(&c(3)).unwrap();
        let value = |name: &String| if name == "M" { Some(5) } else { Some(4) };
        assert_eq!(poly.value(value), Some(17));
        assert_eq!(poly.value(|_| None), None, "a name without a value");
        let (two, other) = (c(2), n("N"));
        let with = |name: &String| Some(if name == "M" { &two } else { &other });
        assert_eq!(poly.substitute(with).unwrap().to_string(), "2*N - 3");
        assert_eq!(poly.substitute(|_| None), None, "a name without a replacement");
    }

    #[test]
    fn multiples_of_a_product_come_out_of_a_sum() {
        let sum = n("s").times(&n("h")).unwrap().scale(4).unwrap().plus(&n("k")).unwrap();
        let (quotient, rest) = sum.split_by(&n("s").scale(2).unwrap());
        assert_eq!((quotient.to_string(), rest.to_string()), ("2*h".to_owned(), "k".to_owned()));
        let (quotient, rest) = sum.split_by(&sum);
        assert_eq!((quotient, rest), (c(1), c(0)), "a sum divides itself");
        assert_eq!(sum.split_by(&c(0)), (c(0), sum.clone()), "zero divides nothing");
    }

    #[test]
    fn an_atom_is_set_apart_where_it_is_a_factor() {
        let linear_in = |sum: &Poly, name: &str| sum.linear_in(|a| a == name, |a| a.contains(name));
        let sum = n("s").times(&n("h")).unwrap().plus(&n("k")).unwrap();
        let linear = linear_in(&sum, "h").unwrap();
        assert_eq!((linear.factor, linear.rest), (n("s"), n("k")));
        assert!(linear_in(&sum, "x").is_none(), "it does not occur");
        assert!(linear_in(&n("h").times(&n("h")).unwrap(), "h").is_none(), "a square");
        assert!(linear_in(&n("h/2"), "h").is_none(), "inside another atom");
        let (atom, rest) = sum.atom_and_rest(|_| true).unwrap();
        assert_eq!((atom.as_str(), rest.to_string().as_str()), ("k", "h*s"));
    }

    #[test]
    fn signs_are_those_of_all_terms() {
        assert_eq!(n("a").plus(&c(1)).unwrap().is_positive(), Some(true));
        assert_eq!(n("a").plus(&c(1)).unwrap().scale(-1).unwrap().is_positive(), Some(false));
        assert_eq!(n("a").minus(&c(1)).unwrap().is_positive(), None);
        assert_eq!(c(0).is_positive(), None);
        assert_eq!(c(-7).as_constant(), Some(-7));
        assert_eq!(n("a").as_constant(), None);
    }

    #[test]
    fn what_overflows_or_grows_too_long_is_nothing() {
        assert_eq!(c(i64::MAX).plus(&c(1)), None);
        assert_eq!(c(i64::MAX).times(&c(2)), None);
        assert_eq!(c(i64::MIN).scale(-1), None);
        let long = (0..MAX).try_fold(c(1), |sum, number| sum.plus(&n(&format!("N{number}"))));
        assert_eq!(long, None);
        let high = (0..=MAX).try_fold(c(1), |product, _| product.times(&n("N")));
        assert_eq!(high, None);
    }
}
