//! Timing a kernel on a noisy machine.
//!
//! Cores are shared with other machines, clocks change, interrupts occur, so absolute times from
//! different minutes are not comparable. The ratio of two times within the same millisecond is. So
//! [`measure`] runs a [probe](crate::probe) before and after every sample of the kernel. It reports
//! the kernel's share of the probe's rate, using only samples around which the probe ran at its
//! usual speed. [`compare`] alternates between two closures.

pub mod paired;
pub mod stats;

use std::time::{Duration, Instant};

use self::stats::{median_and_spread, quantile};
use crate::probe::Probe;

/// TimingOptions of a measurement.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TimingOptions {
    /// The warm-up time.
    pub warm_up: Duration,
    /// The minimum time of sampling.
    pub minimum: Duration,
    /// The time after which sampling stops even with fewer than
    /// [`least_samples`](Self::least_samples). A single longer call exceeds it, because calls
    /// cannot be interrupted.
    pub maximum: Duration,
    /// The minimum number of samples, if `maximum` allows.
    pub least_samples: usize,
    /// The minimum duration of a sample: shorter kernels are called several times per sample.
    pub sample: Duration,
    /// The work of one call, in the unit of the probe (floating-point operations or bytes). Without
    /// it, the share of the probe is not computed.
    pub work: Option<f64>,
}

impl Default for TimingOptions {
    fn default() -> Self {
        Self {
            warm_up: Duration::from_millis(50),
            minimum: Duration::from_millis(500),
            maximum: Duration::from_secs(5),
            least_samples: 7,
            sample: Duration::from_micros(150),
            work: None,
        }
    }
}

/// The timing of a kernel.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Timing {
    /// Nanoseconds per call, one entry per sample, in the order they were taken.
    pub samples: Vec<f64>,
    /// Calls per sample.
    pub batch: u64,
    /// The median of the samples.
    pub median_ns: f64,
    /// The shortest sample.
    pub min_ns: f64,
    /// The interquartile range, relative to the median.
    pub spread: f64,
    /// The result of the probe, if there was one.
    pub probe: Option<ProbeTiming>,
}

/// The result of a probe between the samples of a kernel.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct ProbeTiming {
    /// The median of the probe's rates around the samples that count: GFLOP/s or GB/s.
    pub rate: f64,
    /// The number of samples that count, because the probe ran at its usual speed before and after
    /// them.
    pub kept: usize,
    /// The median over these samples of the kernel's rate relative to the probe's rate at that
    /// moment; needs [`TimingOptions::work`].
    pub share: Option<f64>,
}

impl Timing {
    fn new(samples: Vec<f64>, batch: u64) -> Self {
        let (median_ns, spread) = median_and_spread(&samples);
        let min_ns = samples.iter().copied().fold(f64::INFINITY, f64::min);
        Self { samples, batch, median_ns, min_ns, spread, probe: None }
    }

    /// The kernel's share of the probe's rate, if there was a probe and the work is known.
    #[must_use]
    pub fn share_of_probe(&self) -> Option<f64> {
        self.probe.and_then(|probe| probe.share)
    }
}

/// A comparison of two closures.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Comparison {
    /// The timing of the first.
    pub a: Timing,
    /// The timing of the second.
    pub b: Timing,
    /// The median, over pairs of consecutive samples, of the time of `a` divided by that of `b`:
    /// above one, `b` is faster.
    pub ratio: f64,
    /// The interquartile range of these ratios, relative to the median.
    pub spread: f64,
}

/// Times a kernel, interleaved with a probe.
///
/// ```
/// use std::time::Duration;
/// use tensorwright_runtime::probe::FmaPeak;
/// use tensorwright_runtime::timing::{TimingOptions, measure};
///
/// let values = vec![1.0f32; 4096];
/// let mut sum = || { std::hint::black_box(values.iter().sum::<f32>()); };
/// let short = Duration::from_millis(2);
/// let options =
///     TimingOptions { warm_up: short, minimum: short, work: Some(4096.0), ..Default::default() };
/// let timing = measure(&mut sum, Some(&mut FmaPeak::f32()), &options);
/// assert!(timing.min_ns <= timing.median_ns);
/// assert!(timing.share_of_probe().is_some());
/// ```
pub fn measure(
    kernel: &mut dyn FnMut(),
    mut probe: Option<&mut dyn Probe>,
    options: &TimingOptions,
) -> Timing {
    let batch = warm_up(kernel, options);
    let mut probe_rate = || probe.as_mut().map(|probe| probe.run_once().rate());
    let mut rates = Vec::from_iter(probe_rate());
    let mut samples = Vec::new();
    sample_for(options, || {
        samples.push(sample(kernel, batch));
        rates.extend(probe_rate());
    });
    let mut timing = Timing::new(samples, batch);
    if !rates.is_empty() {
        timing.probe = Some(judge(&timing.samples, &rates, options.work));
    }
    timing
}

