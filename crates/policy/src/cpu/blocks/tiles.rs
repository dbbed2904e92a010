//! Blocks of stencils in register tiles of several rows.

use tensorwright_lang::ops::ArithOp;
use tensorwright_lang::program::Expr;
use tensorwright_machine::{Cpu, Goal};
use tensorwright_plan::levels::cpu::PANEL;
use tensorwright_plan::{Placement, StageId};
use tensorwright_schedule::ScheduleState;
use tensorwright_schedule::placement::store_of;

use super::steps::compute;
use super::{Block, Shape};
use crate::cpu::rows::{Chain, RowTiling};

/// The candidate heights of a tile in rows.
pub(super) const ROWS: [i64; 3] = [8, 16, 4];

/// The maximum recomputation factor of a cheap stage for tiles to be the first choice.
const OVERLAP: f64 = 1.5;

/// Whether a tile recomputes little, or only cheap stages; `None` if no stage can be computed in it.
pub(super) fn pay(
    draft: &ScheduleState,
    block: &Block,
    shape: Shape,
    chains: &[Chain],
    goal: &Goal<Cpu>,
) -> Option<bool> {
    let mut trial = draft.clone();
    let apart = |_: &Chain| RowTiling::apart();
    let (stages, plan) = compute(&mut trial, block, shape, (chains, &apart), goal).ok()?;
    let (root, _) = stages.named(&block.root)?;
    let size = |level| {
        let tiling = &plan.get(root)?.tiling;
        Some(tiling.loops[tiling.last_of(level)?].size)
    };
    let tile = shape.tile * size(PANEL)?;
    let is_inside = |placement: Placement| {
        placement.host().is_some_and(|host| host.stage == root && host.level == PANEL)
    };
    let inside = plan.iter().filter(|(_, own)| is_inside(own.placement));
    let inside: Vec<StageId> = inside.map(|(stage, _)| stage).collect();
    let pays = |stage: &StageId| {
        let Some(store) = store_of(&trial.nest, stages.name(*stage)) else { return false };
        let times = trial.nest.buffer(store.buffer).elements() as f64 / tile as f64;
        times <= 1.0 || store.combine.is_none() && times <= OVERLAP && is_cheap(&store.value)
    };
    (!inside.is_empty()).then(|| inside.iter().all(pays))
}

/// Whether a value has no division, except by powers of two, and no function calls.
fn is_cheap(value: &Expr) -> bool {
    let mut cheap = true;
    value.walk(&mut |expr| {
        cheap &= match expr {
            Expr::Arith(ArithOp::Div, _, divisor) => is_power_of_two(divisor),
            Expr::Call(..) => false,
            _ => true,
        };
    });
    cheap
}

fn is_power_of_two(value: &Expr) -> bool {
    match value {
        Expr::Const(number) => number.as_f64().abs().log2().fract() == 0.0,
        Expr::Index(index, _) => index.as_constant().is_some_and(|n| n > 0 && n & (n - 1) == 0),
        _ => false,
    }
}
