//! Suppresses follow-up errors: one message per mistake.
//!
//! A tensor is tainted if the `def` that computes it has errors or does not exist. Messages about
//! it would only repeat that error, so statements that use tainted tensors are not checked, and
//! their results are tainted too. The same holds for statements whose index variables have the
//! names of tensors or sizes: each of these names is reported once.

use super::scope::{Entity, Scope};
use crate::diagnostic::{Code, Diagnostic};
use crate::syntax::ast::{self, Call, Comprehension, Expr, ExprKind, Ident};

impl Scope<'_> {
    /// Whether the statement uses a tainted tensor; its result is then tainted as well.
    pub(super) fn taints_target(&mut self, stmt: &Comprehension) -> bool {
        if self.tainted.is_empty() && self.clashes.is_empty() {
            return false;
        }
        let ranged = stmt.constraints.iter().map(|constraint| &constraint.var);
        let mut variables = stmt.indices.iter().chain(ranged);
        let bounds = stmt.constraints.iter().flat_map(|c| [&c.lo, &c.hi]);
        let start = stmt.scan.iter().map(|scan| &scan.start);
        let positions = stmt.scatter.iter().map(|scatter| &scatter.at);
        let mentions = variables.any(|variable| self.clashes.contains(variable.name.as_str()))
            || self.is_tainted(&stmt.target.name)
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

    /// Whether a tensor without subscripts is taken for an index variable.
    fn is_clash(&self, name: &str) -> bool {
        let rank = || self.tensor_named(name).map_or(0, |symbol| self.tensor(symbol).rank);
        self.clashes.contains(name) && rank() > 0
    }

    fn mentions_tainted(&self, expr: &Expr) -> bool {
        match &expr.kind {
            ExprKind::Int(_) | ExprKind::Float(_) | ExprKind::Bool(_) => false,
            ExprKind::Name(name) => self.is_tainted(name) || self.is_clash(name),
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

    /// Reports every left-side name that cannot be an index variable, once.
    pub(super) fn report_clashes(&mut self) {
        let def: &ast::Def = self.def;
        let comprehensions = def.body.iter().filter_map(|stmt| match stmt {
            ast::Stmt::Comprehension(stmt) => Some(stmt),
            ast::Stmt::Call(_) => None,
        });
        for index in comprehensions.flat_map(|stmt| &stmt.indices) {
            if let Some(entity) = self.names.get(index.name.as_str()).copied()
                && self.clashes.insert(&index.name)
            {
                let diagnostic = self.clash(index, entity);
                self.report(diagnostic);
            }
        }
    }

    fn clash(&self, index: &Ident, entity: Entity) -> Diagnostic {
        let (what, declared) = match entity {
            Entity::Tensor(symbol) => ("a tensor", self.tensor(symbol).span),
            Entity::Size(size) => ("a size", self.sizes[size.0 as usize].span),
        };
        let name = &index.name;
        let message = format!("`{name}` is {what}, so it cannot be an index variable");
        Diagnostic::new(Code::NotAnIndex, index.span, message)
            .here("an index variable is needed here")
            .label(declared, format!("here it names {what}"))
            .help(format!("use a new name, for example `{}`", self.free_name(name)))
    }

    /// A similar name that is unused.
    pub(super) fn free_name(&self, name: &str) -> String {
        let lower = name.to_lowercase();
        let taken = |candidate: &str| self.names.contains_key(candidate);
        if lower != name && !taken(&lower) { lower } else { format!("{lower}_i") }
    }
}
