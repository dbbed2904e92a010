//! [`Length`]: the number of steps of an episode.

/// T after the soft start (section 4).
const STEPS: usize = 3;

/// T of the first episodes.
const FIRST: usize = 8;

/// The number of batches around the same centre before episodes grow.
const PATIENCE: usize = 4;

/// The maximum length of episodes.
const LONGEST: usize = 24;

/// The exploration step T (section 3.4, second last paragraph). It starts at [`FIRST`] and
/// decreases by one per batch to [`STEPS`]. It increases by one per batch after the centre stayed
/// for [`PATIENCE`] batches, and returns to [`STEPS`] when the centre moves.
#[derive(Debug, Clone)]
pub(super) struct Length {
    steps: usize,
    /// The number of batches since the centre moved.
    unmoved: usize,
}

impl Default for Length {
    fn default() -> Self {
        Self { steps: FIRST, unmoved: 0 }
    }
}

impl Length {
    pub(super) fn steps(&self) -> usize {
        self.steps
    }

    /// Ends a batch; `moved` tells whether the centre moved.
    pub(super) fn end_batch(&mut self, moved: bool) {
        let grown = self.unmoved > PATIENCE;
        self.unmoved = if moved { 0 } else { self.unmoved + 1 };
        self.steps = if self.unmoved > PATIENCE {
            (self.steps + 1).min(LONGEST)
        } else if grown {
            STEPS
        } else {
            (self.steps - 1).max(STEPS)
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn episodes_shrink_at_first_and_grow_when_nothing_moves() {
        let mut length = Length::default();
        let mut after = |moved: bool| {
            length.end_batch(moved);
            length.steps()
        };
        assert_eq!([true; 6].map(&mut after), [7, 6, 5, 4, 3, 3]);
        assert_eq!([false; 7].map(&mut after), [3, 3, 3, 3, 4, 5, 6]);
        assert_eq!([true, false].map(&mut after), [3, 3]);
        assert_eq!([false; 60].map(&mut after)[59], LONGEST);
    }
}
