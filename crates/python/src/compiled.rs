//! Compiled kernels and their programs.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use tensorwright::ir::{EmptyRange, ReductionGuard, Size, SizeRange};
use tensorwright::printable;
use tensorwright::{
    Arguments, Diagnostics, Frozen, Goal, Kernel, LoweredProgram, Program, SizedKernel,
    SizedProgram,
};
use tensorwright_records::open_existing;
use tensorwright_tuner::{LookupReport, ScheduleLookup, ScheduleQuery};

use crate::definition::{Choices, Definition, Sizes};
use crate::family::Family;
use crate::objects;

/// Calls with more innermost iterations release the interpreter lock.
const LONG: u128 = 20_000;

/// The program of a kernel.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Variant {
    pub(crate) sizes: Sizes,
    /// The names of sizes that vary, which have no value, and their regime.
    pub(crate) varying: Vec<String>,
    pub(crate) regime: usize,
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
        let (guards, empty) = (Vec::new(), Vec::new());
        let (varying, regime) = (Vec::new(), 0);
        Self { sizes, varying, regime, guards, empty, has_constants: true, strides }
    }

    /// The program of a family of sizes, whatever the strides.
    pub(crate) fn family(family: &Family) -> Self {
        let exact = Self::exact(family.known.clone(), Strides::new());
        Self { varying: family.varying.clone(), regime: family.regime, ..exact }
    }
}

/// A kernel for one set of sizes, or for all sizes of a family.
#[derive(Debug)]
pub(crate) enum CompiledKernel {
    Fixed(Kernel),
    Sized(SizedKernel),
}

impl CompiledKernel {
    /// The compiled loops.
    pub(crate) fn lowered(&self) -> &LoweredProgram {
        match self {
            Self::Fixed(kernel) => kernel.lowered(),
            Self::Sized(kernel) => kernel.lowered(),
        }
    }

    /// The sizes that vary, as lines of a text.
    pub(crate) fn ranges(&self) -> String {
        let Self::Sized(kernel) = self else { return String::new() };
        let one = |size: &Size| {
            let SizeRange { least, most, likely, .. } = size.range;
            format!("  {} from {least} to {most}, made for {likely}\n", size.name)
        };
        kernel.program().ir().sizes.iter().map(one).collect()
    }

    /// Whether calls need frozen constants.
    pub(crate) fn needs_constants(&self) -> bool {
        match self {
            Self::Fixed(kernel) => kernel.needs_constants(),
            Self::Sized(kernel) => kernel.needs_constants(),
        }
    }

    /// A snapshot of constants.
    pub(crate) fn freeze(&self, given: Arguments<'_>) -> Result<Frozen, Diagnostics> {
        match self {
            Self::Fixed(kernel) => kernel.freeze(given),
            Self::Sized(kernel) => kernel.freeze(given),
        }
    }
}

/// A compiled kernel.
#[derive(Debug)]
pub(crate) struct Compiled {
    pub(crate) kernel: CompiledKernel,
    /// The origin of the schedule.
    pub(crate) origin: String,
    /// Problems of the records that were not reported yet.
    pub(crate) notes: Mutex<Vec<String>>,
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
        Ok(Self::of(CompiledKernel::Fixed(kernel), origin, notes, false))
    }

    /// Compiles the program of a family with its default schedule.
    pub(crate) fn family(
        definition: &Definition,
        program: &SizedProgram,
    ) -> Result<Self, Diagnostics> {
        let choices = &definition.choices;
        let builder = program.compile().target(choices.target.clone());
        let builder = builder.threads(choices.threads).precision(choices.precision);
        let kernel = match objects::cache() {
            Some(cache) => builder.cache(cache),
            None => builder,
        };
        let kernel = CompiledKernel::Sized(kernel.build()?);
        let notes = objects::problem().into_iter().collect();
        Ok(Self::of(kernel, "not tuned, for sizes that vary".to_owned(), notes, false))
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
        let kernel = CompiledKernel::Fixed(kernel);
        Ok(Self::of(kernel, "given".to_owned(), Vec::new(), true))
    }

    fn of(kernel: CompiledKernel, origin: String, notes: Vec<String>, is_kept: bool) -> Self {
        Self {
            kernel,
            origin,
            notes: Mutex::new(notes),
            is_kept,
            outdated: AtomicBool::new(false),
            used: AtomicU64::new(0),
        }
    }

    /// Whether calls that compute a program release the interpreter lock.
    pub(crate) fn is_long(&self, program: &Program) -> bool {
        // Calls on a device wait for it, and for each other.
        program.iterations() > LONG || self.kernel.lowered().target().gpu().is_some()
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
