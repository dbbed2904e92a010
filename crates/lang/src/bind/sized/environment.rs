//! What statements are followed with, for all sizes.

use crate::bind::flatten::Flat;
use crate::bind::lower::{Extents, Lowering};
use crate::bind::proofs::Proofs;
use crate::bind::shapes::Shapes;
use crate::bind::site::Site;
use crate::hir::{Comprehension, Def};
use crate::infer::Range;
use crate::program::Index;

/// What all statements are followed with.
pub(super) struct Environment<'a> {
    pub(super) def: &'a Def,
    pub(super) flat: &'a Flat<'a>,
    pub(super) scalars: &'a [Option<i64>],
    /// The sizes of the definition.
    pub(super) sizes: &'a [Index],
    pub(super) proofs: &'a Proofs<'a>,
    pub(super) shapes: Shapes<Index>,
}

/// A statement that is followed.
#[derive(Clone, Copy)]
pub(super) struct Followed<'a> {
    pub(super) stmt: &'a Comprehension,
    pub(super) site: Site<'a>,
    /// The concrete ranges.
    pub(super) likely: &'a [Option<Range>],
}

impl Environment<'_> {
    /// The current environment for lowering.
    pub(super) fn lowering(&self) -> Lowering<'_> {
        Lowering {
            tensors: &self.flat.tensors,
            params: self.def.params,
            scalars: self.scalars,
            extents: Extents::Varying {
                sizes: self.sizes,
                shapes: &self.shapes,
                proofs: self.proofs,
            },
            fold: true,
        }
    }
}
