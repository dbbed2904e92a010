//! [`Snapshot`]: the state of a fleet at one moment.

use serde_json::{Value, json};
use tensorwright_fleet::{Fleet, Kinds, RunStatus, Sample, Status, WorkerStatus};
use tensorwright_outcome::Outcome;
use tensorwright_records::Result;

/// The most runs to show.
const RUNS: u32 = 40;

/// The most runs with a curve.
const CURVES: usize = 12;

/// The time span of plots, in seconds.
const PAST: f64 = 3600.0;

/// The window for rates, in seconds.
const WINDOW: f64 = 60.0;

/// The state of a fleet at one moment.
pub(super) struct Snapshot {
    pub(super) classes: Vec<Status>,
    pub(super) workers: Vec<WorkerStatus>,
    pub(super) runs: Vec<RunStatus>,
    /// When the first runs found their best times.
    pub(super) curves: Vec<Vec<(f64, f64)>>,
    pub(super) samples: Vec<Sample>,
}

impl Snapshot {
    /// Queries the server.
    pub(super) fn take(fleet: &mut Fleet) -> Result<Self> {
        let (classes, workers, runs) = (fleet.status()?, fleet.workers()?, fleet.runs(RUNS)?);
        let curves = runs.iter().take(CURVES).map(|run| fleet.curve(&run.run));
        let curves = curves.collect::<Result<_>>()?;
        Ok(Self { classes, workers, runs, curves, samples: fleet.samples(PAST)? })
    }

    /// Items per second that a class completed lately; `None` before there are two samples.
    pub(super) fn rate(&self, class: &Status) -> Option<f64> {
        let samples = self.samples.iter().filter(|sample| sample.class == class.class);
        // The newest sample outside the window, or else the oldest.
        let (old, young): (Vec<&Sample>, Vec<&Sample>) =
            samples.partition(|sample| sample.age >= WINDOW);
        let then = old.last().or(young.first()).filter(|sample| sample.age >= 1.0)?;
        Some(class.done.saturating_sub(then.done) as f64 / then.age)
    }

    /// The snapshot as JSON for the page.
    pub(super) fn json(&self) -> Value {
        let classes: Vec<Value> = self.classes.iter().map(|class| {
            let Status { class: name, ready, leased, done, workers, quarantined, runs, kinds } = class;
            json!({
                "class": name, "runs": runs, "ready": ready, "leased": leased, "done": done, "workers": workers,
                "quarantined": quarantined, "rate": self.rate(class), "outcomes": by_name(kinds),
                "samples": self.samples.iter().filter(|sample| sample.class == *name)
                    .map(|sample| json!([sample.age, sample.done, sample.ready, sample.leased, sample.workers])).collect::<Vec<_>>(),
            })
        }).collect();
        let workers: Vec<Value> = self.workers.iter().map(|worker| {
            let WorkerStatus { name, class, state, reason, seen, probe, held, kinds } = worker;
            json!({ "name": name, "class": class, "state": state, "reason": reason, "seen": seen, "probe": probe,
                    "held": held, "outcomes": by_name(kinds) })
        }).collect();
        let curves = self.curves.iter().map(Some).chain(std::iter::repeat(None));
        let runs: Vec<Value> = self.runs.iter().zip(curves).map(|(run, curve)| {
            json!({ "run": run.run, "class": run.class, "def": run.def, "sizes": run.sizes, "strategy": run.strategy, "owner": run.owner,
                    "items": run.items, "done": run.done(), "waiting": run.waiting, "held": run.held, "dropped": run.dropped, "best": run.best,
                    "age": run.age, "status": run.status, "curve": curve })
        }).collect();
        json!({ "classes": classes, "workers": workers, "runs": runs })
    }
}

/// Counts by outcome name.
pub(super) fn by_name(kinds: &Kinds) -> serde_json::Map<String, Value> {
    Outcome::KINDS
        .iter()
        .zip(kinds)
        .map(|(name, count)| ((*name).to_owned(), (*count).into()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_told_over_a_minute() {
        let status = |done| Status {
            class: "c".into(),
            ready: 0,
            leased: 0,
            done,
            workers: 1,
            quarantined: 0,
            runs: 1,
            kinds: [0; 7],
        };
        let sample =
            |age, done| Sample { class: "c".into(), age, done, ready: 0, leased: 0, workers: 1 };
        let rate = |samples, done| {
            let classes = vec![status(done)];
            let seen = Snapshot { classes, workers: vec![], runs: vec![], curves: vec![], samples };
            seen.rate(&seen.classes[0])
        };
        assert_eq!(rate(vec![], 9), None);
        assert_eq!(rate(vec![sample(0.5, 0)], 9), None, "too short a time to tell");
        assert_eq!(rate(vec![sample(20.0, 10)], 30), Some(1.0));
        assert_eq!(
            rate(vec![sample(300.0, 0), sample(80.0, 20), sample(10.0, 95)], 100),
            Some(1.0)
        );
    }
}
