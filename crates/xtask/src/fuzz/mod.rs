//! The fuzzer of the front end.
//!
//! Every input is a function of the seed and its index alone, whatever the number of jobs. The
//! inputs run in a child process: an overflow of the stack ends a process, and the parent lives on
//! to tell which input did it.

mod corpus;
mod options;
mod report;
mod target_under_test;
mod worker;

pub(crate) use options::Options;

use std::process::{Command, ExitCode};

use corpus::Corpus;
use report::Failure;

/// Runs the fuzzer as the options say.
pub(crate) fn run(options: Options) -> ExitCode {
    let corpus = Corpus::load();
    if options.is_child {
        return worker::run_all(&options, &corpus);
    }
    println!(
        "fuzz: {} inputs from index {} of seed {}, {} jobs, {} texts in the corpus",
        options.count,
        options.from,
        options.seed,
        options.jobs,
        corpus.len()
    );
    match run_child(&options) {
        Ok(Some(0)) => ExitCode::SUCCESS,
        Ok(Some(code)) => ExitCode::from(u8::try_from(code).unwrap_or(1)),
        Ok(None) => {
            report_abort(&options, &corpus);
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("fuzz: cannot start the process that runs the inputs: {error}");
            ExitCode::from(2)
        }
    }
}

/// The exit code of a process that runs all inputs; none if a signal has ended it.
fn run_child(options: &Options) -> std::io::Result<Option<i32>> {
    report::prepare(options)?;
    let child = std::env::current_exe()?;
    let status = Command::new(child).arg("fuzz").args(options.for_child()).status()?;
    Ok(status.code())
}

/// Says which inputs were running when a signal ended the process: with one job, the culprit.
fn report_abort(options: &Options, corpus: &Corpus) {
    eprintln!("fuzz: the process was ended by a signal (an overflow of the stack, most likely)");
    for index in report::running(options) {
        let input = corpus.input(options, index);
        let reason = "was running when the process ended".to_owned();
        report::write(options, &Failure { index, reason, input: input.bytes });
    }
}
