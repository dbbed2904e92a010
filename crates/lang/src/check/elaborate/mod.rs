//! Elaboration: resolves names, infers types, and types literals from context.
//!
//! A function that returns `None` has reported the error.

mod apply;
mod int;
mod read;
mod recurrence;

pub(super) use apply::reduction_help;
pub(super) use recurrence::Recurrence;

use std::collections::HashMap;

use super::coerce;
use super::scope::{Entity, Scope};
use crate::builtin::{Builtin, CONSTANTS};
use crate::diagnostic::{Code, Diagnostic};
use crate::dtype::DType;
use crate::hir::{Expr, Int, Symbol, Ty, Var, VarId};
use crate::ops::{ArithOp, CompareOp, UnaryOp};
use crate::source::Span;
use crate::syntax::ast::{self, ExprKind, Ident};
use crate::syntax::print_expr;

use int::negate;

/// The elaboration of one statement.
pub(super) struct Elaborator<'s, 'a> {
    pub(super) scope: &'s mut Scope<'a>,
    /// The index variables so far, those of the left side first.
    pub(super) vars: Vec<Var>,
    var_ids: HashMap<&'a str, VarId>,
    /// The target of the statement.
    target: Option<(Symbol, &'a [Ident])>,
    /// The recurrence, if the statement is one.
    pub(super) recurrence: Option<Recurrence<'a>>,
    /// The number of enclosing subscripts.
    subscript_depth: usize,
}

/// The meaning of a name inside a statement.
enum ResolvedName {
    Tensor(Symbol),
    Int(Int),
    Constant(f64),
}

impl<'s, 'a> Elaborator<'s, 'a> {
    pub(super) fn new(scope: &'s mut Scope<'a>) -> Self {
        Self {
            scope,
            vars: Vec::new(),
            var_ids: HashMap::new(),
            target: None,
            recurrence: None,
            subscript_depth: 0,
        }
    }

    pub(super) fn set_target(&mut self, symbol: Symbol, indices: &'a [Ident]) {
        self.target = Some((symbol, indices));
    }

    pub(super) fn report(&mut self, diagnostic: Diagnostic) {
        self.scope.report(diagnostic);
    }

    pub(super) fn add_var(&mut self, name: &'a str, span: Span) -> VarId {
        let id = VarId(self.vars.len() as u32);
        self.vars.push(Var { name: name.to_owned(), span, range: None });
        self.var_ids.insert(name, id);
        id
    }

    /// Removes and returns the variables from a number on.
    pub(super) fn forget_vars(&mut self, from: usize) -> Vec<Var> {
        self.var_ids.retain(|_, id| (id.0 as usize) < from);
        self.vars.split_off(from)
    }

    pub(super) fn var(&self, name: &str) -> Option<VarId> {
        self.var_ids.get(name).copied()
    }

    /// Resolves a bare name; an unknown one is an index variable.
    fn named(&mut self, name: &'a str, span: Span) -> ResolvedName {
        match self.scope.names.get(name) {
            Some(Entity::Size(size)) => return ResolvedName::Int(Int::Size(*size)),
            Some(Entity::Tensor(symbol)) => return ResolvedName::Tensor(*symbol),
            None => {}
        }
        if let Some((_, value)) = CONSTANTS.iter().find(|(constant, _)| *constant == name) {
            return ResolvedName::Constant(*value);
        }
        let var = self.var(name).unwrap_or_else(|| self.add_var(name, span));
        ResolvedName::Int(Int::Var(var))
    }

    /// A value with its type.
    pub(super) fn value(&mut self, expr: &'a ast::Expr) -> Option<(Expr, Ty)> {
        let span = expr.span;
        let int = |int| Some((Expr::Int(int, None, span), Ty::AnyInt));
        match &expr.kind {
            ExprKind::Int(value) => int(Int::Literal(self.literal(*value, span)?)),
            ExprKind::Float(value) => Some((Expr::Float(*value, None), Ty::AnyFloat)),
            ExprKind::Bool(value) => Some((Expr::Bool(*value), Ty::Typed(DType::Bool))),
            ExprKind::DimOf(tensor, dim) => int(self.dim_of(tensor, *dim, span)?),
            ExprKind::Name(name) => match self.named(name, span) {
                ResolvedName::Int(index) => int(index),
                ResolvedName::Constant(value) => Some((Expr::Float(value, None), Ty::AnyFloat)),
                ResolvedName::Tensor(symbol) => self.read(symbol, span, span, &[]),
            },
            ExprKind::Apply(callee, args) => self.apply(expr, callee, args),
            ExprKind::Unary(op, operand) => self.unary(*op, operand, span),
            ExprKind::Arith(op, lhs, rhs) => self.arith(*op, lhs, rhs, span),
            ExprKind::Compare(op, lhs, rhs) => {
                Some((self.compare(*op, lhs, rhs)?, Ty::Typed(DType::Bool)))
            }
            ExprKind::Logic(op, lhs, rhs) => {
                let sides = (self.condition(lhs), self.condition(rhs));
                let (lhs, rhs) = (sides.0?, sides.1?);
                let logic = Expr::Logic(*op, Box::new(lhs), Box::new(rhs));
                Some((logic, Ty::Typed(DType::Bool)))
            }
            ExprKind::Select(condition, then, otherwise) => {
                let condition = self.condition(condition);
                let branches = (self.value(then), self.value(otherwise));
                let (condition, lhs, rhs) = (condition?, branches.0?, branches.1?);
                let what = "the two branches of `?:`";
                let (then, otherwise, ty) = self.unify((lhs, then), (rhs, otherwise), what)?;
                let select = Expr::Select(Box::new(condition), Box::new(then), Box::new(otherwise));
                Some((select, ty))
            }
        }
    }

