//! The summary of a run.

use std::collections::BTreeMap;
use std::io::Write;

use tensorwright::Program;
use tensorwright::printable;
use tensorwright_outcome::{Seconds, Tally};
use tensorwright_records::Origin;
use tensorwright_tuner::{Defects, Gain, Phases, Status, Tuned};

/// The summary as text.
pub(super) fn text(program: &Program, tuned: &Tuned) -> std::io::Result<()> {
    let mut out = crate::terminal::out();
    let (winner, progress) = (&tuned.winner, &tuned.progress);
    writeln!(out, "{}", headline(program.name(), tuned))?;
    let ended = match tuned.status {
        Status::Finished => "the budget is used",
        Status::Exhausted => "the search has nothing left to try",
        Status::Interrupted => "interrupted; the same command resumes",
    };
    writeln!(
        out,
        "{} {} in {:.1} s ({ended}): {}",
        progress.trials,
        if progress.trials == 1 { "trial" } else { "trials" },
        progress.elapsed.as_secs_f64(),
        progress.tally
    )?;
    writeln!(out, "{}", phases(tuned))?;
    for (kind, reason, count) in progress.tally.commonest(4) {
        let such = if count == 1 { "" } else { " such as" };
        writeln!(out, "  {count} {kind}:{such} {}", printable(reason))?;
    }
    let pipelines = &progress.pipelines;
    if pipelines.total() > 0 {
        write!(out, "a search over pipelines proposed {}: {pipelines}", pipelines.total())?;
        match pipelines.commonest(1).first() {
            Some((_, reason, _)) => writeln!(out, " (such as: {})", printable(reason))?,
            None => writeln!(out)?,
        }
    }
    let share =
        100.0 * tuned.strategy_time.as_secs_f64() / progress.elapsed.as_secs_f64().max(1e-9);
    let [build, check, timing] = tuned.spent.map(|spent| spent.as_secs_f64());
    write!(out, "the search itself took {share:.1} % of the time")?;
    // A fleet's workers do not report their times.
    if build + check + timing > 0.0 {
        write!(
            out,
            "; building {build:.1} s, checking {check:.1} s, timing {timing:.1} s, partly at the same time"
        )?;
    }
    writeln!(out)?;
    writeln!(out, "\nschedule ({}):", winner.origin)?;
    for line in winner.schedule.to_string().lines() {
        writeln!(out, "  {line}")?;
    }
    if !winner.schedule.is_exact() {
        writeln!(
            out,
            "\nIt uses rewrites that round differently, as --precision fast allows (`run` prints by how \
             much)."
        )?;
    }
    if tuned.rejected > 0 {
        writeln!(
            out,
            "\n{} records of earlier runs are damaged or contradict others and were not stored; they are \
             kept beside the database in a file that ends with .rejected.jsonl",
            tuned.rejected
        )?;
    }
    if let Some((count, why)) = &tuned.waiting {
        writeln!(out, "\n{count} records could not be written yet: {why}")?;
    } else {
        writeln!(out, "\n`tensorwright run` and `compile` use this schedule from now on.")?;
    }
    if let Some(line) = defects(&tuned.defects) {
        writeln!(out, "\n{line}")?;
    }
    Ok(())
}

/// How the time was spent.
fn phases(tuned: &Tuned) -> String {
    let Phases { start, search, finals, .. } = tuned.phases;
    let [start, search, finals] = [start, search, finals].map(|phase| phase.as_secs_f64());
    format!("start {start:.1} s, search {search:.1} s, finals {finals:.1} s")
}

/// The message about compiler defects, with the kept cases; `None` without any.
pub(super) fn defects(defects: &Defects) -> Option<String> {
    let (count, what) = match defects.count {
        0 => return None,
        1 => (1, "candidate shows a defect of the compiler and was"),
        count => (count, "candidates show defects of the compiler and were"),
    };
    let folder = defects.folder.display();
    Some(format!(
        "{count} {what} left out: please report {} in {folder} (program, sizes and schedule; nothing \
         of your data)",
        match defects.files.len() {
            0 => "what could not be written".to_owned(),
            1 => "the file".to_owned(),
            files => format!("the {files} files"),
        }
    ))
}

