//! `tensorwright db best` and `tensorwright db why-miss`

use std::io::Write;

use tensorwright::printable;
use tensorwright_outcome::Seconds;
use tensorwright_records::{Best, Key, Location, Miss, ProgramInfo, open_existing};
use tensorwright_tuner::{RecordNames, key_of, program_info};

use super::table::{counted, gflops, sizes};
use super::{BestArgs, LookupArgs, failed};
use crate::args::Format;
use crate::commands;
use crate::failure::{Failure, InFormat, Outcome};
use crate::report;

/// The result of a lookup.
struct Lookup {
    key: Key,
    program: ProgramInfo,
    best: Option<Best>,
    misses: Vec<Miss>,
}

fn look_up(db: Option<&Location>, args: &LookupArgs) -> Result<Lookup, Failure> {
    let format = args.output.format;
    let bound = commands::program(&args.program).in_format(format)?;
    let goal = commands::goal(&args.target).in_format(format)?;
    let key = key_of(&bound, &goal);
    let sizes = commands::sizes(&args.program).in_format(format)?;
    let program = program_info(&bound, sizes);
    let fail = |error| failed(&error, format);
    let Some(store) = open_existing(db).map_err(fail)? else {
        let place = Location::given(db).map_err(fail)?;
        let miss = Miss {
            part: None,
            message: format!("there are no records at {place}"),
            help: "tune something, import records, or name another file with --db".into(),
        };
        return Ok(Lookup { key, program, best: None, misses: vec![miss] });
    };
    let mut best = store.best(&key).map_err(fail)?;
    if let Some(best) = &mut best {
        let names = RecordNames::of_store(&bound, &*store);
        if let Some(schedule) = names.own(&best.trial.schedule) {
            best.trial.schedule = schedule.to_string();
        }
        best.trial.algorithm = names.told(&best.trial.algorithm);
    }
    let misses = store.why_miss(&key).map_err(fail)?;
    super::warn_of_damage(&*store);
    Ok(Lookup { key, program, best, misses })
}

/// Prints the best schedule.
pub(super) fn run(db: Option<&Location>, args: &BestArgs) -> Outcome {
    let format = args.lookup.output.format;
    let found = look_up(db, &args.lookup)?;
    let mut out = crate::terminal::out();
    match (format, &found.best) {
        (Format::Json, best) => {
            drop(out);
            report::json(&serde_json::json!({
                "key": found.key,
                "best": best,
                "misses": found.misses,
            }))?;
        }
        (Format::Text, Some(best)) if args.schedule => {
            write!(out, "{}", printable(&best.trial.schedule))?;
        }
        (Format::Text, Some(best)) => {
            let text = format!("{}\n\n{}", words(&found, best), best.trial.schedule);
            write!(out, "{}", printable(&text))?;
        }
        (Format::Text, None) => explain(&found.misses),
    }
    if found.best.is_some() { Ok(()) } else { Err(Failure::Reported) }
}

/// Explains a failed lookup.
pub(super) fn why_miss(db: Option<&Location>, args: &LookupArgs) -> Outcome {
    let found = look_up(db, args)?;
    if args.output.format == Format::Json {
        let value = serde_json::json!({ "key": found.key, "misses": found.misses });
        return Ok(report::json(&value)?);
    }
    let mut out = crate::terminal::out();
    if let Some(best) = &found.best {
        writeln!(out, "nothing is missing:\n{}", printable(&words(&found, best)))?;
    }
    found.misses.iter().try_for_each(|miss| writeln!(out, "{}", printable(&miss.to_string())))?;
    Ok(())
}

fn explain(misses: &[Miss]) {
    eprintln!("there is no best schedule:");
    misses.iter().for_each(|miss| eprintln!("{}", printable(&miss.to_string())));
}

/// Describes the best result and its origin.
fn words(found: &Lookup, best: &Best) -> String {
    let Lookup { key, program, .. } = found;
    let origin = match &best.declared {
        Some(_) => "the winner of a run's finalists",
        None => "the fastest trial, not measured again against others",
    };
    format!(
        "{} {}, {}, {}, {}\n{}, {} GFLOP/s: {origin} ({})",
        program.def,
        sizes(&program.sizes),
        counted(key.threads.into(), "thread"),
        key.precision,
        key.target,
        Seconds(best.seconds),
        gflops(program.flops, best.seconds),
        best.id
    )
}
