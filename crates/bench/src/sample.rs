//! Samples of a call, with the sampling method of all peers.

use std::time::{Duration, Instant};

/// Warm-up before the clock starts: caches and frequency reflect the previous process.
const WARM_UP: Duration = Duration::from_millis(3);

/// Shorter calls are timed in batches.
const BATCH: Duration = Duration::from_micros(100);

/// Nanoseconds per call, over about this many seconds. Device calls report the time of their
/// kernels.
pub(crate) fn samples(seconds: f64, mut call: impl FnMut() -> Option<Duration>) -> Vec<f64> {
    let calls = batch(&mut call);
    let limit = Duration::try_from_secs_f64(seconds).unwrap_or_default();
    let start = Instant::now();
    let mut list = Vec::new();
    while list.is_empty() || start.elapsed() < limit {
        let before = Instant::now();
        let mut on_device = Some(Duration::ZERO);
        for _ in 0..calls {
            on_device = call().zip(on_device).map(|(one, others)| one + others);
        }
        let took = on_device.unwrap_or_else(|| before.elapsed());
        list.push(took.as_nanos() as f64 / f64::from(calls));
    }
    list
}

/// Warms up, and returns the number of calls per batch.
fn batch(call: &mut impl FnMut() -> Option<Duration>) -> u32 {
    let start = Instant::now();
    let mut calls = 0_u32;
    while calls == 0 || start.elapsed() < WARM_UP {
        call();
        calls += 1;
    }
    // The first calls are slower, which only makes the batches longer.
    let one = (start.elapsed() / calls).max(Duration::from_nanos(1));
    (BATCH.as_nanos() / one.as_nanos()).clamp(1, 1 << 20) as u32
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::samples;

    #[test]
    fn short_calls_come_in_batches() {
        let mut calls = 0;
        let list = samples(0.002, || {
            calls += 1;
            None
        });
        assert!(calls > 100 * list.len(), "{calls} calls in {} samples", list.len());
        assert!(list.iter().all(|ns| *ns >= 0.0));
    }

    #[test]
    fn there_is_a_sample_however_long_a_call_takes() {
        let list = samples(0.0, || {
            std::thread::sleep(Duration::from_millis(4));
            None
        });
        assert_eq!(list.len(), 1);
        assert!(list[0] >= 4e6);
    }

    #[test]
    fn the_clock_of_a_device_counts_where_there_is_one() {
        let list = samples(0.0, || Some(Duration::from_nanos(7)));
        assert_eq!(list, [7.0]);
    }
}
