//! [`Tiling`]: the loops of a stage.

use tensorwright_schedule::primitives::Tail;

use crate::levels::Level;
use crate::placement::LoopRef;
use crate::stages::AxisId;

/// The loops of a stage, and what is copied or kept in them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tiling {
    /// The loops, outermost first. The loops of an axis have decreasing sizes; the last is 1.
    pub loops: Vec<PlannedLoop>,
    /// The tail strategies of axes; all others are peeled.
    pub tails: Vec<(AxisId, Tail)>,
    /// The level in whose loop results are accumulated in registers and written once.
    pub accumulate: Option<Level>,
    /// The loop that holds partial results, if the lanes are terms.
    pub partial: Option<LoopRef>,
    /// Operands that are copied before they are read.
    pub packs: Vec<Pack>,
}

/// A loop of a stage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PlannedLoop {
    /// The axis that it iterates over.
    pub axis: AxisId,
    /// The elements of the axis per iteration.
    pub size: i64,
    /// Its level.
    pub level: Level,
    /// How its iterations are executed.
    pub kind: LoopKind,
}

/// How the iterations of a loop are executed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoopKind {
    /// One after another.
    Serial,
    /// By several workers. Several parallel loops are fused.
    Parallel,
    /// Unrolled.
    Unrolled,
    /// As the lanes of a vector.
    Vector,
}

/// A copy of the part of an operand that a loop reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pack {
    /// The operand.
    pub tensor: String,
    /// The loop that contains the copy.
    pub at: LoopRef,
    /// Whether other stages in the loop read the operand itself.
    pub is_alone: bool,
    /// The dimension along the lanes. The copy is contiguous along it.
    pub along: usize,
    /// The width of the panels of the copy along that dimension.
    pub width: i64,
    /// The lanes of a vector.
    pub lanes: i64,
}

impl PlannedLoop {
    /// A loop whose iterations follow each other.
    #[must_use]
    pub fn new(axis: AxisId, size: i64, level: Level) -> Self {
        Self { axis, size, level, kind: LoopKind::Serial }
    }

    /// The same loop of another kind.
    #[must_use]
    pub fn kind(self, kind: LoopKind) -> Self {
        Self { kind, ..self }
    }
}

impl Tiling {
    /// The tail strategy of an axis.
    #[must_use]
    pub fn tail(&self, axis: AxisId) -> Tail {
        self.tails.iter().find(|(own, _)| *own == axis).map_or(Tail::Peel, |(_, tail)| *tail)
    }

    /// The place of the innermost loop of a level.
    #[must_use]
    pub fn last_of(&self, level: Level) -> Option<usize> {
        self.loops.iter().rposition(|l| l.level == level)
    }
}
