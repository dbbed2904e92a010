//! Times candidates, corrected by a probe.

use std::time::{Duration, Instant};

use tensorwright_outcome::Timing;
use tensorwright_runtime::timing::stats::{median_and_spread, quantile};

use super::backend::Backend;
use crate::TimingPlan;
use crate::protocol::Verdict;
use crate::roofline::Roofline;

/// The largest correction by a slow probe: beyond that, the probe was interrupted.
const LEAST_FACTOR: f64 = 0.5;

/// A call of this many sample lengths is long: cold caches are a small part of it.
const LONG: u32 = 4;

/// The most calls of a sample.
const MOST_CALLS: f64 = 1e6;

/// The calls per sample for this call time.
pub(super) fn batch(plan: &TimingPlan, call: Duration) -> u32 {
    // With flushed caches, every call of a sample but the first would find them warm.
    if plan.flush_caches {
        return 1;
    }
    let calls = plan.sample.as_secs_f64() / call.as_secs_f64().max(1e-9);
    calls.ceil().clamp(1.0, MOST_CALLS) as u32
}

/// Seconds per call of a batch, by the clock.
pub(super) fn clocked<E>(batch: u32, call: &mut dyn FnMut() -> Result<(), E>) -> Result<f64, E> {
    let start = Instant::now();
    for _ in 0..batch {
        call()?;
    }
    Ok(start.elapsed().as_secs_f64().max(1e-9) / f64::from(batch))
}

/// The seconds of a warm call, after a first one that took `first`. The first met cold caches and
/// untrained branch predictors: for a short kernel it can take many times as long.
pub(super) fn warm<B: Backend>(
    backend: &mut B,
    candidate: &mut B::Candidate,
    first: Duration,
    plan: &TimingPlan,
) -> Result<f64, Verdict> {
    let mut least = first.as_secs_f64();
    if first >= plan.sample * LONG {
        return Ok(least);
    }
    let start = Instant::now();
    while start.elapsed() < plan.sample {
        least = least.min(backend.sample(candidate, 1)?);
    }
    Ok(least)
}

/// Times calls in turns with a probe, after a first call that took `first`. Timing ends early if
/// the candidate is certain to lose: warm calls decide that, corrected by the probe like the best
/// time.
pub(super) fn time<B: Backend>(
    backend: &mut B,
    candidate: &mut B::Candidate,
    first: Duration,
    best: Option<f64>,
    plan: &TimingPlan,
    roofline: &mut Roofline,
) -> Result<Timing, Verdict> {
    let batch = batch(plan, Duration::from_secs_f64(warm(backend, candidate, first, plan)?));
    let (mut samples, mut rates) = (Vec::new(), vec![backend.rate()]);
    let start = Instant::now();
    let cut = loop {
        if plan.flush_caches {
            backend.flush();
        }
        samples.push(backend.sample(candidate, batch)?);
        rates.push(backend.rate());
        if loses(&samples, &rates, best, plan, roofline) {
            break true;
        }
        let elapsed = start.elapsed();
        let enough = elapsed >= plan.minimum && samples.len() >= plan.least_samples as usize;
        if enough || elapsed >= plan.maximum {
            break false;
        }
    };
    Ok(Timing { cut, ..settle(&samples, batch, &rates, roofline) })
}

/// Whether a candidate with these samples is certain to lose. A single sample may be disturbed, so
/// a candidate that is only a little too slow gets a second one.
fn loses(
    samples: &[f64],
    rates: &[f64],
    best: Option<f64>,
    plan: &TimingPlan,
    roofline: &mut Roofline,
) -> bool {
    let Some(best) = best else { return false };
    let least = samples.iter().copied().fold(f64::INFINITY, f64::min) * factor(rates, roofline);
    least > plan.cut * best || (samples.len() > 1 && least > plan.glance * best)
}

/// The timing from samples and the probe rates around them.
pub(super) fn settle(
    samples: &[f64],
    batch: u32,
    rates: &[f64],
    roofline: &mut Roofline,
) -> Timing {
    let (raw_seconds, spread) = median_and_spread(samples);
    let seconds = raw_seconds * factor(rates, roofline);
    let fastest = samples.iter().copied().fold(f64::INFINITY, f64::min);
    let seconds = seconds.max(fastest.min(raw_seconds));
    let runs = u32::try_from(samples.len()).unwrap_or(u32::MAX).saturating_mul(batch);
    let roofline = roofline.share(seconds);
    Timing { seconds, raw_seconds, spread, runs, roofline, cut: false }
}

