//! `tensorwright doctor`: checks whether this machine measures well, with advice.

mod checks;

use std::io::Write;
use std::path::Path;

use clap::Args;
use serde::Serialize;

use crate::args::{Format, OutputArgs};
use crate::failure::{Failure, Outcome};
use crate::report;

/// Check whether this machine measures well: frequency, load, memory, permissions, devices
///
/// Each line is a check with advice. `good`: nothing to do; `note`: times are noisier or slower
/// than they could be; `none`: an optional component is missing; `bad`: something does not work,
/// and the exit code is 1. The command changes nothing.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  tensorwright doctor
  tensorwright doctor --format json")]
pub(crate) struct DoctorArgs {
    #[command(flatten)]
    output: OutputArgs,
}

/// The verdict of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Verdict {
    Good,
    Note,
    /// An optional component is missing.
    None,
    Bad,
}

/// The result of a check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct Finding {
    check: &'static str,
    verdict: Verdict,
    found: String,
    /// Advice, if there is any.
    advice: Option<String>,
}

impl Finding {
    fn good(check: &'static str, found: impl Into<String>) -> Self {
        Self { check, verdict: Verdict::Good, found: found.into(), advice: None }
    }

    fn note(check: &'static str, found: impl Into<String>, advice: impl Into<String>) -> Self {
        let advice = Some(advice.into());
        Self { check, verdict: Verdict::Note, found: found.into(), advice }
    }

    fn none(check: &'static str, found: impl Into<String>, advice: impl Into<String>) -> Self {
        let advice = Some(advice.into());
        Self { check, verdict: Verdict::None, found: found.into(), advice }
    }

    fn bad(check: &'static str, found: impl Into<String>, advice: impl Into<String>) -> Self {
        let advice = Some(advice.into());
        Self { check, verdict: Verdict::Bad, found: found.into(), advice }
    }
}

/// Checks the machine.
pub(crate) fn run(args: &DoctorArgs) -> Outcome {
    let findings = checks::all(Path::new("/"));
    let count = |verdict| findings.iter().filter(|finding| finding.verdict == verdict).count();
    let bad = count(Verdict::Bad);
    if args.output.format == Format::Json {
        report::json(&serde_json::json!({ "fit": bad == 0, "findings": findings }))?;
    } else {
        let mut out = crate::terminal::out();
        for Finding { check, verdict, found, advice } in &findings {
            let word = match verdict {
                Verdict::Good => "good",
                Verdict::Note => "note",
                Verdict::None => "none",
                Verdict::Bad => "bad",
            };
            writeln!(out, "{word:<5} {check:<12} {found}")?;
            if let Some(advice) = advice {
                writeln!(out, "{:19}-> {advice}", "")?;
            }
        }
        let (good, notes) = (count(Verdict::Good), count(Verdict::Note));
        writeln!(out, "{good} good, {notes} to note, {bad} bad")?;
    }
    if bad > 0 { Err(Failure::Reported) } else { Ok(()) }
}
