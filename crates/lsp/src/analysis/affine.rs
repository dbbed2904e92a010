//! Affine index expressions: a coefficient per index variable, and a rest.

use std::collections::BTreeMap;

use tensorwright_lang::ops::{ArithOp, UnaryOp};
use tensorwright_lang::syntax::ast::{Expr, ExprKind};

use super::names::Scope;
use super::poly::Poly;

/// `2*h + kh - p`
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Affine {
    pub(super) rest: Poly,
    /// No coefficient is zero.
    pub(super) indices: BTreeMap<String, Poly>,
}

/// The meaning of names.
pub(super) struct Symbols<'a> {
    pub(super) scope: &'a Scope<'a>,
    /// The extent of a tensor dimension, if known.
    pub(super) extent: &'a dyn Fn(&str, usize) -> Option<Poly>,
}

impl Affine {
    /// The affine form, if the expression is linear in the index variables: no division, no
    /// selection.
    pub(super) fn of(expr: &Expr, symbols: &Symbols<'_>) -> Option<Affine> {
        match &expr.kind {
            ExprKind::Int(value) => Some(Affine::rest(Poly::constant(i64::try_from(*value).ok()?))),
            ExprKind::Name(name) if symbols.scope.is_index(name) => Some(Affine::index(name)),
            ExprKind::Name(name) => Some(Affine::rest(Poly::atom(name.as_str()))),
            ExprKind::DimOf(tensor, dimension) => {
                (symbols.extent)(&tensor.name, *dimension as usize).map(Affine::rest)
            }
            ExprKind::Unary(UnaryOp::Neg, operand) => {
                Affine::of(operand, symbols)?.times(&Poly::constant(-1))
            }
            ExprKind::Arith(op, lhs, rhs) => {
                let (lhs, rhs) = (Affine::of(lhs, symbols)?, Affine::of(rhs, symbols)?);
                match op {
                    ArithOp::Add => lhs.plus(&rhs),
                    ArithOp::Sub => lhs.plus(&rhs.times(&Poly::constant(-1))?),
                    ArithOp::Mul if rhs.indices.is_empty() => lhs.times(&rhs.rest),
                    ArithOp::Mul if lhs.indices.is_empty() => rhs.times(&lhs.rest),
                    ArithOp::Mul | ArithOp::Div | ArithOp::Rem => None,
                }
            }
            _ => None,
        }
    }

    pub(super) fn index(name: &str) -> Affine {
        Affine {
            indices: BTreeMap::from([(name.to_owned(), Poly::constant(1))]),
            ..Affine::default()
        }
    }

    fn rest(rest: Poly) -> Affine {
        Affine { rest, ..Affine::default() }
    }

    fn plus(&self, other: &Affine) -> Option<Affine> {
        let mut indices = self.indices.clone();
        for (name, coefficient) in &other.indices {
            let sum = indices.entry(name.clone()).or_default();
            *sum = sum.plus(coefficient)?;
        }
        indices.retain(|_, coefficient| coefficient.as_constant() != Some(0));
        Some(Affine { rest: self.rest.plus(&other.rest)?, indices })
    }

    fn times(&self, factor: &Poly) -> Option<Affine> {
        let scaled = |(name, coefficient): (&String, &Poly)| {
            Some((name.clone(), coefficient.times(factor)?))
        };
        let mut indices: BTreeMap<String, Poly> =
            self.indices.iter().map(scaled).collect::<Option<_>>()?;
        indices.retain(|_, coefficient| coefficient.as_constant() != Some(0));
        Some(Affine { rest: self.rest.times(factor)?, indices })
    }
}