/// The speed of the probe relative to its best.
pub(super) fn factor(rates: &[f64], roofline: &mut Roofline) -> f64 {
    let rate = quantile(&mut rates.to_vec(), 0.5);
    roofline.saw(rate);
    let factor = rate / roofline.peak();
    if factor.is_finite() { factor.clamp(LEAST_FACTOR, 1.0) } else { 1.0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::Description;

    /// A backend with a steady probe, on which kernels pretend to work.
    struct Steady(f64);

    impl Backend for Steady {
        type Candidate = Kernel;

        const COMPILES: bool = false;

        fn load(&mut self, _: &Description, _: &[u8]) -> Result<Kernel, Verdict> {
            Err(Verdict::Unlinkable(String::new()))
        }
        fn prepare(&mut self, _: &mut Kernel) -> Result<(), Verdict> {
            Ok(())
        }
        fn poison(&mut self, _: &Kernel) -> Result<(), Verdict> {
            Ok(())
        }
        fn sample(&mut self, kernel: &mut Kernel, batch: u32) -> Result<f64, Verdict> {
            clocked(batch, &mut || {
                kernel.call();
                Ok(())
            })
        }
        fn confirm(&mut self, _: &Kernel) -> Result<(), Verdict> {
            Ok(())
        }
        fn rate(&mut self) -> f64 {
            self.0
        }
        fn flush(&mut self) {}
    }

    fn roofline() -> Roofline {
        Roofline { peak_gflops: 100.0, peak_gbps: 10.0, flops: 1e6, bytes: 1.0, seconds: 1e-5 }
    }

    #[test]
    fn a_slow_probe_takes_the_blame_but_never_beyond_the_fastest_sample() {
        let samples = [2.0, 2.2, 1.9];
        let timing = settle(&samples, 1, &[50.0, 50.0], &mut roofline());
        assert_eq!((timing.raw_seconds, timing.seconds, timing.runs), (2.0, 1.9, 3));
        let timing = settle(&samples, 4, &[100.0], &mut roofline());
        assert_eq!((timing.seconds, timing.runs), (2.0, 12));
        let timing = settle(&samples, 1, &[97.0], &mut roofline());
        assert!((timing.seconds - 1.94).abs() < 1e-12);
        let mut faster = roofline();
        assert_eq!(factor(&[200.0], &mut faster), 1.0);
        assert_eq!(faster.peak_gflops, 200.0);
    }

    /// A kernel with this call time, and longer first calls.
    struct Kernel {
        cold_calls: u32,
        cold: Duration,
        warm: Duration,
        calls: u32,
    }

    impl Kernel {
        fn time(&mut self, best: f64) -> Timing {
            let first = self.call();
            let (plan, best) = (TimingPlan::default(), Some(best));
            time(&mut Steady(100.0), self, first, best, &plan, &mut roofline()).unwrap()
        }

        fn call(&mut self) -> Duration {
            let takes = if self.calls < self.cold_calls { self.cold } else { self.warm };
            self.calls += 1;
            let start = Instant::now();
            while start.elapsed() < takes {
                std::hint::spin_loop();
            }
            start.elapsed()
        }
    }

    // Times differ enough that a busy machine decides nothing.

    #[test]
    fn a_cold_first_call_does_not_decide() {
        // The first call takes ten times as long as the best, the others a tenth of it.
        let us = Duration::from_micros;
        let mut kernel = Kernel { cold_calls: 1, cold: us(500), warm: us(5), calls: 0 };
        let timing = kernel.time(50e-6);
        assert!(!timing.cut, "{timing:?}");
        // The batch is sized for warm calls: some thirty of them, not one.
        assert!(timing.runs >= 9, "{timing:?}");
    }

    #[test]
    fn slow_candidates_are_cut_and_say_so() {
        let ms = Duration::from_millis;
        let kernel = || Kernel { cold_calls: 0, cold: ms(0), warm: ms(8), calls: 0 };
        let timing = kernel().time(1e-4);
        assert!(timing.cut && timing.runs == 1, "{timing:?}");
        let timing = kernel().time(10.0);
        assert!(!timing.cut && timing.runs > 1, "{timing:?}");
    }

    #[test]
    fn both_sides_are_corrected_alike() {
        // The probe runs at half its speed, and so does the candidate: it is as fast as the best.
        let (plan, mut roofline) = (TimingPlan::default(), roofline());
        let rates = [50.0, 50.0, 50.0];
        assert!(!loses(&[2.0, 2.0], &rates, Some(1.0), &plan, &mut roofline));
        assert!(loses(&[3.2, 3.2], &rates, Some(1.0), &plan, &mut roofline));
        assert!(!loses(&[9.0, 2.0], &rates, Some(1.0), &plan, &mut roofline));
        assert!(!loses(&[9.0, 9.0], &rates, None, &plan, &mut roofline));
    }

    #[test]
    fn batches_fill_a_sample() {
        let plan = TimingPlan::default();
        assert_eq!(batch(&plan, Duration::from_micros(15)), 10);
        assert_eq!(batch(&plan, Duration::ZERO), 150_000);
        assert_eq!(batch(&TimingPlan { flush_caches: true, ..plan }, Duration::ZERO), 1);
    }
}
