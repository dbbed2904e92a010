//! Memory access patterns of vector lanes.

use tensorwright_lang::program::{Index, Rewrite};
use tensorwright_schedule::nest::{Lanes, Var};

/// The positions of the elements that the lanes access.
pub(super) enum Access {
    /// All lanes access one element.
    Uniform,
    /// Lane `n` accesses the element `steps[n]` after the one at `base`, for all loop iterations.
    Pattern {
        /// The element of the first lane.
        base: Index,
        /// One per lane.
        steps: Vec<i64>,
    },
    /// Anything else.
    Irregular,
}

impl Access {
    /// The access pattern of an offset.
    pub(super) fn of(offset: &Index, lanes: Lanes) -> Access {
        let is_lane = |var: Var| var == lanes.var;
        if !offset.mentions(&is_lane) {
            return Access::Uniform;
        }
        if offset.outermost_values().into_iter().any(|value| value.mentions(&is_lane)) {
            return Access::Irregular;
        }
        match Self::pattern(offset, lanes) {
            Some((base, steps)) => Access::Pattern { base, steps },
            None => Access::Irregular,
        }
    }

    /// Substitutes the number of each lane in the offset: if only the constant changes, as in
    /// `(16*i + lane) / 4`, it is the step.
    fn pattern(offset: &Index, lanes: Lanes) -> Option<(Index, Vec<i64>)> {
        let base = at_lane(offset, lanes.var, 0)?;
        if let Some(step) = offset.coefficient_of(lanes.var) {
            let steps: Option<Vec<i64>> = (0..lanes.count).map(|n| n.checked_mul(step)).collect();
            return Some((base, steps?));
        }
        let step = |lane| {
            let element = at_lane(offset, lanes.var, lane)?;
            let same = element.terms() == base.terms();
            same.then(|| element.constant_term().checked_sub(base.constant_term())).flatten()
        };
        let steps: Option<Vec<i64>> = (0..lanes.count).map(step).collect();
        Some((base, steps?))
    }
}

/// Substitutes a lane number for its variable.
pub(super) struct AtLane(pub(super) Var, pub(super) i64);

impl Rewrite for AtLane {
    fn axis(&mut self, axis: Var) -> Option<Index> {
        Some(if axis == self.0 { Index::constant(self.1) } else { Index::axis(axis) })
    }
}

/// An index for one lane; `None` on overflow.
pub(super) fn at_lane(index: &Index, var: Var, lane: i64) -> Option<Index> {
    index.rewrite(&mut AtLane(var, lane))
}

/// Whether every step is the previous one plus `by`.
pub(super) fn is_progression(steps: &[i64], by: i64) -> bool {
    steps.windows(2).all(|pair| pair[0].checked_add(by) == Some(pair[1]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tensorwright_lang::program::AxisId;

    #[test]
    fn steps_are_found_behind_quotients() {
        let (i, lane) = (Index::axis(AxisId(0)), Index::axis(AxisId(1)));
        let lanes = Lanes { var: AxisId(1), count: 8, in_order: false };
        let sum = i.scale(8).unwrap().add(&lane).unwrap();
        let Access::Pattern { base, steps } = Access::of(&sum.div(4).unwrap(), lanes) else {
            panic!("the quotient is regular");
        };
        assert_eq!(base, i.scale(2).unwrap());
        assert_eq!(steps, [0, 0, 0, 0, 1, 1, 1, 1]);
        let odd = i.scale(7).unwrap().add(&lane).unwrap().div(4).unwrap();
        assert!(matches!(Access::of(&odd, lanes), Access::Irregular));
        assert!(matches!(Access::of(&i, lanes), Access::Uniform));
        let Access::Pattern { steps, .. } = Access::of(&lane.scale(-1).unwrap(), lanes) else {
            panic!("a negative step is regular");
        };
        assert!(is_progression(&steps, -1) && !is_progression(&steps, 1));
    }
}
