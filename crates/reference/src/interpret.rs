//! The reference interpreter: runs stages in order, element by element.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};

use tensorwright_lang::diagnostic::{Code, Diagnostic, nearest};
use tensorwright_lang::program::{Combine, Program, Stage, Tensor, TensorId};

use crate::buffer::Buffer;
use crate::eval::{Contents, Failure, Scope, Tensors, defect};
use crate::number::Number;
use crate::output::{Output, Run};
use crate::reduce::Accumulator;
use crate::running::RunningStage;
use crate::scatter;
use crate::target::{Target, advance, zero_errors};

/// Runs a program on inputs by name.
///
/// Every read is bounds-checked. Intermediate tensors are freed after their last use.
///
/// # Errors
/// If an input is missing (`E0801`), unknown (`E0802`), or of the wrong shape (`E0803`) or type
/// (`E0804`); if a data-dependent subscript is out of bounds (`E0805`); if a tensor does not fit in
/// memory (`E0705`).
// A diagnostic is large, and there is one of them per run.
#[allow(clippy::result_large_err)]
pub fn run(program: &Program, inputs: &BTreeMap<String, Buffer>) -> Result<Run, Diagnostic> {
    run_boxed(program, inputs).map_err(|failure| *failure)
}

fn run_boxed(program: &Program, inputs: &BTreeMap<String, Buffer>) -> Result<Run, Failure> {
    let mut tensors = check_inputs(program, inputs)?;
    let mut done: Vec<Vec<usize>> = vec![Vec::new(); program.stages.len()];
    for (tensor, last_use) in last_uses(program).into_iter().enumerate() {
        if let LastUse::Stage(number) = last_use
            && let Some(done) = done.get_mut(number)
        {
            done.push(tensor);
        }
    }
    for (number, stage) in program.stages.iter().enumerate() {
        let made = run_stage(program, stage, &tensors)?;
        let Some(slot) = tensors.get_mut(stage.output.0 as usize) else {
            return Err(defect(stage, "a stage makes a tensor that does not exist"));
        };
        *slot = Some(made);
        for tensor in &done[number] {
            tensors[*tensor] = None;
        }
    }
    let outputs = program.outputs.iter().map(|id| take_output(program, *id, &mut tensors));
    Ok(Run { outputs: outputs.collect::<Result<_, _>>()? })
}

/// Checks the inputs against the program's declarations.
pub(crate) fn check_inputs<'a>(
    program: &Program,
    inputs: &'a BTreeMap<String, Buffer>,
) -> Result<Vec<Option<Contents<'a>>>, Failure> {
    let declared = program.tensors.get(..program.inputs).unwrap_or(&program.tensors);
    for name in inputs.keys() {
        if !declared.iter().any(|tensor| tensor.name == *name) {
            return Err(Box::new(unknown_input(name, declared)));
        }
    }
    let mut tensors = Vec::with_capacity(program.tensors.len());
    for tensor in declared {
        let Some(buffer) = inputs.get(&tensor.name) else {
            return Err(Box::new(missing_input(tensor)));
        };
        if let Some(problem) = wrong_input(tensor, buffer) {
            return Err(Box::new(problem));
        }
        tensors.push(Some(Contents { buffer: Cow::Borrowed(buffer), errors: None }));
    }
    tensors.resize_with(program.tensors.len(), || None);
    Ok(tensors)
}

fn missing_input(tensor: &Tensor) -> Diagnostic {
    let Tensor { name, span, .. } = tensor;
    let expected = tensor.type_text();
    let message = format!("input `{name}` is missing: the program needs a `{expected}`");
    Diagnostic::new(Code::MissingInput, *span, message)
        .help(format!("give it a value, such as `--input {name}={name}.npy` with a `{expected}`"))
}

