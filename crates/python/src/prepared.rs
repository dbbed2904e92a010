//! An operator's prepared state: plans by shape, and constants.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, Weak};

use pyo3::prelude::*;
use tensorwright::runtime::fork::hold_forks;
use tensorwright::{Diagnostics, Frozen};

use crate::arguments::{ArgumentValue, Arguments};
use crate::compiled::{Compiled, Strides, Variant};
use crate::definition::Definition;
use crate::dynamic::{self, Problem};
use crate::error::{Class, diagnosed};
use crate::kernels::{Kernels, Key, MOST_SHAPES};
use crate::lock::lock;
use crate::specialised::{Specialised, freeze};

/// The prepared state of an operator.
#[derive(Debug)]
pub(crate) struct Prepared {
    pub(crate) definition: Definition,
    /// Shared by operators that differ only in frozen constants.
    pub(crate) kernels: Arc<Kernels>,
    cache: Mutex<Cache>,
    /// The prepared constants of existing kernels.
    constants: Mutex<Vec<(Weak<Compiled>, Arc<Constants>)>>,
}

/// The plans that are ready to call.
#[derive(Debug, Default)]
struct Cache {
    all: HashMap<Key, Arc<Ready>>,
    last: Option<Arc<Ready>>,
}

/// A plan for given shapes, with the constants of one operator.
#[derive(Debug)]
pub(crate) struct Ready {
    pub(crate) shape: Arc<Specialised>,
    /// The constants of the last call.
    constants: Option<Arc<Constants>>,
}

impl Ready {
    /// Whether an earlier call has prepared the constants.
    pub(crate) fn has_constants(&self) -> bool {
        self.constants.as_ref().is_some_and(|constants| lock(constants).is_some())
    }
}

/// Why a call is not ready.
#[derive(Debug)]
pub(crate) enum NotReady {
    Raised(PyErr),
    /// Its arguments must be dense.
    Dense,
}

impl From<PyErr> for NotReady {
    fn from(error: PyErr) -> Self {
        Self::Raised(error)
    }
}

impl NotReady {
    /// The exception, for callers that do not copy arguments.
    pub(crate) fn error(self, py: Python<'_>) -> PyErr {
        match self {
            Self::Raised(error) => error,
            Self::Dense => {
                let text = "an argument is not contiguous; pass numpy.ascontiguousarray(...) or .contiguous()";
                Class::Argument.error(py, text.to_owned())
            }
        }
    }
}

/// The constants of one operator for a kernel, after the first call.
type Constants = Mutex<Option<Frozen>>;

impl Cache {
    fn find(&mut self, key: &Key) -> Option<Arc<Ready>> {
        let found = self.all.get(key).filter(|ready| !ready.shape.is_outdated())?;
        self.last = Some(Arc::clone(found));
        self.last.clone()
    }

    fn insert(&mut self, key: Key, ready: &Arc<Ready>) {
        self.all.retain(|_, ready| !ready.shape.is_outdated());
        if self.all.len() >= MOST_SHAPES {
            self.all.clear();
        }
        self.all.insert(key, Arc::clone(ready));
        self.last = Some(Arc::clone(ready));
    }
}

impl Prepared {
    pub(crate) fn new(definition: Definition, kernels: Arc<Kernels>) -> Self {
        Self { definition, kernels, cache: Mutex::default(), constants: Mutex::default() }
    }

