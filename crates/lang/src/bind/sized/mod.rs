//! Binds a definition with sizes that vary.
//!
//! The concrete binding infers ranges for the likely sizes. Its attempts are followed in order with
//! extents and ranges as functions of sizes, and everything that it relied on is proven for all
//! sizes, or becomes a condition on them.
//!
//! ```text
//! def f(float(N) x) -> (y) { y(i) = x(i) + x(i+1) }     N in 1..=4096, likely 512
//!
//! x(i), i below 512      i below N
//! x(i+1), i below 511    i below N-1, which is the least; not empty: N >= 2
//! ```

mod environment;
mod limits;
mod refuse;
mod sizes;
mod statement;
#[cfg(test)]
mod tests;
mod witness;

use std::collections::BTreeMap;

use super::flatten::{Flat, Step, flatten};
use super::proofs::Proofs;
use super::resolve::{Attempted, ResolvedStatement};
use super::shapes::Shapes;
use super::{Resolved, assemble, resolve};
use crate::diagnostic::Diagnostic;
use crate::hir::{Def, Dim, Symbol};
use crate::program::{Index, SizeValue, SizedProgram};
use crate::source::Source;

use environment::{Environment, Followed};
use sizes::sizes;
use statement::SizedStatement;

/// Binds a definition to sizes of which some vary.
pub(crate) fn bind_sized(
    source: &Source,
    defs: &[Option<Def>],
    def: &Def,
    values: &BTreeMap<String, SizeValue>,
) -> Result<SizedProgram, Vec<Diagnostic>> {
    let named = sizes(def, values)?;
    let (numbers, mut scalars) = super::sizes(def, &named.likely)?;
    let flat = flatten(defs, def).map_err(|error| vec![error])?;
    scalars.resize(flat.tensors.len(), None);
    let Resolved { shapes, statements, trace } = resolve(def, &flat, &numbers, &scalars)?;
    let statements = assemble::covering(&flat, &shapes, statements);
    let covers: Vec<Option<Vec<bool>>> =
        statements.iter().map(|it| it.as_ref().map(|(_, covers)| covers.clone())).collect();

    let proofs = Proofs::new(&named.varying, &flat.tensors);
    let mut env = Environment {
        def,
        flat: &flat,
        scalars: &scalars,
        sizes: &named.all,
        proofs: &proofs,
        shapes: declared_shapes(def, &flat, &named.all),
    };
    let concrete: Vec<Option<&ResolvedStatement>> =
        statements.iter().map(|it| it.as_ref().map(|(resolved, _)| resolved)).collect();
    let mut sized = follow(&mut env, &trace, &concrete)?;
    agree(&env)?;
    for ((step, sized), covers) in flat.steps.iter().zip(&sized).zip(&covers) {
        if let (Step::Compute(stmt, _), Some(sized), Some(covers)) = (step, sized, covers) {
            env.cover(stmt, &sized.ranges, covers)?;
        }
    }

    let (likely, tensors) = assemble::assemble(source, def, &flat, &shapes, &scalars, statements)?;
    let ranges = sized.iter_mut().flatten().map(|it| std::mem::take(&mut it.ranges)).collect();
    let largest = largest_shapes(&env, &tensors);
    let general = sized.into_iter().zip(covers);
    let general = general.map(|(sized, covers)| Some((sized?.resolved, covers?))).collect();
    let (general, _) = assemble::assemble(source, def, &flat, &largest, &scalars, general)?;
    let shape = |symbol: &Symbol| env.shapes.of(*symbol).unwrap_or_default().to_vec();
    let shapes = tensors.iter().map(shape).collect();
    let conditions = proofs.into_conditions();
    Ok(SizedProgram { likely, general, sizes: named.varying, shapes, ranges, conditions })
}

/// The shapes of parameters and scalars.
fn declared_shapes(def: &Def, flat: &Flat<'_>, sizes: &[Index]) -> Shapes<Index> {
    let extent = |dim: &Dim| match dim {
        Dim::Size(size) => sizes[size.0 as usize].clone(),
        Dim::Literal(extent) => Index::constant(*extent),
    };
    let shapes = flat.tensors.iter().enumerate().map(|(number, tensor)| {
        let known = number < def.params || tensor.rank == 0;
        known.then(|| tensor.dims.iter().map(extent).collect())
    });
    Shapes::new(shapes.collect())
}

/// Follows the attempts of the concrete binding in order.
fn follow(
    env: &mut Environment<'_>,
    trace: &[Attempted],
    concrete: &[Option<&ResolvedStatement>],
) -> Result<Vec<Option<SizedStatement>>, Vec<Diagnostic>> {
    let flat = env.flat;
    let mut sized: Vec<Option<SizedStatement>> = flat.steps.iter().map(|_| None).collect();
    for Attempted { step: number, ranges: likely } in trace {
        match &flat.steps[*number] {
            Step::Alias { target, source } => {
                env.shapes.copy(*target, *source);
            }
            Step::Compute(stmt, site) => {
                let it = Followed { stmt, site: *site, likely };
                let called = |errors: Vec<Diagnostic>| {
                    let all = errors.into_iter().map(|error| flat.with_calls(error, site.call));
                    all.collect::<Vec<Diagnostic>>()
                };
                let reasons = concrete[*number].filter(|_| likely.iter().all(Option::is_some));
                match reasons {
                    None => env.attempt(it).map_err(called)?,
                    Some(resolved) => {
                        sized[*number] = Some(env.settle(it, &resolved.ranges).map_err(called)?);
                    }
                }
            }
        }
    }
    Ok(sized)
}

/// Makes the sizes equal that calls and `concat` require to be.
fn agree(env: &Environment<'_>) -> Result<(), Vec<Diagnostic>> {
    let lowering = env.lowering();
    for agreement in &env.flat.agreements {
        let first = lowering.extent(&agreement.first, agreement.first_span);
        let second = lowering.extent(&agreement.second, agreement.second_span);
        let (first, second) =
            first.and_then(|first| Ok((first, second?))).map_err(|error| vec![error])?;
        if !env.agree(&first, &second) {
            let sizes = [&first, &second];
            let error = refuse::statement(env.proofs, &sizes, agreement.second_span);
            return Err(vec![env.flat.with_calls(error, agreement.call)]);
        }
    }
    Ok(())
}

/// The shapes with the largest extents.
fn largest_shapes(env: &Environment<'_>, tensors: &[Symbol]) -> Shapes<i64> {
    let largest =
        |extent: &Index| i64::try_from(env.proofs.interval(extent).hi).unwrap_or(i64::MAX).max(1);
    let mut shapes: Vec<Option<Vec<i64>>> = vec![None; env.flat.tensors.len()];
    for symbol in tensors {
        let shape = env.shapes.of(*symbol);
        shapes[symbol.0 as usize] = shape.map(|shape| shape.iter().map(largest).collect());
    }
    Shapes::new(shapes)
}
