//! Renaming test: hash, records, schedule and results are independent of names.

use std::fmt::Display;

use tempfile::TempDir;
use tensorwright::{Goal, Inputs, Kernel, Module, Precision, Program, Schedule, Target};
use tensorwright_lang::program as ir;
use tensorwright_outcome::{Outcome, Timing};
use tensorwright_records::{RunInfo, SqliteStore, Store, StoreOptions, Trial};
use tensorwright_schedule::{LoopNest, canonical};
use tensorwright_testkit::rename;
use tensorwright_tuner::{RecordNames, key_of, program_info};

use super::case::Case;
use super::failure::{Kind, Problem, Suspect};

/// One pair in this many is also run, because code generation takes longer than the rest.
const RUN_EVERY: u64 = 8;

/// Compares pairs with renamed copies.
pub(crate) struct Renamer {
    store: SqliteStore,
    goal: Goal,
    _folder: TempDir,
}

/// A renamed case.
struct Twin {
    program: Program,
    text: String,
}

impl Renamer {
    /// With its own records.
    pub(crate) fn new() -> Result<Self, String> {
        let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
        let options = StoreOptions { durable: false, ..StoreOptions::default() };
        let store = SqliteStore::open(&folder.path().join("records.sqlite3"), options);
        let store = store.map_err(|error| error.to_string())?;
        let target = Target::native().map_err(|error| error.to_string())?;
        let goal = Goal::new(target).with_precision(Precision::Fast);
        Ok(Self { store, goal, _folder: folder })
    }

    /// Compares a valid case with its renamed copy.
    pub(crate) fn check(&mut self, index: u64, case: &Case) -> Result<(), Problem> {
        let program = bound(&case.text, &case.def, &case.sizes)?;
        let twin = Twin::of(case, index)?;
        if twin.program.hash() != program.hash() {
            return Err(differs(&twin, "the hash", ""));
        }
        let named = program.canonically_named();
        if !twin.program.canonically_named().ir().is_named_like(named.ir()) {
            return Err(differs(&twin, "what is named by position", &named.to_string()));
        }
        for text in [program.to_string(), named.to_string()] {
            if bound(&text, program.name(), &[])?.hash() != program.hash() {
                return Err(differs(&twin, "the hash of the text of a program", &text));
            }
        }
        let schedule = Schedule::parse(&case.schedule)
            .map_err(|why| Problem::new(Suspect::Schedule, Kind::RoundTrip, why.to_string()))?;
        let other = self.through_records(index, &program, &twin, &schedule)?;
        compare_nests(&program, &schedule, &twin, &other)?;
        if index.is_multiple_of(RUN_EVERY) {
            self.compare_results(case, (&program, &schedule), (&twin, &other))?;
        }
        Ok(())
    }

    /// The schedule that the copy finds in the records of the original.
    fn through_records(
        &mut self,
        index: u64,
        program: &Program,
        twin: &Twin,
        schedule: &Schedule,
    ) -> Result<Schedule, Problem> {
        let failed = |what: &str, why: &dyn Display| differs(twin, what, &why.to_string());
        let named = program.canonically_named();
        let kept = schedule.renamed(program.ir(), named.ir());
        let kept = kept.map_err(|why| failed("the schedule by position", &why))?;
        let info = program_info(program, std::collections::BTreeMap::new());
        let mut run = RunInfo::new("names", 0);
        run.space = "names".to_owned();
        let key = key_of(program, &self.goal);
        let mut write = || {
            let id = self.store.begin_run(&key, &info, &run)?;
            let mut trial = Trial::new(0, Vec::new(), &kept.to_string());
            // Faster than all previous records, so that lookup finds it.
            let seconds = 1e6 / (1.0 + index as f64);
            let timing = Timing { seconds, runs: 1, ..Timing::default() };
            trial.outcome = Outcome::Measured(timing);
            self.store.insert(&id, &trial)
        };
        write().map_err(|why| failed("what is kept", &why))?;
        let found = self.store.ranked(&key_of(&twin.program, &self.goal), 1);
        let found = found.map_err(|why| failed("what is found", &why))?.pop();
        let found = found.ok_or_else(|| failed("what is found", &"nothing"))?;
        let names = RecordNames::of_store(&twin.program, &self.store);
        let kept = &found.trial.schedule;
        names.own(kept).ok_or_else(|| differs(twin, "whether a record applies", kept))
    }

