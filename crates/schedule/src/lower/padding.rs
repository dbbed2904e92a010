//! What a tail that is rounded up may do with its padding.
//!
//! A [padding bound](crate::nest::Bound::padding) leaves it open whether a store takes place beyond
//! it. Here it is settled, access by access: a store whose element beyond the bound is padding of
//! its buffer takes place unguarded, and its reads that could be out of bounds become zero there.
//! Any other store is guarded.
//!
//! ```text
//! if (n <= 508) acc(n.1) += A(m, k) * B(k, n)      with B padded to 512, acc a local tile
//! ->            acc(n.1) += A(m, k) * B(k, n)
//! if (n <= 508) C(m, n) = acc(n.1)                 with C as the caller has it: stays
//! ```

use tensorwright_lang::dtype::DType;
use tensorwright_lang::ops::{CompareOp, LogicOp};
use tensorwright_lang::program::{Expr, Index, Read, Rewrite, Scalar};

use super::LowerError;
use crate::nest::{Buffer, BufferId, LoopNest, Node, Ranges, Store, Var};

pub(super) fn run(nest: &mut LoopNest) -> Result<(), LowerError> {
    super::both(nest, |nest, mut nodes| {
        let scope = Scope { nest, locals: Vec::new(), ranges: Ranges::default() };
        scope.nodes(&mut nodes)?;
        Ok(nodes)
    })
}

struct Scope<'a> {
    nest: &'a LoopNest,
    locals: Vec<BufferId>,
    ranges: Ranges,
}

impl Scope<'_> {
    fn nodes(&self, nodes: &mut [Node]) -> Result<(), LowerError> {
        for node in nodes {
            match node {
                Node::Loop(l) => {
                    let mut locals = self.locals.clone();
                    locals.extend(&l.locals);
                    let ranges = self.ranges.with(l.var, l.extent);
                    Scope { nest: self.nest, locals, ranges }.nodes(&mut l.body)?;
                }
                Node::Guard(guard) => self.nodes(&mut guard.body)?,
                Node::Store(store) => self.store(store)?,
                Node::Prefetch(_) => {}
            }
        }
        Ok(())
    }

    fn store(&self, store: &mut Store) -> Result<(), LowerError> {
        if store.domain.iter().all(|bound| !bound.padding) {
            return Ok(());
        }
        let padding: Vec<Index> = store
            .domain
            .iter()
            .filter(|bound| bound.padding && !self.ranges.always(&bound.index))
            .map(|bound| bound.index.clone())
            .collect();
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

    /// Whether subscripts stay in the memory of a buffer, whatever the loops do.
    fn fits(&self, buffer: BufferId, subscripts: &[Index]) -> bool {
        let buffer = self.nest.buffer(buffer);
        subscripts.iter().enumerate().all(|(dimension, subscript)| {
            let extent = padded_extent(buffer, dimension);
            self.ranges.interval(subscript).within(0, i128::from(extent))
        })
    }

    /// Whether every iteration of the loops has an element of its own in a local tile.
    fn is_tile(&self, store: &Store) -> bool {
        let vars: Option<Vec<Var>> = store.subscripts.iter().map(Index::as_axis).collect();
        let distinct =
            |vars: Vec<Var>| vars.iter().enumerate().all(|(i, var)| !vars[..i].contains(var));
        self.locals.contains(&store.buffer) && vars.is_some_and(distinct)
    }

    /// Whether a bound is the end of a dimension of the store's tensor: beyond it is only padding.
    fn is_end(&self, store: &Store, bound: &Index) -> bool {
        let shape = &self.nest.buffer(store.buffer).shape;
        store.subscripts.iter().zip(shape).any(|(subscript, extent)| {
            Index::constant(*extent - 1).sub(subscript).as_ref() == Some(bound)
        })
    }
}

fn padded_extent(buffer: &Buffer, dimension: usize) -> i64 {
    let extent = buffer.shape.get(dimension).copied().unwrap_or(1);
    buffer.layout.as_ref().map_or(extent, |layout| layout.padded(dimension, extent))
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
        let conditions = self
            .padding
            .iter()
            .filter(mentioned)
            .map(|bound| Expr::CompareIndex(CompareOp::Ge, bound.clone(), Index::constant(0)));
        let both = |a, b| Expr::Logic(LogicOp::And, Box::new(a), Box::new(b));
        Some(match conditions.reduce(both) {
            None => Expr::Read(read),
            Some(condition) => {
                Expr::Select(Box::new(condition), Box::new(Expr::Read(read)), Box::new(zero(dtype)))
            }
        })
    }
}

/// Zero of a type.
pub(crate) fn zero(dtype: DType) -> Expr {
    Expr::Const(if dtype.is_float() {
        Scalar::float(dtype, 0.0)
    } else {
        Scalar::integer(dtype, 0)
    })
}
