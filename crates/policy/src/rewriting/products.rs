//! Sums of products and quotients, some factors of which do not depend on all loops of the sum.

use tensorwright_lang::ops::{ArithOp, ReductionOp};
use tensorwright_lang::program::Expr;

use tensorwright_schedule::Draft;
use tensorwright_schedule::access::{Accesses, Axis};
use tensorwright_schedule::nest::{Loop, LoopNest, Node, Role, Store, for_each_store};
use tensorwright_schedule::placement::store_of;
use tensorwright_schedule::primitives::{Factor, loops_of, stages};

/// Factoring pays if it leaves at most this share of the operations: what is saved must make up for
/// a tensor that is written and read.
const WORTH: f64 = 0.75;

/// How many multiplications take as long as a division.
const DIVISION: usize = 4;

/// The most bytes of partial sums.
const MOST_BYTES: i64 = 256 << 20;

/// The most loops of a sum of which all subsets are looked at.
const MOST_LOOPS: usize = 6;

/// The drafts in which sums are factored with a clear gain: fewest operations first, then those whose
/// inner sums read whole vectors, then the smallest partial sums.
pub(super) fn factorings(draft: &Draft) -> Vec<Draft> {
    let mut best = draft.clone();
    let mut others: Vec<Draft> = Vec::new();
    for stage in sums_of_products(&draft.nest) {
        let mut choices = choices(&best, &stage).into_iter();
        let Some(first) = choices.next() else { continue };
        // Alternatives for one stage are alternatives only while the others are as they were.
        others.extend(choices);
        best = first;
    }
    if best.schedule.steps.len() == draft.schedule.steps.len() {
        return Vec::new();
    }
    std::iter::once(best).chain(others).collect()
}

/// The names of the sums in which a factor does not depend on some loop of the reduction.
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

/// The ways of factoring one stage that pay, best first.
fn choices(draft: &Draft, stage: &str) -> Vec<Draft> {
    let terms: Vec<&Loop> =
        loops_of(&draft.nest, stage).into_iter().filter(|l| l.role == Role::Reduce).collect();
    let Some(store) = store_of(&draft.nest, stage) else { return Vec::new() };
    let independent = |l: &&&Loop| !all_factors_mention(&store.value, l);
    if terms.len() > MOST_LOOPS || terms.iter().filter(independent).count() == 0 {
        return Vec::new();
    }
    let names: Vec<String> = terms.iter().map(|l| draft.nest.var_name(l.var).to_owned()).collect();
    let before = work(&draft.nest.body);
    let mut found: Vec<(f64, bool, i64, Draft)> = Vec::new();
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
            // To a hundredth: the sum outside is small beside the one inside.
            let share = (100.0 * after / before).round();
            found.push((share, !has_rows(&factored.nest), bytes, factored));
        }
    }
    found.sort_by(|a, b| a.0.total_cmp(&b.0).then((a.1, a.2).cmp(&(b.1, b.2))));
    found.into_iter().map(|(.., draft)| draft).collect()
}

/// Whether the partial sums that were made last have a loop along which all reads are contiguous or
/// constant, so that vectors need no rearranging.
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

/// The multiplications of a nest, one of them together with an addition, and what divisions are worth in them.
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
