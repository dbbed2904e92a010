//! The state of a fleet in Prometheus's text format (version 0.0.4).

use std::collections::BTreeMap;
use std::fmt::{self, Write};

use tensorwright_outcome::Outcome;

use super::snapshot::Snapshot;

/// The content type.
pub(super) const TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// The states of a worker.
const STATES: [&str; 5] = ["busy", "idle", "draining", "gone", "set aside"];

/// A label, between its quotes.
struct Label<'t>(&'t str);

impl fmt::Display for Label<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for character in self.0.chars() {
            match character {
                '\\' => f.write_str("\\\\")?,
                '"' => f.write_str("\\\"")?,
                '\n' => f.write_str("\\n")?,
                control if control.is_control() => f.write_char('\u{fffd}')?,
                plain => f.write_char(plain)?,
            }
        }
        Ok(())
    }
}

fn head(out: &mut String, name: &str, kind: &str, help: &str) -> fmt::Result {
    writeln!(
        out,
        "# HELP tensorwright_fleet_{name} {help}\n# TYPE tensorwright_fleet_{name} {kind}"
    )
}

/// The metrics; without a snapshot, only that the fleet's server does not answer.
pub(super) fn text(snapshot: Option<&Snapshot>) -> String {
    let mut out = String::new();
    // Writing to a string cannot fail.
    let _ = write(&mut out, snapshot);
    out
}

fn write(out: &mut String, snapshot: Option<&Snapshot>) -> fmt::Result {
    head(out, "up", "gauge", "Whether the server of the fleet answers.")?;
    writeln!(out, "tensorwright_fleet_up {}", u8::from(snapshot.is_some()))?;
    let Some(snapshot) = snapshot else { return Ok(()) };
    let classes = &snapshot.classes;
    type Of = fn(&tensorwright_fleet::Status) -> u64;
    let gauges: [(&str, &str, Of); 4] = [
        ("items_waiting", "Candidates that wait.", |class| class.ready),
        ("items_held", "Candidates that workers hold.", |class| class.leased),
        ("runs", "Runs that are not over.", |class| class.runs),
        ("workers_set_aside", "Workers that are not trusted.", |class| class.quarantined),
    ];
    for (name, help, value) in gauges {
        head(out, name, "gauge", help)?;
        for class in classes {
            let label = Label(&class.class);
            writeln!(out, "tensorwright_fleet_{name}{{class=\"{label}\"}} {}", value(class))?;
        }
    }
    head(out, "outcomes_total", "counter", "Candidates whose outcome is known, by outcome.")?;
    for class in classes {
        for (kind, count) in Outcome::KINDS.iter().zip(class.kinds) {
            let label = Label(&class.class);
            writeln!(
                out,
                "tensorwright_fleet_outcomes_total{{class=\"{label}\",outcome=\"{kind}\"}} {count}"
            )?;
        }
    }
    head(out, "workers", "gauge", "Workers of the last hour, by what they do.")?;
    let mut counts: BTreeMap<(&str, &str), u64> = BTreeMap::new();
    for class in classes {
        counts.extend(STATES.map(|state| ((class.class.as_str(), state), 0)));
    }
    for worker in &snapshot.workers {
        *counts.entry((&worker.class, &worker.state)).or_default() += 1;
    }
    for ((class, state), count) in counts {
        let (class, state) = (Label(class), Label(state));
        writeln!(out, "tensorwright_fleet_workers{{class=\"{class}\",state=\"{state}\"}} {count}")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use tensorwright_fleet::{Status, WorkerStatus};

    use super::*;

    #[test]
    fn the_text_is_what_prometheus_reads() {
        assert_eq!(
            text(None),
            "# HELP tensorwright_fleet_up Whether the server of the fleet answers.\n\
             # TYPE tensorwright_fleet_up gauge\ntensorwright_fleet_up 0\n"
        );
        let class = "a \"quoted\\\n\u{1b}class".to_owned();
        let status = Status {
            class: class.clone(),
            ready: 5,
            leased: 4,
            done: 3,
            workers: 2,
            quarantined: 1,
            runs: 6,
            kinds: [1, 0, 2, 0, 0, 0, 0],
        };
        let worker = WorkerStatus {
            name: "w".into(),
            class,
            state: "busy".into(),
            reason: None,
            seen: 0.1,
            probe: None,
            held: 4,
            kinds: [0; 7],
        };
        let snapshot = Snapshot {
            classes: vec![status],
            workers: vec![worker],
            runs: vec![],
            curves: vec![],
            samples: vec![],
        };
        let text = text(Some(&snapshot));
        let class = "class=\"a \\\"quoted\\\\\\n\u{fffd}class\"";
        for line in [
            format!("tensorwright_fleet_items_waiting{{{class}}} 5"),
            format!("tensorwright_fleet_items_held{{{class}}} 4"),
            format!("tensorwright_fleet_runs{{{class}}} 6"),
            format!("tensorwright_fleet_workers_set_aside{{{class}}} 1"),
            format!("tensorwright_fleet_outcomes_total{{{class},outcome=\"measured\"}} 1"),
            format!("tensorwright_fleet_outcomes_total{{{class},outcome=\"build-failed\"}} 2"),
            format!("tensorwright_fleet_workers{{{class},state=\"busy\"}} 1"),
            format!("tensorwright_fleet_workers{{{class},state=\"gone\"}} 0"),
        ] {
            assert!(text.lines().any(|found| found == line), "{line}\n{text}");
        }
        // Every metric has one help and one type line, before its values.
        let names: Vec<&str> =
            text.lines().filter_map(|line| line.strip_prefix("# TYPE ")).collect();
        assert_eq!(names.len(), 7);
    }
}