    fn cache(&self) -> MutexGuard<'_, Cache> {
        lock(&self.cache)
    }

    /// The plan for calls with these arguments; compiles missing kernels. `exactly` uses a kernel
    /// for their shapes alone.
    pub(crate) fn ready(
        &self,
        py: Python<'_>,
        arguments: &Arguments,
        exactly: bool,
    ) -> Result<Arc<Ready>, NotReady> {
        let last = self.cache().last.clone();
        let is_it = |last: &Arc<Ready>| last.shape.is_for(arguments) && !last.shape.is_outdated();
        if let Some(last) = last.filter(|last| !exactly && is_it(last)) {
            return Ok(last);
        }
        let mut key = self.key(arguments);
        if exactly {
            key.push(-3);
        }
        if let Some(found) = self.cache().find(&key) {
            found.shape.part.iter().for_each(|part| part.compiled.touch());
            return Ok(found);
        }
        if self.kernels.is_copied(&key) {
            return Err(NotReady::Dense);
        }
        let shape = self.specialised(py, &key, arguments, exactly)?;
        let mut notes = self.kernels.warnings();
        if let Some(part) = &shape.part {
            notes.append(&mut lock(&part.compiled.notes));
        }
        let ready = self.prepared(key, shape);
        for note in notes {
            let text = std::ffi::CString::new(note.replace('\0', " ")).unwrap_or_default();
            PyErr::warn(py, &py.get_type::<pyo3::exceptions::PyUserWarning>(), &text, 1)?;
        }
        Ok(ready)
    }

    /// The plan for a key, which the arguments have.
    fn specialised(
        &self,
        py: Python<'_>,
        key: &Key,
        arguments: &Arguments,
        exactly: bool,
    ) -> Result<Arc<Specialised>, NotReady> {
        if let Some(found) = self.kernels.known(key) {
            return Ok(found);
        }
        let sizes = Specialised::sizes(&self.definition, py, arguments)?;
        let given = arguments.strides(&self.definition.signature);
        let made = py.detach(|| {
            // A forked child must not inherit these locks from a thread it lacks.
            let _hold = hold_forks();
            let kernels = &self.kernels;
            let plan = || dynamic::plan(&self.definition, kernels, sizes, &given, exactly);
            kernels.find_or(key, plan)
        });
        made.or_else(|problem| match problem {
            Problem::Diagnosed(_) | Problem::Argument(_) => Err(self.refusal(py, problem).into()),
            Problem::Dense(advice) => {
                self.kernels.copy(key);
                if let Some(advice) = advice {
                    let text = std::ffi::CString::new(advice).unwrap_or_default();
                    PyErr::warn(py, &py.get_type::<pyo3::exceptions::PyUserWarning>(), &text, 2)?;
                }
                Err(NotReady::Dense)
            }
        })
    }

    /// The exception for invalid arguments.
    pub(crate) fn refusal(&self, py: Python<'_>, problem: Problem) -> PyErr {
        match problem {
            Problem::Diagnosed(diagnostics) => diagnosed(py, &diagnostics),
            Problem::Argument(message) => {
                Class::Argument.error(py, self.definition.signature.says(&message))
            }
            Problem::Dense(_) => NotReady::Dense.error(py),
        }
    }

    /// Compiles with a given schedule, for all calls with arguments like these.
    pub(crate) fn scheduled(
        &self,
        py: Python<'_>,
        arguments: &Arguments,
        schedule: &str,
    ) -> PyResult<()> {
        let key = self.key(arguments);
        let sizes = Specialised::sizes(&self.definition, py, arguments)?;
        let definition = &self.definition;
        let made = py.detach(|| {
            let _hold = hold_forks();
            let variant = Variant::exact(sizes.clone(), Strides::new());
            self.kernels.replace(&key, variant, || {
                let program = Specialised::program(definition, &sizes)?;
                let compiled = Arc::new(Compiled::scheduled(definition, &program, schedule)?);
                let kernel = Arc::clone(&compiled);
                Ok((Specialised::whole(definition, &program, sizes, compiled), kernel))
            })
        });
        let shape = made.map_err(|diagnostics: Diagnostics| diagnosed(py, &diagnostics))?;
        self.prepared(key, shape);
        Ok(())
    }

    /// Stores a plan with the constants of this operator.
    fn prepared(&self, key: Key, shape: Arc<Specialised>) -> Arc<Ready> {
        let mut known = lock(&self.constants);
        known.retain(|(compiled, _)| compiled.strong_count() > 0);
        let mut of = |compiled: &Arc<Compiled>| {
            let is_it = |(other, _): &&(Weak<Compiled>, _)| other.as_ptr() == Arc::as_ptr(compiled);
            if let Some((_, found)) = known.iter().find(is_it) {
                return Arc::clone(found);
            }
            let made = Arc::<Constants>::default();
            known.push((Arc::downgrade(compiled), Arc::clone(&made)));
            made
        };
        let constants = shape.part.as_ref().map(|part| of(&part.compiled));
        drop(known);
        let ready = Arc::new(Ready { shape, constants });
        self.cache().insert(key, &ready);
        ready
    }

    /// The constants of a call, in its kernel's layout. Frozen values are prepared by the first
    /// call with new shapes and never checked again; values given in a call are compared with those
    /// of the last call.
    pub(crate) fn constants(
        &self,
        ready: &Ready,
        arguments: &Arguments,
        is_bound: impl Fn(usize) -> bool,
    ) -> Result<Option<Frozen>, Diagnostics> {
        let (Some(part), Some(constants)) = (&ready.shape.part, &ready.constants) else {
            return Ok(None);
        };
        if !part.compiled.kernel.needs_constants() {
            return Ok(None);
        }
        let signature = &self.definition.signature;
        let mut params = signature.params.iter().enumerate();
        let are_all_bound = params.all(|(place, param)| !param.is_const || is_bound(place));
        let known = lock(constants).clone();
        if let Some(known) = known.as_ref().filter(|_| are_all_bound) {
            return Ok(Some(known.clone()));
        }
        let is_wanted = |place: usize| {
            signature.params[place].is_const && (known.is_none() || !is_bound(place))
        };
        let (shape, compiled) = (&ready.shape, &part.compiled);
        let frozen = freeze(signature, shape, compiled, arguments, known.as_ref(), is_wanted)?;
        *lock(constants) = Some(frozen.clone());
        Ok(Some(frozen))
    }

    /// The key that selects the kernel.
    fn key(&self, arguments: &Arguments) -> Key {
        let mut key = Vec::with_capacity(16);
        for given in &arguments.given {
            match given {
                Some(ArgumentValue::Tensor(foreign)) => {
                    key.push(foreign.extents.as_slice().len() as i64);
                    key.extend_from_slice(foreign.extents.as_slice());
                    if let Some(strides) = foreign.strides() {
                        key.push(-4);
                        key.extend_from_slice(strides);
                    }
                }
                Some(ArgumentValue::Number(number)) => {
                    key.extend([-1, number.integer.unwrap_or(0)])
                }
                None => key.push(-2),
            }
        }
        key.extend(
            self.definition
                .signature
                .sizes
                .iter()
                .map(|size| arguments.sizes.get(size).map_or(-1, |size| *size)),
        );
        key
    }

    /// Clears the plans of this operator and of all that share its kernels, so that the next call
    /// reads the records again.
    pub(crate) fn forget(&self) {
        self.kernels.forget();
        *self.cache() = Cache::default();
    }

    /// The plan of the last call.
    pub(crate) fn last(&self) -> Option<Arc<Specialised>> {
        self.cache().last.as_ref().map(|last| Arc::clone(&last.shape))
    }
}
