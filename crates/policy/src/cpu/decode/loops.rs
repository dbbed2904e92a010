//! The loops of a group after splitting: names by level.

use tensorwright_schedule::primitives::{Split, Tail};

use crate::cpu::group::{Group, Vector};
use crate::cpu::tiling::Tiling;

/// The loops of a tiled stage, by level, outermost first.
///
/// The levels are those of FlexTensor and Ansor: spatial, spatial, reduction, spatial, reduction,
/// register tile.
#[derive(Debug, Clone, Default)]
pub(super) struct Loops {
    /// The outermost spatial loops.
    pub(super) outer: Vec<String>,
    /// The spatial and reduction loops between them and the innermost reduction loops, with whether
    /// each is spatial.
    pub(super) middle: Vec<(String, bool)>,
    /// The innermost reduction loops.
    pub(super) terms: Vec<String>,
    /// The unrolled reduction loop.
    pub(super) unrolled: Option<String>,
    /// The register tile.
    pub(super) register: Vec<String>,
    /// The lanes.
    pub(super) lanes: Option<String>,
}

impl Loops {
    /// All loops in their order.
    pub(super) fn order(&self) -> Vec<String> {
        let middle = self.middle.iter().map(|(name, _)| name);
        let inner = self.terms.iter().chain(&self.unrolled).chain(&self.register);
        self.outer.iter().chain(middle).chain(inner).chain(&self.lanes).cloned().collect()
    }

    /// The loops at which panels may be packed, outermost first.
    pub(super) fn places(&self) -> Vec<&String> {
        self.outer.iter().chain(self.middle.iter().map(|(name, _)| name)).collect()
    }

    /// The loop around the register tile: the innermost spatial loop outside it.
    pub(super) fn host(&self) -> Option<&String> {
        let middle = self.middle.iter().rev().find(|(_, is_spatial)| *is_spatial);
        middle.map(|(name, _)| name).or(self.outer.last())
    }
}

/// The inner extents of a split spatial loop.
pub(super) fn factors(tiling: &Tiling, axis: usize) -> Vec<i64> {
    let parts = &tiling.spatial[axis];
    let mut factors = parts[1..].to_vec();
    if let Vector::Spatial { axis: vector, lanes } = tiling.vector
        && vector == axis
    {
        if let Some(last) = factors.last_mut() {
            *last /= lanes;
        }
        factors.push(lanes);
    }
    factors
}

/// The step that splits a spatial loop; `None` if it stays whole.
pub(super) fn split(tiling: &Tiling, axis: usize, name: &str) -> Option<Split> {
    let factors = factors(tiling, axis);
    (!factors.is_empty()).then(|| Split::new(name, &factors).tail(tiling.tail_of(axis)))
}

/// The spatial loops by level. `names` are the loops of the stage.
pub(super) fn spatial(tiling: &Tiling, names: &[String]) -> Loops {
    let mut loops = Loops::default();
    for axis in &tiling.outer_order {
        let name = &names[*axis];
        let whole = factors(tiling, *axis).is_empty();
        loops.outer.push(if whole { name.clone() } else { format!("{name}.0") });
    }
    let mut vector_row = None;
    for (axis, name) in names.iter().enumerate() {
        let levels = tiling.spatial[axis].len();
        let lanes = matches!(tiling.vector, Vector::Spatial { axis: v, .. } if v == axis);
        // The levels between the outermost and the last two keep program order.
        if levels > 3 {
            let between = (1..levels - 2).map(|level| (format!("{name}.{level}"), true));
            loops.middle.extend(between);
        }
        if levels > 1 && lanes {
            vector_row = Some(format!("{name}.{}", levels - 1));
        } else if levels > 1 {
            loops.register.push(format!("{name}.{}", levels - 1));
        }
        if lanes {
            loops.lanes = Some(format!("{name}.{levels}"));
        }
    }
    loops.register.extend(vector_row);
    loops
}

/// The loops of the second last spatial level and the outer reduction level, in order.
pub(super) fn middle(
    group: &Group,
    tiling: &Tiling,
    names: &[String],
    with_terms: bool,
) -> Vec<(String, bool)> {
    let mut items: Vec<Option<(String, bool)>> = Vec::new();
    for (axis, name) in names.iter().enumerate() {
        let levels = tiling.spatial[axis].len();
        if levels > 1 {
            items.push((levels > 2).then(|| (format!("{name}.{}", levels - 2), true)));
        }
    }
    for (axis, split) in group.reduce.iter().enumerate() {
        if tiling.reduce[axis].len() > 1 {
            items.push(with_terms.then(|| (format!("{}.0", split.axis.name), false)));
        }
    }
    let order = tiling.middle_order.iter();
    order.filter_map(|item| items.get(*item).cloned().flatten()).collect()
}

/// The tail of a reduction loop: terms cannot be computed twice, and a condition in the innermost
/// loop is expensive.
pub(super) const TERMS_TAIL: Tail = Tail::Peel;
