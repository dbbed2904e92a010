//! Resolves padding: which accesses beyond a loop's end need guards.
//!
//! A [padding bound](crate::nest::Bound::padding) allows but does not require a store beyond it.
//! This pass decides for each access. A store whose element beyond the bound is padding of its
//! buffer runs unguarded, and its reads that could be out of bounds become zero there. Any other
//! store is guarded.
//!
//! ```text
//! if (n <= 508) acc(n.1) += A(m, k) * B(k, n)      with B padded to 512, acc a local tile
//! ->            acc(n.1) += A(m, k) * B(k, n)
//! if (n <= 508) C(m, n) = acc(n.1)                 with C as the caller has it: stays
//! ```
//!
//! The lanes of a local tile are never masked, whatever the tail: a masked store would keep the
//! tile out of registers. If the bound limits the terms of a reduction, the other terms become
//! neutral.
//!
//! ```text
//! if (k <= 36) acc(k.1) += A(k)   ->   acc(k.1) += k <= 36 ? A(k) : 0
//! ```

use tensorwright_lang::dtype::DType;
use tensorwright_lang::ops::{CompareOp, LogicOp};
use tensorwright_lang::program::{Expr, Index, Read, Rewrite, Scalar};

use super::LowerError;
use crate::canonical::neutral;
use crate::nest::{Bound, BufferId, LoopKind, LoopNest, Node, Ranges, Store, Var};

pub(super) fn run(nest: &mut LoopNest) -> Result<(), LowerError> {
    super::both(nest, |nest, mut nodes| {
        let scope = Scope { nest, locals: Vec::new(), lanes: Vec::new(), ranges: nest.ranges() };
        scope.nodes(&mut nodes)?;
        Ok(nodes)
    })
}

struct Scope<'a> {
    nest: &'a LoopNest,
    locals: Vec<BufferId>,
    /// The variables of vectorized loops.
    lanes: Vec<Var>,
    ranges: Ranges,
}

