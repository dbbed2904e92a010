//! Memory bandwidth of one core: the roofline of memory-bound kernels.
//!
//! A sample must be short, but traversing a buffer larger than the caches takes many milliseconds.
//! So each sample processes the next window of the buffer. When a window is reached again, it has
//! left the caches if the buffer is larger than they are.
#![allow(unsafe_code, reason = "wide loads, in functions compiled for features that were detected")]

use std::hint::black_box;
use std::ops::Range;

use super::{Probe, Sample, calibrate, timed};
use crate::{AlignedBuffer, AllocError};

/// The unit of windows: a small page.
const BLOCK: usize = 4096;

/// The position in a buffer, in blocks.
#[derive(Clone, Copy, Debug)]
struct Window {
    blocks: usize,
    next: usize,
    total: usize,
    /// The number of passes over the window per sample; more than one only if it is the whole
    /// buffer.
    passes: usize,
}

impl Window {
    /// Calibrates the window size with `visit`, which processes some blocks.
    fn new(total: usize, visit: impl Fn(Range<usize>)) -> Self {
        let blocks = calibrate(total, |blocks| visit(0..blocks));
        let whole = |passes| (0..passes).for_each(|_| visit(0..total));
        let passes = if blocks == total { calibrate(1 << 30, whole) } else { 1 };
        Self { blocks, next: 0, total, passes }
    }

    /// The next window, as a range of bytes.
    fn advance(&mut self) -> Range<usize> {
        if self.next + self.blocks > self.total {
            self.next = 0;
        }
        let begin = self.next;
        self.next += self.blocks;
        begin * BLOCK..self.next * BLOCK
    }
}

/// Bytes rounded up to whole blocks.
fn whole_blocks(bytes: usize) -> Result<usize, AllocError> {
    bytes.max(1).checked_next_multiple_of(BLOCK).ok_or(AllocError { bytes })
}

/// The read bandwidth of one core.
#[derive(Debug)]
pub struct ReadBandwidth {
    buffer: AlignedBuffer,
    window: Window,
    sum: fn(&[u64]) -> u64,
}

impl ReadBandwidth {
    /// Reads a buffer of `bytes`, rounded up to a page. Use several times the last-level cache for
    /// memory bandwidth, less for that of a cache.
    ///
    /// # Errors
    /// The buffer cannot be allocated.
    pub fn new(bytes: usize) -> Result<Self, AllocError> {
        let mut buffer = AlignedBuffer::new(whole_blocks(bytes)?)?;
        // Writes the buffer, so that pages are not all the same zero page.
        buffer.as_bytes_mut().fill(1);
        let sum = widest_sum();
        let words = buffer.as_slice::<u64>();
        let window = Window::new(words.len() * 8 / BLOCK, |blocks| {
            black_box(sum(&words[blocks.start * (BLOCK / 8)..blocks.end * (BLOCK / 8)]));
        });
        Ok(Self { buffer, window, sum })
    }
}

impl Probe for ReadBandwidth {
    fn name(&self) -> &'static str {
        "read bandwidth, GB/s"
    }

    fn run_once(&mut self) -> Sample {
        let bytes = self.window.advance();
        let words = &self.buffer.as_slice::<u64>()[bytes.start / 8..bytes.end / 8];
        timed((bytes.len() * self.window.passes) as f64, || {
            for _ in 0..self.window.passes {
                black_box((self.sum)(black_box(words)));
            }
        })
    }
}

/// The copy bandwidth of one core; bytes read and written both count.
#[derive(Debug)]
pub struct CopyBandwidth {
    source: AlignedBuffer,
    target: AlignedBuffer,
    window: Window,
}

impl CopyBandwidth {
    /// Copies a buffer of `bytes`, rounded up to a page, to another one.
    ///
    /// # Errors
    /// The buffers cannot be allocated.
    pub fn new(bytes: usize) -> Result<Self, AllocError> {
        let bytes = whole_blocks(bytes)?;
        let (mut source, mut target) = (AlignedBuffer::new(bytes)?, AlignedBuffer::new(bytes)?);
        source.as_bytes_mut().fill(1);
        let destination = std::cell::RefCell::new(target.as_bytes_mut());
        let window = Window::new(bytes / BLOCK, |blocks| {
            let range = blocks.start * BLOCK..blocks.end * BLOCK;
            let target = &mut destination.borrow_mut()[range.clone()];
            target.copy_from_slice(&source.as_bytes()[range]);
            black_box(target);
        });
        Ok(Self { source, target, window })
    }
}

impl Probe for CopyBandwidth {
    fn name(&self) -> &'static str {
        "copy bandwidth, GB/s read and written"
    }

    fn run_once(&mut self) -> Sample {
        let bytes = self.window.advance();
        let source = &self.source.as_bytes()[bytes.clone()];
        let target = &mut self.target.as_bytes_mut()[bytes];
        timed((2 * source.len() * self.window.passes) as f64, || {
            for _ in 0..self.window.passes {
                target.copy_from_slice(black_box(source));
                black_box(&mut *target);
            }
        })
    }
}

/// A sum in plain Rust: integer addition may be reordered, so the compiler vectorizes it.
fn sum_portable(words: &[u64]) -> u64 {
    words.iter().fold(0, |sum, &word| sum.wrapping_add(word))
}

