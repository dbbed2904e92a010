//! Kernels, and which program each of them computes.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use tensorwright::ir::{Guarded, Lacking};
use tensorwright::printable;
use tensorwright::{Diagnostics, Goal, Kernel, Program};
use tensorwright_records::open_existing;
use tensorwright_tuner::{LookupReport, ScheduleLookup, ScheduleQuery};

use crate::definition::{Choices, Definition, Sizes};
use crate::objects;

/// From so many innermost iterations on, a call lets other threads use the interpreter.
const LONG: u128 = 20_000;

/// Which program a kernel computes.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Variant {
    pub(crate) sizes: Sizes,
    /// Reductions that end where a call says.
    pub(crate) guards: Vec<Guarded>,
    /// The stages with an empty range, because a size is zero.
    pub(crate) empty: Vec<(usize, Lacking)>,
    /// Whether `const` inputs are prepared ahead of calls.
    pub(crate) has_constants: bool,
    /// Inputs that are not dense, by number.
    pub(crate) strides: Strides,
}

/// The strides of inputs that are not dense, by the number of the input.
pub(crate) type Strides = BTreeMap<usize, Vec<i64>>;

impl Variant {
    /// The program of a definition for these sizes alone.
    pub(crate) fn exact(sizes: Sizes, strides: Strides) -> Self {
        Self { sizes, guards: Vec::new(), empty: Vec::new(), has_constants: true, strides }
    }
}

/// A kernel.
#[derive(Debug)]
pub(crate) struct Compiled {
    pub(crate) kernel: Kernel,
    /// Where the schedule is from.
    pub(crate) origin: String,
    /// What is wrong with records, until it is said.
    pub(crate) notes: Mutex<Vec<String>>,
    pub(crate) is_long: bool,
    /// Whether it stays however long it is not used: its schedule is the caller's.
    pub(crate) is_kept: bool,
    outdated: AtomicBool,
    /// The number of the last use.
    used: AtomicU64,
}

impl Compiled {
    /// Compiles the program of a variant, with the best schedule that the records have for it.
    pub(crate) fn new(
        definition: &Definition,
        variant: &Variant,
        plain: &Program,
    ) -> Result<Self, Diagnostics> {
        let Variant { guards, empty, has_constants, strides, .. } = variant;
        let mut program = plain.clone();
        if !empty.is_empty() {
            program = program.without_points(empty);
        }
        if !has_constants {
            program = program.with_changing_inputs();
        }
        for (input, strides) in strides {
            if let Some((strided, _)) = program.with_strides(*input, strides) {
                program = strided;
            }
        }
        if !guards.is_empty()
            && let Some(guarded) = program.guarded(guards)
        {
            program = guarded;
        }
        let choices = &definition.choices;
        let builder = || {
            let builder = program.compile().target(choices.target.clone());
            objects::kept(builder.threads(choices.threads).precision(choices.precision))
        };
        let LookupReport { found: remembered, mut notes } = remembered(plain, choices);
        notes.extend(objects::problem());
        let tuned =
            remembered.schedule().map(|schedule| builder().schedule(schedule.clone()).build());
        let (kernel, origin) = match tuned {
            Some(Ok(kernel)) => (kernel, printable(&remembered.to_string()).into_owned()),
            None if matches!(
                remembered,
                ScheduleLookup::Inexact(_) | ScheduleLookup::Elsewhere(_)
            ) =>
            {
                (builder().build()?, format!("not tuned: {}", printable(&remembered.to_string())))
            }
            _ => (builder().build()?, "not tuned".to_owned()),
        };
        Ok(Self::of(&program, kernel, origin, notes, false))
    }

    /// Compiles a program with a schedule of the caller's.
    pub(crate) fn scheduled(
        definition: &Definition,
        program: &Program,
        schedule: &str,
    ) -> Result<Self, Diagnostics> {
        let choices = &definition.choices;
        let builder = program.compile().target(choices.target.clone()).threads(choices.threads);
        let builder = objects::kept(builder.precision(choices.precision));
        let kernel = builder.schedule_text(schedule)?.build()?;
        Ok(Self::of(program, kernel, "given".to_owned(), Vec::new(), true))
    }

    fn of(
        program: &Program,
        kernel: Kernel,
        origin: String,
        notes: Vec<String>,
        is_kept: bool,
    ) -> Self {
        Self {
            // Calls of a device wait for it, and for each other.
            is_long: program.iterations() > LONG || kernel.lowered().target().gpu().is_some(),
            kernel,
            origin,
            notes: Mutex::new(notes),
            is_kept,
            outdated: AtomicBool::new(false),
            used: AtomicU64::new(0),
        }
    }

    /// Whether records may have a better schedule by now, or others needed the memory.
    pub(crate) fn is_outdated(&self) -> bool {
        self.outdated.load(Ordering::Relaxed)
    }

    /// Keeps operators from using it again.
    pub(crate) fn outdate(&self) {
        self.outdated.store(true, Ordering::Relaxed);
    }

    /// Says that it is used now.
    pub(crate) fn touch(&self) {
        static NOW: AtomicU64 = AtomicU64::new(1);
        self.used.store(NOW.fetch_add(1, Ordering::Relaxed), Ordering::Relaxed);
    }

    /// The number of the last use: larger is later.
    pub(crate) fn last_use(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }
}

/// What the records have for a program. Records that cannot be read are as good as none.
pub(crate) fn remembered(program: &Program, choices: &Choices) -> LookupReport {
    let look = || {
        let goal = Goal::new(choices.target.clone()).with_precision(choices.precision);
        let goal = goal.with_threads(choices.threads);
        let store = open_existing(choices.db.as_ref()).ok()??;
        ScheduleLookup::best(&*store, &ScheduleQuery { program, goal: &goal }).ok()
    };
    look().unwrap_or(LookupReport { found: ScheduleLookup::Nothing, notes: Vec::new() })
}
