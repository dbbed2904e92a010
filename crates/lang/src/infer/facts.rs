//! Guards in disjunctive normal form: alternatives of index comparisons.

use crate::ops::{CompareOp, LogicOp, UnaryOp};
use crate::program::{Expr, Index};

/// A comparison that holds.
#[derive(Debug, Clone, Copy)]
pub(super) struct Fact<'a> {
    pub(super) op: CompareOp,
    pub(super) lhs: &'a Index,
    pub(super) rhs: &'a Index,
}

/// A condition and whether it holds where a read happens.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Guard<'a> {
    pub(crate) condition: &'a Expr,
    pub(super) holds: bool,
}

/// The most alternatives; a condition with more is ignored.
const MAX_ALTERNATIVES: usize = 16;

/// The most facts of one alternative.
const MAX_FACTS: usize = 48;

/// The guards as alternatives, each a conjunction of facts. No alternative means that the guards
/// contradict each other, so the read never happens.
pub(super) fn alternatives<'a>(guards: &[Guard<'a>]) -> Vec<Vec<Fact<'a>>> {
    // The innermost guards matter most; a limit bounds the cost of deeply nested selections.
    guards
        .iter()
        .rev()
        .fold(vec![Vec::new()], |all, guard| conjoin(all, condition(guard.condition, guard.holds)))
}

fn conjoin<'a>(left: Vec<Vec<Fact<'a>>>, right: Vec<Vec<Fact<'a>>>) -> Vec<Vec<Fact<'a>>> {
    if left.len() * right.len() > MAX_ALTERNATIVES {
        return left;
    }
    let mut both = Vec::with_capacity(left.len() * right.len());
    for a in &left {
        for b in &right {
            let mut facts = a.clone();
            facts.extend(b.iter().take(MAX_FACTS.saturating_sub(a.len())));
            both.push(facts);
        }
    }
    both
}

/// Only comparisons of index arithmetic count. Floating-point ones must not: where `a < b` does not
/// hold, `a >= b` need not hold either.
fn condition(expr: &Expr, holds: bool) -> Vec<Vec<Fact<'_>>> {
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
        Expr::CompareIndex(op, lhs, rhs) => compare(*op, lhs, rhs, holds),
        Expr::Const(scalar) if (scalar.as_integer() != 0) != holds => Vec::new(),
        _ => nothing(),
    }
}

fn compare<'a>(op: CompareOp, lhs: &'a Index, rhs: &'a Index, holds: bool) -> Vec<Vec<Fact<'a>>> {
    let op = if holds { op } else { op.negate() };
    let fact = |op| vec![Fact { op, lhs, rhs }];
    match op {
        CompareOp::Ne => vec![fact(CompareOp::Lt), fact(CompareOp::Gt)],
        op => vec![fact(op)],
    }
}
