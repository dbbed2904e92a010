//! Compiled kernels and their programs.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use tensorwright::ir::{EmptyRange, ReductionGuard};
use tensorwright::printable;
use tensorwright::{Diagnostics, Goal, Kernel, Program};
use tensorwright_records::open_existing;
use tensorwright_tuner::{LookupReport, ScheduleLookup, ScheduleQuery};

use crate::definition::{Choices, Definition, Sizes};
use crate::objects;

/// Calls with more innermost iterations release the interpreter lock.
const LONG: u128 = 20_000;

/// The program of a kernel.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Variant {
    pub(crate) sizes: Sizes,
    /// Reductions with a run-time end.
    pub(crate) guards: Vec<ReductionGuard>,
    /// Stages with an empty range, because a size is zero.
    pub(crate) empty: Vec<(usize, EmptyRange)>,
    /// Whether `const` inputs are prepared before calls.
    pub(crate) has_constants: bool,
    /// Non-dense inputs, by number.
    pub(crate) strides: Strides,
}

/// The strides of non-dense inputs, by the number of the input.
pub(crate) type Strides = BTreeMap<usize, Vec<i64>>;

impl Variant {
    /// The program of a definition for exactly these sizes.
    pub(crate) fn exact(sizes: Sizes, strides: Strides) -> Self {
        Self { sizes, guards: Vec::new(), empty: Vec::new(), has_constants: true, strides }
    }
}

/// A compiled kernel.
#[derive(Debug)]
pub(crate) struct Compiled {
    pub(crate) kernel: Kernel,
    /// The origin of the schedule.
    pub(crate) origin: String,
    /// Problems of the records that were not reported yet.
    pub(crate) notes: Mutex<Vec<String>>,
    pub(crate) is_long: bool,
    /// Whether it is never evicted, because the caller gave its schedule.
    pub(crate) is_kept: bool,
    outdated: AtomicBool,
    /// The number of the last use.
    used: AtomicU64,
}

impl Compiled {
    /// Compiles the program of a variant with its best recorded schedule.
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

    /// Compiles a program with a given schedule.
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
            // Calls on a device wait for it, and for each other.
            is_long: program.iterations() > LONG || kernel.lowered().target().gpu().is_some(),
            kernel,
            origin,
            notes: Mutex::new(notes),
            is_kept,
            outdated: AtomicBool::new(false),
            used: AtomicU64::new(0),
        }
    }

    /// Whether the records may have a better schedule by now, or the kernel was evicted.
    pub(crate) fn is_outdated(&self) -> bool {
        self.outdated.load(Ordering::Relaxed)
    }

    /// Marks the kernel as outdated.
    pub(crate) fn outdate(&self) {
        self.outdated.store(true, Ordering::Relaxed);
    }

    /// Marks the kernel as used now.
    pub(crate) fn touch(&self) {
        static NOW: AtomicU64 = AtomicU64::new(1);
        self.used.store(NOW.fetch_add(1, Ordering::Relaxed), Ordering::Relaxed);
    }

    /// The number of the last use; larger is later.
    pub(crate) fn last_use(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }
}

/// Looks up a program in the records. Unreadable records count as empty.
pub(crate) fn remembered(program: &Program, choices: &Choices) -> LookupReport {
    let look = || {
        let goal = Goal::new(choices.target.clone()).with_precision(choices.precision);
        let goal = goal.with_threads(choices.threads);
        let store = open_existing(choices.db.as_ref()).ok()??;
        ScheduleLookup::best(&*store, &ScheduleQuery { program, goal: &goal }).ok()
    };
    look().unwrap_or(LookupReport { found: ScheduleLookup::Nothing, notes: Vec::new() })
}
