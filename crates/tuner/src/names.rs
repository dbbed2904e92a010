//! [`RecordNames`]: what schedules of records are called, and what people call them.
//!
//! Records know programs by hashes that ignore names, so their schedules are in names by position
//! ([`Program::canonically_named`]). Those of releases up to 0.2 are in the names of the program's text, which is kept
//! beside them.

use std::cell::OnceCell;

use tensorwright::schedule::canonical;
use tensorwright::{Module, Program, Schedule};
use tensorwright_records::{ProgramInfo, Store};

/// Translates schedules of the records of a program.
pub struct RecordNames<'a> {
    program: &'a Program,
    canonical: Program,
    /// What records say about the program.
    about: Box<dyn Fn() -> Option<ProgramInfo> + 'a>,
    /// The program as the text of the records names it.
    described: OnceCell<Option<Program>>,
}

impl<'a> RecordNames<'a> {
    /// Names of a program whose text is asked for when an old record needs it.
    pub fn new(program: &'a Program, about: impl Fn() -> Option<ProgramInfo> + 'a) -> Self {
        let canonical = program.canonically_named();
        Self { program, canonical, about: Box::new(about), described: OnceCell::new() }
    }

    /// Names of a program as records of a store have them.
    pub fn of_store(program: &'a Program, store: &'a dyn Store) -> Self {
        let hash = program.hash().to_string();
        Self::new(program, move || store.program(&hash).ok().flatten())
    }

    /// The schedule of a record in names by position; `None` if it cannot be read or applied.
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

    /// The schedule of a record in the names of the program; `None` if it cannot be read or applied.
    #[must_use]
    pub fn own(&self, text: &str) -> Option<Schedule> {
        self.shown(&self.canonical(text)?)
    }

    /// A schedule in names by position in the names of the program.
    #[must_use]
    pub fn shown(&self, schedule: &Schedule) -> Option<Schedule> {
        schedule.renamed(self.canonical.ir(), self.program.ir()).ok()
    }

    /// Words of a record, such as the name of a parameter, in the names of the program.
    #[must_use]
    pub fn told(&self, words: &str) -> String {
        self.canonical.ir().translated(words, self.program.ir())
    }
}

/// The program that the text of a record describes.
#[must_use]
pub fn described(about: &ProgramInfo) -> Option<Program> {
    let module = Module::parse("records", &about.text).ok()?;
    let def = module.def(&about.def).ok()?;
    // The text has numbers for sizes, and scalars only by name.
    let open = [def.sizes(), def.integer_scalars()].concat();
    let mut sizes = about.sizes.clone();
    sizes.retain(|name, _| open.contains(&name.as_str()));
    let none: [(&str, i64); 0] = [];
    let is_it = |program: &Program| program.hash().to_string() == about.hash;
    def.bind(none).ok().filter(is_it).or_else(|| def.bind(sizes).ok())
}

/// The schedule of a record of another program, in names by position.
pub(crate) fn canonical_of(text: &str, about: &ProgramInfo) -> Option<Schedule> {
    match described(about) {
        Some(program) => RecordNames::new(&program, || None).canonical(text),
        None => Schedule::parse(text).ok(),
    }
}
