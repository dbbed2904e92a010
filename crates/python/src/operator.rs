//! Operators: callable definitions.

use std::borrow::Cow;
use std::path::PathBuf;
use std::sync::Arc;

use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use tensorwright::schedule::StageMap;
use tensorwright::{LoweredProgram, Precision};
use tensorwright_records::Location;

use crate::arguments::Arguments;
use crate::call;
use crate::compiled::{Compiled, CompiledKernel};
use crate::definition::{Choices, Definition, Dynamic, Param, Signature, Sizes};
use crate::dense::{dense_dict, dense_tuple};
use crate::dynamic;
use crate::error::{Class, diagnosed};
use crate::foreign::Gradients;
use crate::frozen::{bound, check};
use crate::kernels::Kernels;
use crate::outputs::Outputs;
use crate::parts::Part;
use crate::prepared::{NotReady, Prepared, Ready};
use crate::site::Site;
use crate::source::{Source, title};
use crate::specialised::Specialised;
use crate::tuning;

/// A callable definition, for NumPy arrays or torch tensors, without copies. The first call with a
/// set of shapes compiles it with its best recorded schedule.
#[pyclass(frozen, subclass, module = "tensorwright._native")]
#[derive(Debug)]
pub(crate) struct Operator {
    prepared: Prepared,
    /// Frozen `const` arguments, by parameter.
    bound: Vec<Option<Py<PyAny>>>,
}

impl Operator {
    fn definition(&self) -> &Definition {
        &self.prepared.definition
    }

    /// The arguments of a call, with the frozen ones filled in.
    pub(crate) fn arguments(
        &self,
        positional: &Bound<'_, PyTuple>,
        named: Option<&Bound<'_, PyDict>>,
        gradients: Gradients,
    ) -> PyResult<Arguments> {
        let py = positional.py();
        if self.bound.iter().all(Option::is_none) {
            return Arguments::read(&self.definition().signature, positional, named, gradients);
        }
        // Frozen arguments take their positions; the others move up.
        let mut rest = positional.iter();
        let full = PyDict::new(py);
        for (param, bound) in self.definition().signature.params.iter().zip(&self.bound) {
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
            let message = self.definition().signature.says("was given too many arguments");
            return Err(Class::Argument.error(py, message));
        }
        for (name, value) in named.into_iter().flatten() {
            let frozen = self.definition().signature.params.iter().zip(&self.bound);
            let mut frozen = frozen.filter(|(_, bound)| bound.is_some()).map(|(param, _)| param);
            let text = name.extract::<String>()?;
            if frozen.any(|param| param.name == text) {
                let message = format!(
                    "`{text}` is frozen, and was given again; leave it out, or freeze another value"
                );
                return Err(Class::Argument.error(py, self.definition().signature.says(&message)));
            }
            full.set_item(name, value)?;
        }
        Arguments::read(&self.definition().signature, &PyTuple::empty(py), Some(&full), gradients)
    }