/// Sums words with vectors of `$lanes` words, in several streams, which use more prefetchers and
/// open memory pages.
#[cfg(target_arch = "x86_64")]
macro_rules! sum_loop {
    ($name:ident, $lanes:literal, $zero:path, $load:path, $add:path, $store:path, $feature:literal) => {
        #[target_feature(enable = $feature)]
        fn $name(words: &[u64]) -> u64 {
            let step = $lanes * UNROLL;
            let stream = words.len() / STREAMS / step * step;
            let streams: [&[u64]; STREAMS] =
                std::array::from_fn(|number| &words[number * stream..(number + 1) * stream]);
            // One flat array and one loop over it, so that the compiler keeps all sums in
            // registers.
            let mut sums = [$zero(); STREAMS * UNROLL];
            for at in (0..stream).step_by(step) {
                for (number, sum) in sums.iter_mut().enumerate() {
                    let at = at + number % UNROLL * $lanes;
                    // SAFETY: the stream's length is a multiple of `step`, so there are `UNROLL`
                    // vectors of `LANES` words in each step. The load needs no alignment.
                    let vector = unsafe { $load(streams[number / UNROLL].as_ptr().add(at).cast()) };
                    *sum = $add(*sum, vector);
                }
            }
            let mut total = $zero();
            for sum in sums {
                total = $add(total, sum);
            }
            let mut lanes = [0u64; $lanes];
            // SAFETY: the array has `LANES` words; the store needs no alignment.
            unsafe { $store(lanes.as_mut_ptr().cast(), total) };
            sum_portable(&lanes).wrapping_add(sum_portable(&words[STREAMS * stream..]))
        }
    };
}

#[cfg(target_arch = "x86_64")]
mod vector {
    use std::arch::is_x86_feature_detected as has;
    use std::arch::x86_64::*;

    use super::sum_portable;

    /// The streams that are read concurrently.
    const STREAMS: usize = 4;

    /// The vectors that are read from a stream before the next stream.
    const UNROLL: usize = 4;

    sum_loop!(
        sum_avx512,
        8,
        _mm512_setzero_si512,
        _mm512_loadu_si512,
        _mm512_add_epi64,
        _mm512_storeu_si512,
        "avx512f"
    );
    sum_loop!(
        sum_avx2,
        4,
        _mm256_setzero_si256,
        _mm256_loadu_si256,
        _mm256_add_epi64,
        _mm256_storeu_si256,
        "avx2"
    );

    pub(super) fn sums() -> Vec<fn(&[u64]) -> u64> {
        let mut sums: Vec<fn(&[u64]) -> u64> = Vec::new();
        if has!("avx512f") {
            // SAFETY: the feature was detected.
            sums.push(|words| unsafe { sum_avx512(words) });
        }
        if has!("avx2") {
            // SAFETY: the feature was detected.
            sums.push(|words| unsafe { sum_avx2(words) });
        }
        sums
    }
}

#[cfg(not(target_arch = "x86_64"))]
mod vector {
    /// The compiler's default vectors have the full width of this architecture.
    pub(super) fn sums() -> Vec<fn(&[u64]) -> u64> {
        Vec::new()
    }
}

fn widest_sum() -> fn(&[u64]) -> u64 {
    vector::sums().first().copied().unwrap_or(sum_portable)
}

#[cfg(test)]
mod tests {
    use super::{
        BLOCK, CopyBandwidth, Probe, ReadBandwidth, Window, sum_portable, vector, whole_blocks,
    };

    #[test]
    fn every_sum_sees_every_word() {
        for len in [0, 1, 7, 64, 65, 511, 512, 1000, 4096] {
            let words: Vec<u64> = (0..len).map(|word| word * word + 1).collect();
            for sum in vector::sums() {
                assert_eq!(sum(&words), sum_portable(&words), "{len} words");
            }
        }
    }

    #[test]
    fn windows_walk_through_the_buffer() {
        let mut window = Window { blocks: 2, next: 0, total: 5, passes: 1 };
        let begins: Vec<_> = (0..4).map(|_| window.advance().start / BLOCK).collect();
        assert_eq!(begins, [0, 2, 0, 2]);
    }

    #[test]
    fn probes_run_on_small_and_large_buffers() {
        for bytes in [0, 1, 20_000, 5 << 20] {
            let mut probes: [Box<dyn Probe>; 2] = [
                Box::new(ReadBandwidth::new(bytes).unwrap()),
                Box::new(CopyBandwidth::new(bytes).unwrap()),
            ];
            for probe in &mut probes {
                for _ in 0..3 {
                    let sample = probe.run_once();
                    assert!(sample.work >= BLOCK as f64 && sample.rate().is_finite());
                }
                assert!(probe.name().contains("GB/s"));
            }
        }
    }

    #[test]
    fn a_copy_arrives() {
        let mut copy = CopyBandwidth::new(3 * BLOCK).unwrap();
        copy.target.as_bytes_mut().fill(0);
        for _ in 0..3 {
            copy.run_once();
        }
        assert!(copy.target.as_bytes().iter().all(|&byte| byte == 1));
    }

    #[test]
    fn absurd_sizes_are_errors() {
        assert!(whole_blocks(usize::MAX).is_err());
        assert!(ReadBandwidth::new(usize::MAX - BLOCK).is_err());
        assert!(CopyBandwidth::new(1 << 50).is_err());
    }
}
