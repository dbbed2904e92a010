//! Wraps right sides that are too long for a line.
//!
//! ```text
//! d_in(h, w) +=! (h - kh) % s == 0 && h - kh >= 0 && (h - kh) / s < out_h
//!     && w - kw >= 0 && w - kw < out_w
//!     ? d_out((h - kh) / s, w - kw) * weight(kh, kw)
//!     : 0
//! ```

use super::{Level, MAX_WIDTH, Shown};
use crate::ops::{ArithOp, LogicOp};
use crate::syntax::ast::{Expr, ExprKind};

/// An operand and the operator before it.
type Piece = (&'static str, String);

/// A right side that starts in the column `first`; further lines are indented. A selection is
/// broken before `?` and `:`, a sum before `+` and `-`, a condition before `&&`.
pub(super) fn wrapped(rhs: &Expr, first: usize, indent: usize) -> String {
    let text = Shown(rhs, Level::Select).to_string();
    if first + text.chars().count() <= MAX_WIDTH {
        return text;
    }
    match &rhs.kind {
        ExprKind::Select(condition, chosen, other) => {
            let mut pieces = Vec::new();
            conjuncts(condition, Level::Or, &mut pieces);
            let condition = filled(&pieces, first, indent);
            let branch = |symbol: &str, branch: &Expr| {
                let text = wrapped(branch, indent + 2, indent + 2);
                format!("\n{:indent$}{symbol} {text}", "")
            };
            condition + &branch("?", chosen) + &branch(":", other)
        }
        _ => {
            let mut pieces = Vec::new();
            terms(rhs, &mut pieces);
            filled(&pieces, first, indent)
        }
    }
}

fn conjuncts(condition: &Expr, needed: Level, pieces: &mut Vec<Piece>) {
    match &condition.kind {
        ExprKind::Logic(LogicOp::And, left, right) => {
            conjuncts(left, Level::And, pieces);
            pieces.push((LogicOp::And.symbol(), Shown(right, Level::Equality).to_string()));
        }
        _ => pieces.push(("", Shown(condition, needed).to_string())),
    }
}

fn terms(sum: &Expr, pieces: &mut Vec<Piece>) {
    match &sum.kind {
        ExprKind::Arith(op @ (ArithOp::Add | ArithOp::Sub), left, right) => {
            terms(left, pieces);
            pieces.push((op.symbol(), Shown(right, Level::Product).to_string()));
        }
        _ => pieces.push(("", Shown(sum, Level::Sum).to_string())),
    }
}

/// As many pieces per line as fit.
fn filled(pieces: &[Piece], first: usize, indent: usize) -> String {
    let mut text = String::new();
    let mut column = first;
    for (operator, operand) in pieces {
        if operator.is_empty() {
            text += operand;
            column += operand.chars().count();
            continue;
        }
        let piece = format!("{operator} {operand}");
        let width = piece.chars().count();
        if column + 1 + width <= MAX_WIDTH {
            text += &format!(" {piece}");
            column += 1 + width;
        } else {
            text += &format!("\n{:indent$}{piece}", "");
            column = indent + width;
        }
    }
    text
}
