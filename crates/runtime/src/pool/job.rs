//! [`Job`]: one parallel loop, divided into shares and chunks.
//!
//! Every worker has a share of the iterations, always the same one for the same count, so it finds
//! its earlier data in its caches. A share is processed in chunks, and a worker that has finished
//! its own share helps with the others: on a noisy machine, a static split waits for whichever core
//! was interrupted.

use std::any::Any;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Mutex, PoisonError};

/// The body, called for a range of iterations on a worker.
pub(super) type Body<'a> = dyn Fn(Range<i64>, usize) + Sync + 'a;

/// The number of chunks of a share, if it has that many iterations: enough that a stalled worker
/// delays little, few enough that claiming them (10 ns each) is negligible.
const CHUNKS: i64 = 16;

/// One run of the pool. It lives on the stack of the caller, who waits for all workers.
#[repr(align(64))]
pub(super) struct Job<'a> {
    body: &'a Body<'a>,
    count: i64,
    workers: i64,
    panic: Mutex<Option<Box<dyn Any + Send>>>,
}

impl<'a> Job<'a> {
    pub(super) fn new(body: &'a Body<'a>, count: i64, workers: usize) -> Self {
        Self { body, count, workers: workers as i64, panic: Mutex::new(None) }
    }

    /// Runs `body` on ranges from `claim`, which returns the number of an unclaimed chunk of a
    /// share; numbers count up from zero.
    pub(super) fn work(&self, worker: usize, claim: impl Fn(usize) -> u32) {
        let all = || {
            let workers = self.workers as usize;
            for share in (worker..workers).chain(0..worker) {
                while let Some(range) = self.chunk(share, claim(share)) {
                    (self.body)(range, worker);
                }
            }
        };
        // The body is `Sync`, and this worker does not call it again after a panic. The caller sees
        // its shared state while unwinding, as without a pool.
        if let Err(payload) = catch_unwind(AssertUnwindSafe(all)) {
            self.panic.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(payload);
        }
    }

    /// Resumes a worker's panic in the caller.
    pub(super) fn finish(self) {
        if let Some(payload) = self.panic.into_inner().unwrap_or_else(PoisonError::into_inner) {
            resume_unwind(payload);
        }
    }

    /// The iterations of a chunk of a share, if the share has that many chunks.
    fn chunk(&self, share: usize, chunk: u32) -> Option<Range<i64>> {
        let share = part(self.count, self.workers, share as i64);
        let chunks = (share.end - share.start).min(CHUNKS);
        let chunk = i64::from(chunk);
        (chunk < chunks).then(|| {
            let inner = part(share.end - share.start, chunks, chunk);
            share.start + inner.start..share.start + inner.end
        })
    }
}

/// Part `number` of `0..count`, split into `parts` whose lengths differ by at most one.
fn part(count: i64, parts: i64, number: i64) -> Range<i64> {
    let (length, longer) = (count / parts, count % parts);
    let begin = number * length + number.min(longer);
    begin..begin + length + i64::from(number < longer)
}

#[cfg(test)]
mod tests {
    use super::{Job, part};

    #[test]
    fn parts_cover_the_range_in_order() {
        for count in [0, 1, 2, 7, 64, 1000, i64::MAX] {
            for parts in [1, 2, 3, 16, 61] {
                let mut next = 0;
                for number in 0..parts {
                    let part = part(count, parts, number);
                    assert_eq!(part.start, next);
                    assert!((part.end - part.start).abs_diff(count / parts) <= 1);
                    next = part.end;
                }
                assert_eq!(next, count);
            }
        }
    }

    #[test]
    fn chunks_cover_the_shares() {
        let body = |_: std::ops::Range<i64>, _: usize| {};
        for (count, workers) in [(1, 3), (3, 3), (50, 3), (1000, 7), (i64::MAX, 5)] {
            let job = Job::new(&body, count, workers);
            let mut next = 0;
            for share in 0..workers {
                let chunks = (0..).map_while(|chunk| job.chunk(share, chunk));
                for chunk in chunks {
                    assert_eq!(chunk.start, next);
                    assert!(!chunk.is_empty());
                    next = chunk.end;
                }
            }
            assert_eq!(next, count);
        }
    }
}
