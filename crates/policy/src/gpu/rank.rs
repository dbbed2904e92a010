//! Ranking of the most promising tilings of a group.

use tensorwright_machine::{Goal, Gpu};

use super::cost::cycles;
use super::group::Group;
use super::knobs;
use super::knobs::unroll::MOST_WINDOW;
use super::tiling::Tiling;

/// Candidate threads along the loop of adjacent threads.
const THREADS_X: [i64; 6] = [256, 128, 64, 32, 16, 8];

/// Candidate threads along another loop.
const THREADS_Y: [i64; 5] = [1, 4, 8, 16, 32];

/// Candidate results per thread along a loop: virtual threads, and adjacent results.
const RESULTS: [(i64, i64); 7] = [(1, 1), (2, 1), (4, 1), (1, 4), (1, 8), (2, 4), (8, 1)];

/// Candidate terms per step.
const STEPS: [i64; 4] = [8, 16, 32, 128];

/// Candidate threads per cooperative reduction.
const SHARERS: [i64; 3] = [32, 128, 256];

/// The best tilings of a group by the cost model, best first.
pub(crate) fn ranked(group: &Group, goal: &Goal<Gpu>, count: usize) -> Vec<Tiling> {
    let mut found: Vec<(f64, Tiling)> = Vec::new();
    let mut consider = |tiling: Tiling| {
        let tiling = tiling.settle(group);
        if knobs::refusal(group, &tiling, goal).is_none() {
            found.push((cycles(group, &tiling, goal), tiling));
        }
    };
    candidates(group, &mut consider);
    found.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut best: Vec<Tiling> = Vec::new();
    for (_, tiling) in found {
        if best.len() >= count {
            break;
        }
        if !best.contains(&tiling) {
            best.push(tiling);
        }
    }
    if best.is_empty() {
        best.push(Tiling::plain(group));
    }
    best
}

fn candidates(group: &Group, consider: &mut dyn FnMut(Tiling)) {
    let plain = Tiling::plain(group);
    let y = row_axis(group);
    // Caches serve what neighbours read in stages without reduction.
    let staging = if group.staged.is_empty() || !group.is_reduction() { 1 } else { 2 };
    for threads_x in THREADS_X {
        for threads_y in THREADS_Y {
            if y.is_none() && threads_y > 1 {
                continue;
            }
            let results = RESULTS
                .into_iter()
                .filter(|result| group.is_reduction() || result.0 * result.1 <= 4);
            for (apart_x, inner_x) in results.clone() {
                for (apart_y, inner_y) in results.clone() {
                    if y.is_none() && apart_y * inner_y > 1 {
                        continue;
                    }
                    let mut tiling = plain.clone();
                    let x = tiling.x;
                    tiling.spatial[x] = group.spatial[x].nearest(&[apart_x, threads_x, inner_x]);
                    if let Some(y) = y {
                        tiling.spatial[y] =
                            group.spatial[y].nearest(&[apart_y, threads_y, inner_y]);
                    }
                    for is_staged in 0..staging {
                        steps(group, &tiling, is_staged == 1, consider);
                    }
                }
            }
        }
    }
    shared_sums(group, &plain, y, consider);
    consider(plain);
}

/// Considers steps of the reduction loops, where operands are staged.
fn steps(group: &Group, tiling: &Tiling, is_staged: bool, consider: &mut dyn FnMut(Tiling)) {
    let mut tiling = tiling.clone();
    tiling.staged.fill(is_staged);
    let Some(last) = group.reduce.len().checked_sub(1) else {
        consider(tiling);
        return;
    };
    if !is_staged {
        let terms = group.reduce[last].extent();
        tiling.unroll = if terms <= MOST_WINDOW { terms } else { 2 };
        consider(tiling);
        return;
    }
    for step in STEPS {
        let mut tiling = tiling.clone();
        let mut left = step;
        for (axis, split) in group.reduce.iter().enumerate().rev() {
            if split.is_tiled() {
                tiling.reduce[axis] = split.nearest(&[left.max(1)]);
            }
            left /= tiling.step(axis).max(1);
        }
        tiling.unroll = 8.min(tiling.step(last).max(1));
        consider(tiling);
    }
}

/// Considers cooperative reduction.
fn shared_sums(group: &Group, plain: &Tiling, y: Option<usize>, consider: &mut dyn FnMut(Tiling)) {
    let Some(shared) = group.shared_sum.filter(|_| group.epilogue_of.is_none()) else { return };
    for sharers in SHARERS {
        for rows in [1, 4, 8] {
            let mut tiling = Tiling { sharers, ..plain.clone() };
            let axis = if group.spatial[tiling.x].extent() >= rows { Some(tiling.x) } else { y };
            if let Some(axis) = axis {
                tiling.spatial[axis] = group.spatial[axis].nearest(&[1, rows, 1]);
            }
            if group.reduce[shared].extent() >= sharers {
                consider(tiling);
            }
        }
    }
}

/// The second tiled loop besides that of adjacent threads: the longest one with operand reuse.
fn row_axis(group: &Group) -> Option<usize> {
    let others = (0..group.spatial.len()).filter(|axis| *axis != group.contiguous);
    let tiled = others.filter(|axis| group.spatial[*axis].is_tiled());
    let reused = |axis: usize| group.reads.iter().any(|read| read.spatial[axis] == Some(0));
    tiled.max_by_key(|axis| (reused(*axis), group.spatial[*axis].extent()))
}
