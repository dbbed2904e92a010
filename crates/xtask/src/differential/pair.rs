//! A prepared case: lowered nest, inputs and expected outputs.

use std::rc::Rc;

use tensorwright::allow_for_rewriting;
use tensorwright_lang::program::Program;
use tensorwright_reference::{Buffer, Run};
use tensorwright_schedule::check::check;
use tensorwright_schedule::nest::{LoopKind, LoopNest, Node, for_each_loop};
use tensorwright_schedule::{
    DeviceLimits, Interface, LowerError, LowerOptions, LoweredNest, Schedule, canonical,
    lower_traced, lower_with,
};

use super::case::Case;
use super::failure::{Kind, Problem, Suspect};
use super::inputs::Inputs;
use super::oracle::{Answer, Oracle};

/// The most stores for the check of a nest.
const MOST_STORES: u64 = 50_000;

/// A lowered nest, its inputs and its expected outputs.
pub(crate) struct Pair {
    /// The nest.
    pub(crate) nest: LoweredNest,
    /// The same for a device, if loops are bound and it fits.
    pub(crate) device: Option<LoweredNest>,
    /// The calling interface.
    pub(crate) interface: Interface,
    /// The byte pattern of unwritten memory.
    pub(crate) garbage: u8,
    /// The processor that LLVM generates code for.
    pub(crate) target: String,
    program: Rc<Program>,
    answer: Rc<Answer>,
    /// The answer with wider tolerances for nests with algebraic rewrites.
    rewritten: Option<Run>,
}

/// Why a case is not run.
pub(crate) enum NotRun {
    /// It was skipped for a legitimate reason.
    Skipped(String),
    /// A problem.
    Problem(Problem),
}

/// The result for a nest that accepted all primitives but does not lower. Random primitives may
/// conflict only there.
fn not_lowered(why: &LowerError, is_promised: bool) -> NotRun {
    match why {
        why if is_promised || *why == LowerError::Unfinished => {
            schedule_problem(Kind::Refused, format!("cannot be lowered: {why}")).into()
        }
        LowerError::NotInnermost { .. } => {
            NotRun::Skipped("a vectorized loop holds another".to_owned())
        }
        why => NotRun::Skipped(why.to_string()),
    }
}

fn schedule_problem(kind: Kind, message: String) -> Problem {
    Problem::new(Suspect::Schedule, kind, message)
}

/// The nest of a schedule, checked after every step.
pub(crate) fn apply_checked(schedule: &Schedule, program: &Program) -> Result<LoopNest, Problem> {
    let mut nest = canonical(program);
    for step in &schedule.steps {
        step.apply(&mut nest).map_err(|why| schedule_problem(Kind::Refused, why.to_string()))?;
        check_defined(&nest, &step.to_string())?;
    }
    Ok(nest)
}

/// Checks that a nest reads only written memory, after a step or a pass.
fn check_defined(nest: &LoopNest, after: &str) -> Result<(), Problem> {
    check(nest, MOST_STORES)
        .map(drop)
        .map_err(|flaw| schedule_problem(Kind::Flaw, format!("after `{after}`: {flaw}\n{nest}")))
}

/// The answer for a nest with algebraic rewrites, whose tolerances follow from the rewritten
/// computation; `None` for exact nests.
fn rewritten(
    program: &Program,
    nest: &LoweredNest,
    inputs: Inputs,
    answer: &Answer,
) -> Result<Option<Run>, NotRun> {
    let Some(mut run) = answer.expected.clone().filter(|_| nest.as_nest().error_growth > 1.0)
    else {
        return Ok(None);
    };
    let buffers = inputs.buffers(program).map_err(NotRun::Skipped)?;
    match allow_for_rewriting(&mut run, program, nest, &buffers) {
        Ok(true) => Ok(Some(run)),
        Ok(false) => {
            Err(NotRun::Skipped("takes too long for an analysis of its errors".to_owned()))
        }
        Err(why) => Err(schedule_problem(Kind::Flaw, why.message).into()),
    }
}

impl From<Problem> for NotRun {
    fn from(problem: Problem) -> Self {
        Self::Problem(problem)
    }
}