    /// Computes. Copies arguments that kernels cannot read in place.
    fn called<'py>(
        &self,
        args: &Bound<'py, PyTuple>,
        named: Option<&Bound<'py, PyDict>>,
        out: Option<&Bound<'py, PyAny>>,
        gradients: Gradients,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = args.py();
        let arguments = self.arguments(args, named, gradients)?;
        let signature = &self.definition().signature;
        if let Some(param) = arguments.missing(signature) {
            return Err(missing(py, signature, param, out));
        }
        let site = Site::of(py, self.definition(), &arguments)?;
        match self.prepared.ready(py, &arguments, false) {
            Ok(ready) => self.computed(py, &ready, &arguments, out, site),
            Err(NotReady::Raised(error)) => Err(error),
            Err(NotReady::Dense) => {
                let (args, named) = (dense_tuple(args)?, named.map(dense_dict).transpose()?);
                let arguments = self.arguments(&args, named.as_ref(), gradients)?;
                let ready = self
                    .prepared
                    .ready(py, &arguments, false)
                    .map_err(|unready| unready.error(py))?;
                self.computed(py, &ready, &arguments, out, site)
            }
        }
    }

    /// Computes with a known plan.
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
        let is_known = ready.has_constants();
        let was_checked = |place: usize| is_known && self.bound[place].is_some();
        let signature = &self.definition().signature;
        shape.check(py, signature, arguments, was_checked, &mut inputs)?;
        let outputs = match out {
            Some(out) => Outputs::given(signature, &shape.outputs, arguments, out, site)?,
            None => {
                let library = arguments.library(|place| self.bound[place].is_some());
                Outputs::new(py, &shape.outputs, &shape.makers, library, site)?
            }
        };
        if let (Site::Stream { stream, wait, .. }, Some(part)) = (site, &shape.part) {
            call::run_on(py, &part.compiled, stream, wait, &shape.places(arguments), &outputs)?;
            return outputs.into_result(py);
        }
        let frozen = self
            .prepared
            .constants(ready, arguments, |place| self.bound[place].is_some())
            .map_err(|diagnostics| diagnosed(py, &diagnostics))?;
        match call::run(py, shape, frozen.as_ref(), &inputs, &outputs) {
            Ok(()) => outputs.into_result(py),
            // A kernel for these sizes alone knows more about what is wrong.
            Err(diagnostics) if shape.part.as_ref().is_some_and(Part::is_for_others) => {
                match self.prepared.ready(py, arguments, true) {
                    Ok(whole) => self.computed(py, &whole, arguments, out, site),
                    Err(NotReady::Dense) => Err(diagnosed(py, &diagnostics)),
                    Err(NotReady::Raised(error)) => Err(error),
                }
            }
            Err(diagnostics) => Err(diagnosed(py, &diagnostics)),
        }
    }

    fn last_shape(&self) -> PyResult<Arc<Specialised>> {
        self.prepared.last().ok_or_else(|| {
            let name = &self.definition().signature.name;
            PyRuntimeError::new_err(format!(
                "{name} is not compiled yet: call it, or {name}.compile(...) with arguments or sizes"
            ))
        })
    }

    /// The loops of a plan's kernel at its sizes. A kernel for sizes that vary has loops for the
    /// largest ones; others with the default schedule stand for them.
    fn at_sizes<'a>(
        &self,
        py: Python<'_>,
        shape: &Specialised,
        compiled: &'a Compiled,
    ) -> PyResult<Cow<'a, LoweredProgram>> {
        if let CompiledKernel::Fixed(kernel) = &compiled.kernel {
            return Ok(Cow::Borrowed(kernel.lowered()));
        }
        let choices = &self.definition().choices;
        let lowered = Specialised::program(self.definition(), &shape.sizes).and_then(|program| {
            let builder = program.compile().target(choices.target.clone());
            builder.threads(choices.threads).precision(choices.precision).lower()
        });
        lowered.map(Cow::Owned).map_err(|error| diagnosed(py, &error))
    }

    /// Where the last plan computes its stages.
    fn last_stages(&self, py: Python<'_>) -> PyResult<StageMap> {
        let (shape, compiled) = (self.last_shape()?, self.last()?);
        Ok(self.at_sizes(py, &shape, &compiled)?.stage_map())
    }

    /// The last used kernel.
    fn last(&self) -> PyResult<Arc<Compiled>> {
        main_kernel(&self.definition().signature.name, &*self.last_shape()?)
    }
}

/// The error for a missing argument.
fn missing(
    py: Python<'_>,
    signature: &Signature,
    param: &Param,
    out: Option<&Bound<'_, PyAny>>,
) -> PyErr {
    let name = &param.name;
    let by_place = match out {
        Some(_) if name == "out" => {
            "; `out=` says where results go, so give the parameter by position"
        }
        _ => "",
    };
    let message = format!("`{name}` ({param}) is missing{by_place}");
    Class::Argument.error(py, signature.says(&message))
}

/// The kernel of a plan.
fn main_kernel(name: &str, shape: &Specialised) -> PyResult<Arc<Compiled>> {
    let part = shape.part.as_ref();
    part.map(|part| Arc::clone(&part.compiled)).ok_or_else(|| {
        PyRuntimeError::new_err(format!(
            "{name} has no kernel for these sizes: its results have no elements"
        ))
    })
}

