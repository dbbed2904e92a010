//! What was compiled of a definition: for the shapes of calls, and for those that serve others too. Those that were not used for
//! longest leave when there are too many.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tensorwright::ir::Guarded;
use tensorwright::{Diagnostics, Goal, Kernel, Program};
use tensorwright_outcome::printable;
use tensorwright_records::open_existing;
use tensorwright_tuner::{Recalled, Remembered, Wanted};

use crate::definition::{Choices, Definition, Sizes};
use crate::specialised::Specialised;

/// From so many innermost iterations on, a call lets other threads use the interpreter.
const LONG: u128 = 20_000;

/// What decides how a call is computed: extents of tensors, values of shaping scalars and sizes.
pub(crate) type Key = Vec<i64>;

/// The most shapes of which it is known how calls are computed: these take little memory.
pub(crate) const MOST_SHAPES: usize = 4096;

/// The most ways in which inputs lie in memory that have kernels.
const MOST_LAYOUTS: usize = 8;

/// The most values of a size that are counted.
const MOST_VALUES: usize = 32;

/// Which program a kernel computes.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Variant {
    pub(crate) sizes: Sizes,
    /// Reductions that end where a call says.
    pub(crate) guards: Vec<Guarded>,
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
        Self { sizes, guards: Vec::new(), has_constants: true, strides }
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
    is_kept: bool,
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
        let Variant { guards, has_constants, strides, .. } = variant;
        let mut program = plain.clone();
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
            builder.threads(choices.threads).precision(choices.precision)
        };
        let Recalled { found: remembered, notes } = remembered(plain, choices);
        let tuned =
            remembered.schedule().map(|schedule| builder().schedule(schedule.clone()).build());
        let (kernel, origin) = match tuned {
            Some(Ok(kernel)) => (kernel, printable(&remembered.to_string()).into_owned()),
            None if matches!(remembered, Remembered::Inexact(_)) => {
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
        let kernel = builder.precision(choices.precision).schedule_text(schedule)?.build()?;
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
            is_long: program.iterations() > LONG,
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
}

/// What the records have for a program. Records that cannot be read are as good as none.
fn remembered(program: &Program, choices: &Choices) -> Recalled {
    let look = || {
        let goal = Goal::new(choices.target.clone()).with_precision(choices.precision);
        let goal = goal.with_threads(choices.threads);
        let store = open_existing(choices.db.as_ref()).ok()??;
        Remembered::best(&*store, &Wanted { program, goal: &goal }).ok()
    };
    look().unwrap_or(Recalled { found: Remembered::Nothing, notes: Vec::new() })
}

/// What was compiled of a definition. Operators that differ in frozen constants alone share it.
#[derive(Debug)]
pub(crate) struct Kernels {
    all: Mutex<HashMap<Variant, Arc<Compiled>>>,
    /// The most that stay.
    limit: usize,
    /// How calls with given shapes are computed.
    shapes: Mutex<HashMap<Key, Arc<Specialised>>>,
    /// The values that sizes have had.
    seen: Mutex<BTreeMap<String, BTreeSet<i64>>>,
    /// The ways in which inputs that are not dense lie in memory.
    layouts: Mutex<BTreeSet<Strides>>,
    /// The keys of calls whose inputs are copied first.
    copied: Mutex<HashSet<Key>>,
    /// Held while a kernel is compiled, so that threads do not compile the same one.
    compiling: Mutex<()>,
}

impl Kernels {
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            all: Mutex::default(),
            limit,
            shapes: Mutex::default(),
            seen: Mutex::default(),
            layouts: Mutex::default(),
            copied: Mutex::default(),
            compiling: Mutex::default(),
        }
    }

    /// How calls with a key are computed, if that is known.
    pub(crate) fn known(&self, key: &Key) -> Option<Arc<Specialised>> {
        lock(&self.shapes).get(key).filter(|shape| !shape.is_outdated()).cloned()
    }

    /// What computes calls with a key: what is known, or what `make` makes. One thread makes at a time.
    pub(crate) fn find_or<E>(
        &self,
        key: &Key,
        make: impl FnOnce() -> Result<Specialised, E>,
    ) -> Result<Arc<Specialised>, E> {
        let _one = lock(&self.compiling);
        if let Some(found) = self.known(key) {
            return Ok(found);
        }
        let made = Arc::new(make()?);
        self.keep(key.clone(), &made);
        Ok(made)
    }

    /// Replaces what computes calls with a key.
    pub(crate) fn replace<E>(
        &self,
        key: &Key,
        variant: Variant,
        make: impl FnOnce() -> Result<(Specialised, Arc<Compiled>), E>,
    ) -> Result<Arc<Specialised>, E> {
        let _one = lock(&self.compiling);
        let (made, compiled) = make()?;
        if let Some(before) = lock(&self.all).insert(variant, compiled) {
            before.outdate();
        }
        let made = Arc::new(made);
        self.keep(key.clone(), &made);
        Ok(made)
    }

    fn keep(&self, key: Key, made: &Arc<Specialised>) {
        let mut shapes = lock(&self.shapes);
        if shapes.len() >= MOST_SHAPES {
            shapes.clear();
        }
        shapes.retain(|_, shape| !shape.is_outdated());
        shapes.insert(key, Arc::clone(made));
    }

    /// The kernel of a variant, if there is one.
    pub(crate) fn compiled(&self, variant: &Variant) -> Option<Arc<Compiled>> {
        lock(&self.all).get(variant).cloned()
    }

    /// Whether the records have a schedule for a program.
    pub(crate) fn is_tuned(definition: &Definition, program: &Program) -> bool {
        remembered(program, &definition.choices).found.schedule().is_some()
    }

    /// The kernel of a variant, whose program without guards is `plain`. Whoever calls this makes what computes calls
    /// ([`Kernels::find_or`]), so nobody else compiles.
    pub(crate) fn compile(
        &self,
        definition: &Definition,
        variant: &Variant,
        plain: &Program,
    ) -> Result<Arc<Compiled>, Diagnostics> {
        if let Some(found) = self.compiled(variant) {
            found.touch();
            return Ok(found);
        }
        let made = Arc::new(Compiled::new(definition, variant, plain)?);
        made.touch();
        let mut all = lock(&self.all);
        all.insert(variant.clone(), Arc::clone(&made));
        while all.len() > self.limit {
            let idle = all.iter().filter(|(other, kernel)| !kernel.is_kept && *other != variant);
            let idle = idle.min_by_key(|(_, kernel)| kernel.used.load(Ordering::Relaxed));
            let Some(idle) = idle.map(|(variant, _)| variant.clone()) else { break };
            if let Some(kernel) = all.remove(&idle) {
                kernel.outdate();
            }
        }
        Ok(made)
    }

    /// Counts the values of sizes: how many each has had, these among them.
    pub(crate) fn count(&self, sizes: &Sizes) -> BTreeMap<String, usize> {
        let mut seen = lock(&self.seen);
        let mut count = |(name, value): (&String, &i64)| {
            let values = seen.entry(name.clone()).or_default();
            if values.len() < MOST_VALUES {
                values.insert(*value);
            }
            (name.clone(), values.len())
        };
        sizes.iter().map(&mut count).collect()
    }

    /// Whether there may be kernels for inputs that lie in memory like this.
    pub(crate) fn admits(&self, strides: &Strides) -> bool {
        let mut layouts = lock(&self.layouts);
        layouts.contains(strides) || layouts.len() < MOST_LAYOUTS && layouts.insert(strides.clone())
    }

    /// Whether calls with a key have their inputs copied first.
    pub(crate) fn is_copied(&self, key: &Key) -> bool {
        lock(&self.copied).contains(key)
    }

    /// Says that calls with a key have their inputs copied first.
    pub(crate) fn copy(&self, key: &Key) {
        let mut copied = lock(&self.copied);
        if copied.len() >= MOST_SHAPES {
            copied.clear();
        }
        copied.insert(key.clone());
    }

    /// How many kernels there are.
    pub(crate) fn len(&self) -> usize {
        lock(&self.all).len()
    }

    /// Forgets all, so that the next call looks at the records again.
    pub(crate) fn forget(&self) {
        lock(&self.all).drain().for_each(|(_, kernel)| kernel.outdate());
        lock(&self.shapes).clear();
        lock(&self.copied).clear();
    }
}

/// What a lock protects here is whole after every statement.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
