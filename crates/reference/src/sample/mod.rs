//! Computes selected output elements of programs too large to [`run`](crate::run).
//!
//! Only the operands of an element are computed: elements of intermediate tensors are evaluated
//! when they are read, and cached. So a few thousand elements of a matrix product cost a few
//! thousand sums, and those of a softmax the sums of their rows. Values and tolerances are
//! bit-identical to those of [`run`](crate::run), which shares the code.
//!
//! An element may need the whole program. [`Effort::iterations`] limits the work; elements beyond
//! it are omitted, and the others are as exact as ever.

mod choose;
mod demand;

pub use choose::choose;

use std::collections::BTreeMap;
use std::thread;

use tensorwright_lang::diagnostic::Diagnostic;
use tensorwright_lang::program::{AxisKind, Program, Stage};

use crate::buffer::Buffer;
use crate::element::Value;
use crate::eval::{Contents, Failure};
use crate::interpret::{check_inputs, run_stage};
use demand::Demand;

/// One element of one output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OutputElement {
    /// The number of the output in [`Program::outputs`].
    pub output: usize,
    /// The position of the element in row-major order.
    pub position: usize,
}

/// A computed element.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct SampledElement {
    /// Which one.
    pub place: OutputElement,
    /// Its value.
    pub value: Value,
    /// Its tolerance; see [`tolerance`](crate::tolerance).
    pub tolerance: f64,
}

/// The work budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Effort {
    /// The most work over all threads, in iterations as counted by [`work`].
    pub iterations: u64,
    /// The number of threads.
    pub threads: usize,
}

/// The stack of a sampling thread, with room for the deepest expressions of [`demand::MOST_STAGES`]
/// nested stages.
const STACK_BYTES: usize = 128 << 20;

/// The number of elements per task: neighbours share operands.
const GROUP: usize = 32;

/// The fraction of the work for tensors computed as a whole, and for each one of them.
const WHOLE_SHARE: u64 = 4;
const WHOLE_STAGE_SHARE: u64 = 64;

/// Computes output elements in the given order, as many as the budget allows. [`choose`] selects
/// them.
///
/// ```
/// use tensorwright_lang::Module;
/// use tensorwright_reference::sample::{Effort, choose, sample};
/// use tensorwright_reference::{random_inputs, run};
///
/// let text = "def mm(float(M,K) A, float(K,N) B) -> (C) { C(m,n) +=! A(m,k) * B(k,n) }";
/// let module = Module::parse("mm.tc", text)?;
/// let program = module.bind("mm", [("M", 40), ("K", 50), ("N", 60)])?;
/// let inputs = random_inputs(&program, 1)?;
///
/// let wanted = choose(&program, 100, 7);
/// let effort = Effort { iterations: 3000, threads: 2 };
/// let elements = sample(&program, &inputs, &wanted, effort).map_err(|e| e.message)?;
///
/// // 50 terms each, so there is work for 60 of them; and they are what a whole run has.
/// assert!(elements.len() > 40 && elements.len() <= 60);
/// let run = run(&program, &inputs).map_err(|e| e.message)?;
/// for element in elements {
///     let position = element.place.position;
///     assert_eq!(run.outputs[0].buffer.get(position), Some(element.value));
///     assert_eq!(run.outputs[0].tolerance[position], element.tolerance);
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// As [`run`](crate::run), for the elements that are computed.
// A diagnostic is large, and there is one of them per run.
#[allow(clippy::result_large_err)]
pub fn sample(
    program: &Program,
    inputs: &BTreeMap<String, Buffer>,
    wanted: &[OutputElement],
    effort: Effort,
) -> Result<Vec<SampledElement>, Diagnostic> {
    let sampled = check_inputs(program, inputs)
        .and_then(|tensors| sample_boxed(program, tensors, wanted, effort));
    sampled.map_err(|failure| *failure)
}

fn sample_boxed(
    program: &Program,
    mut tensors: Vec<Option<Contents<'_>>>,
    wanted: &[OutputElement],
    effort: Effort,
) -> Result<Vec<SampledElement>, Failure> {
    let used = compute_small_stages(program, &mut tensors, effort.iterations)?;
    let threads = effort.threads.clamp(1, 64);
    let share = (effort.iterations - used) / threads as u64;
    let tensors = &tensors;
    let parts = thread::scope(|scope| {
        let part = |number: usize| {
            let places: Vec<OutputElement> =
                wanted.chunks(GROUP).skip(number).step_by(threads).flatten().copied().collect();
            let work = move || Demand::new(program, tensors, share).elements(&places);
            // If a thread cannot be started, its part is omitted.
            thread::Builder::new().stack_size(STACK_BYTES).spawn_scoped(scope, work).ok()
        };
        let started: Vec<_> = (0..threads).map(part).collect();
        let joined = started.into_iter().flatten().filter_map(|thread| thread.join().ok());
        joined.collect::<Vec<_>>()
    });
    let mut sampled = Vec::new();
    for part in parts {
        sampled.extend(part?);
    }
    let order: BTreeMap<OutputElement, usize> = wanted.iter().copied().zip(0..).collect();
    sampled.sort_by_key(|sampled| order.get(&sampled.place).copied());
    Ok(sampled)
}

/// The work of running a program, in innermost iterations with a short body such as a product of
/// two elements; longer bodies count several times.
#[must_use]
pub fn work(program: &Program) -> u128 {
    program.stages.iter().map(stage_work).fold(0, u128::saturating_add)
}

/// The work of a stage as a whole.
fn stage_work(stage: &Stage) -> u128 {
    stage.iterations().saturating_mul(u128::from(term_work(stage)))
}

/// The work of one element of a stage. An element of a scatter visits every term.
fn element_work(stage: &Stage) -> u64 {
    let terms = u64::try_from(stage.trip_count(AxisKind::Reduce)).unwrap_or(u64::MAX);
    terms.saturating_mul(term_work(stage))
}

fn term_work(stage: &Stage) -> u64 {
    /// The number of expression nodes that count as one iteration.
    const NODES: u64 = 5;
    let mut nodes = 0_u64;
    stage.body.walk(&mut |_| nodes += 1);
    nodes.div_ceil(NODES).max(1)
}

/// Computes cheap stages as a whole, from the first one on, so that elements need not evaluate them
/// lazily. Returns the iterations used.
fn compute_small_stages(
    program: &Program,
    tensors: &mut [Option<Contents<'_>>],
    iterations: u64,
) -> Result<u64, Failure> {
    let mut used = 0;
    for stage in &program.stages {
        let mut is_ready = stage.base.is_none_or(|base| tensors[base.0 as usize].is_some());
        stage.walk_inputs(&mut |read| is_ready &= tensors[read.tensor.0 as usize].is_some());
        // Copying the initial values is work, too.
        let cost = whole_cost(program, stage);
        let is_small = cost <= iterations / WHOLE_STAGE_SHARE;
        if is_ready && is_small && used + cost <= iterations / WHOLE_SHARE {
            used += cost;
            let made = run_stage(program, stage, tensors)?;
            tensors[stage.output.0 as usize] = Some(made);
        }
    }
    Ok(used)
}

fn whole_cost(program: &Program, stage: &Stage) -> u64 {
    let elements = program.tensor(stage.output).elements().unsigned_abs();
    u64::try_from(stage_work(stage)).unwrap_or(u64::MAX).saturating_add(elements)
}
