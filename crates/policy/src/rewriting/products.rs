//! Factoring of sums of products whose factors are loop-invariant.

use tensorwright_lang::ops::{ArithOp, ReductionOp};
use tensorwright_lang::program::Expr;

use tensorwright_schedule::ScheduleState;
use tensorwright_schedule::access::{Accesses, Axis};
use tensorwright_schedule::nest::{Loop, LoopNest, Node, Role, Store, for_each_store};
use tensorwright_schedule::placement::store_of;
use tensorwright_schedule::primitives::{Factor, loops_of, stages};

/// Factoring is profitable if it leaves at most this fraction of the operations: the savings must
/// outweigh writing and reading another tensor.
const WORTH: f64 = 0.75;

/// The cost of a division in multiplications.
const DIVISION: usize = 4;

/// The maximum size of partial sums in bytes.
const MOST_BYTES: i64 = 256 << 20;

/// The maximum number of loops of a sum for which all subsets are tried.
const MOST_LOOPS: usize = 6;

/// Drafts with profitable factorings: fewest operations first, then those whose inner sums read
/// whole vectors, then the smallest partial sums.
pub(super) fn factorings(draft: &ScheduleState) -> Vec<ScheduleState> {
    let mut best = draft.clone();
    let mut others: Vec<ScheduleState> = Vec::new();
    for stage in sums_of_products(&draft.nest) {
        let mut choices = choices(&best, &stage).into_iter();
        let Some(first) = choices.next() else { continue };
        // The choices of one stage are alternatives only while the other stages are unchanged.
        others.extend(choices);
        best = first;
    }
    if best.schedule.steps.len() == draft.schedule.steps.len() {
        return Vec::new();
    }
    std::iter::once(best).chain(others).collect()
}

/// The names of the sums with a factor that is invariant in some reduction loop.
fn sums_of_products(nest: &LoopNest) -> Vec<String> {
    let mut stores = Vec::new();
    for_each_store(&nest.body, &mut |store| stores.push(store));
    let is_candidate = |store: &Store| {
        store.combine == Some(ReductionOp::Sum)
            && matches!(store.value, Expr::Arith(ArithOp::Mul | ArithOp::Div, ..))
    };
    let named = stages(nest).into_iter().zip(stores);
    named.filter(|(_, store)| is_candidate(store)).map(|(name, _)| name).collect()
}

/// The profitable factorings of one stage, best first.
fn choices(draft: &ScheduleState, stage: &str) -> Vec<ScheduleState> {
    let terms: Vec<&Loop> =
        loops_of(&draft.nest, stage).into_iter().filter(|l| l.role == Role::Reduce).collect();
    let Some(store) = store_of(&draft.nest, stage) else { return Vec::new() };
    let independent = |l: &&&Loop| !all_factors_mention(&store.value, l);
    if terms.len() > MOST_LOOPS || terms.iter().filter(independent).count() == 0 {
        return Vec::new();
    }
    let names: Vec<String> = terms.iter().map(|l| draft.nest.var_name(l.var).to_owned()).collect();
    let before = work(&draft.nest.body);
    let mut found: Vec<(f64, bool, i64, ScheduleState)> = Vec::new();
    for subset in 1..1usize << names.len() {
        let chosen = names.iter().enumerate().filter(|(place, _)| subset >> place & 1 == 1);
        let loops: Vec<String> = chosen.map(|(_, name)| name.clone()).collect();
        let mut factored = draft.clone();
        if !factored.step(stage, Factor { loops }) {
            continue;
        }
        let bytes = factored.nest.buffers.last().map_or(0, |buffer| buffer.bytes());
        let after = work(&factored.nest.body);
        if after <= WORTH * before && bytes <= MOST_BYTES {
            // Rounded to a hundredth: the outer sum is small compared to the inner one.
            let share = (100.0 * after / before).round();
            found.push((share, !has_rows(&factored.nest), bytes, factored));
        }
    }
    found.sort_by(|a, b| a.0.total_cmp(&b.0).then((a.1, a.2).cmp(&(b.1, b.2))));
    found.into_iter().map(|(.., draft)| draft).collect()
}

/// Whether the newest partial sums have a loop along which all reads are contiguous or constant, so
/// that vectors need no shuffles.
fn has_rows(nest: &LoopNest) -> bool {
    let made = nest.buffers.last().and_then(|buffer| Accesses::of(nest, &buffer.name));
    made.is_some_and(|made| {
        let rows = |axis: &Axis| {
            made.strided(axis).is_empty() && made.reads.iter().any(|r| r.stride(axis) == Some(1))
        };
        made.of_role(Role::Spatial).any(rows)
    })
}

fn all_factors_mention(value: &Expr, l: &Loop) -> bool {
    match value {
        Expr::Arith(ArithOp::Mul | ArithOp::Div, a, b) => {
            all_factors_mention(a, l) && all_factors_mention(b, l)
        }
        factor => factor.mentions(&|var| var == l.var),
    }
}

/// The cost of a nest in multiplications: a multiply-add counts once, a division as several.
fn work(nodes: &[Node]) -> f64 {
    let one = |node: &Node| match node {
        Node::Loop(l) => l.extent as f64 * work(&l.body),
        Node::Guard(guard) => work(&guard.body),
        Node::Store(store) => {
            let mut products = 0usize;
            store.value.walk(&mut |expr| {
                products += match expr {
                    Expr::Arith(ArithOp::Mul, ..) => 1,
                    Expr::Arith(ArithOp::Div, ..) => DIVISION,
                    _ => 0,
                };
            });
            products.max(1) as f64
        }
        Node::Prefetch(_) | Node::Barrier => 0.0,
    };
    nodes.iter().map(one).sum()
}
