//! [`Downsampler`]: a bounded, even sample of a sequence of unknown length.

/// A bounded, even sample of a sequence of unknown length: every `stride`-th item, where the stride
/// doubles whenever the sample is full. It is deterministic.
#[derive(Debug, Clone)]
pub(crate) struct Downsampler<T> {
    items: Vec<T>,
    at_most: usize,
    stride: u64,
    seen: u64,
}

impl<T> Downsampler<T> {
    /// A sample of at most `at_most` items, and at least half as many if there are enough.
    pub(crate) fn new(at_most: usize) -> Self {
        Self { items: Vec::new(), at_most: at_most.max(2), stride: 1, seen: 0 }
    }

    /// Adds the next item, computed only if the sample takes it.
    pub(crate) fn push(&mut self, item: impl FnOnce() -> T) {
        if self.seen.is_multiple_of(self.stride) {
            if self.items.len() >= self.at_most {
                keep_even(&mut self.items);
                self.stride = self.stride.saturating_mul(2);
            }
            if self.seen.is_multiple_of(self.stride) {
                self.items.push(item());
            }
        }
        self.seen += 1;
    }

    /// The number of items in the sequence.
    pub(crate) fn seen(&self) -> u64 {
        self.seen
    }

    /// The sample, in the order of the sequence.
    pub(crate) fn into_items(self) -> Vec<T> {
        self.items
    }
}

/// Drops every second item.
fn keep_even<T>(items: &mut Vec<T>) {
    let mut place = 0;
    items.retain(|_| {
        place += 1;
        place % 2 == 1
    });
}

/// At most `at_most` items, evenly chosen; they include the first and the last.
pub(crate) fn downsample<T: Clone>(items: &[T], at_most: usize) -> Vec<T> {
    let at_most = at_most.max(2);
    if items.len() <= at_most {
        return items.to_vec();
    }
    let last = items.len() - 1;
    (0..at_most).map(|at| items[at * last / (at_most - 1)].clone()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_is_even_and_bounded() {
        let mut sample = Downsampler::new(10);
        (0..1000).for_each(|item| sample.push(|| item));
        assert_eq!(sample.seen(), 1000);
        assert_eq!(sample.into_items(), [0, 128, 256, 384, 512, 640, 768, 896]);
    }

    #[test]
    fn the_ends_stay() {
        assert_eq!(downsample(&[1, 2, 3], 5), [1, 2, 3]);
        let items: Vec<u32> = (0..100).collect();
        assert_eq!(downsample(&items, 4), [0, 33, 66, 99]);
    }
}
