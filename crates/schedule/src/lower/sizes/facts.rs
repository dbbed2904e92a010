//! Conditions that are known to hold, and what they decide.

use tensorwright_lang::dtype::DType;
use tensorwright_lang::program::{Atom, Expr, Index, Rewrite, Scalar};

use super::condition::holding;
use super::{LowerError, rewrite_nodes, simplify};
use crate::nest::{Body, Node, Ranges, for_each_store_mut};

/// Indices that are known to be at least zero.
pub(super) struct Facts {
    known: Vec<Index>,
}

impl Facts {
    pub(super) fn new(known: Vec<Index>) -> Self {
        Self { known }
    }

    /// Removes from nodes what the facts decide.
    pub(super) fn assume(mut self, nodes: &mut [Node], ranges: &Ranges) -> Result<(), LowerError> {
        if self.known.is_empty() {
            return Ok(());
        }
        for_each_store_mut(nodes, &mut |store| {
            store.domain.retain(|bound| !self.holds(&bound.index));
            store.mask.retain(|index| !self.holds(index));
        });
        rewrite_nodes(nodes, &mut self).ok_or(LowerError::Overflow)?;
        simplify::nodes(nodes, ranges)
    }

    /// As [`Facts::assume`], and removes statements that do not run.
    pub(super) fn assume_all(self, nodes: Body, ranges: &Ranges) -> Result<Body, LowerError> {
        let mut left = self.running(nodes);
        self.assume(&mut left, ranges)?;
        Ok(left)
    }

    /// The nodes without statements that are known not to run.
    fn running(&self, nodes: Body) -> Body {
        let one = |node: Node| match node {
            Node::Loop(mut l) => {
                l.body = self.running(l.body);
                (!l.body.is_empty()).then_some(Node::Loop(l))
            }
            Node::Guard(mut guard) => {
                if guard.conditions.iter().any(|index| self.decide(index) == Some(false)) {
                    return None;
                }
                guard.conditions.retain(|index| !self.holds(index));
                guard.body = self.running(guard.body);
                (!guard.body.is_empty()).then_some(Node::Guard(guard))
            }
            Node::Store(store) => {
                let domain = store.domain.iter().map(|bound| &bound.index);
                let mut needed = domain.chain(&store.mask);
                let runs = !needed.any(|index| self.decide(index) == Some(false));
                runs.then_some(Node::Store(store))
            }
            other => Some(other),
        };
        nodes.into_iter().filter_map(one).collect()
    }

    /// Whether an index is at least zero; it may be, unless that is known.
    fn holds(&self, index: &Index) -> bool {
        let above = |known: &Index| index.sub(known).and_then(|left| left.as_constant());
        self.known.iter().any(|known| above(known).is_some_and(|left| left >= 0))
    }

    /// Whether an index is known to be at least zero, or known to be below.
    fn decide(&self, index: &Index) -> Option<bool> {
        if self.holds(index) {
            return Some(true);
        }
        let opposite = Index::constant(-1).sub(index)?;
        self.holds(&opposite).then_some(false)
    }

    /// An index without the minima and maxima that are decided.
    fn chosen(&self, index: &Index) -> Option<Index> {
        let mut sum = Index::constant(index.constant_term());
        for term in index.terms() {
            let atom = match &term.atom {
                Atom::Min(a, b) | Atom::Max(a, b) => {
                    let is_min = matches!(term.atom, Atom::Min(..));
                    let (a, b) = (self.chosen(a)?, self.chosen(b)?);
                    let first = self.decide(&b.sub(&a)?);
                    match (first, is_min) {
                        (Some(true), true) | (Some(false), false) => a,
                        (Some(false), true) | (Some(true), false) => b,
                        (None, true) => a.min(b),
                        (None, false) => a.max(b),
                    }
                }
                Atom::Div(inner, by) => self.chosen(inner)?.div(*by)?,
                Atom::Mod(inner, by) => self.chosen(inner)?.rem(*by),
                other => Index::atom(other.clone()),
            };
            sum = sum.add(&atom.scale(term.coefficient)?)?;
        }
        Some(sum)
    }
}

impl Rewrite for Facts {
    fn index(&mut self, index: Index) -> Option<Index> {
        self.chosen(&index)
    }

    fn expr(&mut self, expr: Expr) -> Option<Expr> {
        let Expr::CompareIndex(op, a, b) = &expr else { return Some(expr) };
        let decided = holding(*op, a, b).and_then(|index| self.decide(&index));
        Some(match decided {
            Some(holds) => Expr::Const(Scalar::integer(DType::Bool, i128::from(holds))),
            None => expr,
        })
    }
}
