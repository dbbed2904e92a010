//! What a guard says: conditions as alternatives of comparisons between index expressions.

use crate::ops::{CompareOp, LogicOp, UnaryOp};
use crate::program::{Expr, Index};

/// A comparison that holds.
#[derive(Debug, Clone)]
pub(super) struct Fact {
    pub(super) op: CompareOp,
    pub(super) lhs: Index,
    pub(super) rhs: Index,
}

/// A condition and whether it holds where a read happens.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Guard<'a> {
    pub(super) condition: &'a Expr,
    pub(super) holds: bool,
}

/// The most alternatives that are told apart; beyond that a condition says nothing.
const MAX_ALTERNATIVES: usize = 16;

/// The most facts kept in one alternative.
const MAX_FACTS: usize = 48;

/// The guards as alternatives, each a list of facts that hold together. No alternative at all
/// means that the guards contradict themselves, so the read never happens.
pub(super) fn alternatives(guards: &[Guard<'_>]) -> Vec<Vec<Fact>> {
    // The innermost guards matter most; a limit keeps deeply nested choices cheap.
    guards
        .iter()
        .rev()
        .fold(vec![Vec::new()], |all, guard| conjoin(all, condition(guard.condition, guard.holds)))
}

fn conjoin(left: Vec<Vec<Fact>>, right: Vec<Vec<Fact>>) -> Vec<Vec<Fact>> {
    if left.len() * right.len() > MAX_ALTERNATIVES {
        return left;
    }
    let mut both = Vec::with_capacity(left.len() * right.len());
    for a in &left {
        for b in &right {
            let mut facts = a.clone();
            facts.extend(b.iter().take(MAX_FACTS.saturating_sub(a.len())).cloned());
            both.push(facts);
        }
    }
    both
}

fn condition(expr: &Expr, holds: bool) -> Vec<Vec<Fact>> {
    let nothing = || vec![Vec::new()];
    match expr {
        Expr::Unary(UnaryOp::Not, operand) => condition(operand, !holds),
        Expr::Logic(op, lhs, rhs) => {
            let (lhs, rhs) = (condition(lhs, holds), condition(rhs, holds));
            if (*op == LogicOp::And) == holds {
                conjoin(lhs, rhs)
            } else if lhs.len() + rhs.len() <= MAX_ALTERNATIVES {
                lhs.into_iter().chain(rhs).collect()
            } else {
                nothing()
            }
        }
        Expr::CompareIndex(op, lhs, rhs) => compare(*op, lhs.clone(), rhs.clone(), holds),
        Expr::Compare(op, lhs, rhs) => match (leaf(lhs), leaf(rhs)) {
            (Some(lhs), Some(rhs)) => compare(*op, lhs, rhs, holds),
            _ => nothing(),
        },
        Expr::Const(scalar) if (scalar.as_integer() != 0) != holds => Vec::new(),
        _ => nothing(),
    }
}

/// Values that a comparison sees as they are: constants and reads. Arithmetic on values may wrap
/// around, so nothing is concluded from it.
fn leaf(expr: &Expr) -> Option<Index> {
    match expr {
        Expr::Const(scalar) if scalar.dtype().is_integer() => {
            Some(Index::constant(i64::try_from(scalar.as_integer()).ok()?))
        }
        // Floating-point values become opaque integers that no subscript mentions: harmless.
        Expr::Read(_) => Some(Index::value(expr.clone())),
        Expr::Cast(dtype, _) if dtype.is_integer() => Some(Index::value(expr.clone())),
        _ => None,
    }
}

fn compare(op: CompareOp, lhs: Index, rhs: Index, holds: bool) -> Vec<Vec<Fact>> {
    let op = if holds { op } else { op.negate() };
    let fact = |op| vec![Fact { op, lhs: lhs.clone(), rhs: rhs.clone() }];
    match op {
        CompareOp::Ne => vec![fact(CompareOp::Lt), fact(CompareOp::Gt)],
        op => vec![fact(op)],
    }
}