fn unknown_input(name: &str, declared: &[Tensor]) -> Diagnostic {
    let names: Vec<&str> = declared.iter().map(|tensor| tensor.name.as_str()).collect();
    let list = match names.as_slice() {
        [] => "the program has no inputs".to_owned(),
        names => format!("the inputs are `{}`", names.join("`, `")),
    };
    let diagnostic =
        Diagnostic::without_place(Code::UnknownInput, format!("there is no input `{name}`"));
    match nearest(name, names.iter().copied()) {
        Some(near) => diagnostic.note(list).help(format!("did you mean `{near}`?")),
        None => diagnostic.help(list),
    }
}

fn wrong_input(tensor: &Tensor, buffer: &Buffer) -> Option<Diagnostic> {
    let Tensor { name, dtype, shape, span, .. } = tensor;
    let expected = tensor.type_text();
    let actual = buffer.type_text();
    let message = format!("input `{name}` is a `{actual}`, and the program needs a `{expected}`");
    let declared = format!("declared as {expected}");
    if buffer.dtype() != *dtype {
        let help = format!("convert its elements to `{dtype}`; nothing is converted silently");
        return Some(Diagnostic::new(Code::InputType, *span, message).here(declared).help(help));
    }
    if buffer.shape() != shape.as_slice() {
        let help = "give an input of that shape, or bind the sizes to the shape of the input";
        return Some(Diagnostic::new(Code::InputShape, *span, message).here(declared).help(help));
    }
    None
}

/// The last use of a tensor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LastUse {
    Stage(usize),
    Output,
}

fn last_uses(program: &Program) -> Vec<LastUse> {
    // An unread tensor is freed after the stage that computes it.
    let made_by = |id: usize| LastUse::Stage(id.saturating_sub(program.inputs));
    let mut uses: Vec<LastUse> = (0..program.tensors.len()).map(made_by).collect();
    let mut note = |id: TensorId, last_use| {
        if let Some(slot) = uses.get_mut(id.0 as usize) {
            *slot = last_use;
        }
    };
    for (number, stage) in program.stages.iter().enumerate() {
        stage.body.walk_reads(&mut |read| note(read.tensor, LastUse::Stage(number)));
        if let Some(base) = stage.base {
            note(base, LastUse::Stage(number));
        }
    }
    for id in &program.outputs {
        note(*id, LastUse::Output);
    }
    uses
}

fn take_output(
    program: &Program,
    id: TensorId,
    tensors: &mut [Option<Contents<'_>>],
) -> Result<Output, Failure> {
    let found = program.tensors.get(id.0 as usize);
    let contents = tensors.get_mut(id.0 as usize).and_then(Option::take);
    let (Some(tensor), Some(contents)) = (found, contents) else {
        let message = "the program has an output that no stage makes: a defect of the compiler";
        return Err(Box::new(Diagnostic::without_place(Code::OutputNeverAssigned, message)));
    };
    let buffer = contents.buffer.into_owned();
    let tolerance = match contents.errors {
        Some(errors) => errors,
        None => zero_errors(tensor, buffer.len())?,
    };
    Ok(Output { name: tensor.name.clone(), buffer, tolerance })
}

/// Computes one tensor.
pub(crate) fn run_stage<'a>(
    program: &Program,
    stage: &Stage,
    tensors: &[Option<Contents<'a>>],
) -> Result<Contents<'a>, Failure> {
    let Some(tensor) = program.tensors.get(stage.output.0 as usize) else {
        return Err(defect(stage, "a stage makes a tensor that does not exist"));
    };
    let base = match stage.base {
        None => None,
        Some(id) => match tensors.get(id.0 as usize) {
            Some(Some(base)) => Some(base),
            _ => {
                return Err(defect(stage, "a stage starts from a tensor that is not there"));
            }
        },
    };
    let mut target = Target::new(tensor, base)?;
    let rank = stage.spatial();
    if rank != tensor.shape.len() || rank > stage.axes.len() {
        return Err(defect(stage, "a stage has the wrong number of axes"));
    }
    if stage.axes.iter().any(|axis| axis.lo >= axis.hi) {
        return Err(defect(stage, "an axis of a stage has nothing in it"));
    }
    if !stage.scatter.is_empty() {
        scatter::run(program, stage, tensors, base, &mut target)?;
        return Ok(target.contents);
    }
    let running = RunningStage::of(program, stage);
    // The last element of each line so far, by position.
    let mut sums: HashMap<usize, Accumulator> = HashMap::new();
    let mut counted: Vec<i64> = stage.axes.iter().map(|axis| axis.lo).collect();
    loop {
        let mut point = in_order(stage, &counted);
        let Some(position) = target.contents.buffer.position(&point[..rank]) else {
            return Err(defect(stage, "a stage writes outside of its tensor"));
        };
        let start = base.and_then(|base| base.number(position));
        let number = match (&stage.scan, &running) {
            (None, _) => element(program, stage, tensors, rank, &mut point, start)?,
            (_, Some(running)) => {
                let before = running.before(&point, position).and_then(|at| sums.remove(&at));
                let sum = running.next(program, tensors, &point, before)?;
                sums.insert(position, sum);
                sum.finish()
            }
            (Some(_), None) => {
                let tensors = WithOwn { tensors, own: stage.output, contents: &target.contents };
                element(program, stage, &tensors, rank, &mut point, start)?
            }
        };
        target.store(position, number.store(tensor.dtype))?;
        if !advance(stage, 0..rank, &mut counted) {
            break;
        }
    }
    Ok(target.contents)
}

