//! A few elements of a result, checked by the reference interpreter.
//!
//! The last stages of a program are run for small boxes of their spatial axes only. Of a matrix product
//! with a billion terms that leaves some hundred thousand: enough to notice a kernel that is wrong
//! about anything but a few elements, in less than a second.

use std::collections::BTreeSet;

use tensorwright_kernel::ir::{self, AxisKind, TensorId};
use tensorwright_kernel::{Inputs, Outputs, Program};

/// How many boxes are looked at: two at the corners, where tails are, the others anywhere.
const BOXES: u64 = 12;

/// About how many terms a box has.
const TERMS: u128 = 100_000;

/// The most terms of a box together with what it is computed from.
const MOST_TERMS: u128 = 400_000;

/// Checks a sample of results; `None` if that would take long.
pub(super) fn check(
    program: &Program,
    inputs: &Inputs,
    outputs: &Outputs,
) -> Option<Result<(), String>> {
    let last = last_stages(program.ir());
    let boxes: Vec<ir::Program> =
        (0..BOXES).map(|number| restricted(program.ir(), &last, number)).collect();
    if boxes.iter().any(|program| terms(program) > MOST_TERMS) {
        return None;
    }
    let mut boxes = boxes.iter();
    Some(boxes.try_for_each(|restricted| check_box(restricted, &last, inputs, outputs)))
}

/// The stages that no other stage reads.
fn last_stages(program: &ir::Program) -> Vec<usize> {
    let mut read: BTreeSet<TensorId> = BTreeSet::new();
    for stage in &program.stages {
        read.extend(stage.base);
        stage.body.walk_reads(&mut |access| {
            read.insert(access.tensor);
        });
    }
    let stages = program.stages.iter().enumerate();
    stages.filter(|(_, stage)| !read.contains(&stage.output)).map(|(at, _)| at).collect()
}

/// The program with its last stages restricted to a box.
fn restricted(program: &ir::Program, last: &[usize], number: u64) -> ir::Program {
    let mut program = program.clone();
    let mut state = number;
    for at in last {
        let Some(stage) = program.stages.get_mut(*at) else { continue };
        let mut left = (TERMS / stage.trip_count(AxisKind::Reduce).max(1)).max(1);
        let spatial = stage.axes.iter_mut().filter(|axis| axis.kind == AxisKind::Spatial);
        for axis in spatial.collect::<Vec<_>>().into_iter().rev() {
            let extent = axis.hi - axis.lo;
            let width = i64::try_from(left).unwrap_or(extent).clamp(1, extent.max(1));
            left = (left / width.unsigned_abs() as u128).max(1);
            let room = (extent - width).max(0).unsigned_abs();
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            let offset = match number {
                0 => 0,
                1 => room,
                _ => (state >> 33) % (room + 1),
            };
            axis.lo += offset as i64;
            axis.hi = axis.lo + width.min(extent);
        }
    }
    program
}

fn terms(program: &ir::Program) -> u128 {
    let stage = |s: &ir::Stage| {
        s.trip_count(AxisKind::Spatial).saturating_mul(s.trip_count(AxisKind::Reduce))
    };
    program.stages.iter().map(stage).fold(0, u128::saturating_add)
}

/// Compares the elements of a box with those that were computed.
fn check_box(
    restricted: &ir::Program,
    last: &[usize],
    inputs: &Inputs,
    outputs: &Outputs,
) -> Result<(), String> {
    let run = tensorwright_reference::run(restricted, inputs).map_err(|error| error.message)?;
    for stage in last.iter().filter_map(|at| restricted.stages.get(*at)) {
        let name = &restricted.tensor(stage.output).name;
        let (Some(expected), Some(actual)) = (run.output(name), outputs.get(name)) else {
            continue;
        };
        let ranges: Vec<(i64, i64)> = stage
            .axes
            .iter()
            .filter(|a| a.kind == AxisKind::Spatial)
            .map(|a| (a.lo, a.hi))
            .collect();
        for index in indices(&ranges) {
            let Some(position) = actual.position(&index) else { continue };
            let pair = expected.buffer.get(position).zip(actual.get(position));
            let Some((value, computed)) = pair else { continue };
            let allowed = expected.tolerance.get(position).copied().unwrap_or_default();
            if value.distance(computed) > allowed {
                return Err(format!(
                    "the default schedule is wrong about `{name}` at {index:?}: {computed} and ought \
                     to be {value}, within {allowed:.3e}"
                ));
            }
        }
    }
    Ok(())
}

/// All indices of a box.
fn indices(ranges: &[(i64, i64)]) -> Vec<Vec<i64>> {
    ranges.iter().fold(vec![Vec::new()], |indices, (lo, hi)| {
        let longer = |index: &Vec<i64>| {
            let index = index.clone();
            (*lo..*hi).map(move |last| index.iter().copied().chain([last]).collect())
        };
        indices.iter().flat_map(longer).collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use tensorwright_kernel::Module;

    #[test]
    fn boxes_are_small_and_right_results_pass() {
        let text = "def mm(float(M,K) A, float(K,N) B) -> (C) { C(m,n) +=! A(m,k) * B(k,n) }";
        let sizes = [("M", 300), ("N", 300), ("K", 300)];
        let program = Module::parse("t", text).unwrap().def("mm").unwrap().bind(sizes).unwrap();
        let inputs = program.random_inputs(1).unwrap();
        let outputs = program.compile().build().unwrap().run(&inputs).unwrap();
        assert_eq!(check(&program, &inputs, &outputs), Some(Ok(())));
        let other = program.compile().build().unwrap().run(&program.random_inputs(2).unwrap());
        assert!(check(&program, &inputs, &other.unwrap()).unwrap().is_err());
    }

    #[test]
    fn what_is_computed_from_much_is_not_sampled() {
        let text = "def f(float(M,K) A, float(K,N) B) -> (D) {\n\
                    C(m,n) +=! A(m,k) * B(k,n)\nD(m,n) = fmax(C(m,n), 0) }";
        let sizes = [("M", 100), ("N", 100), ("K", 100)];
        let program = Module::parse("t", text).unwrap().def("f").unwrap().bind(sizes).unwrap();
        let inputs = program.random_inputs(1).unwrap();
        let outputs = program.compile().build().unwrap().run(&inputs).unwrap();
        assert_eq!(check(&program, &inputs, &outputs), None);
    }
}
