//! How long a candidate takes.

use std::time::{Duration, Instant};

use tensorwright_outcome::Timing;
use tensorwright_runtime::probe::Probe;
use tensorwright_runtime::timing::stats::{median_and_spread, quantile};

use crate::TimingPlan;
use crate::roofline::Roofline;

/// The most that a slow probe may take off a time: beyond that, the probe was interrupted.
const LEAST_FACTOR: f64 = 0.5;

/// The most calls of a sample.
const MOST_CALLS: f64 = 1e6;

/// Reads through a buffer that is larger than the caches, so that nothing else is in them.
pub(super) type Flush<'f> = &'f mut dyn FnMut();

/// How many calls make a sample, for calls that take so long.
pub(super) fn batch(plan: &TimingPlan, call: Duration) -> u32 {
    // With empty caches, every call of a sample but the first would find them full.
    if plan.flush_caches {
        return 1;
    }
    let calls = plan.sample.as_secs_f64() / call.as_secs_f64().max(1e-9);
    calls.ceil().clamp(1.0, MOST_CALLS) as u32
}

/// Seconds per call of a batch.
pub(super) fn sample<E>(call: &mut dyn FnMut() -> Result<(), E>, batch: u32) -> Result<f64, E> {
    let start = Instant::now();
    for _ in 0..batch {
        call()?;
    }
    Ok(start.elapsed().as_secs_f64().max(1e-9) / f64::from(batch))
}

/// Times calls after the first one, which took `first`, in turns with a probe.
pub(super) fn time<E>(
    call: &mut dyn FnMut() -> Result<(), E>,
    first: Duration,
    best: Option<f64>,
    plan: &TimingPlan,
    probe: &mut dyn Probe,
    roofline: &mut Roofline,
    flush: Flush<'_>,
) -> Result<Timing, E> {
    let is_slower = |seconds: f64, times: f64| best.is_some_and(|best| seconds > times * best);
    if is_slower(first.as_secs_f64(), plan.cut) {
        let rates = [probe.run_once().rate(), probe.run_once().rate()];
        let mut timing = settle(&[first.as_secs_f64()], 1, &rates, roofline);
        timing.cut = true;
        return Ok(timing);
    }
    // The first call of a short kernel says little: it met cold caches.
    let again = if first < plan.sample * 4 { sample(call, 1)? } else { first.as_secs_f64() };
    let batch = batch(plan, first.min(Duration::from_secs_f64(again)));
    let (mut samples, mut rates) = (Vec::new(), vec![probe.run_once().rate()]);
    let start = Instant::now();
    loop {
        if plan.flush_caches {
            flush();
        }
        samples.push(sample(call, batch)?);
        rates.push(probe.run_once().rate());
        let elapsed = start.elapsed();
        let enough = elapsed >= plan.minimum && samples.len() >= plan.least_samples as usize;
        let hopeless = samples.iter().all(|sample| is_slower(*sample, plan.glance));
        if enough || elapsed >= plan.maximum || (hopeless && elapsed >= plan.sample) {
            break;
        }
    }
    Ok(settle(&samples, batch, &rates, roofline))
}

/// The timing that samples and the rates of the probe around them make.
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

/// The speed of the probe in units of the best it has had.
pub(super) fn factor(rates: &[f64], roofline: &mut Roofline) -> f64 {
    let rate = quantile(&mut rates.to_vec(), 0.5);
    roofline.saw(rate);
    let factor = rate / roofline.peak();
    if factor.is_finite() { factor.clamp(LEAST_FACTOR, 1.0) } else { 1.0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::convert::Infallible;
    use tensorwright_runtime::probe::Sample;

    struct Steady(f64);

    impl Probe for Steady {
        fn name(&self) -> &'static str {
            "steady"
        }
        fn run_once(&mut self) -> Sample {
            Sample { nanoseconds: 1.0, work: self.0 }
        }
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

    #[test]
    fn slow_candidates_are_cut_and_not_called_again() {
        let mut calls = 0;
        let mut call = || {
            calls += 1;
            Ok::<(), Infallible>(())
        };
        let plan = TimingPlan::default();
        let (mut probe, mut roofline) = (Steady(100.0), roofline());
        let first = Duration::from_millis(400);
        let Ok(timing) =
            time(&mut call, first, Some(0.1), &plan, &mut probe, &mut roofline, &mut || ());
        assert!(timing.cut && timing.runs == 1 && timing.seconds == 0.4);
        assert_eq!(calls, 0);
        assert_eq!(batch(&plan, Duration::from_micros(15)), 10);
        assert_eq!(batch(&plan, Duration::ZERO), 150_000);
        assert_eq!(batch(&TimingPlan { flush_caches: true, ..plan }, Duration::ZERO), 1);
    }
}
