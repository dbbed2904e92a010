//! A product in normal form: coefficient, factors and divisors.

use tensorwright_lang::ops::{ArithOp, UnaryOp};
use tensorwright_lang::syntax::ast::{Expr, ExprKind};
use tensorwright_lang::syntax::print_expr;

use crate::build;

/// `number * factors / divisor / divisors`
#[derive(Debug, Clone)]
pub(crate) struct Product {
    number: f64,
    factors: Vec<Expr>,
    divisor: f64,
    divisors: Vec<Expr>,
}

impl Product {
    /// The empty product.
    pub(crate) fn one() -> Product {
        Product { number: 1.0, factors: Vec::new(), divisor: 1.0, divisors: Vec::new() }
    }

    /// Multiplies by an expression; constants are folded into the coefficient.
    #[must_use]
    pub(crate) fn times(mut self, factor: &Expr) -> Product {
        match &factor.kind {
            ExprKind::Int(value) => self.scaled(*value as f64),
            ExprKind::Float(value) => self.scaled(*value),
            ExprKind::Unary(UnaryOp::Neg, inner) => self.scaled(-1.0).times(inner),
            ExprKind::Arith(ArithOp::Mul, a, b) => self.times(a).times(b),
            _ => {
                self.factors.push(factor.clone());
                self
            }
        }
    }

    /// Divides by an expression.
    #[must_use]
    pub(crate) fn over(mut self, divisor: &Expr) -> Product {
        match &divisor.kind {
            ExprKind::Int(value) => self.divisor *= *value as f64,
            ExprKind::Float(value) => self.divisor *= *value,
            _ => self.divisors.push(divisor.clone()),
        }
        self
    }

    /// Multiplies by a number.
    #[must_use]
    pub(crate) fn scaled(mut self, by: f64) -> Product {
        self.number *= by;
        self
    }

    /// Multiplies by another product.
    #[must_use]
    pub(crate) fn by(mut self, other: &Product) -> Product {
        self.number *= other.number;
        self.divisor *= other.divisor;
        self.factors.extend(other.factors.iter().cloned());
        self.divisors.extend(other.divisors.iter().cloned());
        self
    }

    /// Adds the product to a sum; like terms are merged.
    pub(crate) fn add_to(self, sum: &mut Vec<Product>) {
        let key = self.key();
        match sum.iter_mut().find(|own| own.key() == key) {
            Some(own) => own.number += self.number,
            None => sum.push(self),
        }
    }

    /// The product without its coefficient, in canonical order.
    fn key(&self) -> (Vec<String>, u64, Vec<String>) {
        let sorted = |list: &[Expr]| {
            let mut texts: Vec<String> = list.iter().map(print_expr).collect();
            texts.sort();
            texts
        };
        (sorted(&self.factors), self.divisor.to_bits(), sorted(&self.divisors))
    }

    /// The product as an expression.
    pub(crate) fn to_expr(&self) -> Expr {
        let mut factors = self.factors.iter().cloned();
        let magnitude = self.number.abs();
        let first = match factors.next() {
            Some(first) if magnitude == 1.0 => first,
            Some(first) => build::mul(build::number(magnitude), first),
            None => build::number(magnitude),
        };
        let first = if self.number < 0.0 { negated_first(first) } else { first };
        let product = factors.fold(first, build::mul);
        let number = Some(build::number(self.divisor)).filter(|_| self.divisor != 1.0);
        number.into_iter().chain(self.divisors.iter().cloned()).fold(product, build::div)
    }
}

/// A sum of products as an expression.
pub(crate) fn sum(products: &[Product]) -> Expr {
    let terms = products.iter().filter(|product| product.number != 0.0).map(Product::to_expr);
    terms.reduce(build::add).unwrap_or_else(|| build::int(0))
}

/// `-a * b` for `a * b`: the minus belongs to the first factor.
fn negated_first(product: Expr) -> Expr {
    match product.kind {
        ExprKind::Arith(ArithOp::Mul, a, b) => build::mul(build::negate(*a), *b),
        kind => build::negate(build::expr(kind)),
    }
}