/// Times two closures alternately.
///
/// ```
/// use std::time::Duration;
/// use tensorwright_runtime::timing::{TimingOptions, compare};
///
/// let run = |n: u64| { std::hint::black_box((0..n).fold(0, |x, y| std::hint::black_box(x ^ y))); };
/// let short = Duration::from_millis(2);
/// let options = TimingOptions { warm_up: short, minimum: short, ..TimingOptions::default() };
/// let comparison = compare(&mut || run(40_000), &mut || run(1_000), &options);
/// assert!(comparison.ratio > 1.0);
/// ```
pub fn compare(a: &mut dyn FnMut(), b: &mut dyn FnMut(), options: &TimingOptions) -> Comparison {
    let half = TimingOptions { warm_up: options.warm_up / 2, ..*options };
    let (batch_a, batch_b) = (warm_up(a, &half), warm_up(b, &half));
    let (mut samples_a, mut samples_b) = (Vec::new(), Vec::new());
    let mut a_first = true;
    sample_for(options, || {
        // The order alternates, so that drift favors neither.
        if a_first {
            samples_a.push(sample(a, batch_a));
        }
        samples_b.push(sample(b, batch_b));
        if !a_first {
            samples_a.push(sample(a, batch_a));
        }
        a_first = !a_first;
    });
    let ratios: Vec<f64> = samples_a.iter().zip(&samples_b).map(|(a, b)| a / b).collect();
    let (ratio, spread) = median_and_spread(&ratios);
    let (a, b) = (Timing::new(samples_a, batch_a), Timing::new(samples_b, batch_b));
    Comparison { a, b, ratio, spread }
}

/// Warms up a kernel; returns the number of calls per sample.
fn warm_up(kernel: &mut dyn FnMut(), options: &TimingOptions) -> u64 {
    let start = Instant::now();
    let target = options.sample.as_nanos() as f64;
    let mut batch = 1;
    let mut fastest = f64::INFINITY;
    loop {
        fastest = fastest.min(sample(kernel, batch));
        // Grows stepwise: the first call of a kernel can be far slower than all others.
        let needed = (target / fastest).ceil().clamp(1.0, 1e12) as u64;
        let settled = batch >= needed.div_ceil(2);
        batch = needed.min(batch.saturating_mul(8));
        if settled && start.elapsed() >= options.warm_up {
            return batch;
        }
    }
}

/// Nanoseconds per call of a batch; never zero.
fn sample(kernel: &mut dyn FnMut(), batch: u64) -> f64 {
    let start = Instant::now();
    for _ in 0..batch {
        kernel();
    }
    (start.elapsed().as_nanos() as f64).max(1.0) / batch as f64
}

/// Repeats `take` at least once, until there are enough samples.
fn sample_for(options: &TimingOptions, mut take: impl FnMut()) {
    let start = Instant::now();
    for taken in 1.. {
        take();
        let elapsed = start.elapsed();
        let enough = elapsed >= options.minimum && taken >= options.least_samples;
        if enough || elapsed >= options.maximum {
            return;
        }
    }
}

/// A probe below this fraction of its usual rate was disturbed.
const USUAL: f64 = 0.93;

/// Relates samples to the rates of the probe before and after each: `rates[i]` and `rates[i + 1]`.
fn judge(samples: &[f64], rates: &[f64], work: Option<f64>) -> ProbeTiming {
    let usual = quantile(&mut rates.to_vec(), 0.75);
    let around = || samples.iter().zip(rates.windows(2));
    let mut kept: Vec<(f64, f64)> = around()
        .filter(|(_, rates)| rates.iter().all(|&rate| rate >= USUAL * usual))
        .map(|(&sample, rates)| (sample, rates.iter().sum::<f64>() / 2.0))
        .collect();
    if kept.is_empty() {
        // The machine was always disturbed: all samples are equally good.
        kept = around().map(|(&sample, rates)| (sample, rates.iter().sum::<f64>() / 2.0)).collect();
    }
    let mut kept_rates: Vec<f64> = kept.iter().map(|&(_, rate)| rate).collect();
    let share = work.map(|work| {
        let shares = kept.iter().map(|(sample, rate)| work / sample / rate);
        quantile(&mut shares.collect::<Vec<_>>(), 0.5)
    });
    ProbeTiming { rate: quantile(&mut kept_rates, 0.5), kept: kept.len(), share }
}

#[cfg(test)]
mod tests {
    use super::{TimingOptions, judge, measure, sample_for, warm_up};
    use std::time::Duration;

    fn brief() -> TimingOptions {
        let brief = Duration::from_micros(500);
        TimingOptions { warm_up: brief, minimum: brief, ..TimingOptions::default() }
    }

    #[test]
    fn samples_next_to_a_slow_probe_do_not_count() {
        // The third sample ran at half speed.
        let samples = [10.0, 10.0, 20.0, 10.0, 10.0];
        let rates = [100.0, 100.0, 100.0, 50.0, 100.0, 100.0];
        let probe = judge(&samples, &rates, Some(500.0));
        assert_eq!(probe.kept, 3);
        assert_eq!(probe.rate, 100.0);
        assert_eq!(probe.share, Some(0.5));
        assert_eq!(judge(&samples, &rates, None).share, None);
    }

    #[test]
    fn if_no_sample_is_good_all_count() {
        let probe = judge(&[10.0, 10.0], &[100.0, 20.0, 100.0], Some(300.0));
        assert_eq!(probe.kept, 2);
        assert_eq!(probe.share, Some(0.5));
    }

    #[test]
    fn short_kernels_are_batched_and_long_ones_are_not() {
        let options = brief();
        assert!(warm_up(&mut || {}, &options) > 1000);
        let mut sleep = || std::thread::sleep(Duration::from_millis(1));
        assert_eq!(warm_up(&mut sleep, &options), 1);
    }

    #[test]
    fn one_sample_is_taken_even_if_there_is_no_time() {
        let mut taken = 0;
        let options = TimingOptions { maximum: Duration::ZERO, ..TimingOptions::default() };
        sample_for(&options, || taken += 1);
        assert_eq!(taken, 1);
    }

    #[test]
    fn without_a_probe_there_is_no_share() {
        let timing = measure(&mut || {}, None, &brief());
        assert!(timing.samples.len() >= 7);
        assert_eq!((timing.probe, timing.share_of_probe()), (None, None));
    }
}
