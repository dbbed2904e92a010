//! Index arithmetic as polynomials, to solve equations between subscripts.
//!
//! ```text
//! s*h + kh - p   ->   1*{s,h} + 1*{kh} - 1*{p}
//! ```
//!
//! Anything other than a sum or a product (a quotient, a minimum, an index from data) is an atom.

use std::cmp::Ordering;

use tensorwright_lang::ops::{ArithOp, UnaryOp};
use tensorwright_lang::polynomial::{self, Polynomial};
use tensorwright_lang::syntax::ast::{Expr, ExprKind};
use tensorwright_lang::syntax::print_expr;

use crate::build;
use crate::tree;

/// The most products in a sum.
const MAX_TERMS: usize = 128;

/// A sum of products of expressions.
pub(crate) type Poly = Polynomial<Atom, MAX_TERMS>;

/// A product of expressions and a number.
pub(crate) type Term = polynomial::Term<Atom>;

/// `factor*var + rest`, and the variable is nowhere in the factor and the rest.
pub(crate) type Linear = polynomial::Linear<Atom, MAX_TERMS>;

/// An opaque expression, identified by its text.
#[derive(Debug, Clone)]
pub(crate) struct Atom {
    text: String,
    pub(crate) expr: Expr,
}

impl From<Expr> for Atom {
    fn from(expr: Expr) -> Atom {
        let expr = tree::unplaced(&expr);
        Atom { text: print_expr(&expr), expr }
    }
}

impl PartialEq for Atom {
    fn eq(&self, other: &Atom) -> bool {
        self.text == other.text
    }
}

impl Eq for Atom {}

impl PartialOrd for Atom {
    fn partial_cmp(&self, other: &Atom) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Atom {
    fn cmp(&self, other: &Atom) -> Ordering {
        self.text.cmp(&other.text)
    }
}

impl Atom {
    /// Whether it is or contains this variable.
    fn mentions(&self, var: &str) -> bool {
        tree::mentions(&self.expr, var)
    }

    fn is(&self, var: &str) -> bool {
        build::as_name(&self.expr) == Some(var)
    }
}

/// Conversions between expressions and polynomials.
pub(crate) trait IndexSum {
    /// A variable or a size.
    fn name(name: &str) -> Self;

    /// An expression of index arithmetic.
    fn of(expr: &Expr) -> Self;

    /// Whether the variable occurs anywhere.
    fn mentions(&self, var: &str) -> bool;

    /// The decomposition by a variable, if it occurs only as a factor and at most once per term.
    fn linear_in_var(&self, var: &str) -> Option<Linear>;

    /// The sum as an expression: positive terms first, then negative ones, the constant last.
    fn to_expr(&self) -> Expr;
}

impl IndexSum for Poly {
    fn name(name: &str) -> Poly {
        Poly::atom(build::name(name))
    }

    fn of(expr: &Expr) -> Poly {
        let sum = match &expr.kind {
            ExprKind::Int(value) => i64::try_from(*value).ok().map(Poly::constant),
            ExprKind::Unary(UnaryOp::Neg, a) => Poly::of(a).scale(-1),
            ExprKind::Arith(ArithOp::Add, a, b) => Poly::of(a).plus(&Poly::of(b)),
            ExprKind::Arith(ArithOp::Sub, a, b) => Poly::of(a).minus(&Poly::of(b)),
            ExprKind::Arith(ArithOp::Mul, a, b) => Poly::of(a).times(&Poly::of(b)),
            _ => None,
        };
        // An expression that overflows 64 bits or has too many terms is an atom.
        sum.unwrap_or_else(|| Poly::atom(expr.clone()))
    }

    fn mentions(&self, var: &str) -> bool {
        self.atoms().any(|atom| atom.mentions(var))
    }

    fn linear_in_var(&self, var: &str) -> Option<Linear> {
        self.linear_in(|atom| atom.is(var), |atom| atom.mentions(var))
    }

    fn to_expr(&self) -> Expr {
        let rank = |term: &&Term| (term.coefficient < 0, term.atoms.is_empty());
        let mut terms: Vec<&Term> = self.terms().iter().collect();
        terms.sort_by_key(rank);
        // `i - 1` and not `-1 + i`, but `3 - i` and not `-i + 3`.
        if terms.first().is_some_and(|term| term.coefficient > 0 && term.atoms.is_empty())
            && terms.get(1).is_some_and(|term| term.coefficient > 0)
        {
            terms.rotate_left(1);
        }
        terms.into_iter().map(product).reduce(build::add).unwrap_or_else(|| build::int(0))
    }
}

/// A product as an expression.
fn product(term: &Term) -> Expr {
    let product = term.atoms.iter().map(|atom| atom.expr.clone()).reduce(build::mul);
    let magnitude = match product {
        None => return build::int(term.coefficient),
        Some(product) => match term.coefficient.unsigned_abs() {
            1 => product,
            factor => multiplied(factor, product),
        },
    };
    if term.coefficient < 0 { build::negate(magnitude) } else { magnitude }
}

/// `factor * a * b`, the coefficient first.
fn multiplied(factor: u64, product: Expr) -> Expr {
    match product.kind {
        ExprKind::Arith(ArithOp::Mul, a, b) => build::mul(multiplied(factor, *a), *b),
        kind => build::mul(build::expr(ExprKind::Int(factor)), build::expr(kind)),
    }
}
