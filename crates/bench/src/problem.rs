//! From a workload to a program, its inputs and its best recorded schedule.

use std::fs;
use std::path::Path;

use sha2::{Digest, Sha256};
use tensorwright::{Goal, Inputs, Kernel, Module, Precision, Program, Schedule, Target, npy};
use tensorwright_records::{RunFilter, open_existing};
use tensorwright_tuner::{RecordNames, key_of};

use crate::Options;
use crate::protocol::{Tuning, Workload};

/// Errors are reported to the driver as text.
pub(crate) type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// A workload bound to its sizes.
pub(crate) fn program(workload: &Workload) -> Result<Program> {
    let name = workload.file.to_string_lossy();
    let bytes = fs::read(&workload.file).map_err(|error| format!("{name}: {error}"))?;
    let module = Module::parse_bytes(&name, &bytes)?;
    Ok(module.def(&workload.definition)?.bind(sizes(&workload.size)?)?)
}

/// `M=1,N=2` as names and numbers.
fn sizes(text: &str) -> Result<Vec<(String, i64)>> {
    let pair = |pair: &str| {
        let (name, value) = pair.split_once('=').ok_or("a size is written NAME=NUMBER")?;
        Ok((name.to_owned(), value.parse()?))
    };
    text.split(',').map(pair).collect()
}

/// The inputs, in the shapes of the definition: a workload may flatten the group dimension, with
/// the same memory layout.
pub(crate) fn inputs(program: &Program, workload: &Workload, directory: &Path) -> Result<Inputs> {
    if workload.inputs.len() != program.inputs().len() {
        let (given, wanted) = (workload.inputs.len(), program.inputs().len());
        return Err(format!("the workload has {given} inputs, the definition {wanted}").into());
    }
    let input = |(name, tensor): (&String, &tensorwright::ir::Tensor)| {
        let path = directory.join(name).with_extension("npy");
        let bytes = fs::read(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        Ok((tensor.name.clone(), npy::decode(&bytes)?.reshape(&tensor.shape)?))
    };
    workload.inputs.iter().zip(program.inputs()).map(input).collect()
}

/// The kernel of a program, with its best recorded schedule or the default one.
pub(crate) fn kernel(program: &Program, options: &Options) -> Result<Kernel> {
    let goal = goal(options)?;
    let builder = program.compile().target(goal.target.clone()).threads(goal.threads());
    let builder = builder.precision(goal.precision);
    let best = if options.untuned { None } else { best(program, &goal, options)? };
    Ok(match best {
        Some(schedule) => builder.schedule(schedule).build()?,
        None => builder.build()?,
    })
}

/// The hash of the generated code of a kernel.
pub(crate) fn code(kernel: &Kernel) -> Result<String> {
    let hash = match kernel.device_program() {
        Some(program) => Sha256::digest(serde_json::to_vec(program)?),
        None => Sha256::digest(kernel.object()?),
    };
    Ok(hash.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// The target, threads and precision.
fn goal(options: &Options) -> Result<Goal> {
    let target = tensorwright::target(&options.target)?;
    let threads = if matches!(target, Target::Gpu(_)) { 1 } else { options.threads as usize };
    Ok(Goal::new(target).with_precision(options.precision).with_threads(threads))
}

fn best(program: &Program, goal: &Goal, options: &Options) -> Result<Option<Schedule>> {
    let Some(store) = open_existing(options.db.as_ref())? else { return Ok(None) };
    let Some(best) = store.best(&key_of(program, goal))? else { return Ok(None) };
    let schedule = RecordNames::of_store(program, &*store).own(&best.trial.schedule);
    let schedule = schedule.ok_or_else(|| format!("the schedule of {} does not apply", best.id))?;
    if options.precision == Precision::Exact && !schedule.is_exact() {
        return Err(format!("{} is a record of an exact kernel, and is not exact", best.id).into());
    }
    Ok(Some(schedule))
}

/// The cost of tuning a program, from the records.
pub(crate) fn tuning(program: &Program, options: &Options) -> Result<Tuning> {
    let Some(store) = open_existing(options.db.as_ref())? else { return Ok(Tuning::default()) };
    let key = key_of(program, &goal(options)?);
    let keys = store.keys()?;
    let trials = keys.iter().filter(|known| known.key == key).map(|k| k.trials + k.removed).sum();
    let runs = store.runs(&RunFilter { key: Some(key), ..RunFilter::default() })?;
    let seconds = runs.iter().filter_map(|run| {
        let end = run.end.as_ref()?;
        Some((end.ended - run.info.started) as f64 / 1e3)
    });
    Ok(Tuning { trials, seconds: seconds.sum() })
}
