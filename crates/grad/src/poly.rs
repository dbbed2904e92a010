//! Index arithmetic as a sum of products, so that equations between subscripts can be solved.
//!
//! ```text
//! s*h + kh - p   ->   1*{s,h} + 1*{kh} - 1*{p}
//! ```
//!
//! Whatever is not a sum or a product (a quotient, a minimum, an index from data) is an atom.

use tensorwright_lang::ops::{ArithOp, UnaryOp};
use tensorwright_lang::syntax::ast::{Expr, ExprKind};
use tensorwright_lang::syntax::print_expr;

use crate::build;
use crate::tree;

/// The most products in a sum.
const MAX_TERMS: usize = 128;

/// A sum of products; terms keep the order in which they were written, each product once.
#[derive(Debug, Clone, Default)]
pub(crate) struct Poly {
    terms: Vec<Term>,
}

/// A product of atoms and a number.
#[derive(Debug, Clone)]
pub(crate) struct Term {
    pub(crate) coefficient: i64,
    /// In the order of their texts.
    pub(crate) atoms: Vec<Atom>,
}

/// What is not taken apart further.
#[derive(Debug, Clone)]
pub(crate) struct Atom {
    text: String,
    pub(crate) expr: Expr,
}

impl PartialEq for Atom {
    fn eq(&self, other: &Atom) -> bool {
        self.text == other.text
    }
}

impl Atom {
    fn new(expr: Expr) -> Atom {
        Atom { text: print_expr(&expr), expr }
    }

    /// Whether it is this variable or has it inside.
    fn mentions(&self, var: &str) -> bool {
        tree::mentions(&self.expr, var)
    }

    fn is(&self, var: &str) -> bool {
        build::as_name(&self.expr) == Some(var)
    }
}

/// `factor*var + rest`, and the variable is nowhere in the factor and the rest.
#[derive(Debug, Clone)]
pub(crate) struct Linear {
    pub(crate) factor: Poly,
    pub(crate) rest: Poly,
}

impl Poly {
    /// A number.
    pub(crate) fn constant(value: i64) -> Poly {
        let terms = if value == 0 { Vec::new() } else { vec![Term::constant(value)] };
        Poly { terms }
    }

    /// A variable or a size.
    pub(crate) fn name(name: &str) -> Poly {
        Poly::atom(build::name(name))
    }

    /// Something that is not taken apart.
    pub(crate) fn atom(expr: Expr) -> Poly {
        Poly { terms: vec![Term { coefficient: 1, atoms: vec![Atom::new(tree::unplaced(&expr))] }] }
    }

    /// An expression of index arithmetic.
    pub(crate) fn of(expr: &Expr) -> Poly {
        let sum = match &expr.kind {
            ExprKind::Int(value) => i64::try_from(*value).ok().map(Poly::constant),
            ExprKind::Unary(UnaryOp::Neg, a) => Poly::of(a).scale(-1),
            ExprKind::Arith(ArithOp::Add, a, b) => Poly::of(a).plus(&Poly::of(b)),
            ExprKind::Arith(ArithOp::Sub, a, b) => Poly::of(a).minus(&Poly::of(b)),
            ExprKind::Arith(ArithOp::Mul, a, b) => Poly::of(a).times(&Poly::of(b)),
            _ => None,
        };
        // What overflows 64 bits or multiplies out to too much stays as it is.
        sum.unwrap_or_else(|| Poly::atom(expr.clone()))
    }

    /// The products.
    pub(crate) fn terms(&self) -> &[Term] {
        &self.terms
    }

    pub(crate) fn plus(&self, other: &Poly) -> Option<Poly> {
        let mut sum = self.clone();
        for term in &other.terms {
            match sum.terms.iter_mut().find(|own| own.atoms == term.atoms) {
                Some(own) => own.coefficient = own.coefficient.checked_add(term.coefficient)?,
                None => sum.terms.push(term.clone()),
            }
        }
        sum.terms.retain(|term| term.coefficient != 0);
        Some(sum)
    }

    pub(crate) fn minus(&self, other: &Poly) -> Option<Poly> {
        self.plus(&other.scale(-1)?)
    }

    pub(crate) fn scale(&self, factor: i64) -> Option<Poly> {
        self.times(&Poly::constant(factor))
    }

    pub(crate) fn times(&self, other: &Poly) -> Option<Poly> {
        let mut product = Poly::default();
        for a in &self.terms {
            for b in &other.terms {
                let mut atoms: Vec<Atom> = a.atoms.iter().chain(&b.atoms).cloned().collect();
                atoms.sort_by(|x, y| x.text.cmp(&y.text));
                let coefficient = a.coefficient.checked_mul(b.coefficient)?;
                product = product.plus(&Poly { terms: vec![Term { coefficient, atoms }] })?;
            }
            if product.terms.len() > MAX_TERMS {
                return None;
            }
        }
        Some(product)
    }