/// The winner's speed, in one line.
pub(super) fn headline(title: &str, tuned: &Tuned) -> String {
    let winner = &tuned.winner;
    if !winner.seconds.is_finite() {
        return format!("{title}: neither a candidate nor the default schedule could be measured");
    }
    let mut line = format!("{title}: {:.2}", Seconds(winner.seconds));
    if tuned.progress.flops > 0.0 {
        line.push_str(&format!(", {:.1} GFLOP/s", tuned.progress.flops / winner.seconds / 1e9));
    }
    let roof = 100.0 * tuned.progress.roof_seconds / winner.seconds;
    line.push_str(&format!(", {roof:.0} % of the roof"));
    let speedup = winner.default_seconds / winner.seconds;
    line.push_str(&match (winner.gain, &winner.origin) {
        (Gain::None, Origin::Default) => "; no significant gain over the default schedule".to_owned(),
        (Gain::None, Origin::Search(_)) => {
            format!(", {speedup:.2} times as fast as the default schedule; the model has chosen it")
        }
        (Gain::None, _) => format!(
            ", {speedup:.2} times as fast as the default schedule; no significant gain over the best so far"
        ),
        (Gain::Significant { .. }, _) => {
            format!(", {speedup:.2} times as fast as the default schedule")
        }
    });
    line
}

/// Outcomes by kind, and the most frequent reasons.
fn counted(tally: &Tally) -> (serde_json::Value, serde_json::Value) {
    let kinds: serde_json::Map<String, serde_json::Value> =
        tally.kinds().map(|(kind, count)| (kind.to_owned(), count.into())).collect();
    let reasons = tally.commonest(10).into_iter().map(|(kind, reason, count)| {
        serde_json::json!({ "outcome": kind, "reason": reason, "count": count })
    });
    (kinds.into(), reasons.collect())
}

/// The summary for a program.
pub(super) fn json(
    program: &Program,
    sizes: &BTreeMap<String, i64>,
    tuned: &Tuned,
) -> serde_json::Value {
    let (winner, progress) = (&tuned.winner, &tuned.progress);
    let (kinds, reasons) = counted(&progress.tally);
    let (of_pipelines, why) = counted(&progress.pipelines);
    serde_json::json!({
        "def": program.name(),
        "sizes": sizes,
        "hash": program.hash().to_string(),
        "run": tuned.run,
        "key": tuned.key,
        "status": tuned.status,
        "trials": progress.trials,
        "elapsed": progress.elapsed.as_secs_f64(),
        "start_seconds": tuned.phases.start.as_secs_f64(),
        "search_seconds": tuned.phases.search.as_secs_f64(),
        "finals_seconds": tuned.phases.finals.as_secs_f64(),
        "strategy_seconds": tuned.strategy_time.as_secs_f64(),
        "build_seconds": tuned.spent[0].as_secs_f64(),
        "check_seconds": tuned.spent[1].as_secs_f64(),
        "time_seconds": tuned.spent[2].as_secs_f64(),
        "outcomes": kinds,
        "reasons": reasons,
        "pipelines": { "outcomes": of_pipelines, "reasons": why },
        "seconds": winner.seconds,
        "default_seconds": winner.default_seconds,
        "speedup": winner.default_seconds / winner.seconds,
        "gflops": progress.flops / winner.seconds / 1e9,
        "roofline": progress.roof_seconds / winner.seconds,
        "peak_gflops": tuned.peaks.0,
        "peak_gbps": tuned.peaks.1,
        "gain": winner.gain,
        "origin": winner.origin,
        "schedule": winner.schedule.to_string(),
        "defects": { "count": tuned.defects.count, "files": tuned.defects.files },
        "records_rejected": tuned.rejected,
        "records_waiting": tuned.waiting.as_ref().map_or(0, |(count, _)| *count),
    })
}
