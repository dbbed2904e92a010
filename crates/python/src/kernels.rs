//! The kernel cache of a definition.
//!
//! Holds plans for the shapes of calls and kernels that may serve several shapes. The least
//! recently used kernels are evicted.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use tensorwright::{Diagnostics, Program};

use crate::compiled::{Compiled, Strides, Variant, remembered};
use crate::definition::{Definition, Sizes};
use crate::family::{Family, FamilyProgram};
use crate::lock::lock;
use crate::specialised::Specialised;

/// The cache key of a call: extents of tensors, values of shaping scalars and sizes.
pub(crate) type Key = Vec<i64>;

/// The most cached plans, which take little memory.
pub(crate) const MOST_SHAPES: usize = 4096;

/// The most layouts of inputs that get kernels.
const MOST_LAYOUTS: usize = 8;

/// The most values of a size to count.
const MOST_VALUES: usize = 32;

/// The kernel cache of a definition. Operators that differ only in frozen constants share it.
#[derive(Debug)]
pub(crate) struct Kernels {
    all: Mutex<HashMap<Variant, Arc<Compiled>>>,
    /// The most kernels in the cache.
    limit: usize,
    /// Plans by shapes.
    shapes: Mutex<HashMap<Key, Arc<Specialised>>>,
    /// The values seen of each size.
    seen: Mutex<BTreeMap<String, BTreeSet<i64>>>,
    /// The layouts of non-dense inputs.
    layouts: Mutex<BTreeSet<Strides>>,
    /// Programs for ranges of sizes.
    families: Mutex<HashMap<Family, Arc<FamilyProgram>>>,
    /// The keys of calls whose inputs are copied first.
    copied: Mutex<HashSet<Key>>,
    /// Whether the warning about dynamic sizes was computed.
    is_planned: AtomicBool,
    /// Warnings for the next caller.
    warnings: Mutex<Vec<String>>,
    /// Held while compiling, so that no two threads compile the same kernel.
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
            families: Mutex::default(),
            copied: Mutex::default(),
            is_planned: AtomicBool::new(false),
            warnings: Mutex::default(),
            compiling: Mutex::default(),
        }
    }

    /// Whether this is the first plan.
    pub(crate) fn is_first_plan(&self) -> bool {
        !self.is_planned.swap(true, Ordering::Relaxed)
    }

    /// Keeps a warning for the next caller.
    pub(crate) fn warn(&self, warning: Option<String>) {
        lock(&self.warnings).extend(warning);
    }

    /// Takes the pending warnings.
    pub(crate) fn warnings(&self) -> Vec<String> {
        std::mem::take(&mut lock(&self.warnings))
    }

    /// The plan for a key, if there is one.
    pub(crate) fn known(&self, key: &Key) -> Option<Arc<Specialised>> {
        lock(&self.shapes).get(key).filter(|shape| !shape.is_outdated()).cloned()
    }

    /// The plan for a key: the cached one, or the result of `make`. One thread makes at a time.
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

    /// Replaces the plan for a key.
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

    /// The program of a family: the known one, or the result of `make`.
    pub(crate) fn family(
        &self,
        family: &Family,
        make: impl FnOnce() -> FamilyProgram,
    ) -> Arc<FamilyProgram> {
        if let Some(found) = lock(&self.families).get(family) {
            return Arc::clone(found);
        }
        let made = Arc::new(make());
        let mut families = lock(&self.families);
        if families.len() >= MOST_SHAPES {
            families.clear();
        }
        families.insert(family.clone(), Arc::clone(&made));
        made
    }

    /// The kernel of a variant: the known one, or the result of `make`. Called only within
    /// [`Kernels::find_or`], so no other thread compiles.
    pub(crate) fn compile(
        &self,
        variant: &Variant,
        make: impl FnOnce() -> Result<Compiled, Diagnostics>,
    ) -> Result<Arc<Compiled>, Diagnostics> {
        if let Some(found) = self.compiled(variant) {
            found.touch();
            return Ok(found);
        }
        let made = Arc::new(make()?);
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

    /// Counts the different values of sizes, including these.
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

    /// Whether a layout may get kernels.
    pub(crate) fn admits(&self, strides: &Strides) -> bool {
        let mut layouts = lock(&self.layouts);
        layouts.contains(strides) || layouts.len() < MOST_LAYOUTS && layouts.insert(strides.clone())
    }

    /// Whether calls with a key have their inputs copied first.
    pub(crate) fn is_copied(&self, key: &Key) -> bool {
        lock(&self.copied).contains(key)
    }

    /// Marks calls with a key as copying their inputs.
    pub(crate) fn copy(&self, key: &Key) {
        let mut copied = lock(&self.copied);
        if copied.len() >= MOST_SHAPES {
            copied.clear();
        }
        copied.insert(key.clone());
    }

    /// The number of kernels.
    pub(crate) fn len(&self) -> usize {
        lock(&self.all).len()
    }

    /// Clears the cache except for kernels with given schedules, so that the next call reads the
    /// records again.
    pub(crate) fn forget(&self) {
        lock(&self.all).retain(|_, kernel| {
            if !kernel.is_kept {
                kernel.outdate();
            }
            kernel.is_kept
        });
        lock(&self.shapes).retain(|_, shape| !shape.is_outdated());
        lock(&self.copied).clear();
    }
}