    fn literal(&mut self, value: u64, span: Span) -> Option<i64> {
        let literal = i64::try_from(value).ok();
        if literal.is_none() {
            let message = format!("the literal {value} is too large");
            self.report(
                Diagnostic::new(Code::LiteralOutOfRange, span, message)
                    .here(format!("the largest is {}", i64::MAX))
                    .help("pass larger values in as a tensor or a scalar"),
            );
        }
        literal
    }

    fn condition(&mut self, expr: &'a ast::Expr) -> Option<Expr> {
        let (value, ty) = self.value(expr)?;
        if ty == Ty::Typed(DType::Bool) {
            return Some(value);
        }
        let text = coerce::describe(ty);
        self.report(
            Diagnostic::new(Code::NotBoolean, expr.span, "a condition must be a `bool`")
                .here(format!("this is {text}"))
                .help("compare it with something, for example `... != 0`"),
        );
        None
    }

    fn unary(&mut self, op: UnaryOp, operand: &'a ast::Expr, span: Span) -> Option<(Expr, Ty)> {
        if op == UnaryOp::Not {
            let condition = self.condition(operand)?;
            return Some((Expr::Unary(op, Box::new(condition)), Ty::Typed(DType::Bool)));
        }
        let (value, ty) = self.value(operand)?;
        self.numeric(ty, operand.span)?;
        Some(match value {
            Expr::Int(int, None, _) => (Expr::Int(negate(int, span), None, span), ty),
            Expr::Float(value, dtype) => (Expr::Float(-value, dtype), ty),
            value => (Expr::Unary(op, Box::new(value)), ty),
        })
    }

    fn numeric(&mut self, ty: Ty, span: Span) -> Option<()> {
        if ty != Ty::Typed(DType::Bool) {
            return Some(());
        }
        self.report(
            Diagnostic::new(Code::NotNumeric, span, "there is no arithmetic on `bool`")
                .here("this is a `bool`")
                .help("convert it, for example `int32(...)`, or choose with `... ? 1 : 0`"),
        );
        None
    }

    fn arith(
        &mut self,
        op: ArithOp,
        lhs: &'a ast::Expr,
        rhs: &'a ast::Expr,
        span: Span,
    ) -> Option<(Expr, Ty)> {
        let sides = (self.value(lhs), self.value(rhs));
        let (left, right) = (sides.0?, sides.1?);
        self.numeric(left.1, lhs.span)?;
        self.numeric(right.1, rhs.span)?;
        if matches!(op, ArithOp::Div | ArithOp::Rem) {
            self.divisor(&right.0, &left, rhs.span)?;
        }
        let (left, right) = match (left, right) {
            ((Expr::Int(a, None, _), _), (Expr::Int(b, None, _), _)) => {
                let int = Int::arith(op, a, b, span);
                return Some((Expr::Int(int, None, span), Ty::AnyInt));
            }
            sides => sides,
        };
        let what = format!("the two sides of `{}`", op.symbol());
        let (left, right, ty) = self.unify((left, lhs), (right, rhs), &what)?;
        let is_float = matches!(ty, Ty::AnyFloat) || matches!(ty, Ty::Typed(d) if d.is_float());
        if op == ArithOp::Rem && is_float {
            self.report(
                Diagnostic::new(Code::NeedsInteger, span, "`%` is for integers")
                    .here("these are fractions")
                    .help("write `fmod(a, b)` for the remainder of floating-point numbers"),
            );
            return None;
        }
        Some((Expr::Arith(op, Box::new(left), Box::new(right)), ty))
    }

