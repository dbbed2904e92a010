//! Values with zero gradient by invariance: the shift of a softmax.
//!
//! ```text
//! top(i) max=! x(i,k)
//! w(i,k) = exp(x(i,k) - top(i))               a change of top(i) scales all w(i,...) and total(i),
//! total(i) +=! w(i,k)                         so p does not change
//! p(i,k) = w(i,k) / total(i)
//! ```
//!
//! The gradient with respect to such a value is zero and is not computed: neither the sum, which
//! would be zero up to rounding, nor the position of the maximum. Terms may be guarded, as in a
//! masked softmax, if the masked-out value is zero.

use std::collections::BTreeSet;

use tensorwright_lang::builtin::Builtin;
use tensorwright_lang::ops::{ArithOp, AssignOp, ReductionOp};
use tensorwright_lang::syntax::ast::{Expr, ExprKind};

use crate::build;
use crate::ranges::Step;
use crate::scope::Application;
use crate::tree;
use crate::versions::Versions;

/// The values that no result depends on.
pub(crate) fn shifts(versions: &Versions) -> BTreeSet<String> {
    let program = Program::new(versions);
    program.steps.iter().filter_map(|step| program.shift_of(step)).collect()
}

/// The statements of a definition, without gradient helpers.
struct Program<'a> {
    versions: &'a Versions,
    steps: Vec<&'a Step>,
}

/// A value that a change of the shift scales by one factor per row.
struct ScaledValue<'a> {
    name: &'a str,
    /// The dimensions that the factor depends on, in the order of the shift's dimensions.
    rows: Vec<usize>,
}

impl<'a> Program<'a> {
    fn new(versions: &'a Versions) -> Self {
        let is_helper =
            |step: &&Step| versions.helpers.values().any(|it| *it == step.stmt.target.name);
        let steps = versions.steps.iter().filter(|step| !is_helper(step)).collect();
        Self { versions, steps }
    }

    /// The shift in a statement of exponentials, if no result depends on it.
    fn shift_of(&self, step: &'a Step) -> Option<String> {
        let (shift, rows) = self.shifted(step)?;
        let computed = self.steps.iter().any(|other| other.stmt.target.name == shift);
        let [only] = self.readers(shift)[..] else { return None };
        let weights = ScaledValue { name: &step.stmt.target.name, rows };
        let is_alone = std::ptr::eq(only, step) && self.writers(weights.name) == 1;
        (computed && is_alone && !self.is_result(shift) && self.is_divided(&weights))
            .then(|| shift.to_owned())
    }

    /// Matches `w(...) = exp(e - shift(...))`: the shift, and the dimensions of `w` that index it.
    fn shifted(&self, step: &'a Step) -> Option<(&'a str, Vec<usize>)> {
        let stmt = &step.stmt;
        if stmt.op != AssignOp::Assign || stmt.scan.is_some() || !stmt.scatter.is_empty() {
            return None;
        }
        let value = or_zero(&stmt.rhs);
        let Some(Application::Call(Builtin::Exp, [power])) = self.versions.scope.applied(value)
        else {
            return None;
        };
        let ExprKind::Arith(ArithOp::Sub, _, shift) = &power.kind else { return None };
        let (name, subscripts) = self.read(shift)?;
        let place = |at: &Expr| {
            stmt.indices.iter().position(|index| build::as_name(at) == Some(&index.name))
        };
        let rows = subscripts.iter().map(place).collect::<Option<Vec<_>>>()?;
        (self.reads(&stmt.rhs, name) == 1).then_some((name, rows))
    }

    /// Whether a value is used only in sums along non-row dimensions and in quotients by such a
    /// sum.
    fn is_divided(&self, weights: &ScaledValue<'_>) -> bool {
        let readers = self.readers(weights.name);
        let mut sums = readers.iter().filter_map(|step| Some((*step, self.sum_of(step, weights)?)));
        let (Some((sum, total)), None) = (sums.next(), sums.next()) else { return false };
        let others = |step: &&&Step| !std::ptr::eq(**step, sum);
        !self.is_result(weights.name)
            && !self.is_result(total.name)
            && self.writers(total.name) == 1
            && readers.iter().filter(others).all(|step| self.divides(step, weights, &total))
            && self.readers(total.name).iter().all(|step| self.divides(step, weights, &total))
    }

