//! Operators: definitions that can be called.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, Weak};

use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyFloat, PyInt, PyTuple};
use tensorwright::runtime::fork::hold_forks;
use tensorwright::{Diagnostics, Frozen, Precision};
use tensorwright_records::Location;

use crate::arguments::{Arguments, Given};
use crate::call;
use crate::compiled::{Compiled, Strides, Variant};
use crate::definition::{Choices, Definition, Dynamic, Param, Signature, Sizes};
use crate::dynamic::{self, Problem};
use crate::error::{Class, diagnosed};
use crate::expected::torch_name;
use crate::foreign::{Foreign, Gradients};
use crate::kernels::{Kernels, Key, MOST_SHAPES, lock};
use crate::outputs::Outputs;
use crate::parts::Part;
use crate::site::Site;
use crate::source::Source;
use crate::specialised::{Specialised, freeze};
use crate::tuning;

/// A definition that can be called: with NumPy arrays or torch tensors, which are neither copied in nor
/// out. It is compiled for each set of shapes when it is first called with them, with the best schedule
/// that the records have.
#[pyclass(frozen, subclass, module = "tensorwright._native")]
#[derive(Debug)]
pub(crate) struct Operator {
    definition: Definition,
    /// Those of this operator and of all that differ from it in frozen constants alone.
    kernels: Arc<Kernels>,
    cache: Mutex<Cache>,
    /// The constants for kernels that exist.
    constants: Mutex<Vec<(Weak<Compiled>, Arc<Constants>)>>,
    /// `const` arguments that need not be given any more, by parameter.
    bound: Vec<Option<Py<PyAny>>>,
}

/// What is ready to be called.
#[derive(Debug, Default)]
struct Cache {
    all: HashMap<Key, Arc<Ready>>,
    last: Option<Arc<Ready>>,
}

/// How calls with given shapes are computed, and the constants of one operator.
#[derive(Debug)]
pub(crate) struct Ready {
    pub(crate) shape: Arc<Specialised>,
    /// Those of the last call, by part.
    constants: Vec<Arc<Constants>>,
}

/// Why a call cannot be computed now.
#[derive(Debug)]
pub(crate) enum Unready {
    Raised(PyErr),
    /// Its arguments have to be dense.
    Dense,
}

impl From<PyErr> for Unready {
    fn from(error: PyErr) -> Self {
        Self::Raised(error)
    }
}

impl Unready {
    /// For callers that copy nothing.
    fn error(self, py: Python<'_>) -> PyErr {
        match self {
            Self::Raised(error) => error,
            Self::Dense => {
                let text = "an argument is not contiguous; pass numpy.ascontiguousarray(...) or .contiguous()";
                Class::Argument.error(py, text.to_owned())
            }
        }
    }
}

/// The constants that one operator calls a kernel with, once there was a call.
type Constants = Mutex<Option<Frozen>>;

