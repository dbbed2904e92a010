//! `tune --model-only`: selects a schedule by the cost model, without a device.

use std::io::Write;

use serde::Serialize;
use tensorwright::{Code, Diagnostic, Diagnostics, Goal, Program, Schedule, Target};
use tensorwright_policy::ScheduleSpace;

use super::TuneArgs;
use crate::args::Format;
use crate::cuda::Kernels;
use crate::failure::{InFormat, Outcome};
use crate::report;

/// The most points to compile.
const CANDIDATES: usize = 24;

/// A candidate point.
#[derive(Debug, Serialize)]
struct Candidate {
    /// Predicted cycles.
    cycles: f64,
    /// Feedback of NVIDIA's compiler, if it is installed and the target is NVIDIA's.
    compiled: Option<Feedback>,
    /// Why the point is illegal.
    illegal: Option<String>,
    #[serde(skip)]
    schedule: Schedule,
}

/// Resource use of a candidate's kernels, by NVIDIA's compiler.
#[derive(Debug, Clone, Copy, Serialize)]
struct Feedback {
    /// Registers per thread, of the largest kernel.
    registers: u64,
    /// Spilled bytes, of all kernels.
    spill_bytes: u64,
    /// Shared bytes per block, of the largest kernel.
    shared_bytes: u64,
    /// Issue cycles per multiply-add in the kernel with the most of them; needs a disassembler.
    issue_cycles: Option<f64>,
}

/// Selects and prints a schedule.
pub(super) fn run(args: &TuneArgs, program: &Program) -> Outcome {
    let format = args.output.format;
    let target = super::super::target(&args.target.target).in_format(format)?;
    let goal = Goal::new(target).with_precision(args.target.precision());
    let goal = goal.with_threads(args.target.threads.into());
    let candidates = candidates(program, &goal, args).in_format(format)?;
    let legal = candidates.iter().filter(|candidate| candidate.illegal.is_none());
    let best = legal.min_by(|a, b| a.score().total_cmp(&b.score()));
    let best = best.ok_or_else(|| nothing(program)).in_format(format)?;
    if format == Format::Json {
        let value = serde_json::json!({
            "target": goal.target.name(),
            "measured": false,
            "candidates": candidates,
            "schedule": best.schedule.to_string(),
        });
        return Ok(report::json(&value)?);
    }
    show(program, &goal.target, &candidates, best)?;
    Ok(())
}

fn show(
    program: &Program,
    target: &Target,
    candidates: &[Candidate],
    best: &Candidate,
) -> std::io::Result<()> {
    let mut out = crate::terminal::out();
    for (number, candidate) in candidates.iter().enumerate() {
        let mark = if std::ptr::eq(candidate, best) { '*' } else { ' ' };
        writeln!(out, "# {mark}{number:3} {candidate}")?;
    }
    writeln!(
        out,
        "# {} for {}: chosen by the model among {} candidates; nothing was measured",
        program.name(),
        target.name(),
        candidates.len()
    )?;
    write!(out, "{}", best.schedule)
}

impl Candidate {
    /// Predicted cycles, corrected by the measured issue cost.
    fn score(&self) -> f64 {
        let issue = self.compiled.and_then(|compiled| compiled.issue_cycles);
        self.cycles * issue.unwrap_or(1.0)
    }
}

impl std::fmt::Display for Candidate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:.3e} cycles by the model", self.cycles)?;
        if let Some(Feedback { registers, shared_bytes, issue_cycles, .. }) = self.compiled {
            write!(f, "; {registers} registers, {shared_bytes} bytes shared")?;
            if let Some(cycles) = issue_cycles {
                write!(f, ", {:.0} cycles to issue 512 multiplications", 512.0 * cycles)?;
            }
        }
        self.illegal.iter().try_for_each(|reason| write!(f, "; illegal: {reason}"))
    }
}

/// The best points by the model, compiled where possible.
fn candidates(
    program: &Program,
    goal: &Goal,
    args: &TuneArgs,
) -> Result<Vec<Candidate>, Diagnostics> {
    let unavailable = |error| super::unavailable(&error);
    let spaces = ScheduleSpace::alternatives(program.ir(), goal, &args.space.options());
    let mut found = Vec::new();
    for space in spaces.map_err(unavailable)? {
        for point in space.ranked(CANDIDATES) {
            let Ok(schedule) = space.decode(&point) else { continue };
            let cycles = space.estimate(&point);
            found.push(Candidate { cycles, compiled: None, illegal: None, schedule });
        }
    }
    for candidate in &mut found {
        let builder = program.compile().target(goal.target.clone()).threads(goal.threads());
        match builder.schedule(candidate.schedule.clone()).lower() {
            Err(refused) => candidate.illegal = Some(messages(&refused)),
            Ok(lowered) if goal.target.name().starts_with("cuda:") => {
                candidate.compiled = Kernels::of(&lowered).ok().map(|kernels| feedback(&kernels));
            }
            Ok(_) => {}
        }
        let spilled = candidate.compiled.map(|compiled| compiled.spill_bytes);
        if let Some(bytes) = spilled.filter(|bytes| *bytes > 0) {
            candidate.illegal = Some(format!("{bytes} bytes do not fit into registers"));
        }
    }
    Ok(found)
}

fn feedback(kernels: &Kernels) -> Feedback {
    let of = |what: fn(&tensorwright_device::cuda::Resources) -> u64| {
        kernels.resources().iter().map(what)
    };
    Feedback {
        registers: of(|kernel| kernel.registers).max().unwrap_or(0),
        spill_bytes: of(|kernel| kernel.spill_stores + kernel.spill_loads).sum(),
        shared_bytes: of(|kernel| kernel.shared_bytes).max().unwrap_or(0),
        issue_cycles: kernels.issue_cycles(),
    }
}

fn messages(diagnostics: &Diagnostics) -> String {
    let messages: Vec<&str> = diagnostics.list().iter().map(|one| one.message.as_str()).collect();
    messages.join("; ")
}

fn nothing(program: &Program) -> Diagnostics {
    let message = "no schedule proposed by the model is legal for this target";
    let diagnostic = Diagnostic::without_place(Code::TuningFailed, message)
        .help("omit `--model-only` to use rule-based scheduling");
    Diagnostics::new(program.ir().source.clone(), vec![diagnostic])
}