#[pymethods]
impl Operator {
    /// An operator of a definition. `frozen` has values of `const` parameters by name, which calls
    /// leave out; they are copied. Shares the kernels and frozen values of `like`, an operator of
    /// the same definition with the same choices.
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
        let signature = Signature::new(&def, title(module.source().name(), name));
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
            let like = &like.prepared.definition;
            let is_same_text = like.module.source() == module.source();
            is_same_text && like.signature.name == signature.name && like.choices == choices
        });
        if let Some(like) = like {
            for (bound, before) in bound.iter_mut().zip(&like.bound).filter(|(b, _)| b.is_none()) {
                *bound = before.as_ref().map(|value| value.clone_ref(py));
            }
        }
        let kernels = like.map(|like| Arc::clone(&like.prepared.kernels));
        let kernels = kernels.unwrap_or_else(|| Arc::new(Kernels::new(choices.kernels)));
        let definition = Definition { module: module.clone(), signature, choices };
        check(&definition, py, &bound)?;
        Ok(Self { prepared: Prepared::new(definition, kernels), bound })
    }

    /// The name of the definition.
    #[getter(__name__)]
    fn name(&self) -> &str {
        &self.definition().signature.name
    }

    /// The parameters as source text.
    #[getter]
    fn signature(&self) -> String {
        self.definition().signature.text()
    }

    /// The parameters: name, element type, rank, whether it is `const`.
    fn parameters(&self) -> Vec<(String, String, usize, bool)> {
        let one = |p: &Param| (p.name.clone(), p.dtype.to_string(), p.rank, p.is_const);
        self.definition().signature.params.iter().map(one).collect()
    }

    /// The names of the results.
    fn results(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        let def = self
            .definition()
            .module
            .def(&self.definition().signature.name)
            .map_err(|error| diagnosed(py, &error))?;
        Ok(def.results().into_iter().map(|result| result.name).collect())
    }

    /// The element types (PyTorch's names) and shapes of the results for shapes of the parameters
    /// and values of integers, without compiling.
    fn infer(
        &self,
        py: Python<'_>,
        shapes: Vec<Option<Vec<i64>>>,
        numbers: Sizes,
    ) -> PyResult<Vec<(&'static str, Vec<i64>)>> {
        let def = self
            .definition()
            .module
            .def(&self.definition().signature.name)
            .map_err(|error| diagnosed(py, &error))?;
        let params = self.definition().signature.params.iter().zip(&shapes);
        let shapes =
            params.filter_map(|(param, shape)| Some((param.name.as_str(), shape.as_deref()?)));
        let sizes = def.sizes_of_shapes(shapes, &numbers).map_err(|error| diagnosed(py, &error))?;
        let made = dynamic::shapes_of(self.definition(), &sizes);
        let (_, outputs) = made.map_err(|problem| self.prepared.refusal(py, problem))?;
        let output =
            |tensor: &tensorwright::ir::Tensor| (tensor.dtype.row().torch, tensor.shape.clone());
        Ok(outputs.iter().map(output).collect())
    }

    /// Computes. Results are new arrays of the first tensor's library, or written to `out`.
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

    /// Compiles for the shapes of these arguments, or for sizes by name, without calling. With a
    /// `schedule` text, later calls with these shapes use that schedule, whatever the records have.
    #[pyo3(signature = (*args, schedule = None, **named))]
    fn compile(
        &self,
        py: Python<'_>,
        args: &Bound<'_, PyTuple>,
        schedule: Option<&str>,
        named: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<()> {
        let arguments = self.arguments(args, named, Gradients::Recorded)?;
        match schedule {
            None => self
                .prepared
                .ready(py, &arguments, true)
                .map(|_| ())
                .map_err(|unready| unready.error(py)),
            Some(schedule) => self.prepared.scheduled(py, &arguments, schedule),
        }
    }

    /// The sizes inferred from these arguments, by name.
    #[pyo3(signature = (*args, **named))]
    fn sizes(
        &self,
        py: Python<'_>,
        args: &Bound<'_, PyTuple>,
        named: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Sizes> {
        let arguments = self.arguments(args, named, Gradients::Recorded)?;
        Specialised::sizes(self.definition(), py, &arguments)
    }

    /// The tuning report for the shapes of these arguments, as HTML.
    #[pyo3(signature = (*args, **named))]
    fn page(
        &self,
        py: Python<'_>,
        args: &Bound<'_, PyTuple>,
        named: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<String> {
        let arguments = self.arguments(args, named, Gradients::Recorded)?;
        let sizes = Specialised::sizes(self.definition(), py, &arguments)?;
        let program = Specialised::program(self.definition(), &sizes)
            .map_err(|error| diagnosed(py, &error))?;
        let (hash, db) = (program.hash().to_string(), self.definition().choices.db.as_ref());
        let page = py.detach(|| tensorwright_cli::report_page(hash, db));
        page.map_err(|error| {
            Class::Tuning.error(py, self.definition().signature.says(&format!("\n{error}")))
        })
    }

    /// Sizes that ranges depend on nonlinearly: in quotients, remainders, minima and maxima.
    fn nonlinear_sizes(&self, py: Python<'_>) -> PyResult<Vec<&str>> {
        let definition = self.definition();
        let def = definition.module.def(&definition.signature.name);
        def.map(|def| def.nonlinear_sizes()).map_err(|error| diagnosed(py, &error))
    }

    /// The frozen copies, by name.
    fn constants(&self, py: Python<'_>) -> Vec<(String, Py<PyAny>)> {
        let params = self.definition().signature.params.iter().zip(&self.bound);
        let one = |(param, bound): (&Param, &Option<Py<PyAny>>)| {
            bound.as_ref().map(|value| (param.name.clone(), value.clone_ref(py)))
        };
        params.filter_map(one).collect()
    }

    /// The number of compiled kernels, of this operator and those frozen from it.
    #[getter]
    fn kernels(&self) -> usize {
        self.prepared.kernels.len()
    }

    /// The number of threads of its kernels.
    #[getter]
    fn threads(&self) -> usize {
        self.definition().choices.threads
    }

    /// Explains the computation for these arguments or sizes: ranges, their derivation, cost, and
    /// the effect of the schedule in use.
    #[pyo3(signature = (*args, **named))]
    fn explain(
        &self,
        py: Python<'_>,
        args: &Bound<'_, PyTuple>,
        named: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<String> {
        let arguments = self.arguments(args, named, Gradients::Recorded)?;
        let ready =
            self.prepared.ready(py, &arguments, false).map_err(|unready| unready.error(py))?;
        let compiled = main_kernel(&self.definition().signature.name, &ready.shape)?;
        let lowered = self.at_sizes(py, &ready.shape, &compiled)?;
        let explained = lowered.program().explain();
        let lines = compiled.kernel.lowered().schedule().to_string().lines().count();
        let steps = if lines == 1 { "step" } else { "steps" };
        let (origin, threads) = (&compiled.origin, self.definition().choices.threads);
        let workers = if threads == 1 { "thread" } else { "threads" };
        let text = explained.with_stage_map(lowered.stage_map()).to_string();
        let varying = compiled.kernel.ranges();
        Ok(format!("{text}\nSchedule\n  {lines} {steps}, {origin}; {threads} {workers}\n{varying}"))
    }

    /// The bytes of inputs, results and whole intermediate tensors that the last used kernel reads
    /// and writes, each once per stage.
    #[getter]
    fn moved_bytes(&self, py: Python<'_>) -> PyResult<i64> {
        let map = self.last_stages(py)?;
        Ok(map.stages.iter().map(|stage| stage.moved_bytes).sum())
    }

    /// The schedule of the last used or compiled kernel.
    #[getter]
    fn schedule(&self) -> PyResult<String> {
        Ok(self.last()?.kernel.lowered().schedule().to_string())
    }

    /// Where that schedule computes the stages, how often, and the memory and traffic of that.
    #[getter]
    fn stages(&self, py: Python<'_>) -> PyResult<String> {
        Ok(self.last_stages(py)?.to_string())
    }

    /// The origin of that schedule.
    #[getter]
    fn origin(&self) -> PyResult<String> {
        Ok(self.last()?.origin.clone())
    }

    /// The result shapes of the last used or compiled kernel.
    #[getter]
    fn output_shapes(&self) -> PyResult<Vec<Vec<i64>>> {
        let last = self.last_shape()?;
        Ok(last.outputs.iter().map(|output| output.shape.clone()).collect())
    }

    /// The last used or compiled kernel as `c`, `llvm`, `asm`, `loops`, `header` or `rust`, or for
    /// a device as its source code (`kernels`).
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
                return Err(Class::Argument.error(py, self.definition().signature.says(&message)));
            }
        };
        text.map_err(|diagnostics| diagnosed(py, &diagnostics))
    }

    /// Searches for a faster schedule and records all outcomes; see `tensorwright.Operator.tune`.
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
        let arguments = self.arguments(args, Some(named), Gradients::Recorded)?;
        let options = tuning::TuneOptions { trials, seconds, mode, strategy, seed, fresh, fleet };
        tuning::tune(self.definition(), py, &arguments, options, watch, || self.prepared.forget())
    }

    fn __repr__(&self) -> String {
        let signature = &self.definition().signature;
        let params = signature.params.iter().zip(&self.bound);
        let (frozen, open): (Vec<_>, Vec<_>) = params.partition(|(_, bound)| bound.is_some());
        let open = open.iter().map(|(param, _)| param.to_string()).collect::<Vec<_>>().join(", ");
        let frozen: Vec<_> = frozen.iter().map(|(param, _)| param.name.as_str()).collect();
        match frozen.as_slice() {
            [] => format!("<operator {}({open})>", signature.name),
            frozen => {
                format!("<operator {}({open}), {} frozen>", signature.name, frozen.join(", "))
            }
        }
    }
}

/// The number of kernels compiled by this process. Equal ones share their code.
#[pyfunction]
pub(crate) fn compilations() -> u64 {
    tensorwright::compilations()
}
