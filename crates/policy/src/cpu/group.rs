//! [`Group`]: stages that are tiled together, and where their parameters are.

use tensorwright_schedule::access::Axis;

use crate::cpu::cost::Operand;

/// Stages that are tiled together: a stage, and perhaps a reduction whose results it reads in place
/// (a bias, a rectifier), which may then be computed inside its tiles.
#[derive(Debug, Clone)]
pub(crate) struct Group {
    /// The stage whose loops are outermost.
    pub(crate) root: String,
    /// The reduction that the root reads in place.
    pub(crate) epilogue_of: Option<String>,
    /// The loops over results of the stage that is tiled; those of the root have the same places.
    pub(crate) spatial: Vec<Split>,
    /// The loop over results along which they are next to each other in memory.
    pub(crate) contiguous: Option<usize>,
    /// The names of the root's loops over results.
    pub(crate) root_loops: Vec<String>,
    /// The loops over terms.
    pub(crate) reduce: Vec<Split>,
    /// What may be vectorized, in the order of the parameter's choices.
    pub(crate) vectors: Vec<Vector>,
    /// Tensors that may be packed or laid out.
    pub(crate) packs: Vec<Pack>,
    /// Bytes of an element of the result.
    pub(crate) element_bytes: i64,
    /// How many different tensors the stage reads.
    pub(crate) operands: i64,
    /// What it reads, in the order of the text.
    pub(crate) reads: Vec<Operand>,
    /// What it writes.
    pub(crate) write: Operand,
    /// The parameters.
    pub(crate) slots: Slots,
}

/// A loop and the parameter that splits it.
#[derive(Debug, Clone)]
pub(crate) struct Split {
    pub(crate) axis: Axis,
    /// The factorization; loops of few iterations have none.
    pub(crate) tile: Option<usize>,
}

/// Which loop becomes the lanes of vectors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Vector {
    /// None.
    Scalar,
    /// A loop over results, by place.
    Spatial { axis: usize, lanes: i64 },
    /// A loop over terms, by place: partial results in the lanes are combined at the end.
    Reduce { axis: usize, lanes: i64 },
}

/// A tensor that may be packed.
#[derive(Debug, Clone)]
pub(crate) struct Pack {
    pub(crate) tensor: String,
    pub(crate) rank: usize,
    pub(crate) shape: Vec<i64>,
    pub(crate) element_bytes: i64,
    /// For every loop over results the dimension that moves with it.
    pub(crate) dimension_of: Vec<Option<usize>>,
    /// The dimensions that move with some loop over results, and all loops that move each dimension.
    pub(crate) moved_by: Vec<Vec<Mover>>,
    /// The parameter: where it is packed.
    pub(crate) slot: usize,
}

/// A loop that moves a dimension.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mover {
    /// A loop over results, by place, and the distance.
    Spatial(usize, i64),
    /// A loop over terms, by place, and the distance.
    Reduce(usize, i64),
}

/// Where the other parameters of a group are. Those that a group does not need are not there.
#[derive(Debug, Clone, Default)]
pub(crate) struct Slots {
    /// Permutation: the outermost loops over results.
    pub(crate) outer_order: Option<usize>,
    /// Permutation: the loops of the second last level over results and the outer loops over terms.
    pub(crate) middle_order: Option<usize>,
    /// Permutation: the innermost loops over terms.
    pub(crate) reduce_order: Option<usize>,
    /// Categorical: what is vectorized.
    pub(crate) vector: Option<usize>,
    /// Discrete: iterations of the innermost loop over terms that are written out.
    pub(crate) unroll: Option<usize>,
    /// Categorical: tails of loops over results.
    pub(crate) tail: Option<usize>,
    /// Categorical: the tail of the vectorized loop.
    pub(crate) vector_tail: Option<usize>,
    /// Categorical: how results go to memory whose rows are not along the vectors.
    pub(crate) store: Option<usize>,
    /// Categorical: whether the reduction is computed inside the tiles of its reader.
    pub(crate) fuse: Option<usize>,
    /// Discrete: how many of the outermost loops are shared by workers.
    pub(crate) parallel: Option<usize>,
}

impl Group {
    /// The stage that is tiled.
    pub(crate) fn stage(&self) -> &str {
        self.epilogue_of.as_deref().unwrap_or(&self.root)
    }

    /// The parameters of the group.
    pub(crate) fn parameters(&self) -> Vec<usize> {
        let Slots {
            outer_order,
            middle_order,
            reduce_order,
            vector,
            unroll,
            tail,
            vector_tail,
            store,
            fuse,
            parallel,
        } = self.slots;
        let kinds = [vector, unroll, tail, vector_tail, store, fuse, parallel];
        let tiles = self.spatial.iter().chain(&self.reduce).map(|split| split.tile);
        let packs = self.packs.iter().map(|pack| Some(pack.slot));
        let orders = [outer_order, middle_order, reduce_order];
        tiles.chain(packs).chain(orders).chain(kinds).flatten().collect()
    }
}
