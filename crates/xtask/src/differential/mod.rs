//! Differential fuzzer: all code generators against the reference interpreter.
//!
//! A *pair* is a program with a schedule; it is a function of a seed and an index. [`programs`] and
//! [`schedules`] generate them. A parent process hands ranges of pairs to child processes, because
//! wrong code may crash its process; the last output of a child identifies the pair. LLVM code runs
//! in the child, on buffers that end at trap pages. C is compiled in batches and runs in a separate
//! process, optionally with sanitizers; AArch64 code runs in an emulator. Failures are minimised
//! and written as a [case], which can be replayed.

mod aarch64;
mod batch;
mod c;
pub(crate) mod case;
mod cuda;
mod draw;
mod failure;
mod inputs;
mod llvm;
mod memory;
mod minimise;
mod names;
mod opencl;
mod options;
mod oracle;
mod pair;
mod parent;
mod process;
pub(crate) mod programs;
mod report;
mod schedules;
mod shrink;
mod tally;
mod worker;

use std::process::ExitCode;

pub(crate) use options::DifferentialOptions;

/// Random programs with random schedules, as seeds for mutation.
pub(crate) fn random_cases(count: u64) -> Vec<case::Case> {
    let Ok(programs) = programs::Programs::load(None) else { return Vec::new() };
    let (tally, kind) = (&mut tally::Tally::default(), schedules::Kind::Random);
    let case = |number| {
        let subject = draw::Subject::of(&programs, kind, (0, number), tally).ok()?;
        subject.draw((0, number), tally).ok()?.map(|drawn| drawn.case)
    };
    (0..count).filter_map(case).collect()
}

/// Runs the command.
pub(crate) fn run(options: DifferentialOptions) -> Result<ExitCode, String> {
    match (options.is_child, &options.replay) {
        (true, Some(file)) => worker::replay(&options, file),
        (true, None) => worker::run(&options),
        (false, Some(file)) => parent::replay(&options, file),
        (false, None) => parent::run(&options),
    }
}
