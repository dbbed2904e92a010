//! What was compiled of a definition: for the shapes of calls, and for those that serve others too. Those that were not used for
//! longest leave when there are too many.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use tensorwright::{Diagnostics, Program};
use tensorwright_package::buckets::{Guess, Pricing};

use crate::compiled::{Compiled, Strides, Variant, remembered};
use crate::definition::{Definition, Sizes};
use crate::lock::lock;
use crate::specialised::Specialised;

/// What decides how a call is computed: extents of tensors, values of shaping scalars and sizes.
pub(crate) type Key = Vec<i64>;

/// The most shapes of which it is known how calls are computed: these take little memory.
pub(crate) const MOST_SHAPES: usize = 4096;

/// The most ways in which inputs lie in memory that have kernels.
const MOST_LAYOUTS: usize = 8;

/// The most values of a size that are counted.
const MOST_VALUES: usize = 32;

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
    /// What pieces of a size cost, by the kernels that differ in it alone. Their variant has no value of it.
    pricing: Mutex<HashMap<Variant, Arc<Pricing>>>,
    /// The keys of calls whose inputs are copied first.
    copied: Mutex<HashSet<Key>>,
    /// Whether sizes that were named as dynamic have been looked at.
    is_planned: AtomicBool,
    /// What callers have to be told, until they are.
    warnings: Mutex<Vec<String>>,
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
            pricing: Mutex::default(),
            copied: Mutex::default(),
            is_planned: AtomicBool::new(false),
            warnings: Mutex::default(),
            compiling: Mutex::default(),
        }
    }

    /// Whether no call was planned before.
    pub(crate) fn is_first_plan(&self) -> bool {
        !self.is_planned.swap(true, Ordering::Relaxed)
    }

    /// Keeps a warning for the next caller.
    pub(crate) fn warn(&self, warning: Option<String>) {
        lock(&self.warnings).extend(warning);
    }

    /// The warnings that nobody was told.
    pub(crate) fn warnings(&self) -> Vec<String> {
        std::mem::take(&mut lock(&self.warnings))
    }

    /// How calls with a key are computed, if that is known.
    pub(crate) fn known(&self, key: &Key) -> Option<Arc<Specialised>> {
        lock(&self.shapes).get(key).filter(|shape| shape.is_current()).cloned()
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
            // What pieces cost, with the kernel that was there.
            lock(&self.pricing).clear();
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
            let idle = idle.min_by_key(|(_, kernel)| kernel.last_use());
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

    /// The most kernels that stay.
    pub(crate) fn limit(&self) -> usize {
        self.limit
    }

    /// What pieces cost that kernels of a family compute, about which there is a guess.
    pub(crate) fn pricing(&self, family: Variant, guess: Guess) -> Arc<Pricing> {
        let mut all = lock(&self.pricing);
        if all.len() >= MOST_SHAPES && !all.contains_key(&family) {
            all.clear();
        }
        Arc::clone(all.entry(family).or_insert_with(|| Arc::new(Pricing::new(guess))))
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

    /// Forgets all but kernels with schedules of the caller's, so that the next call looks at the records again.
    pub(crate) fn forget(&self) {
        lock(&self.all).retain(|_, kernel| {
            if !kernel.is_kept {
                kernel.outdate();
            }
            kernel.is_kept
        });
        lock(&self.shapes).retain(|_, shape| !shape.is_outdated());
        lock(&self.pricing).clear();
        lock(&self.copied).clear();
    }
}