impl Pair {
    /// Binds, schedules and prepares a case. `is_promised` cases must lower.
    pub(crate) fn of(case: &Case, name: &str, is_promised: bool) -> Result<Self, NotRun> {
        let program = case.bind().map_err(|why| schedule_problem(Kind::Refused, why))?;
        let schedule = Schedule::parse(&case.schedule)
            .map_err(|why| schedule_problem(Kind::RoundTrip, why.to_string()))?;
        let nest = apply_checked(&schedule, &program)?;
        let program = Rc::new(program);
        let oracle = Oracle::new(Rc::clone(&program));
        Self::ready(case, (program, nest), &oracle, name, is_promised)
    }

    /// Lowers the scheduled nest of a case and runs the reference.
    pub(crate) fn ready(
        case: &Case,
        (program, nest): (Rc<Program>, LoopNest),
        oracle: &Oracle,
        name: &str,
        is_promised: bool,
    ) -> Result<Self, NotRun> {
        let mut flawed = Ok(());
        let mut look = |pass: &str, nest: &LoopNest| {
            if flawed.is_ok() {
                flawed = check_defined(nest, pass);
            }
        };
        let mut is_bound = false;
        for_each_loop(&nest.body, &mut |l| is_bound |= l.kind.is_bound());
        let for_device = is_bound.then(|| nest.clone());
        let lowered = lower_traced(nest, &mut look);
        let options = LowerOptions::device(DeviceLimits::default());
        let device = for_device.map(|nest| lower_with(nest, &options, &mut look));
        flawed?;
        let nest = lowered.map_err(|why| not_lowered(&why, is_promised))?.named(name);
        let device = match device {
            // A missing device feature is not a defect.
            None | Some(Err(LowerError::Device(_))) => None,
            Some(lowered) => {
                Some(lowered.map_err(|why| not_lowered(&why, is_promised))?.named(name))
            }
        };
        let answer = oracle.answer(case.inputs).map_err(NotRun::Skipped)?;
        let rewritten = rewritten(&program, &nest, case.inputs, &answer)?;
        let (garbage, target) = (case.inputs.garbage(), case.target.clone());
        let interface = Interface::of(&nest);
        Ok(Self { nest, device, interface, garbage, target, program, answer, rewritten })
    }

    /// The initial bytes of each parameter; `None` for outputs.
    pub(crate) fn contents(&self) -> impl Iterator<Item = Option<&[u8]>> {
        let inputs = self.answer.inputs.iter().map(|bytes| Some(bytes.as_slice()));
        inputs.chain(std::iter::repeat(None)).take(self.interface.parameters.len())
    }

    /// Whether there is work for several workers.
    pub(crate) fn has_parallel_loop(&self) -> bool {
        fn any(nodes: &[Node]) -> bool {
            nodes.iter().any(|node| match node {
                Node::Loop(l) => l.kind == LoopKind::Parallel || any(&l.body),
                Node::Guard(guard) => any(&guard.body),
                _ => false,
            })
        }
        any(&self.nest.as_nest().prepare) || any(&self.nest.as_nest().body)
    }

    /// Compares a status and the bytes of the outputs, in order, with the reference.
    pub(crate) fn judge(&self, status: i32, outputs: &[Vec<u8>]) -> Result<(), (Kind, String)> {
        let Some(expected) = self.rewritten.as_ref().or(self.answer.expected.as_ref()) else {
            let message = "returned 0, but a subscript is out of bounds".to_owned();
            return if status == 0 { Err((Kind::Status, message)) } else { Ok(()) };
        };
        if status != 0 {
            return Err((Kind::Status, format!("returned {status}, but all is in bounds")));
        }
        for ((id, expected), bytes) in
            self.program.outputs.iter().zip(&expected.outputs).zip(outputs)
        {
            let tensor = self.program.tensor(*id);
            let actual = Buffer::from_bytes(tensor.dtype, &tensor.shape, bytes)
                .map_err(|error| (Kind::Wrong, error.to_string()))?;
            let growth = self.nest.as_nest().rounding_growth;
            if let Some(mismatch) = expected.mismatch_within(&actual, growth) {
                return Err((Kind::Wrong, format!("{}: {mismatch}", tensor.name)));
            }
        }
        Ok(())
    }
}
