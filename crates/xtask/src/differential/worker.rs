//! The child: runs pairs and says on its standard output what it is about to do and what failed.
//!
//! ```text
//! at 17 llvm                    the code of pair 17 is about to run
//! fail 17 llvm wrong T: 3 of 40 elements differ ...
//! tally 12 3 split              12 splits were accepted, 3 refused
//! ```

use std::io::Write as _;
use std::path::Path;
use std::process::ExitCode;

use super::Options;
use super::c::Workshop;
use super::case::Case;
use super::draw::Drawn;
use super::failure::{Kind, Problem, Suspect};
use super::llvm::Llvm;
use super::pair::{NotRun, Pair};
use super::source::Source;
use super::tally::Tally;

/// The code generators that a child uses.
struct Emitters {
    llvm: Option<Llvm>,
    c: Option<Workshop>,
}

impl Emitters {
    fn new(options: &Options) -> Result<Self, String> {
        let uses = |emitter| options.emitters.contains(&emitter);
        let llvm = uses(Suspect::Llvm).then(Llvm::new).transpose()?;
        let c = uses(Suspect::C).then(|| Workshop::new(options.sanitize)).transpose()?;
        Ok(Self { llvm, c })
    }

    /// Runs LLVM's code of a pair.
    fn check_llvm(&self, index: u64, pair: &Pair) {
        if let Some(llvm) = &self.llvm {
            say_at(index, Suspect::Llvm);
            if let Err(problem) = llvm.check(pair) {
                say_failed(index, &problem);
            }
        }
    }

    /// Runs the C of all pairs.
    fn check_c(&self, pairs: &[(u64, Pair)]) -> Result<(), String> {
        let (Some(workshop), Some((first, _))) = (&self.c, pairs.first()) else { return Ok(()) };
        say_at(*first, Suspect::C);
        let batch: Vec<&Pair> = pairs.iter().map(|(_, pair)| pair).collect();
        workshop.check(&batch, &mut |position, problem| {
            if let Some((index, _)) = pairs.get(position) {
                say_failed(*index, &problem);
            }
        })
    }
}

/// Runs the pairs of a range.
pub(crate) fn run(options: &Options) -> Result<ExitCode, String> {
    let (source, emitters) = (Source::load()?, Emitters::new(options)?);
    let (mut tally, mut pairs) = (Tally::default(), Vec::new());
    for index in options.from..options.from.saturating_add(options.count) {
        if options.skip.contains(&index) {
            continue;
        }
        say_at(index, Suspect::Schedule);
        let drawn = Drawn::of(&source, options.seed, index, &mut tally);
        if let Err(problem) = drawn.check_text() {
            say_failed(index, &problem);
            continue;
        }
        match Pair::of(&drawn.case, &format!("kernel_{index}")) {
            Ok(pair) => {
                emitters.check_llvm(index, &pair);
                pairs.push((index, pair));
                tally.count("(lowered)", true);
            }
            Err(NotRun::Problem(problem)) => say_failed(index, &problem),
            Err(NotRun::Skipped(why)) => {
                tally.count("(lowered)", false);
                tally.count(&format!("(not run: {why})"), false);
            }
        }
    }
    emitters.check_c(&pairs)?;
    tally.lines().for_each(|line| say(&format!("tally {line}")));
    Ok(ExitCode::SUCCESS)
}

/// Runs one case.
pub(crate) fn replay(options: &Options, file: &Path) -> Result<ExitCode, String> {
    let text = std::fs::read_to_string(file).map_err(|why| format!("{}: {why}", file.display()))?;
    let case = Case::parse(&text)?;
    say_at(0, Suspect::Schedule);
    let pair = Pair::of(&case, "kernel_0");
    if let Some(why) = case.refused() {
        let refused = matches!(&pair, Err(NotRun::Problem(problem)) if problem.refuses(why));
        if !refused {
            let message = format!("is not refused because of `{why}`");
            say_failed(0, &Problem::new(Suspect::Schedule, Kind::Wrong, message));
        }
        return Ok(ExitCode::SUCCESS);
    }
    match pair {
        Ok(pair) => {
            let emitters = Emitters::new(options)?;
            // C first: it cannot take this process down.
            let pairs = [(0, pair)];
            emitters.check_c(&pairs)?;
            pairs.iter().for_each(|(index, pair)| emitters.check_llvm(*index, pair));
        }
        Err(NotRun::Problem(problem)) => say_failed(0, &problem),
        Err(NotRun::Skipped(_)) => {}
    }
    Ok(ExitCode::SUCCESS)
}

fn say_at(index: u64, suspect: Suspect) {
    say(&format!("at {index} {}", suspect.name()));
}

fn say_failed(index: u64, problem: &Problem) {
    say(&format!("fail {index} {}", problem.line()));
}

/// Says a line at once: what is in the pipe outlives the process. A parent that does not listen
/// any more is no reason to complain.
fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    let _ = writeln!(out, "{line}").and_then(|()| out.flush());
}