impl Scope<'_> {
    fn nodes(&self, nodes: &mut [Node]) -> Result<(), LowerError> {
        for node in nodes {
            match node {
                Node::Loop(l) => {
                    let mut inner = Scope {
                        nest: self.nest,
                        locals: self.locals.clone(),
                        lanes: self.lanes.clone(),
                        ranges: self.ranges.with(l.var, l.extent),
                    };
                    inner.locals.extend(&l.locals);
                    inner.lanes.extend((l.kind == LoopKind::Vectorized).then_some(l.var));
                    inner.nodes(&mut l.body)?;
                }
                Node::Guard(guard) => self.nodes(&mut guard.body)?,
                Node::Store(store) => self.store(store)?,
                Node::Prefetch(_) | Node::Barrier => {}
            }
        }
        Ok(())
    }

    fn store(&self, store: &mut Store) -> Result<(), LowerError> {
        store.domain.retain(|bound| !self.ranges.always(&bound.index));
        if self.is_tile(store) {
            self.free_lanes(store);
        }
        let padding: Vec<Index> =
            store.domain.iter().filter(|bound| bound.padding).map(|b| b.index.clone()).collect();
        if padding.is_empty() {
            return Ok(());
        }
        let harmless = self.fits(store.buffer, &store.subscripts)
            && (self.is_tile(store) || padding.iter().all(|bound| self.is_end(store, bound)));
        if !harmless {
            store.domain.iter_mut().for_each(|bound| bound.padding = false);
            return Ok(());
        }
        store.domain.retain(|bound| !bound.padding);
        let mut rules = GuardReads { scope: self, padding: &padding };
        store.value = store.value.rewrite(&mut rules).ok_or(LowerError::Overflow)?;
        if let Some(init) = &mut store.init {
            *init = init.rewrite(&mut rules).ok_or(LowerError::Overflow)?;
        }
        Ok(())
    }

    /// Enables all lanes of a tile: elements beyond a bound are padding, and terms beyond it become
    /// neutral.
    fn free_lanes(&self, store: &mut Store) {
        let limits_lanes = |bound: &Bound| bound.index.mentions(&|var| self.lanes.contains(&var));
        for bound in &mut store.domain {
            bound.padding |= limits_lanes(bound) && !bound.term;
        }
        let Some(op) = store.combine else { return };
        let (terms, others): (Vec<Bound>, Vec<Bound>) =
            std::mem::take(&mut store.domain).into_iter().partition(|b| limits_lanes(b) && b.term);
        store.domain = others;
        let terms: Vec<Index> = terms.into_iter().map(|bound| bound.index).collect();
        if let Some(condition) = all_hold(&terms) {
            let neutral = neutral(op, self.nest.dtype(store.buffer));
            let value = Box::new(store.value.clone());
            store.value = Expr::Select(Box::new(condition), value, Box::new(neutral));
        }
    }

    /// Whether subscripts stay in the memory of a buffer for all iterations.
    fn fits(&self, buffer: BufferId, subscripts: &[Index]) -> bool {
        self.nest.buffer(buffer).holds(subscripts, &self.ranges)
    }

    /// Whether every iteration of the loops has its own element in a local tile.
    fn is_tile(&self, store: &Store) -> bool {
        let vars: Option<Vec<Var>> = store.subscripts.iter().map(Index::as_axis).collect();
        let distinct =
            |vars: Vec<Var>| vars.iter().enumerate().all(|(i, var)| !vars[..i].contains(var));
        self.locals.contains(&store.buffer) && vars.is_some_and(distinct)
    }

    /// Whether a bound is the end of a dimension of the store's tensor, followed only by padding.
    fn is_end(&self, store: &Store, bound: &Index) -> bool {
        let buffer = self.nest.buffer(store.buffer);
        store.subscripts.iter().enumerate().any(|(dimension, subscript)| {
            let extent = buffer.shape.get(dimension).filter(|_| !buffer.is_sized());
            let last = extent.map(|extent| Index::constant(*extent - 1));
            last.and_then(|last| last.sub(subscript)).as_ref() == Some(bound)
        })
    }
}

/// Makes reads beyond the padding bounds zero.
struct GuardReads<'a, 'b> {
    scope: &'a Scope<'b>,
    padding: &'a [Index],
}

impl Rewrite for GuardReads<'_, '_> {
    fn read(&mut self, read: Read) -> Option<Expr> {
        let in_memory = self.scope.fits(read.tensor, &read.subscripts);
        let has_data = read.subscripts.iter().any(Index::has_value);
        if in_memory && !has_data {
            return Some(Expr::Read(read));
        }
        let dtype = self.scope.nest.dtype(read.tensor);
        let mentioned = |bound: &&Index| {
            let of_bound = |var: Var| bound.mentions(&|other| other == var);
            read.subscripts.iter().any(|subscript| subscript.mentions(&of_bound))
        };
        let conditions: Vec<Index> = self.padding.iter().filter(mentioned).cloned().collect();
        Some(match all_hold(&conditions) {
            None => Expr::Read(read),
            Some(condition) => {
                Expr::Select(Box::new(condition), Box::new(Expr::Read(read)), Box::new(zero(dtype)))
            }
        })
    }
}

/// The condition that all indices are at least zero; `None` for no indices.
pub(crate) fn all_hold(conditions: &[Index]) -> Option<Expr> {
    let holds =
        |index: &Index| Expr::CompareIndex(CompareOp::Ge, index.clone(), Index::constant(0));
    let both = |a, b| Expr::Logic(LogicOp::And, Box::new(a), Box::new(b));
    conditions.iter().map(holds).reduce(both)
}

/// Zero of a type.
pub(crate) fn zero(dtype: DType) -> Expr {
    Expr::Const(if dtype.is_float() {
        Scalar::float(dtype, 0.0)
    } else {
        Scalar::integer(dtype, 0)
    })
}