    /// Runs both on the same inputs.
    fn compare_results(
        &self,
        case: &Case,
        (program, schedule): (&Program, &Schedule),
        (twin, other): (&Twin, &Schedule),
    ) -> Result<(), Problem> {
        let inputs = case.inputs.buffers(program.ir());
        let inputs = inputs.map_err(|why| differs(twin, "the inputs", &why))?;
        let mut moved = Inputs::new();
        for (from, to) in program.inputs().iter().zip(twin.program.inputs()) {
            moved.extend(inputs.get(&from.name).map(|buffer| (to.name.clone(), buffer.clone())));
        }
        let results = |kernel: Result<Kernel, _>, inputs: &Inputs| {
            let outputs = kernel.and_then(|kernel: Kernel| kernel.run(inputs));
            // Failures of lowering and gathering are the same under both names.
            outputs.ok().map(|outputs| {
                let bytes = outputs.iter().map(|(_, buffer)| buffer.to_bytes());
                bytes.collect::<Vec<Vec<u8>>>()
            })
        };
        let one = results(program.compile().schedule(schedule.clone()).build(), &inputs);
        let two = results(twin.program.compile().schedule(other.clone()).build(), &moved);
        if one != two {
            return Err(differs(twin, "the results", &other.to_string()));
        }
        Ok(())
    }
}

impl Twin {
    fn of(case: &Case, seed: u64) -> Result<Self, Problem> {
        let renamed = rename(&case.text, seed);
        let sizes: Vec<(String, i64)> =
            case.sizes.iter().map(|(name, size)| (renamed.name(name).to_owned(), *size)).collect();
        let program = bound(&renamed.text, renamed.name(&case.def), &sizes)?;
        Ok(Self { program, text: renamed.text })
    }
}

fn bound(text: &str, def: &str, sizes: &[(String, i64)]) -> Result<Program, Problem> {
    let bound = Module::parse("renamed.tc", text)
        .and_then(|module| module.def(def)?.bind(sizes.iter().cloned()));
    bound.map_err(|why| {
        Problem::new(Suspect::Schedule, Kind::RoundTrip, format!("{text}\ndoes not bind: {why}"))
    })
}

fn differs(twin: &Twin, what: &str, details: &str) -> Problem {
    let message = format!("{what} depends on names: {details}\nunder the names of\n{}", twin.text);
    Problem::new(Suspect::Schedule, Kind::RoundTrip, message)
}

/// Whether both schedules make the same loops, and one is the other renamed.
fn compare_nests(
    program: &Program,
    schedule: &Schedule,
    twin: &Twin,
    other: &Schedule,
) -> Result<(), Problem> {
    let applied = |program: &ir::Program, schedule: &Schedule| {
        schedule
            .apply(canonical(program))
            .map_err(|why| differs(twin, "what is refused", &why.to_string()))
    };
    let nest = applied(program.ir(), schedule)?;
    let again = applied(twin.program.ir(), other)?;
    if nameless(nest) != nameless(again) {
        return Err(differs(twin, "what a schedule makes", &format!("{schedule}and\n{other}")));
    }
    let back = other.renamed(twin.program.ir(), program.ir());
    let back = back.map_err(|why| differs(twin, "the way back", &why.to_string()))?;
    let makes_names = |schedule: &Schedule| schedule.to_string().contains("->");
    if !makes_names(schedule) && !makes_names(&back) && back.to_string() != schedule.to_string() {
        return Err(differs(twin, "the way back", &format!("{schedule}and\n{back}")));
    }
    Ok(())
}

/// A nest with positional names.
fn nameless(mut nest: LoopNest) -> String {
    "nest".clone_into(&mut nest.name);
    for (number, buffer) in nest.buffers.iter_mut().enumerate() {
        buffer.name = format!("b{number}");
    }
    for (number, var) in nest.vars.iter_mut().enumerate() {
        *var = format!("x{number}").into();
    }
    nest.to_string()
}
