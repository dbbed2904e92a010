//! Similar keys: starting points of searches, and reasons of misses.

use std::collections::BTreeMap;

use tensorwright_outcome::{Outcome, Tally};

use super::SqlStore;
use super::database::{Database, DatabaseExt};
use super::read::{self, KEY, KEY_COLUMNS, KEYS, PROGRAM};
use super::row::values;
use crate::answer::{Miss, Near};
use crate::error::Result;
use crate::key::{Key, Part, machine_difference};
use crate::program::ProgramInfo;

/// The most examples in a message.
const EXAMPLES: usize = 4;

/// A key of the same family.
struct Relative {
    row: i64,
    key: Key,
    program: ProgramInfo,
    differs: Vec<Part>,
}

/// The other keys of the same program or family.
fn relatives<D: Database>(store: &SqlStore<D>, key: &Key) -> Result<Vec<Relative>> {
    // Two index lookups.
    let sql = format!(
        "SELECT k.id, {KEY}, {PROGRAM} FROM {KEYS} WHERE p.family = $1
         UNION SELECT k.id, {KEY}, {PROGRAM} FROM {KEYS} WHERE p.hash = $2"
    );
    let rows: Vec<(i64, Key, ProgramInfo)> =
        store.db.all(&sql, values![&key.family, &key.program], |row| {
            Ok((row.get(0)?, read::key(row, 1)?, read::program_at(row, 1 + KEY_COLUMNS)?))
        })?;
    let relatives = rows.into_iter().map(|(row, other, program)| {
        let differs = key.differences(&other);
        Relative { row, key: other, program, differs }
    });
    Ok(relatives.filter(|relative| !relative.differs.is_empty()).collect())
}

/// The bests of similar keys, the most similar first.
pub(super) fn nearest<D: Database>(
    store: &SqlStore<D>,
    key: &Key,
    sizes: &BTreeMap<String, i64>,
    limit: usize,
) -> Result<Vec<Near>> {
    let mut relatives = relatives(store, key)?;
    // A part that differs outweighs all after it: `Part` is in that order, and a list that starts
    // later or ends earlier is less.
    relatives.sort_by(|a, b| {
        let by_parts = weight(&a.differs).cmp(&weight(&b.differs));
        let by_sizes =
            distance(sizes, &a.program.sizes).total_cmp(&distance(sizes, &b.program.sizes));
        by_parts.then(by_sizes).then_with(|| a.key.cmp(&b.key))
    });
    let mut near = Vec::new();
    for Relative { row, key, program, differs } in relatives {
        if near.len() == limit {
            break;
        }
        if let Some(best) = read::best(store, row)? {
            near.push(Near { key, program, best, differs });
        }
    }
    Ok(near)
}

/// The weight of differences: a schedule suits another precision or compiler well, another number
/// of threads less, another machine still less, and other sizes least.
fn weight(differs: &[Part]) -> u32 {
    let one = |part: &Part| match part {
        Part::Precision => 1,
        Part::Compiler => 2,
        Part::Threads => 4,
        Part::Target => 8,
        Part::Sizes => 16,
        Part::Program => 32,
    };
    differs.iter().map(one).sum()
}

/// The distance of sizes: the sum of the absolute logarithms of their ratios.
fn distance(a: &BTreeMap<String, i64>, b: &BTreeMap<String, i64>) -> f64 {
    let log = |value: i64| (value.unsigned_abs() as f64).ln_1p();
    let apart = |(a, b): (i64, i64)| (log(a) - log(b)).abs();
    if a.keys().eq(b.keys()) {
        return a.values().copied().zip(b.values().copied()).map(apart).sum();
    }
    // With other names, only the products of all sizes can be compared.
    let all = |sizes: &BTreeMap<String, i64>| sizes.values().copied().map(log).sum::<f64>();
    (all(a) - all(b)).abs()
}

/// Why there is no best for a key.
pub(super) fn why_miss<D: Database>(store: &SqlStore<D>, key: &Key) -> Result<Vec<Miss>> {
    if let Some(row) = read::key_row(&store.db, key)? {
        if read::best(store, row)?.is_some() {
            return Ok(Vec::new());
        }
        return Ok(vec![nothing_measured(&tally(store, row)?)]);
    }
    let relatives = relatives(store, key)?;
    let same: Vec<&Relative> = relatives.iter().filter(|r| r.key.program == key.program).collect();
    if !same.is_empty() {
        return Ok(other_circumstances(key, &same));
    }
    Ok(vec![if relatives.is_empty() { never_tuned() } else { other_sizes(&relatives) }])
}

fn nothing_measured(tally: &Tally) -> Miss {
    let common = tally.commonest(1);
    let reason = common.first().map(|(kind, reason, _)| format!("; mostly {kind}: {reason}"));
    Miss {
        part: None,
        message: format!(
            "it has been tuned, but no trial succeeded ({}{})",
            tally_words(tally),
            reason.unwrap_or_default()
        ),
        help: "tune it again, with more trials or time".into(),
    }
}

