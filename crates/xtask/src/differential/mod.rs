//! Compares what code generators make of random programs under random schedules with the
//! reference.
//!
//! A *pair* is a program with a schedule; it is a function of a seed and an index. [`programs`] says
//! where programs come from, [`schedules`] where schedules do. A parent process hands ranges of pairs to child processes, because wrong code may kill the process that runs it:
//! the last words of a child tell which pair it was. LLVM's code runs in the child, on buffers that
//! end at pages that trap; C is compiled many kernels at a time and runs in a process of its own,
//! with sanitizers if asked for, and so does code for AArch64, by an emulator. What fails is made smaller and written down as a [case],
//! which can be replayed.

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

/// Random programs with random schedules, which are what others damage.
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
