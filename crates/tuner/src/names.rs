//! [`RecordNames`]: translates names in recorded schedules.
//!
//! Records identify programs by hashes that ignore names, so recorded schedules use names by
//! position ([`Program::canonically_named`]). Releases up to 0.2 used the names of the source text,
//! which the records also keep.

use std::cell::OnceCell;

use tensorwright::schedule::canonical;
use tensorwright::{Module, Program, Schedule};
use tensorwright_records::{ProgramInfo, Store};

/// Translates recorded schedules of a program.
pub struct RecordNames<'a> {
    program: &'a Program,
    canonical: Program,
    /// The program's description in the records.
    about: Box<dyn Fn() -> Option<ProgramInfo> + 'a>,
    /// The program with the names of its recorded text.
    described: OnceCell<Option<Program>>,
}

impl<'a> RecordNames<'a> {
    /// The names of a program; the recorded text is fetched only for old records.
    pub fn new(program: &'a Program, about: impl Fn() -> Option<ProgramInfo> + 'a) -> Self {
        let canonical = program.canonically_named();
        Self { program, canonical, about: Box::new(about), described: OnceCell::new() }
    }

    /// The names of a program in the records of a store.
    pub fn of_store(program: &'a Program, store: &'a dyn Store) -> Self {
        let hash = program.hash().to_string();
        Self::new(program, move || store.program(&hash).ok().flatten())
    }

    /// A recorded schedule in names by position; `None` if it cannot be parsed or applied.
    #[must_use]
    pub fn canonical(&self, text: &str) -> Option<Schedule> {
        let schedule = Schedule::parse(text).ok()?;
        if schedule.apply(canonical(self.canonical.ir())).is_ok() {
            return Some(schedule);
        }
        let described = self.described.get_or_init(|| described(&(self.about)()?));
        let same = |program: &&Program| program.hash() == self.program.hash();
        let from = described.as_ref().filter(same).unwrap_or(self.program);
        schedule.renamed(from.ir(), self.canonical.ir()).ok()
    }

    /// A recorded schedule in the names of the program; `None` if it cannot be parsed or applied.
    #[must_use]
    pub fn own(&self, text: &str) -> Option<Schedule> {
        self.shown(&self.canonical(text)?)
    }

    /// Translates a schedule from names by position to the names of the program.
    #[must_use]
    pub fn shown(&self, schedule: &Schedule) -> Option<Schedule> {
        schedule.renamed(self.canonical.ir(), self.program.ir()).ok()
    }

    /// Translates words of a record, such as a parameter's name, to the names of the program.
    #[must_use]
    pub fn told(&self, words: &str) -> String {
        self.canonical.ir().translated(words, self.program.ir())
    }
}

/// The program described by a recorded text.
#[must_use]
pub fn described(about: &ProgramInfo) -> Option<Program> {
    let module = Module::parse("records", &about.text).ok()?;
    let def = module.def(&about.def).ok()?;
    // The recorded text has sizes as numbers and scalars only by name.
    let open = [def.sizes(), def.integer_scalars()].concat();
    let mut sizes = about.sizes.clone();
    sizes.retain(|name, _| open.contains(&name.as_str()));
    let none: [(&str, i64); 0] = [];
    let is_it = |program: &Program| program.hash().to_string() == about.hash;
    def.bind(none).ok().filter(is_it).or_else(|| def.bind(sizes).ok())
}

/// A recorded schedule of another program, in names by position.
pub(crate) fn canonical_of(text: &str, about: &ProgramInfo) -> Option<Schedule> {
    match described(about) {
        Some(program) => RecordNames::new(&program, || None).canonical(text),
        None => Schedule::parse(text).ok(),
    }
}