fn never_tuned() -> Miss {
    Miss {
        part: Some(Part::Program),
        message: "this program has not been tuned, with any sizes".into(),
        help:
            "tune it; if it was tuned before, its statements or types have changed since, or its \
               records are in another file (--db, TENSORWRIGHT_DB)"
                .into(),
    }
}

fn other_sizes(relatives: &[Relative]) -> Miss {
    let mut sizes: Vec<String> =
        relatives.iter().map(|relative| size_words(&relative.program)).collect();
    sizes.sort();
    sizes.dedup();
    Miss {
        part: Some(Part::Sizes),
        message: format!("it has been tuned with other sizes only: {}", listed(&sizes, "; ")),
        help: "tune it with these sizes; the search begins with the schedules of the others".into(),
    }
}

/// The same program under other keys: one message per part, about the nearest keys.
fn other_circumstances(key: &Key, same: &[&Relative]) -> Vec<Miss> {
    let least = same.iter().map(|relative| weight(&relative.differs)).min().unwrap_or_default();
    let nearest: Vec<&&Relative> =
        same.iter().filter(|relative| weight(&relative.differs) == least).collect();
    let Some(first) = nearest.first() else { return Vec::new() };
    let stored = |text: &dyn Fn(&Key) -> String| {
        let mut all: Vec<String> = nearest.iter().map(|relative| text(&relative.key)).collect();
        all.sort();
        all.dedup();
        listed(&all, ", ")
    };
    let miss = |part: &Part| match part {
        Part::Threads => {
            let stored = stored(&|key| key.threads.to_string());
            let unit = if stored == "1" { "thread" } else { "threads" };
            let which = if stored.contains(',') { "N" } else { &stored };
            Miss {
                part: Some(*part),
                message: format!("it has been tuned for {stored} {unit}, not for {}", key.threads),
                help: format!(
                    "run it so (`--threads {which}`, in Python `threads={which}`), or tune it for {}",
                    key.threads
                ),
            }
        }
        Part::Precision => Miss {
            part: Some(*part),
            message: format!(
                "it has been tuned with --precision {}, not with {}",
                stored(&|key| key.precision.to_string()),
                key.precision
            ),
            help: format!("tune it with --precision {}", key.precision),
        },
        Part::Compiler => Miss {
            part: Some(*part),
            message: format!(
                "it has been tuned with {}, this is {}",
                stored(&|key| key.compiler.clone()),
                key.compiler
            ),
            help: "tune it again: the stored schedule is checked and timed first".into(),
        },
        _ => Miss {
            part: Some(*part),
            message: stored(&|other| machine_difference(&key.target, &other.target)),
            help: "tune it on this machine: the stored schedule is checked and timed first".into(),
        },
    };
    first.differs.iter().map(miss).collect()
}

fn size_words(program: &ProgramInfo) -> String {
    let sizes: Vec<String> =
        program.sizes.iter().map(|(name, value)| format!("{name}={value}")).collect();
    if sizes.is_empty() { program.def.clone() } else { sizes.join(",") }
}

/// A list that tells how many entries it omits.
fn listed(all: &[String], between: &str) -> String {
    let shown = all[..all.len().min(EXAMPLES)].join(between);
    match all.len().saturating_sub(EXAMPLES) {
        0 => shown,
        more => format!("{shown}{between}and {more} more"),
    }
}

/// The outcomes of the trials of a key.
fn tally<D: Database>(store: &SqlStore<D>, key_row: i64) -> Result<Tally> {
    let sql = "SELECT t.seconds, t.detail FROM trials t JOIN runs r ON r.id = t.run_id
               WHERE r.key_id = $1";
    let rows: Vec<(Option<f64>, Option<i64>)> =
        store.db.all(sql, values![key_row], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let mut tally = Tally::default();
    for (seconds, detail) in rows {
        let outcome = match (seconds, detail) {
            (None, Some(detail)) => {
                let text = store.texts.text(&store.db, detail)?;
                serde_json::from_str(&text).map_err(|error| store.db.corrupt(error.to_string()))?
            }
            _ => Outcome::Measured(Default::default()),
        };
        tally.add(&outcome);
    }
    Ok(tally)
}

/// A tally in words, or `no trials`.
fn tally_words(tally: &Tally) -> String {
    if tally.total() == 0 { "no trials".to_owned() } else { tally.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sizes(list: &[(&str, i64)]) -> BTreeMap<String, i64> {
        list.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect()
    }

    #[test]
    fn sizes_are_compared_by_factors() {
        let wanted = sizes(&[("M", 128), ("N", 64)]);
        let double = distance(&wanted, &sizes(&[("M", 256), ("N", 64)]));
        let quarter = distance(&wanted, &sizes(&[("M", 32), ("N", 64)]));
        assert!(double < quarter);
        assert!(distance(&wanted, &wanted.clone()) == 0.0);
        assert!(distance(&wanted, &sizes(&[("X", i64::MIN), ("N", 64)])).is_finite());
    }

    #[test]
    fn long_lists_say_what_they_leave_out() {
        let all: Vec<String> = (0..6).map(|n| n.to_string()).collect();
        assert_eq!(listed(&all, ", "), "0, 1, 2, 3, and 2 more");
    }
}
