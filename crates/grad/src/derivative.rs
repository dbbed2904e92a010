//! Differentiates one expression: from its gradient to those of its operands.
//!
//! The walk starts at the root with a seed, the gradient of the expression: `a * b` passes `seed *
//! b` to `a`, a selection passes the seed to its branches under its condition. The gradients that
//! reach tensor reads are collected as [`Flow`]s.

use std::collections::{BTreeMap, BTreeSet};

use tensorwright_lang::builtin::Builtin;
use tensorwright_lang::diagnostic::{Code, Diagnostic};
use tensorwright_lang::ops::{ArithOp, CompareOp, UnaryOp};
use tensorwright_lang::source::Span;
use tensorwright_lang::syntax::ast::{Expr, ExprKind};

use crate::build;
use crate::product::Product;
use crate::rules::{self, Partial};
use crate::scope::{Application, Scope, ValueKind};
use crate::tree;

/// A contribution of a statement to the gradient of a tensor that it reads.
#[derive(Debug)]
pub(crate) struct Flow {
    pub(crate) tensor: String,
    pub(crate) subscripts: Vec<Expr>,
    /// Where it is read.
    pub(crate) span: Span,
    /// The conditions under which the contribution is nonzero; each may assume those before it.
    pub(crate) guards: Vec<Expr>,
    pub(crate) sum: Vec<Product>,
}

/// Whether a value is constant with respect to every input.
pub(crate) fn is_constant(scope: &Scope, expr: &Expr) -> bool {
    !depends(scope, expr, &|_| true)
}

/// Whether a value depends differentiably on one of the tensors.
pub(crate) fn depends(scope: &Scope, expr: &Expr, on: &impl Fn(&str) -> bool) -> bool {
    let inside = |args: &[Expr]| args.iter().any(|arg| depends(scope, arg, on));
    match scope.applied(expr) {
        Some(Application::Read(name, _)) => {
            return on(name) && matches!(scope.kind(expr), ValueKind::Float(_));
        }
        Some(Application::Cast(dtype, arg)) => return dtype.is_float() && depends(scope, arg, on),
        Some(Application::Call(builtin, args)) => return !rules::is_step(builtin) && inside(args),
        None => {}
    }
    match &expr.kind {
        ExprKind::Unary(UnaryOp::Neg, a) => depends(scope, a, on),
        ExprKind::Arith(_, a, b) | ExprKind::Select(_, a, b) => {
            depends(scope, a, on) || depends(scope, b, on)
        }
        _ => false,
    }
}

/// The reverse walk over the right side of a statement.
pub(crate) struct Derivative<'a> {
    pub(crate) scope: &'a Scope,
    /// The tensors whose gradients are computed.
    pub(crate) active: &'a BTreeSet<String>,
    /// The names of helper values, by their preferred names.
    pub(crate) helpers: &'a BTreeMap<String, String>,
    /// A condition on every contribution, checked last; it may assume all others.
    pub(crate) last_guard: Option<Expr>,
    pub(crate) flows: Vec<Flow>,
}