impl Operator {
    fn cache(&self) -> MutexGuard<'_, Cache> {
        lock(&self.cache)
    }

    /// The arguments of a call together with those that are bound.
    pub(crate) fn arguments(
        &self,
        positional: &Bound<'_, PyTuple>,
        named: Option<&Bound<'_, PyDict>>,
        gradients: Gradients,
    ) -> PyResult<Arguments> {
        let py = positional.py();
        if self.bound.iter().all(Option::is_none) {
            return Arguments::read(&self.definition.signature, positional, named, gradients);
        }
        // The bound ones take their places; the others move up.
        let mut rest = positional.iter();
        let full = PyDict::new(py);
        for (param, bound) in self.definition.signature.params.iter().zip(&self.bound) {
            match bound {
                Some(value) => full.set_item(&param.name, value)?,
                None => {
                    if let Some(value) = rest.next() {
                        full.set_item(&param.name, value)?;
                    }
                }
            }
        }
        if rest.next().is_some() {
            let message = self.definition.signature.says("was given too many arguments");
            return Err(Class::Argument.error(py, message));
        }
        for (name, value) in named.into_iter().flatten() {
            let frozen = self.definition.signature.params.iter().zip(&self.bound);
            let mut frozen = frozen.filter(|(_, bound)| bound.is_some()).map(|(param, _)| param);
            let text = name.extract::<String>()?;
            if frozen.any(|param| param.name == text) {
                let message = format!(
                    "`{text}` is frozen, and was given again; leave it out, or freeze another value"
                );
                return Err(Class::Argument.error(py, self.definition.signature.says(&message)));
            }
            full.set_item(name, value)?;
        }
        Arguments::read(&self.definition.signature, &PyTuple::empty(py), Some(&full), gradients)
    }

    /// How calls with these arguments are computed; what has to be compiled for that is compiled now. `exactly` is for their shapes
    /// alone.
    pub(crate) fn ready(
        &self,
        py: Python<'_>,
        arguments: &Arguments,
        exactly: bool,
    ) -> Result<Arc<Ready>, Unready> {
        let last = self.cache().last.clone();
        let is_it = |last: &Arc<Ready>| !last.shape.is_outdated() && last.shape.is_for(arguments);
        if let Some(last) = last.filter(|last| !exactly && is_it(last)) {
            return Ok(last);
        }
        let mut key = self.key(arguments);
        if exactly {
            key.push(-3);
        }
        if let Some(found) = self.cache().find(&key) {
            found.shape.parts.iter().for_each(|part| part.compiled.touch());
            return Ok(found);
        }
        if self.kernels.is_copied(&key) {
            return Err(Unready::Dense);
        }
        let shape = self.specialised(py, &key, arguments, exactly)?;
        let mut notes = Vec::new();
        for part in &shape.parts {
            notes.append(&mut lock(&part.compiled.notes));
        }
        let ready = self.prepared(key, shape);
        for note in notes {
            let text = std::ffi::CString::new(note.replace('\0', " ")).unwrap_or_default();
            PyErr::warn(py, &py.get_type::<pyo3::exceptions::PyUserWarning>(), &text, 1)?;
        }
        Ok(ready)
    }

    /// How calls with a key are computed, which the arguments have.
    fn specialised(
        &self,
        py: Python<'_>,
        key: &Key,
        arguments: &Arguments,
        exactly: bool,
    ) -> Result<Arc<Specialised>, Unready> {
        if let Some(found) = self.kernels.known(key) {
            return Ok(found);
        }
        let sizes = Specialised::sizes(&self.definition, py, arguments)?;
        let given = arguments.strides(&self.definition.signature);
        let made = py.detach(|| {
            // A child must not inherit these locks from a thread that it does not have.
            let _hold = hold_forks();
            let kernels = &self.kernels;
            let plan = || dynamic::plan(&self.definition, kernels, sizes, &given, exactly);
            kernels.find_or(key, plan)
        });
        made.or_else(|problem| match problem {
            Problem::Diagnosed(diagnostics) => Err(diagnosed(py, &diagnostics).into()),
            Problem::Argument(message) => {
                Err(Class::Argument.error(py, self.definition.signature.says(&message)).into())
            }
            Problem::Dense(advice) => {
                self.kernels.copy(key);
                if let Some(advice) = advice {
                    let text = std::ffi::CString::new(advice).unwrap_or_default();
                    PyErr::warn(py, &py.get_type::<pyo3::exceptions::PyUserWarning>(), &text, 2)?;
                }
                Err(Unready::Dense)
            }
        })
    }

    /// Compiles with a schedule of the caller's, for all calls with arguments like these.
    fn scheduled(&self, py: Python<'_>, arguments: &Arguments, schedule: &str) -> PyResult<()> {
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

    /// Keeps how calls with a key are computed, with the constants of this operator.
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
        let constants = shape.parts.iter().map(|part| of(&part.compiled)).collect();
        drop(known);
        let ready = Arc::new(Ready { shape, constants });
        self.cache().insert(key, &ready);
        ready
    }

    /// The constants of a call, in the layouts that its kernels want. What is frozen is prepared by the
    /// first call with new shapes, and no call looks at it again; what a call is given is compared with
    /// what the last one was given.
    fn constants(
        &self,
        ready: &Ready,
        arguments: &Arguments,
    ) -> Result<Vec<Option<Frozen>>, Diagnostics> {
        let parts = ready.shape.parts.iter().zip(&ready.constants);
        let one = |(part, constants): (&Part, &Arc<Constants>)| {
            if !part.compiled.kernel.needs_constants() {
                return Ok(None);
            }
            let known = lock(constants).clone();
            if known.is_some() && self.is_frozen() {
                return Ok(known);
            }
            let is_wanted = |place: usize| {
                self.definition.signature.params[place].is_const
                    && (known.is_none() || self.bound[place].is_none())
            };
            let signature = &self.definition.signature;
            let (shape, known) = (&ready.shape, known.as_ref());
            let frozen = freeze(signature, shape, &part.compiled, arguments, known, is_wanted)?;
            *lock(constants) = Some(frozen.clone());
            Ok(Some(frozen))
        };
        parts.map(one).collect()
    }

    /// Whether no call is given constants.
    fn is_frozen(&self) -> bool {
        let mut params = self.definition.signature.params.iter().zip(&self.bound);
        params.all(|(param, bound)| !param.is_const || bound.is_some())
    }

    /// Computes. Arguments that kernels cannot read where they are are copied first.
    fn called<'py>(
        &self,
        args: &Bound<'py, PyTuple>,
        named: Option<&Bound<'py, PyDict>>,
        out: Option<&Bound<'py, PyAny>>,
        gradients: Gradients,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = args.py();
        let arguments = self.arguments(args, named, gradients)?;
        let site = Site::of(py, &self.definition, &arguments)?;
        match self.ready(py, &arguments, false) {
            Ok(ready) => self.computed(py, &ready, &arguments, out, site),
            Err(Unready::Raised(error)) => Err(error),
            Err(Unready::Dense) => {
                let (args, named) = (dense_tuple(args)?, named.map(dense_dict).transpose()?);
                let arguments = self.arguments(&args, named.as_ref(), gradients)?;
                let ready =
                    self.ready(py, &arguments, false).map_err(|unready| unready.error(py))?;
                self.computed(py, &ready, &arguments, out, site)
            }
        }
    }

    /// Computes, once it is known how.
    fn computed<'py>(
        &self,
        py: Python<'py>,
        ready: &Arc<Ready>,
        arguments: &Arguments,
        out: Option<&Bound<'py, PyAny>>,
        site: Site,
    ) -> PyResult<Bound<'py, PyAny>> {
        let shape = ready.shape.as_ref();
        let mut inputs = Vec::with_capacity(arguments.given.len());
        let is_known = ready.constants.first().is_some_and(|constants| lock(constants).is_some());
        let was_checked = |place: usize| is_known && self.bound[place].is_some();
        let signature = &self.definition.signature;
        shape.check(py, signature, arguments, was_checked, &mut inputs)?;
        let outputs = match out {
            Some(out) => Outputs::given(signature, &shape.outputs, arguments, out, site)?,
            None => Outputs::new(py, &shape.outputs, &shape.makers, arguments.library(), site)?,
        };
        if let (Site::Stream { stream, wait, .. }, Some(part)) = (site, shape.parts.first()) {
            call::run_on(py, &part.compiled, stream, wait, &shape.places(arguments), &outputs)?;
            return outputs.into_result(py);
        }
        let frozen =
            self.constants(ready, arguments).map_err(|diagnostics| diagnosed(py, &diagnostics))?;
        match call::run(py, shape, &frozen, &inputs, &outputs) {
            Ok(()) => outputs.into_result(py),
            // What went wrong is said of the whole, not of a piece.
            Err(_) if shape.parts.len() > 1 || shape.parts.iter().any(Part::is_larger) => {
                let whole = self.ready(py, arguments, true).map_err(|unready| unready.error(py))?;
                self.computed(py, &whole, arguments, out, site)
            }
            Err(diagnostics) => Err(diagnosed(py, &diagnostics)),
        }
    }

    /// What decides which kernel is used.
    fn key(&self, arguments: &Arguments) -> Key {
        let mut key = Vec::with_capacity(16);
        for given in &arguments.given {
            match given {
                Some(Given::Tensor(foreign)) => {
                    key.push(foreign.extents.as_slice().len() as i64);
                    key.extend_from_slice(foreign.extents.as_slice());
                    if let Some(strides) = foreign.strides() {
                        key.push(-4);
                        key.extend_from_slice(strides);
                    }
                }
                Some(Given::Number(number)) => key.extend([-1, number.integer.unwrap_or(0)]),
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

    /// Forgets what was compiled, so that the next call looks at the records again: of this operator, and
    /// of all that share its kernels.
    pub(crate) fn forget(&self) {
        self.kernels.forget();
        *self.cache() = Cache::default();
    }

    fn last_shape(&self) -> PyResult<Arc<Specialised>> {
        let last = self.cache().last.as_ref().map(|last| Arc::clone(&last.shape));
        last.ok_or_else(|| {
            let name = &self.definition.signature.name;
            PyRuntimeError::new_err(format!(
                "{name} is not compiled yet: call it, or {name}.compile(...) with arguments or sizes"
            ))
        })
    }

    /// The kernel that was used last: of several, the one that computes most.
    fn last(&self) -> PyResult<Arc<Compiled>> {
        main_kernel(&self.definition.signature.name, &*self.last_shape()?)
    }
}

/// The kernel that computes most.
fn main_kernel(name: &str, shape: &Specialised) -> PyResult<Arc<Compiled>> {
    let most = |part: &&Part| part.compiled.kernel.lowered().program().iterations();
    let part = shape.parts.iter().max_by_key(most);
    part.map(|part| Arc::clone(&part.compiled)).ok_or_else(|| {
        PyRuntimeError::new_err(format!(
            "{name} has no kernel for these sizes: its results have no elements"
        ))
    })
}

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

#[pymethods]
impl Operator {
    /// A definition of a text. `frozen` has values of `const` parameters by name, which need not be given
    /// in calls; they are copied. It shares kernels, and has what is frozen beside, of an operator `like` it:
    /// of the same definition, with the same choices.
    #[new]
    #[pyo3(signature = (source, name, threads, precision, db, target, dynamic, kernels, frozen, like = None))]
    #[expect(clippy::too_many_arguments, reason = "the choices of Python's function")]
    fn new(
        source: &Bound<'_, Source>,
        name: &str,
        threads: usize,
        precision: &str,
        db: Option<PathBuf>,
        target: &str,
        dynamic: &Bound<'_, PyAny>,
        kernels: usize,
        frozen: &Bound<'_, PyDict>,
        like: Option<&Bound<'_, Self>>,
    ) -> PyResult<Self> {
        let py = source.py();
        let module = &source.get().module;
        let def = module.def(name).map_err(|diagnostics| diagnosed(py, &diagnostics))?;
        let signature = Signature::new(&def);
        let mut bound = bound(&signature, frozen)?;
        let precision = precision.parse::<Precision>().map_err(PyValueError::new_err::<String>)?;
        let target = tensorwright::target(target)
            .map_err(|error| PyValueError::new_err(format!("{error}; {}", error.help())))?;
        let db = db.map(|place| Location::from(place.into_os_string()));
        let dynamic = match dynamic.extract::<bool>() {
            Ok(true) => Dynamic::All,
            Ok(false) => Dynamic::Never,
            Err(_) => Dynamic::Found(dynamic.extract()?),
        };
        let choices = Choices { threads: threads.max(1), precision, db, target, dynamic, kernels };
        let like = like.map(|like| like.get()).filter(|like| {
            let like = &like.definition;
            let is_same_text = like.module.source() == module.source();
            is_same_text && like.signature.name == signature.name && like.choices == choices
        });
        if let Some(like) = like {
            for (bound, before) in bound.iter_mut().zip(&like.bound).filter(|(b, _)| b.is_none()) {
                *bound = before.as_ref().map(|value| value.clone_ref(py));
            }
        }
        Ok(Self {
            kernels: like
                .map_or_else(|| Arc::new(Kernels::new(kernels)), |like| Arc::clone(&like.kernels)),
            definition: Definition { module: module.clone(), signature, choices },
            cache: Mutex::default(),
            constants: Mutex::default(),
            bound,
        })
    }

    /// The name of the definition.
    #[getter(__name__)]
    fn name(&self) -> &str {
        &self.definition.signature.name
    }

    /// The parameters as in the text.
    #[getter]
    fn signature(&self) -> String {
        self.definition.signature.text()
    }

    /// The parameters: name, element type, extents as in the text, whether it is `const`.
    fn parameters(&self) -> Vec<(String, String, usize, bool)> {
        let one = |p: &Param| (p.name.clone(), p.dtype.to_string(), p.rank, p.is_const);
        self.definition.signature.params.iter().map(one).collect()
    }

    /// The names of the results.
    fn results(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        let def = self
            .definition
            .module
            .def(&self.definition.signature.name)
            .map_err(|error| diagnosed(py, &error))?;
        Ok(def.results().into_iter().map(|result| result.name).collect())
    }

    /// The element types (as PyTorch calls them) and shapes of the results for shapes of the parameters
    /// and values of integers, without compiling anything.
    fn infer(
        &self,
        py: Python<'_>,
        shapes: Vec<Option<Vec<i64>>>,
        numbers: Sizes,
    ) -> PyResult<Vec<(&'static str, Vec<i64>)>> {
        let def = self
            .definition
            .module
            .def(&self.definition.signature.name)
            .map_err(|error| diagnosed(py, &error))?;
        let params = self.definition.signature.params.iter().zip(&shapes);
        let shapes =
            params.filter_map(|(param, shape)| Some((param.name.as_str(), shape.as_deref()?)));
        let program = def
            .sizes_of_shapes(shapes, &numbers)
            .and_then(|sizes| Specialised::program(&self.definition, &sizes))
            .map_err(|error| diagnosed(py, &error))?;
        let output =
            |tensor: &tensorwright::ir::Tensor| (torch_name(tensor.dtype), tensor.shape.clone());
        Ok(program.outputs().into_iter().map(output).collect())
    }

    /// Computes. Results are made by the library of the first tensor, or written to `out`.
    #[pyo3(signature = (*args, out = None, **named))]
    fn __call__<'py>(
        &self,
        args: &Bound<'py, PyTuple>,
        out: Option<&Bound<'py, PyAny>>,
        named: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.called(args, named, out, Gradients::Refused)
    }

    /// Computes, for a caller that records gradients itself.
    #[pyo3(signature = (*args))]
    fn compute<'py>(&self, args: &Bound<'py, PyTuple>) -> PyResult<Bound<'py, PyAny>> {
        self.called(args, None, None, Gradients::Recorded)
    }

    /// Compiles for the shapes of these arguments, or for sizes by name, without calling. With a `schedule`, as a
    /// text, calls with these shapes use that one from now on, whatever the records have.
    #[pyo3(signature = (*args, schedule = None, **named))]
    fn compile(
        &self,
        py: Python<'_>,
        args: &Bound<'_, PyTuple>,
        schedule: Option<&str>,
        named: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<()> {
        let arguments = self.arguments(args, named, Gradients::Refused)?;
        match schedule {
            None => {
                self.ready(py, &arguments, true).map(|_| ()).map_err(|unready| unready.error(py))
            }
            Some(schedule) => self.scheduled(py, &arguments, schedule),
        }
    }

    /// The sizes that follow from these arguments, by name.
    #[pyo3(signature = (*args, **named))]
    fn sizes(
        &self,
        py: Python<'_>,
        args: &Bound<'_, PyTuple>,
        named: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Sizes> {
        let arguments = self.arguments(args, named, Gradients::Refused)?;
        Specialised::sizes(&self.definition, py, &arguments)
    }

    /// The page about what was tuned for the shapes of these arguments, as HTML.
    #[pyo3(signature = (*args, **named))]
    fn page(
        &self,
        py: Python<'_>,
        args: &Bound<'_, PyTuple>,
        named: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<String> {
        let arguments = self.arguments(args, named, Gradients::Refused)?;
        let sizes = Specialised::sizes(&self.definition, py, &arguments)?;
        let program = Specialised::program(&self.definition, &sizes)
            .map_err(|error| diagnosed(py, &error))?;
        let (hash, db) = (program.hash().to_string(), self.definition.choices.db.as_ref());
        let page = py.detach(|| tensorwright_cli::report_page(hash, db));
        page.map_err(|error| {
            Class::Tuning.error(py, self.definition.signature.says(&format!("\n{error}")))
        })
    }

    /// How many kernels are compiled at the moment, of this operator and of those that were frozen from it.
    #[getter]
    fn kernels(&self) -> usize {
        self.kernels.len()
    }

    /// How many threads its kernels may use.
    #[getter]
    fn threads(&self) -> usize {
        self.definition.choices.threads
    }

    /// What is computed for these arguments or sizes, over which ranges, why, at what cost, and what the schedule in
    /// use makes of it.
    #[pyo3(signature = (*args, **named))]
    fn explain(
        &self,
        py: Python<'_>,
        args: &Bound<'_, PyTuple>,
        named: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<String> {
        let arguments = self.arguments(args, named, Gradients::Refused)?;
        let ready = self.ready(py, &arguments, false).map_err(|unready| unready.error(py))?;
        let compiled = main_kernel(&self.definition.signature.name, &ready.shape)?;
        let kernel = &compiled.kernel;
        let explained = kernel.lowered().program().explain();
        let map = kernel.lowered().stage_map();
        let lines = kernel.schedule().to_string().lines().count();
        let steps = if lines == 1 { "step" } else { "steps" };
        let (origin, threads) = (&compiled.origin, kernel.threads());
        let workers = if threads == 1 { "thread" } else { "threads" };
        let text = explained.with_stage_map(map).to_string();
        Ok(format!("{text}\nSchedule\n  {lines} {steps}, {origin}; {threads} {workers}\n"))
    }

    /// The bytes of inputs, results and whole intermediate tensors that the kernel that was used last reads and writes,
    /// each once per stage.
    #[getter]
    fn moved_bytes(&self) -> PyResult<i64> {
        let map = self.last()?.kernel.lowered().stage_map();
        Ok(map.stages.iter().map(|stage| stage.moved_bytes).sum())
    }

    /// The schedule of the kernel that was used or compiled last.
    #[getter]
    fn schedule(&self) -> PyResult<String> {
        Ok(self.last()?.kernel.schedule().to_string())
    }

    /// Where that schedule computes the stages, how often, and what that keeps and moves.
    #[getter]
    fn stages(&self) -> PyResult<String> {
        Ok(self.last()?.kernel.lowered().stage_map().to_string())
    }

    /// Where that schedule is from: a record, or no record.
    #[getter]
    fn origin(&self) -> PyResult<String> {
        Ok(self.last()?.origin.clone())
    }

    /// The shapes of the results of the kernel that was used or compiled last.
    #[getter]
    fn output_shapes(&self) -> PyResult<Vec<Vec<i64>>> {
        let last = self.last_shape()?;
        Ok(last.outputs.iter().map(|output| output.shape.clone()).collect())
    }

    /// The kernel that was used or compiled last, as `c`, `llvm`, `asm`, `loops`, `header` or `rust`, or, for a device, as
    /// the `kernels` that its compiler is given.
    #[pyo3(signature = (kind = "c"))]
    fn source(&self, py: Python<'_>, kind: &str) -> PyResult<String> {
        let last = self.last()?;
        let lowered = last.kernel.lowered();
        let text = match kind {
            "c" => lowered.c_source(),
            "llvm" => lowered.llvm_ir(),
            "asm" => lowered.assembly(),
            "loops" => Ok(lowered.loops()),
            "header" => lowered.c_header(),
            "rust" => lowered.rust_module(),
            "kernels" => lowered.kernels().map(|program| program.source),
            other => {
                let message = format!(
                    "no source of kind `{other}`: c, llvm, asm, loops, header, rust, kernels"
                );
                return Err(Class::Argument.error(py, self.definition.signature.says(&message)));
            }
        };
        text.map_err(|diagnostics| diagnosed(py, &diagnostics))
    }

    /// Searches for a faster schedule, and records everything; see `tensorwright.Operator.tune`.
    #[pyo3(signature = (args, named, trials, seconds, mode, strategy, seed, fresh, fleet, watch))]
    #[expect(clippy::too_many_arguments, reason = "the keywords of Python's function")]
    fn search<'py>(
        &self,
        py: Python<'py>,
        args: &Bound<'py, PyTuple>,
        named: &Bound<'py, PyDict>,
        trials: Option<u64>,
        seconds: Option<f64>,
        mode: Option<String>,
        strategy: Option<String>,
        seed: u64,
        fresh: bool,
        fleet: Option<String>,
        watch: Option<Py<PyAny>>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let arguments = self.arguments(args, Some(named), Gradients::Refused)?;
        let wishes = tuning::Wishes { trials, seconds, mode, strategy, seed, fresh, fleet };
        tuning::tune(&self.definition, py, &arguments, wishes, watch, || self.forget())
    }

    fn __repr__(&self) -> String {
        format!(
            "<operator {}({})>",
            self.definition.signature.name,
            self.definition.signature.text()
        )
    }
}

/// A tensor whose elements lie one after the other: the same one, if they do. Anything else stays what it is.
fn dense<'py>(object: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let py = object.py();
    match Foreign::of(object, Gradients::Recorded) {
        // Its own library would read what is not there.
        Ok(foreign) if !foreign.is_dense() && foreign.pointer.is_null() => {
            let text = "an argument has no memory: it was freed";
            return Err(Class::Argument.error(py, text.to_owned()));
        }
        Ok(foreign) if !foreign.is_dense() => {}
        _ => return Ok(object.clone()),
    }
    if let Some(method) = object.getattr_opt(intern!(py, "contiguous"))? {
        return method.call0();
    }
    py.import(intern!(py, "numpy"))?.call_method1(intern!(py, "ascontiguousarray"), (object,))
}

fn dense_tuple<'py>(args: &Bound<'py, PyTuple>) -> PyResult<Bound<'py, PyTuple>> {
    let all: PyResult<Vec<_>> = args.iter().map(|arg| dense(&arg)).collect();
    PyTuple::new(args.py(), all?)
}

