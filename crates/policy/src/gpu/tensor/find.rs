//! Finds groups that tensor cores can compute.

use tensorwright_lang::dtype::DType;
use tensorwright_lang::precision::Precision;
use tensorwright_machine::{Goal, Gpu, GpuApi};
use tensorwright_schedule::ScheduleState;
use tensorwright_schedule::nest::TILE;

use super::{Product, Shape};
use crate::gpu::decode;
use crate::gpu::group::Group;
use crate::gpu::lowering::lowers;
use crate::stages::operand::Operand;

/// The products among groups. Each was tried once: it can be scheduled and lowered.
pub(crate) fn find(draft: &ScheduleState, groups: &[Group], goal: &Goal<Gpu>) -> Vec<Product> {
    // Other dialects cannot express tensor cores.
    if !goal.target.tensor || goal.target.api != GpuApi::Cuda {
        return Vec::new();
    }
    let product = |(place, group): (usize, &Group)| {
        let mut found = candidates(draft, place, group, goal);
        found.find(|product| {
            let mut trial = draft.clone();
            decode::tensor(&mut trial, group, product, &Shape::ONE).is_ok()
                && lowers(&trial.nest, &goal.target)
        })
    };
    groups.iter().enumerate().filter_map(product).collect()
}

/// The candidate row, column and reduction loops, most promising first.
fn candidates<'a>(
    draft: &'a ScheduleState,
    place: usize,
    group: &'a Group,
    goal: &'a Goal<Gpu>,
) -> impl Iterator<Item = Product> + 'a {
    let axes = 0..group.spatial.len();
    let pairs = axes.clone().flat_map(move |m| axes.clone().map(move |n| (m, n)));
    let triples = pairs.flat_map(|(m, n)| (0..group.reduce.len()).map(move |k| (m, n, k)));
    let mut found: Vec<(i64, Product)> = triples
        .filter_map(|(m, n, k)| {
            let product = product(draft, place, group, goal, (m, n, k))?;
            let size = group.spatial[m].extent() * group.spatial[n].extent();
            Some((size.saturating_mul(group.reduce[k].extent()), product))
        })
        .collect();
    // Contiguous columns of results are written fastest.
    found.sort_by_key(|(size, product)| {
        std::cmp::Reverse((product.results[1] == group.contiguous, *size))
    });
    found.into_iter().map(|(_, product)| product)
}

fn product(
    draft: &ScheduleState,
    place: usize,
    group: &Group,
    goal: &Goal<Gpu>,
    (m, n, k): (usize, usize, usize),
) -> Option<Product> {
    let [a, b] = group.reads.as_slice() else { return None };
    let is_whole = |extent: i64| extent >= TILE && extent % TILE == 0;
    let extents = [group.spatial[m].extent(), group.spatial[n].extent(), group.reduce[k].extent()];
    if m == n || a.tensor == b.tensor || !extents.into_iter().all(is_whole) {
        return None;
    }
    let is_left = |read: &Operand| read.spatial[m] != Some(0) && read.spatial[n] == Some(0);
    let is_right = |read: &Operand| read.spatial[n] != Some(0) && read.spatial[m] == Some(0);
    let (a, b) = match (is_left(a) && is_right(b), is_left(b) && is_right(a)) {
        (true, _) => (a, b),
        (_, true) => (b, a),
        _ => return None,
    };
    let in_order = |one: Option<i64>, other: Option<i64>| one == Some(1) || other == Some(1);
    let lies_in_order = in_order(a.spatial[m], a.reduce[k])
        && in_order(b.reduce[k], b.spatial[n])
        && in_order(group.write.spatial[m], group.write.spatial[n]);
    let dtype = |read: &Operand| {
        let found = draft.nest.buffers.iter().find(|buffer| buffer.name == read.tensor);
        found.map(|buffer| buffer.dtype)
    };
    let of_a = dtype(a).filter(|of_a| dtype(b) == Some(*of_a) && lies_in_order)?;
    let is_known = match of_a {
        DType::Half => true,
        DType::BFloat16 => goal.target.has_wide_tensors(),
        DType::Float => goal.target.has_wide_tensors() && goal.precision == Precision::Fast,
        _ => false,
    };
    is_known.then(|| Product {
        group: place,
        results: [m, n],
        terms: k,
        factors: [a.tensor.clone(), b.tensor.clone()],
        bytes: a.element_bytes,
        is_tf32: of_a == DType::Float,
        parameter: usize::MAX,
    })
}