impl Derivative<'_> {
    fn is_active(&self, expr: &Expr) -> bool {
        depends(self.scope, expr, &|name| self.active.contains(name))
    }

    /// Propagates a gradient; `value` is a tensor read that holds the value of the expression, if
    /// there is one.
    pub(crate) fn pass(
        &mut self,
        expr: &Expr,
        seed: Product,
        guards: &mut Vec<Expr>,
        value: Option<&Expr>,
    ) -> Result<(), Diagnostic> {
        if !self.is_active(expr) {
            return Ok(());
        }
        match self.scope.applied(expr) {
            Some(Application::Read(name, subscripts)) => {
                self.arrive(name, subscripts, expr.span, seed, guards);
                return Ok(());
            }
            Some(Application::Cast(_, arg)) => {
                let seed = self.converted(seed, arg);
                return self.pass(arg, seed, guards, None);
            }
            Some(Application::Call(builtin, args)) => {
                return self.call(builtin, args, expr, seed, guards, value);
            }
            None => {}
        }
        match &expr.kind {
            ExprKind::Unary(_, a) => self.pass(a, seed.scaled(-1.0), guards, None),
            ExprKind::Arith(op, a, b) => self.arith(*op, a, b, seed, guards, value),
            ExprKind::Select(condition, then, otherwise) => {
                guards.push(tree::unplaced(condition));
                self.pass(then, seed.clone(), guards, value)?;
                guards.pop();
                guards.push(self.negated(condition));
                self.pass(otherwise, seed, guards, value)?;
                guards.pop();
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn arith(
        &mut self,
        op: ArithOp,
        a: &Expr,
        b: &Expr,
        seed: Product,
        guards: &mut Vec<Expr>,
        value: Option<&Expr>,
    ) -> Result<(), Diagnostic> {
        let (bare_a, bare_b) = (tree::unplaced(a), tree::unplaced(b));
        let (by_a, by_b) = match op {
            ArithOp::Add => (seed.clone(), seed),
            ArithOp::Sub => (seed.clone(), seed.scaled(-1.0)),
            ArithOp::Mul => (seed.clone().times(&bare_b), seed.times(&bare_a)),
            ArithOp::Div => {
                let by_b = seed.clone().scaled(-1.0);
                match (inverse_of(self.scope, self.helpers, &bare_b), value) {
                    (Some(inverse), Some(value)) => {
                        (seed.times(&inverse), by_b.times(value).times(&inverse))
                    }
                    (Some(inverse), None) => {
                        let by_b = by_b.times(&bare_a).times(&inverse).times(&inverse);
                        (seed.times(&inverse), by_b)
                    }
                    (None, Some(value)) => (seed.over(&bare_b), by_b.times(value).over(&bare_b)),
                    (None, None) => {
                        let square = build::mul(bare_b.clone(), bare_b.clone());
                        (seed.over(&bare_b), by_b.times(&bare_a).over(&square))
                    }
                }
            }
            ArithOp::Rem => return Ok(()),
        };
        self.pass(a, by_a, guards, None)?;
        self.pass(b, by_b, guards, None)
    }

    fn call(
        &mut self,
        builtin: Builtin,
        args: &[Expr],
        whole: &Expr,
        seed: Product,
        guards: &mut Vec<Expr>,
        value: Option<&Expr>,
    ) -> Result<(), Diagnostic> {
        let bare: Vec<Expr> = args.iter().map(tree::unplaced).collect();
        let y = value.cloned().unwrap_or_else(|| tree::unplaced(whole));
        for (by, arg) in args.iter().enumerate() {
            if !self.is_active(arg) {
                continue;
            }
            let mut others = args.iter().enumerate().filter(|(place, _)| *place != by);
            let others = others.any(|(_, other)| self.is_active(other));
            match rules::partial(builtin, &bare, by, &y, others) {
                Partial::Times(factor) => self.pass(arg, seed.clone().by(&factor), guards, None)?,
                Partial::Where(condition) => {
                    guards.push(condition);
                    self.pass(arg, seed.clone(), guards, None)?;
                    guards.pop();
                }
                Partial::Nothing => {}
                Partial::Missing => return Err(missing(builtin, whole.span)),
            }
        }
        Ok(())
    }

    /// The gradient of a conversion's operand, in the operand's type.
    fn converted(&self, seed: Product, arg: &Expr) -> Product {
        match self.scope.kind(arg) {
            ValueKind::Float(dtype) => {
                Product::one().times(&build::apply(dtype.name(), vec![seed.to_expr()]))
            }
            _ => seed,
        }
    }

    /// The negation of a condition. For floats `!(a < b)` is not `a >= b`: one may be NaN.
    fn negated(&self, condition: &Expr) -> Expr {
        match &condition.kind {
            ExprKind::Compare(op, a, b)
                if self.scope.kind(a) == ValueKind::Int && self.scope.kind(b) == ValueKind::Int =>
            {
                build::compare(op.negate(), tree::unplaced(a), tree::unplaced(b))
            }
            ExprKind::Compare(CompareOp::Eq, a, b) => {
                build::compare(CompareOp::Ne, tree::unplaced(a), tree::unplaced(b))
            }
            _ => build::not(tree::unplaced(condition)),
        }
    }

    fn arrive(
        &mut self,
        tensor: &str,
        subscripts: &[Expr],
        span: Span,
        seed: Product,
        guards: &[Expr],
    ) {
        let mut guards: Vec<Expr> = guards.to_vec();
        if let Some(last) = &self.last_guard {
            guards.push(assuming(last, &guards));
        }
        let same_list = |a: &[Expr], b: &[Expr]| {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| build::same(a, b))
        };
        let known = self.flows.iter_mut().find(|flow| {
            flow.tensor == tensor
                && same_list(&flow.subscripts, subscripts)
                && same_list(&flow.guards, &guards)
        });
        match known {
            Some(flow) => seed.add_to(&mut flow.sum),
            None => self.flows.push(Flow {
                tensor: tensor.to_owned(),
                subscripts: subscripts.to_vec(),
                span,
                guards,
                sum: vec![seed],
            }),
        }
    }
}

/// Simplifies an expression under conditions that hold: resolves selections on them.
fn assuming(expr: &Expr, conditions: &[Expr]) -> Expr {
    let holds = |condition: &Expr| conditions.iter().any(|known| build::same(known, condition));
    tree::replace(expr, &mut |part| match &part.kind {
        ExprKind::Select(condition, then, _) if holds(condition) => {
            Some(assuming(then, conditions))
        }
        _ => None,
    })
}

fn missing(builtin: Builtin, span: Span) -> Diagnostic {
    let name = builtin.name();
    let message = format!("the language cannot express the derivative of `{name}`");
    Diagnostic::new(Code::NotDifferentiable, span, message)
        .here("no gradient passes through here")
        .help(format!(
            "leave out the inputs that `{name}` depends on (`--wrt`), or compute its value beforehand and pass it in"
        ))
}

/// The preferred name of a shared divisor's inverse.
pub(crate) fn inverse_name(value: &str) -> String {
    format!("{value}_inverse")
}

/// The inverse of a divisor, if a statement computes it.
fn inverse_of(scope: &Scope, helpers: &BTreeMap<String, String>, divisor: &Expr) -> Option<Expr> {
    let Some(Application::Read(name, subscripts)) = scope.applied(divisor) else { return None };
    let inverse = helpers.get(&inverse_name(name))?;
    Some(build::apply(inverse, subscripts.to_vec()))
}
