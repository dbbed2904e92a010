//! Counts the parts of expressions: operands, operators, subscript terms.

use tensorwright_lang::program::{Atom, Expr, Index, Term};

/// Operands, operators and terms of subscripts.
pub(crate) fn parts(expr: &Expr) -> usize {
    let both = |a: &Expr, b: &Expr| parts(a) + parts(b);
    1 + match expr {
        Expr::Const(_) => 0,
        Expr::Index(index, _) => index_parts(index),
        Expr::Read(read) => read.subscripts.iter().map(index_parts).sum(),
        Expr::CompareIndex(_, a, b) => index_parts(a) + index_parts(b),
        Expr::Unary(_, a) | Expr::Cast(_, a) => parts(a),
        Expr::Arith(_, a, b) | Expr::Compare(_, a, b) | Expr::Logic(_, a, b) => both(a, b),
        Expr::Select(c, a, b) => parts(c) + both(a, b),
        Expr::Call(_, args) => args.iter().map(parts).sum(),
    }
}

/// The terms of an index expression and of nested ones; a single variable counts zero.
pub(crate) fn index_parts(index: &Index) -> usize {
    let term = |term: &Term| match &term.atom {
        Atom::Axis(_) => 1,
        Atom::Div(inner, _) | Atom::Mod(inner, _) | Atom::Product(inner, _) => {
            1 + index_parts(inner)
        }
        Atom::Min(a, b) | Atom::Max(a, b) => 1 + index_parts(a) + index_parts(b),
        Atom::Value(value) => parts(value),
    };
    match index.as_axis() {
        Some(_) => 0,
        None => index.terms().iter().map(term).sum(),
    }
}