    /// The parts that are multiples of a divisor, divided by it, and the rest. A divisor of
    /// several terms divides only multiples of itself.
    pub(crate) fn split_by(&self, divisor: &Poly) -> (Poly, Poly) {
        let [divisor] = divisor.terms.as_slice() else {
            let all = !divisor.terms.is_empty() && self.equals(divisor);
            return match all {
                true => (Poly::constant(1), Poly::default()),
                false => (Poly::default(), self.clone()),
            };
        };
        let (mut quotient, mut rest) = (Poly::default(), Poly::default());
        for term in &self.terms {
            match term.divided_by(divisor) {
                Some(term) => quotient.terms.push(term),
                None => rest.terms.push(term.clone()),
            }
        }
        (quotient, rest)
    }

    /// The variable set apart, if it occurs only as a factor and only once per product.
    pub(crate) fn linear_in(&self, var: &str) -> Option<Linear> {
        let mut linear = Linear { factor: Poly::default(), rest: Poly::default() };
        for term in &self.terms {
            let inside = term.atoms.iter().filter(|atom| atom.mentions(var)).count();
            match (inside, term.atoms.iter().position(|atom| atom.is(var))) {
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

    /// Whether the variable stands in it anywhere.
    pub(crate) fn mentions(&self, var: &str) -> bool {
        self.terms.iter().any(|term| term.atoms.iter().any(|atom| atom.mentions(var)))
    }

    /// The number, if it is nothing else.
    pub(crate) fn as_constant(&self) -> Option<i64> {
        match self.terms.as_slice() {
            [] => Some(0),
            [Term { coefficient, atoms }] if atoms.is_empty() => Some(*coefficient),
            _ => None,
        }
    }

    /// The only atom, if it is one with a factor of 1, and what is added to it.
    pub(crate) fn atom_and_rest(&self, wanted: impl Fn(&Expr) -> bool) -> Option<(Expr, Poly)> {
        let is_wanted = |term: &Term| match term.atoms.as_slice() {
            [atom] => term.coefficient == 1 && wanted(&atom.expr),
            _ => false,
        };
        let place = self.terms.iter().position(is_wanted)?;
        let mut rest = self.clone();
        let atom = rest.terms.remove(place).atoms.pop()?;
        Some((atom.expr, rest))
    }

    /// Whether both are the same sum.
    pub(crate) fn equals(&self, other: &Poly) -> bool {
        self.minus(other).is_some_and(|difference| difference.terms.is_empty())
    }

    /// The sum as text has it: what is added first, then what is subtracted, numbers last.
    pub(crate) fn to_expr(&self) -> Expr {
        let rank = |term: &&Term| (term.coefficient < 0, term.atoms.is_empty());
        let mut terms: Vec<&Term> = self.terms.iter().collect();
        terms.sort_by_key(rank);
        // `i - 1` and not `-1 + i`, but `3 - i` and not `-i + 3`.
        if terms.first().is_some_and(|term| term.coefficient > 0 && term.atoms.is_empty())
            && terms.get(1).is_some_and(|term| term.coefficient > 0)
        {
            terms.rotate_left(1);
        }
        let signed = terms.into_iter().map(Term::to_expr);
        signed.reduce(build::add).unwrap_or_else(|| build::int(0))
    }
}

impl Term {
    fn constant(coefficient: i64) -> Term {
        Term { coefficient, atoms: Vec::new() }
    }

    fn divided_by(&self, divisor: &Term) -> Option<Term> {
        if divisor.coefficient == 0 || self.coefficient.checked_rem(divisor.coefficient)? != 0 {
            return None;
        }
        let mut atoms = self.atoms.clone();
        for atom in &divisor.atoms {
            atoms.remove(atoms.iter().position(|own| own == atom)?);
        }
        Some(Term { coefficient: self.coefficient.checked_div(divisor.coefficient)?, atoms })
    }

    fn to_expr(&self) -> Expr {
        let product = self.atoms.iter().map(|atom| atom.expr.clone()).reduce(build::mul);
        let magnitude = match product {
            None => return build::int(self.coefficient),
            Some(product) => match self.coefficient.unsigned_abs() {
                1 => product,
                factor => multiplied(factor, product),
            },
        };
        if self.coefficient < 0 { build::negate(magnitude) } else { magnitude }
    }
}

/// `factor * a * b`, the number first.
fn multiplied(factor: u64, product: Expr) -> Expr {
    match product.kind {
        ExprKind::Arith(ArithOp::Mul, a, b) => build::mul(multiplied(factor, *a), *b),
        kind => build::mul(build::expr(ExprKind::Int(factor)), build::expr(kind)),
    }
}