fn dense_dict<'py>(named: &Bound<'py, PyDict>) -> PyResult<Bound<'py, PyDict>> {
    let made = PyDict::new(named.py());
    for (name, value) in named {
        made.set_item(name, dense(&value)?)?;
    }
    Ok(made)
}

/// Copies of the arguments that are frozen, by parameter.
fn bound(signature: &Signature, frozen: &Bound<'_, PyDict>) -> PyResult<Vec<Option<Py<PyAny>>>> {
    let mut bound: Vec<Option<Py<PyAny>>> = signature.params.iter().map(|_| None).collect();
    for (name, value) in frozen {
        let name: String = name.extract()?;
        let found = signature.params.iter().zip(&mut bound).find(|(param, _)| param.name == name);
        let problem = match found {
            Some((param, place)) if param.is_const => {
                *place = Some(copied(&value)?.unbind());
                continue;
            }
            Some((param, _)) => {
                format!(
                    "`{param}` is not const, so it cannot be frozen; declare it `const {param}`"
                )
            }
            None => format!("has no parameter `{name}`: they are ({})", signature.text()),
        };
        return Err(Class::Argument.error(frozen.py(), signature.says(&problem)));
    }
    Ok(bound)
}

/// A copy of an array, which nobody else can change. Numbers do not change.
fn copied<'py>(value: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    if value.is_instance_of::<PyFloat>() || value.is_instance_of::<PyInt>() {
        return Ok(value.clone());
    }
    let name = if value.hasattr("clone")? { "clone" } else { "copy" };
    let copy = value.call_method0(name)?;
    let copy = if copy.hasattr("detach")? { copy.call_method0("detach")? } else { copy };
    dense(&copy)
}

/// How many kernels this process has compiled. Equal ones share their code.
#[pyfunction]
pub(crate) fn compilations() -> u64 {
    tensorwright::compilations()
}
