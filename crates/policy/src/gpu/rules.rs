//! Rule-based schedules, for stages without tilings and for search-free compilation.

use tensorwright_machine::{Goal, Gpu};
use tensorwright_schedule::ScheduleState;
use tensorwright_schedule::access::Accesses;
use tensorwright_schedule::nest::{Dim, Role};
use tensorwright_schedule::primitives::{Bind, Split, ThreadAxis};

use super::group::Group;
use super::lowering::lowers;
use super::rows::{self, Chain};
use super::sketch::GpuSketch;
use super::{cost, decode, rank, tensor};
use crate::stages::only::only;
use crate::stages::steps::{self, fuse_first};

/// The threads per block of stages without tilings.
const THREADS: i64 = 64;

/// The number of tilings of a group to try before falling back to rules.
const TRIES: usize = 6;

/// Schedules all stages of a draft. Refused steps are skipped, so the result always applies.
pub(crate) fn complete(begun: ScheduleState, goal: &Goal<Gpu>) -> ScheduleState {
    let sketch = GpuSketch::of(begun.clone(), goal, &crate::SpaceOptions::default());
    let mut draft = sketch.prepared.clone();
    let mut in_rows: Vec<&Chain> = Vec::new();
    for chain in &sketch.chains {
        let Some((threads, _)) = rows::best(chain, goal) else { continue };
        let mut trial = draft.clone();
        if rows::launch(&mut trial, chain, threads).is_ok() && lowers(&trial.nest, &goal.target) {
            draft = trial;
            in_rows.push(chain);
        }
    }
    let is_apart = |group: &Group| !in_rows.iter().any(|chain| chain.of.has(group.stage()));
    let mut on_tensors: Vec<usize> = Vec::new();
    for product in &sketch.products {
        let Some(group) = sketch.groups.get(product.group).filter(|group| is_apart(group)) else {
            continue;
        };
        let Some((shape, cycles)) = tensor::best(product, group, goal) else { continue };
        let best = rank::ranked(group, goal, 1);
        let is_faster = best.first().is_none_or(|best| cycles < cost::cycles(group, best, goal));
        let mut trial = draft.clone();
        if is_faster
            && decode::tensor(&mut trial, group, product, &shape).is_ok()
            && lowers(&trial.nest, &goal.target)
        {
            draft = trial;
            on_tensors.push(product.group);
        }
    }
    let groups = sketch.groups.iter().enumerate();
    let left = groups.filter(|(place, group)| is_apart(group) && !on_tensors.contains(place));
    finish(&mut draft, left.map(|(_, group)| group), goal);
    sketch.fixed.iter().for_each(|stage| lines(&mut draft, stage));
    if lowers(&draft.nest, &goal.target) { draft } else { begun }
}

/// Schedules groups by the model, each as well as possible.
pub(crate) fn finish<'a>(
    draft: &mut ScheduleState,
    groups: impl Iterator<Item = &'a Group>,
    goal: &Goal<Gpu>,
) {
    let groups: Vec<&Group> = groups.collect();
    let begun = draft.clone();
    let schedule = |draft: &mut ScheduleState, lowers: &dyn Fn(&ScheduleState, &Group) -> bool| {
        groups.iter().for_each(|group| tile(draft, group, goal, lowers));
    };
    schedule(draft, &|trial, group| lowers(&only(&trial.nest, group.stages()), &goal.target));
    // All of them together may be too much code.
    if !lowers(&draft.nest, &goal.target) {
        *draft = begun;
        schedule(draft, &|trial, _| lowers(&trial.nest, &goal.target));
    }
}

/// Schedules a group by the best of its tilings that can be lowered, or else by lines.
fn tile(
    draft: &mut ScheduleState,
    group: &Group,
    goal: &Goal<Gpu>,
    lowers: &dyn Fn(&ScheduleState, &Group) -> bool,
) {
    for tiling in rank::ranked(group, goal, TRIES) {
        let mut trial = draft.clone();
        if decode::launch(&mut trial, group, &tiling).is_ok() && lowers(&trial, group) {
            *draft = trial;
            return;
        }
    }
    group.stages().for_each(|stage| lines(draft, stage));
}

/// Gives every independent line of a stage a thread.
pub(crate) fn lines(draft: &mut ScheduleState, stage: &str) {
    let Some(accesses) = Accesses::of(&draft.nest, stage) else { return };
    let of = |role| accesses.of_role(role).map(|axis| axis.name.clone());
    let (results, lines): (Vec<String>, Vec<String>) =
        (of(Role::Spatial).collect(), of(Role::Scan).chain(of(Role::Reduce)).collect());
    // Retries with fewer loops if some cannot be bound.
    for first in 0..results.len() {
        let bound = &results[first..];
        let rest = results[..first].iter().chain(&lines);
        let order: Vec<String> = bound.iter().chain(rest).cloned().collect();
        let all = draft
            .steps(|draft| steps::order(draft, stage, order) && in_threads(draft, stage, bound));
        if all {
            return;
        }
    }
}

/// Fuses loops, and binds every iteration to a thread.
fn in_threads(draft: &mut ScheduleState, stage: &str, loops: &[String]) -> bool {
    let mut loops = loops.to_vec();
    while loops.len() > 1 {
        if fuse_first(draft, stage, &mut loops).is_err() {
            return false;
        }
    }
    let Some(fused) = loops.pop() else { return false };
    let (blocks, threads) = (format!("{fused}.0"), format!("{fused}.1"));
    draft.step(stage, Split::new(&fused, &[THREADS]))
        && draft.step(stage, Bind { target: blocks, to: ThreadAxis::Block(Dim::X) })
        && draft.step(stage, Bind { target: threads, to: ThreadAxis::Thread(Dim::X) })
}