    /// Matches `total(...) +=! w(...)`, with the row dimensions of `total`.
    fn sum_of<'s>(&self, step: &'s Step, weights: &ScaledValue<'_>) -> Option<ScaledValue<'s>> {
        let stmt = &step.stmt;
        let op = AssignOp::Reduce { op: ReductionOp::Sum, initialize: true };
        let (name, subscripts) = self.read(or_zero(&stmt.rhs))?;
        if stmt.op != op || !stmt.scatter.is_empty() || name != weights.name {
            return None;
        }
        let place = |row: &usize| {
            let at = build::as_name(subscripts.get(*row)?)?;
            stmt.indices.iter().position(|index| index.name == at)
        };
        let rows = weights.rows.iter().map(place).collect::<Option<Vec<_>>>()?;
        (self.reads(&stmt.rhs, name) == 1).then_some(ScaledValue { name: &stmt.target.name, rows })
    }

    /// Whether a statement reads two values only in quotients of one by the other, in the same row.
    fn divides(&self, step: &Step, weights: &ScaledValue<'_>, total: &ScaledValue<'_>) -> bool {
        let quotients = self.quotients(&step.stmt.rhs, weights, total);
        let sides = || tree::sides(&step.stmt);
        let count = |name: &str| sides().map(|side| self.reads(side, name)).sum::<usize>();
        step.stmt.scan.is_none()
            && quotients > 0
            && count(weights.name) == quotients
            && count(total.name) == quotients
    }

    fn quotients(&self, expr: &Expr, weights: &ScaledValue<'_>, total: &ScaledValue<'_>) -> usize {
        let mut found = 0;
        tree::walk(expr, &mut |part| {
            if let ExprKind::Arith(ArithOp::Div, above, below) = &part.kind
                && let Some((name, row)) = self.read(below)
                && name == total.name
                && let Some(weight) = self.factor(above, weights.name)
            {
                let mut rows = weights.rows.iter().zip(&total.rows);
                let is_same = rows.all(|(w, t)| match (weight.get(*w), row.get(*t)) {
                    (Some(w), Some(t)) => build::same(w, t),
                    _ => false,
                });
                found += usize::from(is_same);
            }
        });
        found
    }

    /// The subscripts of a value that is a factor of a product.
    fn factor<'e>(&self, product: &'e Expr, name: &str) -> Option<&'e [Expr]> {
        if let ExprKind::Arith(ArithOp::Mul, a, b) = &product.kind {
            return self.factor(a, name).or_else(|| self.factor(b, name));
        }
        self.read(product).filter(|(found, _)| *found == name).map(|(_, subscripts)| subscripts)
    }

    fn read<'e>(&self, expr: &'e Expr) -> Option<(&'e str, &'e [Expr])> {
        match self.versions.scope.applied(expr) {
            Some(Application::Read(name, subscripts)) => Some((name, subscripts)),
            _ => None,
        }
    }

    /// The number of reads of a value in an expression.
    fn reads(&self, expr: &Expr, name: &str) -> usize {
        let mut count = 0;
        tree::walk(expr, &mut |part| {
            count += usize::from(self.read(part).is_some_and(|(found, _)| found == name));
        });
        count
    }

    /// The statements that read a value.
    fn readers(&self, name: &str) -> Vec<&'a Step> {
        let does_read =
            |step: &&&Step| tree::sides(&step.stmt).any(|side| self.reads(side, name) > 0);
        self.steps.iter().filter(does_read).copied().collect()
    }

    /// The number of statements that compute a value.
    fn writers(&self, name: &str) -> usize {
        self.steps.iter().filter(|step| step.stmt.target.name == name).count()
    }

    fn is_result(&self, name: &str) -> bool {
        self.versions.results.iter().any(|(_, last)| last == name)
    }
}

/// The masked operand of `c ? e : 0`, or the expression itself.
fn or_zero(expr: &Expr) -> &Expr {
    match &expr.kind {
        ExprKind::Select(_, value, other) if build::is_zero(other) => value,
        _ => expr,
    }
}
