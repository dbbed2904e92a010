//! Scatters from unsolvable subscript equations.
//!
//! ```text
//! y(n,d) = table(token(n), d)
//!     contributes  d_y(n,d)  to  d_table(token(n), d)
//!     as           d_table(v,d) +=! d_y(n,d) scatter v = token(n)
//! ```

use tensorwright_lang::ops::CompareOp;
use tensorwright_lang::syntax::ast::Expr;

use super::Solver;
use crate::build;
use crate::derivative::Flow;
use crate::poly::{IndexSum, Poly};
use crate::product;
use crate::tree;

impl Solver<'_> {
    /// Turns unsolved equations into scatter positions if there are terms and no summand depends on
    /// the position. Otherwise they become conditions.
    pub(super) fn settle_scattered(&mut self, flow: &Flow) {
        let value = self.substitute(&[]).value(&product::sum(&flow.sum));
        let others: Vec<Expr> = flow
            .guards
            .iter()
            .map(|guard| self.substitute(&[]).value(guard))
            .chain(self.guards.iter().cloned())
            .chain(self.scattered.iter().map(|(_, at)| at.to_expr()))
            .chain([value])
            .collect();
        let is_used = |name: &str| others.iter().any(|other| tree::mentions(other, name));
        if self.scattered.iter().all(|(name, at)| !is_used(name) && !self.is_fixed(at)) {
            return;
        }
        for (name, at) in std::mem::take(&mut self.scattered) {
            let condition = build::compare(CompareOp::Eq, at.to_expr(), build::name(&name));
            self.guards.push(condition);
        }
    }

    /// The scatter positions. A position is ignored where the value's conditions fail, but must
    /// still be in range.
    pub(super) fn positions(&self, conditions: &[Expr]) -> Vec<(String, Expr)> {
        let position = |(name, at): &(String, Poly)| {
            let at = at.to_expr();
            let last =
                self.ranges.get(name).map(|range| build::sub(range.hi.clone(), build::int(1)));
            let at = match (build::all(conditions.iter().cloned()), last) {
                (None, _) => at,
                (Some(_), Some(last)) if !self.scope.reads_data(&at) => {
                    build::apply("clamp", vec![at, build::int(0), last])
                }
                (Some(condition), _) => build::select(condition, at, build::int(0)),
            };
            (name.clone(), at)
        };
        self.scattered.iter().map(position).collect()
    }
}