    /// Rejects a division by the literal 0 (of integers; a float may be divided by zero).
    fn divisor(&mut self, divisor: &Expr, dividend: &(Expr, Ty), span: Span) -> Option<()> {
        let float = matches!(dividend.1, Ty::AnyFloat)
            || matches!(dividend.1, Ty::Typed(dtype) if dtype.is_float());
        if matches!(divisor, Expr::Int(Int::Literal(0), ..)) && !float {
            self.report(
                Diagnostic::new(Code::DivisionByZero, span, "division by zero")
                    .here("this is zero"),
            );
            return None;
        }
        Some(())
    }

    /// Converts two operands to one type.
    fn unify(
        &mut self,
        ((lhs, lhs_ty), lhs_text): ((Expr, Ty), &ast::Expr),
        ((rhs, rhs_ty), rhs_text): ((Expr, Ty), &ast::Expr),
        what: &str,
    ) -> Option<(Expr, Expr, Ty)> {
        let ty = lhs_ty.join(rhs_ty);
        match ty {
            Ty::Typed(dtype) => {
                if let (Ty::Typed(a), Ty::Typed(b)) = (lhs_ty, rhs_ty)
                    && a != b
                {
                    let diagnostic = mismatch((a, lhs_text), (b, rhs_text), what);
                    self.report(diagnostic);
                    return None;
                }
                let lhs = coerce::coerce(self.scope, lhs, lhs_ty, dtype, lhs_text.span)?;
                let rhs = coerce::coerce(self.scope, rhs, rhs_ty, dtype, rhs_text.span)?;
                Some((lhs, rhs, ty))
            }
            _ => {
                if ty == Ty::AnyFloat {
                    coerce::no_integer_division(self.scope, &lhs, lhs_ty, lhs_text.span)?;
                    coerce::no_integer_division(self.scope, &rhs, rhs_ty, rhs_text.span)?;
                }
                Some((lhs, rhs, ty))
            }
        }
    }

    /// Rejects `a > 0 & b < 1`, which compares `0 & b`, and then a `bool`.
    fn joined_by_bits(&mut self, lhs: &ast::Expr) -> Option<()> {
        let ast::ExprKind::Compare(_, _, middle) = &lhs.kind else { return Some(()) };
        let ast::ExprKind::Apply(callee, _) = &middle.kind else { return Some(()) };
        let symbol = match Builtin::from_name(&callee.name) {
            Some(Builtin::BitAnd) => "&&",
            Some(Builtin::BitOr) => "||",
            _ => return Some(()),
        };
        let message = format!("conditions are joined by `{symbol}`");
        self.report(
            Diagnostic::new(Code::NotNumeric, callee.span, message)
                .here("this joins the bits of two integers, and binds tighter than comparisons")
                .help(format!("write `{symbol}`"))
                .fix(callee.span, symbol),
        );
        None
    }

    /// A comparison. Integers are compared by index arithmetic, which does not wrap around (except
    /// `uint64`, which is compared as is); everything else is compared as values of one type.
    fn compare(&mut self, op: CompareOp, lhs: &'a ast::Expr, rhs: &'a ast::Expr) -> Option<Expr> {
        self.joined_by_bits(lhs)?;
        let types = (self.scope.settled_type(lhs), self.scope.settled_type(rhs));
        let integers = types.0.is_integer() && types.1.is_integer();
        let unsigned = [types.0, types.1].contains(&Ty::Typed(DType::UInt64));
        if integers && !unsigned {
            let sides = (self.int(lhs), self.int(rhs));
            return Some(Expr::CompareInt(op, sides.0?, sides.1?));
        }
        let sides = (self.value(lhs), self.value(rhs));
        let what = format!("the two sides of `{}`", op.symbol());
        let (left, right, ty) = self.unify((sides.0?, lhs), (sides.1?, rhs), &what)?;
        let dtype = ty.settle();
        let left = coerce::coerce(self.scope, left, ty, dtype, lhs.span)?;
        let right = coerce::coerce(self.scope, right, ty, dtype, rhs.span)?;
        Some(Expr::Compare(op, Box::new(left), Box::new(right)))
    }
}

fn mismatch(
    (lhs, lhs_text): (DType, &ast::Expr),
    (rhs, rhs_text): (DType, &ast::Expr),
    what: &str,
) -> Diagnostic {
    let message = format!("{what} have different types, `{lhs}` and `{rhs}`");
    // The conversion that loses least: to the floating-point or wider type.
    let rank = |dtype: DType| (dtype.is_float(), dtype.bytes(), dtype);
    let (to, narrow) = if rank(lhs) >= rank(rhs) { (lhs, rhs_text) } else { (rhs, lhs_text) };
    let converted = format!("{to}({})", print_expr(narrow));
    Diagnostic::new(Code::TypeMismatch, lhs_text.span.to(rhs_text.span), message)
        .label(lhs_text.span, format!("`{lhs}`"))
        .label(rhs_text.span, format!("`{rhs}`"))
        .help(format!("conversions are explicit: write `{converted}`"))
        .fix(narrow.span, converted)
}
