//! Tensors of which nothing is known, because the `def` that computes them has errors or does not
//! exist. What is said of them would only repeat that error, so statements that use them are not
//! checked, and what those compute is not known either.

use super::scope::Scope;
use crate::syntax::ast::{Call, Comprehension, Expr, ExprKind};

impl Scope<'_> {
    /// Whether the statement uses a tensor of which nothing is known; then the same goes for the
    /// one that it computes.
    pub(super) fn taints_target(&mut self, stmt: &Comprehension) -> bool {
        if self.tainted.is_empty() {
            return false;
        }
        let bounds = stmt.constraints.iter().flat_map(|c| [&c.lo, &c.hi]);
        let start = stmt.scan.iter().map(|scan| &scan.start);
        let positions = stmt.scatter.iter().map(|scatter| &scatter.at);
        let mentions = self.is_tainted(&stmt.target.name)
            || std::iter::once(&stmt.rhs)
                .chain(start)
                .chain(positions)
                .chain(bounds)
                .any(|expr| self.mentions_tainted(expr));
        if mentions {
            self.tainted.extend(self.tensor_named(&stmt.target.name));
        }
        mentions
    }

    /// The same for a call.
    pub(super) fn taints_targets(&mut self, call: &Call) -> bool {
        if self.tainted.is_empty() || !call.args.iter().any(|arg| self.mentions_tainted(arg)) {
            return false;
        }
        for target in &call.targets {
            self.tainted.extend(self.tensor_named(&target.name));
        }
        true
    }

    fn is_tainted(&self, name: &str) -> bool {
        self.tensor_named(name).is_some_and(|symbol| self.tainted.contains(&symbol))
    }

    fn mentions_tainted(&self, expr: &Expr) -> bool {
        match &expr.kind {
            ExprKind::Int(_) | ExprKind::Float(_) | ExprKind::Bool(_) => false,
            ExprKind::Name(name) => self.is_tainted(name),
            ExprKind::DimOf(tensor, _) => self.is_tainted(&tensor.name),
            ExprKind::Apply(callee, args) => {
                self.is_tainted(&callee.name) || args.iter().any(|arg| self.mentions_tainted(arg))
            }
            ExprKind::Unary(_, operand) => self.mentions_tainted(operand),
            ExprKind::Arith(_, lhs, rhs)
            | ExprKind::Compare(_, lhs, rhs)
            | ExprKind::Logic(_, lhs, rhs) => {
                self.mentions_tainted(lhs) || self.mentions_tainted(rhs)
            }
            ExprKind::Select(condition, then, otherwise) => {
                [condition, then, otherwise].into_iter().any(|expr| self.mentions_tainted(expr))
            }
        }
    }
}
