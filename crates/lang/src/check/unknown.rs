//! Reports undeclared names.
//!
//! An undeclared name is an index variable. One that occurs only on the right side, without a
//! `where` range and in no limiting subscript, is a misspelled size or scalar.

use super::scope::Scope;
use crate::builtin::{CONSTANTS, constant_like};
use crate::diagnostic::{Code, Diagnostic};
use crate::hir::{Expr, Int, Var};
use crate::ops::ArithOp;

/// Reports right-side variables that no subscript can limit.
pub(super) fn report_undeclared(
    scope: &mut Scope<'_>,
    sides: &[&Expr],
    vars: &[Var],
    rank: usize,
) -> Option<()> {
    let mut limited = Limited(0);
    sides.iter().for_each(|side| limited.expr(side));
    let mut good = Some(());
    for (number, var) in vars.iter().enumerate().skip(rank) {
        if var.range.is_none() && limited.0 >> number & 1 == 0 {
            let diagnostic = unknown(scope, var);
            scope.report(diagnostic);
            good = None;
        }
    }
    good
}

fn unknown(scope: &Scope<'_>, var: &Var) -> Diagnostic {
    let name = &var.name;
    let diagnostic =
        Diagnostic::new(Code::UnknownName, var.span, format!("`{name}` is not known here"))
            .here("not a tensor, a size or a scalar");
    let constants = CONSTANTS.iter().map(|(constant, _)| *constant);
    let known = scope.names.keys().copied().chain(constants);
    match constant_like(name).map(str::to_owned).or_else(|| scope.suggest(name, known)) {
        Some(near) => diagnostic.help(format!("did you mean `{near}`?")).fix(var.span, near),
        None => diagnostic
            .help(format!(
                "declare it in the signature; or, if it is an index variable, give its range: \
                 `where {name} in 0:...`"
            ))
            .note("a name that nothing declares is an index variable, and nothing limits this one"),
    }
}

/// The variables (as bits) that occur in a subscript that may limit them.
struct Limited(u64);

impl Limited {
    fn expr(&mut self, expr: &Expr) {
        match expr {
            Expr::Float(..) | Expr::Bool(_) => {}
            Expr::Int(int, ..) => self.values(int),
            Expr::Read(_, subscripts, _) => subscripts.iter().for_each(|s| self.subscript(s)),
            Expr::Unary(_, operand) | Expr::Cast(_, operand) => self.expr(operand),
            Expr::Arith(_, lhs, rhs) | Expr::Compare(_, lhs, rhs) | Expr::Logic(_, lhs, rhs) => {
                self.expr(lhs);
                self.expr(rhs);
            }
            Expr::CompareInt(_, lhs, rhs) => {
                self.values(lhs);
                self.values(rhs);
            }
            Expr::Select(condition, then, otherwise) => {
                self.expr(condition);
                self.expr(then);
                self.expr(otherwise);
            }
            Expr::Call(_, args) => args.iter().for_each(|arg| self.expr(arg)),
        }
    }

    /// Index arithmetic in a subscript: a variable counts unless it is multiplied or divided by
    /// something that varies.
    fn subscript(&mut self, int: &Int) {
        match int {
            Int::Literal(_) | Int::Size(_) | Int::DimOf(..) | Int::Scalar(..) => {}
            Int::Var(var) => self.0 |= 1 << var.0,
            Int::Arith(ArithOp::Mul, lhs, rhs, _) if varies(lhs) && varies(rhs) => {
                self.values(lhs);
                self.values(rhs);
            }
            Int::Arith(ArithOp::Div | ArithOp::Rem, lhs, rhs, _) if varies(rhs) => {
                self.values(lhs);
                self.values(rhs);
            }
            Int::Arith(_, lhs, rhs, _) | Int::Min(lhs, rhs) | Int::Max(lhs, rhs) => {
                self.subscript(lhs);
                self.subscript(rhs);
            }
            Int::Value(value) => self.expr(value),
        }
    }

    /// Index arithmetic elsewhere: only the subscripts of reads inside it count.
    fn values(&mut self, int: &Int) {
        match int {
            Int::Arith(_, lhs, rhs, _) | Int::Min(lhs, rhs) | Int::Max(lhs, rhs) => {
                self.values(lhs);
                self.values(rhs);
            }
            Int::Value(value) => self.expr(value),
            _ => {}
        }
    }
}

fn varies(int: &Int) -> bool {
    match int {
        Int::Literal(_) | Int::Size(_) | Int::DimOf(..) | Int::Scalar(..) => false,
        Int::Var(_) | Int::Value(_) => true,
        Int::Arith(_, lhs, rhs, _) | Int::Min(lhs, rhs) | Int::Max(lhs, rhs) => {
            varies(lhs) || varies(rhs)
        }
    }
}
