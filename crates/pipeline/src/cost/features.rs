//! [`Features`]: the features of a stage that prices may depend on.
//!
//! Features of the algorithm and of the schedule are concatenated (section 5.1); those with a wide
//! range are logarithms (section 5.2). Of the features of Adams et al. 2019, those remain that
//! distinguish states of this search on a CPU: points, productions, realizations, bytes and lines,
//! working sets, bodies of inner loops.

use crate::dag::Stage;
use crate::state::{Load, Member};

use super::{Amounts, Kind, Machine};

/// The names of the features before the logarithms of amounts.
const NAMES: [&str; 20] = [
    "one",
    "operations",
    "reads",
    "gathered",
    "terms",
    "element-bytes",
    "sources",
    "row",
    "rows",
    "executions",
    "body-vectors",
    "rest-of-body",
    "held-first-level",
    "held-second-level",
    "points",
    "recomputed",
    "members",
    "is-root",
    "workers",
    "level",
];

/// The number of features.
pub(super) const COUNT: usize = NAMES.len() + Kind::ALL.len();

/// The features of a stage.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Features([f32; COUNT]);

/// A stage of a state in context.
pub(super) struct StageContext<'a> {
    pub(super) member: &'a Member,
    pub(super) loads: &'a [Load],
    pub(super) operations: f64,
    /// The bytes of all intermediates in its loop.
    pub(super) held: f64,
    /// The number of stages of its group.
    pub(super) members: usize,
}

impl Features {
    /// The names, in order.
    #[must_use]
    pub fn names() -> Vec<&'static str> {
        NAMES.into_iter().chain(Kind::ALL.iter().map(|kind| kind.name())).collect()
    }

    /// The values, in order.
    #[must_use]
    pub fn values(&self) -> &[f32] {
        &self.0
    }

    pub(super) fn of(
        stage: &Stage,
        seen: &StageContext<'_>,
        machine: &Machine,
        parallel: f64,
        amounts: &Amounts,
    ) -> Self {
        let StageContext { member, loads, operations, held, members } = seen;
        let (row, rows) = match member.region.split_last() {
            Some((last, others)) => {
                (*last as f64, others.iter().map(|extent| *extent as f64).product())
            }
            None => (1.0, 1.0),
        };
        let lanes = (machine.vector_bytes / stage.element_bytes as f64).max(1.0);
        let body = member.tiling.as_ref().and_then(|tiling| tiling.tiles.last()?.last());
        let body = body.map_or(lanes, |extent| *extent as f64).max(1.0);
        let filled = row / ((row / body).ceil() * body).max(1.0);
        let own: [f64; NAMES.len()] = [
            1.0,
            log(*operations),
            log(loads.iter().map(|load| load.reads).sum()),
            log(loads.iter().map(|load| load.gathered).sum()),
            log(stage.terms()),
            stage.element_bytes as f64 / 8.0,
            log(loads.len() as f64),
            log(row),
            log(rows),
            log(member.executions),
            log(body / lanes),
            1.0 - filled,
            log(held / machine.l1),
            log(held / machine.l2),
            log(stage.points()),
            log(row * rows * member.executions / stage.points().max(1.0)),
            log(*members as f64),
            f64::from(u8::from(member.host.is_none())),
            log(parallel),
            member.host.map_or(0.0, |(_, level)| (level + 1) as f64 / 4.0),
        ];
        let mut values = [0.0; COUNT];
        let amounts = amounts.all().iter().map(|amount| log(*amount));
        let all = own.into_iter().chain(amounts);
        values.iter_mut().zip(all).for_each(|(value, of)| *value = of as f32);
        Self(values)
    }
}

/// The logarithm of `value + 1`, scaled so that 10^9 is about 1.
fn log(value: f64) -> f64 {
    libm::log2(1.0 + value.max(0.0)) / 16.0
}
