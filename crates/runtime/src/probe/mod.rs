//! Probes: short benchmarks of the machine's current speed.
//!
//! A percentage of a data sheet's peak means little: clocks change with heat and vector width, and
//! virtual machines share their cores. A [`Probe`] is a short fixed workload of one or two tenths
//! of a millisecond that saturates one resource. [`crate::timing`] interleaves it with the samples
//! of a kernel and compares the two at the same moment.

mod bandwidth;
mod concurrent;
mod fma;

use std::time::{Duration, Instant};

pub use self::bandwidth::{CopyBandwidth, ReadBandwidth};
pub use self::concurrent::ConcurrentProbes;
pub use self::fma::FmaPeak;
use crate::AllocError;
use crate::timing::stats::quantile;

/// The target duration of a sample: long compared to the clock's resolution, short compared to the
/// time scale on which a machine's speed changes.
pub(crate) const SAMPLE: Duration = Duration::from_micros(150);

/// A short, fixed workload that saturates one resource of one core.
pub trait Probe {
    /// The quantity and its unit, as in `f32 FMA peak, GFLOP/s`.
    fn name(&self) -> &'static str;

    /// Runs the workload once, in about 0.15 milliseconds.
    fn run_once(&mut self) -> Sample;
}

/// One run of a probe.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    /// The duration.
    pub nanoseconds: f64,
    /// The work: floating-point operations or bytes.
    pub work: f64,
}

impl Sample {
    /// Work per nanosecond: GFLOP/s or GB/s.
    #[must_use]
    pub fn rate(&self) -> f64 {
        self.work / self.nanoseconds
    }
}

/// The f32 fused-multiply-add peak of one core in GFLOP/s, from `duration` of samples.
#[must_use]
pub fn fma_peak(duration: Duration) -> f64 {
    sustained(&mut FmaPeak::f32(), duration)
}

/// The f64 fused-multiply-add peak of one core in GFLOP/s, from `duration` of samples.
#[must_use]
pub fn fma_peak_f64(duration: Duration) -> f64 {
    sustained(&mut FmaPeak::f64(), duration)
}

/// The rate in GB/s at which one core reads a buffer of `bytes`, from `duration` of samples.
///
/// # Errors
/// The buffer cannot be allocated.
pub fn read_bandwidth(bytes: usize, duration: Duration) -> Result<f64, AllocError> {
    Ok(sustained(&mut ReadBandwidth::new(bytes)?, duration))
}

/// The rate in GB/s at which one core copies a buffer of `bytes`, counting bytes read and bytes
/// written, from `duration` of samples.
///
/// # Errors
/// The buffers cannot be allocated.
pub fn copy_bandwidth(bytes: usize, duration: Duration) -> Result<f64, AllocError> {
    Ok(sustained(&mut CopyBandwidth::new(bytes)?, duration))
}

/// The upper quartile of a probe's rates over some time: its undisturbed speed, without the
/// luckiest samples.
#[must_use]
pub fn sustained(probe: &mut dyn Probe, duration: Duration) -> f64 {
    let start = Instant::now();
    let mut rates = vec![probe.run_once().rate()];
    while start.elapsed() < duration {
        rates.push(probe.run_once().rate());
    }
    quantile(&mut rates, 0.75)
}

/// Times one workload. Never zero, so rates are finite.
fn timed(work: f64, body: impl FnOnce()) -> Sample {
    let start = Instant::now();
    body();
    Sample { nanoseconds: (start.elapsed().as_nanos() as f64).max(1.0), work }
}

/// The units of work (at least one, at most `limit`) for which `body` takes [`SAMPLE`].
///
/// The best of three trials counts: an interruption during calibration would make every later
/// sample too short.
fn calibrate(limit: usize, mut body: impl FnMut(usize)) -> usize {
    let mut units = 1;
    loop {
        let trial = (0..3).map(|_| timed(0.0, || body(units)).nanoseconds);
        let nanoseconds = trial.fold(f64::INFINITY, f64::min);
        let target = SAMPLE.as_nanos() as f64;
        if nanoseconds >= target / 8.0 || units >= limit {
            let scaled = units as f64 * target / nanoseconds;
            return (scaled as usize).clamp(1, limit);
        }
        units = units.saturating_mul(4).min(limit);
    }
}

#[cfg(test)]
mod tests {
    use super::{Duration, Probe, Sample, calibrate, sustained, timed};

    struct Fixed(Vec<f64>);

    impl Probe for Fixed {
        fn name(&self) -> &'static str {
            "fixed rates"
        }

        fn run_once(&mut self) -> Sample {
            Sample { nanoseconds: 10.0, work: 10.0 * self.0.pop().unwrap_or(1.0) }
        }
    }

    #[test]
    fn one_sample_is_always_taken() {
        assert!((sustained(&mut Fixed(vec![3.0]), Duration::ZERO) - 3.0).abs() < 1e-9);
    }

    #[test]
    fn calibration_respects_its_limit() {
        assert_eq!(calibrate(5, |_| {}), 5);
        assert_eq!(calibrate(1, |_| std::thread::sleep(Duration::from_millis(1))), 1);
        let slow = calibrate(usize::MAX, |_| std::thread::sleep(Duration::from_millis(2)));
        assert_eq!(slow, 1);
    }

    #[test]
    fn nothing_takes_no_time_at_all() {
        assert!(timed(1.0, || {}).rate().is_finite());
    }
}
