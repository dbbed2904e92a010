//! Operators: definitions that can be called.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyFloat, PyInt, PyTuple};
use tensorwright::runtime::fork::hold_forks;
use tensorwright::{Diagnostics, Frozen, Precision};
use tensorwright_records::Location;

use crate::arguments::{Arguments, Given};
use crate::call;
use crate::definition::{Choices, Definition, Param, Signature, Sizes};
use crate::error::{Class, diagnosed};
use crate::expected::torch_name;
use crate::outputs::Outputs;
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
    /// `const` arguments that need not be given any more, by parameter.
    bound: Vec<Option<Py<PyAny>>>,
}

/// What decides which kernel is used: extents of tensors, values of shaping scalars and sizes.
type Key = Vec<i64>;

/// What was compiled.
#[derive(Debug, Default)]
struct Kernels {
    all: Mutex<HashMap<Key, Arc<Specialised>>>,
    /// Held while a kernel is compiled, so that threads do not compile the same one.
    compiling: Mutex<()>,
}

/// What is ready to be called.
#[derive(Debug, Default)]
struct Cache {
    all: HashMap<Key, Arc<Ready>>,
    last: Option<Arc<Ready>>,
}

/// A kernel and the constants that one operator calls it with.
#[derive(Debug)]
pub(crate) struct Ready {
    pub(crate) kernel: Arc<Specialised>,
    /// Those of the last call.
    constants: Mutex<Option<Frozen>>,
}

