//! Tests of timing: results are consistent under any load.

use std::cell::{Cell, RefCell};
use std::time::Duration;

use crate::probe::{
    CopyBandwidth, FmaPeak, Probe, ReadBandwidth, Sample, copy_bandwidth, fma_peak, fma_peak_f64,
    read_bandwidth,
};
use crate::timing::{TimingOptions, compare, measure};

fn brief() -> TimingOptions {
    let brief = Duration::from_millis(3);
    TimingOptions { warm_up: brief, minimum: brief, ..TimingOptions::default() }
}

/// A probe with constant work that counts its runs.
struct Steady<'a>(&'a Cell<usize>);

impl Probe for Steady<'_> {
    fn name(&self) -> &'static str {
        "steady"
    }

    fn run_once(&mut self) -> Sample {
        self.0.set(self.0.get() + 1);
        Sample { nanoseconds: 1.0, work: 2.0 }
    }
}

#[test]
fn the_probe_runs_around_every_sample() {
    let runs = Cell::new(0);
    let options = TimingOptions { work: Some(1e6), ..brief() };
    let timing = measure(&mut || {}, Some(&mut Steady(&runs)), &options);
    assert_eq!(runs.get(), timing.samples.len() + 1);
    let probe = timing.probe.unwrap();
    assert_eq!((probe.rate, probe.kept), (2.0, timing.samples.len()));
    let expected = 1e6 / timing.median_ns / 2.0;
    assert!((probe.share.unwrap() / expected - 1.0).abs() < 1e-2);
}

#[test]
fn calls_are_counted() {
    let calls = Cell::new(0u64);
    let timing = measure(&mut || calls.set(calls.get() + 1), None, &brief());
    assert!(calls.get() >= timing.batch * timing.samples.len() as u64);
    assert!(timing.min_ns > 0.0 && timing.min_ns <= timing.median_ns);
    assert!(timing.spread >= 0.0);
}

#[test]
fn long_kernels_stop_at_the_maximum() {
    let calls = Cell::new(0);
    let mut slow = || {
        calls.set(calls.get() + 1);
        std::thread::sleep(Duration::from_millis(5));
    };
    let options = TimingOptions { maximum: Duration::from_millis(1), ..brief() };
    let timing = measure(&mut slow, None, &options);
    assert_eq!((timing.batch, timing.samples.len()), (1, 1));
    assert!(calls.get() <= 3);
}

#[test]
fn a_comparison_takes_turns() {
    let order = RefCell::new(String::new());
    let note = |who: char| {
        order.borrow_mut().push(who);
        std::thread::sleep(Duration::from_millis(1));
    };
    let options = TimingOptions { warm_up: Duration::ZERO, ..brief() };
    let comparison = compare(&mut || note('a'), &mut || note('b'), &options);
    assert_eq!(comparison.a.samples.len(), comparison.b.samples.len());
    assert!(order.borrow().contains("abbaab"), "{order:?}");
}

#[test]
fn sleeping_longer_takes_longer() {
    let sleep = |milliseconds| std::thread::sleep(Duration::from_millis(milliseconds));
    let comparison = compare(&mut || sleep(10), &mut || sleep(1), &brief());
    assert!(comparison.ratio > 1.0);
    assert!(comparison.spread.is_finite());
}

#[test]
fn rates_are_positive() {
    let time = Duration::from_millis(2);
    let rates = [
        fma_peak(time),
        fma_peak_f64(time),
        read_bandwidth(1 << 20, time).unwrap(),
        copy_bandwidth(1 << 20, time).unwrap(),
    ];
    assert!(rates.iter().all(|rate| rate.is_finite() && *rate > 0.0), "{rates:?}");
    assert!(read_bandwidth(usize::MAX, time).is_err());
    assert!(copy_bandwidth(usize::MAX, time).is_err());
}

#[test]
fn every_probe_can_be_interleaved() {
    let mut probes: [Box<dyn Probe>; 4] = [
        Box::new(FmaPeak::f32()),
        Box::new(FmaPeak::f64()),
        Box::new(ReadBandwidth::new(1 << 16).unwrap()),
        Box::new(CopyBandwidth::new(1 << 16).unwrap()),
    ];
    for probe in &mut probes {
        let options = TimingOptions { work: Some(1.0), ..brief() };
        let timing = measure(&mut || {}, Some(probe.as_mut()), &options);
        assert!(timing.share_of_probe().unwrap() > 0.0, "{}", probe.name());
    }
}
