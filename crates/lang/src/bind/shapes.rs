//! Shapes of tensors while they are found.
//!
//! ```text
//! O(b,n) = B(n)                 O has no shape; its dimension 1 has the extent N
//! O(b,n) += I(b,m) * W(n,m)     O has the shape (B, N)
//! ```
//!
//! Extents are numbers, or functions of sizes that vary.

use std::collections::HashMap;

use crate::hir::Symbol;

/// The shapes of all tensors, as far as they are known.
#[derive(Debug)]
pub(super) struct Shapes<E> {
    shapes: Vec<Option<Vec<E>>>,
    /// The known extents of tensors whose shape is incomplete.
    extents: HashMap<(Symbol, usize), E>,
}

impl<E: Clone> Shapes<E> {
    pub(super) fn new(shapes: Vec<Option<Vec<E>>>) -> Self {
        Self { shapes, extents: HashMap::new() }
    }

    /// The shape of a tensor.
    pub(super) fn of(&self, symbol: Symbol) -> Option<&[E]> {
        self.shapes[symbol.0 as usize].as_deref()
    }

    /// The extent of a dimension, even if others are unknown.
    pub(super) fn extent(&self, symbol: Symbol, dimension: usize) -> Option<&E> {
        let known = self.of(symbol).and_then(|shape| shape.get(dimension));
        known.or_else(|| self.extents.get(&(symbol, dimension)))
    }

    /// The number of extents in incomplete shapes; it grows while there is progress.
    pub(super) fn noted(&self) -> usize {
        self.extents.len()
    }

    /// Sets the shape of a tensor to that of another one; returns whether that has one.
    pub(super) fn copy(&mut self, target: Symbol, source: Symbol) -> bool {
        let shape = self.shapes[source.0 as usize].clone();
        let known = shape.is_some();
        if let Some(shape) = shape {
            self.shapes[target.0 as usize].get_or_insert(shape);
        }
        known
    }

    /// Records the extents that a statement determines although others stay open.
    pub(super) fn note(&mut self, symbol: Symbol, found: Vec<Option<E>>) {
        if self.of(symbol).is_some() {
            return;
        }
        let rank = found.len();
        for (dimension, extent) in found.into_iter().enumerate() {
            if let Some(extent) = extent {
                self.extents.entry((symbol, dimension)).or_insert(extent);
            }
        }
        let extents = (0..rank).map(|d| self.extents.get(&(symbol, d)).cloned());
        self.shapes[symbol.0 as usize] = extents.collect();
    }

    /// Sets the shape of a tensor from the first statement that determines it.
    pub(super) fn set(&mut self, symbol: Symbol, found: Vec<E>) {
        let known = |(dimension, extent): (usize, E)| {
            self.extents.get(&(symbol, dimension)).cloned().unwrap_or(extent)
        };
        let shape = found.into_iter().enumerate().map(known).collect();
        self.shapes[symbol.0 as usize].get_or_insert(shape);
    }
}