impl Operator {
    fn cache(&self) -> MutexGuard<'_, Cache> {
        self.cache.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The arguments of a call together with those that are bound.
    pub(crate) fn arguments(
        &self,
        positional: &Bound<'_, PyTuple>,
        named: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Arguments> {
        let py = positional.py();
        if self.bound.iter().all(Option::is_none) {
            return Arguments::read(&self.definition.signature, positional, named);
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
        Arguments::read(&self.definition.signature, &PyTuple::empty(py), Some(&full))
    }

    /// What was compiled for these arguments, or is now.
    pub(crate) fn ready(&self, py: Python<'_>, arguments: &Arguments) -> PyResult<Arc<Ready>> {
        let last = self.cache().last.clone();
        if let Some(last) =
            last.filter(|last| !last.kernel.is_outdated() && last.kernel.is_for(arguments))
        {
            return Ok(last);
        }
        let key = self.key(arguments);
        if let Some(found) = self.cache().find(&key) {
            return Ok(found);
        }
        let kernel = self.specialised(py, &key, arguments)?;
        let notes =
            std::mem::take(&mut *kernel.notes.lock().unwrap_or_else(PoisonError::into_inner));
        let ready = Arc::new(Ready { kernel, constants: Mutex::default() });
        self.cache().insert(key, &ready);
        for note in notes {
            let text = std::ffi::CString::new(note.replace('\0', " ")).unwrap_or_default();
            PyErr::warn(py, &py.get_type::<pyo3::exceptions::PyUserWarning>(), &text, 1)?;
        }
        Ok(ready)
    }

    /// The kernel for a key, which the arguments have.
    fn specialised(
        &self,
        py: Python<'_>,
        key: &Key,
        arguments: &Arguments,
    ) -> PyResult<Arc<Specialised>> {
        if let Some(found) = self.kernels.find(key) {
            return Ok(found);
        }
        let sizes = Specialised::sizes(&self.definition, py, arguments)?;
        let made = py.detach(|| {
            // A child must not inherit these locks from a thread that it does not have.
            let _hold = hold_forks();
            let compiling = &self.kernels.compiling;
            let _one = compiling.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(found) = self.kernels.find(key) {
                return Ok(found);
            }
            let made = Arc::new(Specialised::compile(&self.definition, sizes)?);
            self.kernels.all().insert(key.clone(), Arc::clone(&made));
            Ok(made)
        });
        made.map_err(|diagnostics: Diagnostics| diagnosed(py, &diagnostics))
    }

    /// Compiles with a schedule of the caller's, for all calls with arguments like these.
    fn scheduled(&self, py: Python<'_>, arguments: &Arguments, schedule: &str) -> PyResult<()> {
        let key = self.key(arguments);
        let sizes = Specialised::sizes(&self.definition, py, arguments)?;
        let made = py.detach(|| {
            let _hold = hold_forks();
            let compiling = &self.kernels.compiling;
            let _one = compiling.lock().unwrap_or_else(PoisonError::into_inner);
            Specialised::compile_with(&self.definition, sizes, schedule).map(Arc::new)
        });
        let kernel = made.map_err(|diagnostics: Diagnostics| diagnosed(py, &diagnostics))?;
        if let Some(before) = self.kernels.all().insert(key.clone(), Arc::clone(&kernel)) {
            before.outdate();
        }
        self.cache().insert(key, &Arc::new(Ready { kernel, constants: Mutex::default() }));
        Ok(())
    }

    /// The constants of a call, in the layout that the kernel wants. What is frozen is prepared by the
    /// first call with new shapes, and no call looks at it again; what a call is given is compared with
    /// what the last one was given.
    fn constants(
        &self,
        ready: &Ready,
        arguments: &Arguments,
    ) -> Result<Option<Frozen>, Diagnostics> {
        if !ready.kernel.kernel.needs_constants() {
            return Ok(None);
        }
        let known = ready.constants().clone();
        if known.is_some() && self.is_frozen() {
            return Ok(known);
        }
        let is_wanted = |place: usize| {
            self.definition.signature.params[place].is_const
                && (known.is_none() || self.bound[place].is_none())
        };
        let frozen = freeze(
            &self.definition.signature,
            &ready.kernel,
            arguments,
            known.as_ref(),
            is_wanted,
        )?;
        *ready.constants() = Some(frozen.clone());
        Ok(Some(frozen))
    }

    /// Whether no call is given constants.
    fn is_frozen(&self) -> bool {
        let mut params = self.definition.signature.params.iter().zip(&self.bound);
        params.all(|(param, bound)| !param.is_const || bound.is_some())
    }

    /// What decides which kernel is used.
    fn key(&self, arguments: &Arguments) -> Key {
        let mut key = Vec::with_capacity(16);
        for given in &arguments.given {
            match given {
                Some(Given::Tensor(foreign)) => {
                    key.push(foreign.extents.as_slice().len() as i64);
                    key.extend_from_slice(foreign.extents.as_slice());
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
        for (_, kernel) in self.kernels.all().drain() {
            kernel.outdate();
        }
        *self.cache() = Cache::default();
    }

    fn last(&self) -> PyResult<Arc<Specialised>> {
        let last = self.cache().last.as_ref().map(|last| Arc::clone(&last.kernel));
        last.ok_or_else(|| {
            let name = &self.definition.signature.name;
            PyRuntimeError::new_err(format!(
                "{name} is not compiled yet: call it, or {name}.compile(...) with arguments or sizes"
            ))
        })
    }
}

impl Kernels {
    fn all(&self) -> MutexGuard<'_, HashMap<Key, Arc<Specialised>>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn find(&self, key: &Key) -> Option<Arc<Specialised>> {
        self.all().get(key).cloned()
    }
}

impl Cache {
    fn find(&mut self, key: &Key) -> Option<Arc<Ready>> {
        let found = self.all.get(key).filter(|ready| !ready.kernel.is_outdated())?;
        self.last = Some(Arc::clone(found));
        self.last.clone()
    }

    fn insert(&mut self, key: Key, ready: &Arc<Ready>) {
        self.all.retain(|_, ready| !ready.kernel.is_outdated());
        self.all.insert(key, Arc::clone(ready));
        self.last = Some(Arc::clone(ready));
    }
}

impl Ready {
    fn constants(&self) -> MutexGuard<'_, Option<Frozen>> {
        self.constants.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[pymethods]
impl Operator {
    /// A definition of a text. `frozen` has values of `const` parameters by name, which need not be given
    /// in calls; they are copied. It shares kernels, and has what is frozen beside, of an operator `like` it:
    /// of the same definition, with the same choices.
    #[new]
    #[pyo3(signature = (source, name, threads, precision, db, target, frozen, like = None))]
    #[expect(clippy::too_many_arguments, reason = "the choices of Python's function")]
    fn new(
        source: &Bound<'_, Source>,
        name: &str,
        threads: usize,
        precision: &str,
        db: Option<PathBuf>,
        target: &str,
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
        let choices = Choices { threads: threads.max(1), precision, db, target };
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
            definition: Definition { module: module.clone(), signature, choices },
            kernels: like.map_or_else(Arc::default, |like| Arc::clone(&like.kernels)),
            cache: Mutex::default(),
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
        py: Python<'py>,
        args: &Bound<'py, PyTuple>,
        out: Option<&Bound<'py, PyAny>>,
        named: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let arguments = self.arguments(args, named)?;
        let site = Site::of(py, &self.definition, &arguments)?;
        let ready = self.ready(py, &arguments)?;
        let kernel = ready.kernel.as_ref();
        let mut inputs = Vec::with_capacity(arguments.given.len());
        let is_known = ready.constants().is_some();
        let was_checked = |place: usize| is_known && self.bound[place].is_some();
        kernel.check(py, &self.definition.signature, &arguments, was_checked, &mut inputs)?;
        let outputs = match out {
            Some(out) => {
                Outputs::given(&self.definition.signature, &kernel.outputs, &arguments, out, site)?
            }
            None => Outputs::new(py, &kernel.outputs, &kernel.makers, arguments.library(), site)?,
        };
        if let Site::Stream { stream, wait, .. } = site {
            call::run_on(py, kernel, stream, wait, &kernel.places(&arguments), &outputs)?;
            return outputs.into_result(py);
        }
        let frozen = self
            .constants(&ready, &arguments)
            .map_err(|diagnostics| diagnosed(py, &diagnostics))?;
        call::run(py, kernel, frozen.as_ref(), &inputs, &outputs)?;
        outputs.into_result(py)
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
        let arguments = self.arguments(args, named)?;
        match schedule {
            None => self.ready(py, &arguments).map(|_| ()),
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
        let arguments = self.arguments(args, named)?;
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
        let arguments = self.arguments(args, named)?;
        let sizes = Specialised::sizes(&self.definition, py, &arguments)?;
        let program = Specialised::program(&self.definition, &sizes)
            .map_err(|error| diagnosed(py, &error))?;
        let (hash, db) = (program.hash().to_string(), self.definition.choices.db.as_ref());
        let page = py.detach(|| tensorwright_cli::report_page(hash, db));
        page.map_err(|error| {
            Class::Tuning.error(py, self.definition.signature.says(&format!("\n{error}")))
        })
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
        let arguments = self.arguments(args, named)?;
        let ready = self.ready(py, &arguments)?;
        let kernel = &ready.kernel.kernel;
        let explained = kernel.lowered().program().explain();
        let map = kernel.lowered().stage_map();
        let lines = kernel.schedule().to_string().lines().count();
        let steps = if lines == 1 { "step" } else { "steps" };
        let (origin, threads) = (&ready.kernel.origin, kernel.threads());
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
        let last = self.last()?;
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
        let arguments = self.arguments(args, Some(named))?;
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
    if copy.hasattr("detach")? { copy.call_method0("detach") } else { Ok(copy) }
}

/// How many kernels this process has compiled. Equal ones share their code.
#[pyfunction]
pub(crate) fn compilations() -> u64 {
    tensorwright::compilations()
}