/// Maps a point in counting order to evaluation order: a recurrence may run backwards.
fn in_order(stage: &Stage, counted: &[i64]) -> Vec<i64> {
    let mut point = counted.to_vec();
    if let Some(scan) = stage.scan.as_ref().filter(|scan| scan.backwards) {
        let number = scan.axis.0 as usize;
        if let (Some(axis), Some(value)) = (stage.axes.get(number), point.get_mut(number)) {
            *value = axis.lo + (axis.hi - 1 - *value);
        }
    }
    point
}

/// The environment of a recurrence: other tensors, and its own computed elements.
struct WithOwn<'s, 'a, 'o> {
    tensors: &'s [Option<Contents<'a>>],
    own: TensorId,
    contents: &'s Contents<'o>,
}

impl Tensors for WithOwn<'_, '_, '_> {
    fn shape(&self, id: TensorId) -> Option<&[i64]> {
        if id == self.own { Some(self.contents.buffer.shape()) } else { self.tensors.shape(id) }
    }

    fn number(&self, id: TensorId, position: usize) -> Result<Option<Number>, Failure> {
        if id == self.own {
            return Ok(self.contents.number(position));
        }
        self.tensors.number(id, position)
    }
}

/// One element: the value of the body, or its reduction over the reduce axes.
pub(crate) fn element<T: Tensors + ?Sized>(
    program: &Program,
    stage: &Stage,
    tensors: &T,
    rank: usize,
    point: &mut [i64],
    start: Option<Number>,
) -> Result<Number, Failure> {
    let eval = |point: &[i64]| Scope { program, stage, tensors, point }.eval(&stage.body);
    let mut accumulator = match stage.combine {
        Combine::Assign => return eval(point),
        Combine::Reduce(op) | Combine::Accumulate(op) => {
            Accumulator::neutral(op, program.tensor(stage.output).dtype)
        }
    };
    if matches!(stage.combine, Combine::Accumulate(_)) {
        let Some(start) = start else {
            return Err(defect(stage, "a reduction accumulates onto nothing"));
        };
        accumulator.push(start);
    }
    loop {
        if scatter::may_contribute(&Scope { program, stage, tensors, point })? {
            accumulator.push(eval(point)?);
        }
        if !advance(stage, rank..stage.axes.len(), point) {
            return Ok(accumulator.finish());
        }
    }
}
