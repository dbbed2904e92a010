//! Synthetic landscapes: spaces with all kinds of parameters, and outcomes of points.

use std::sync::Arc;

use tensorwright_outcome::{Outcome, Phase, Timing};
use tensorwright_space::parameter::{Categorical, Discrete, Factorization, Permutation, Splits};
use tensorwright_space::{Domain, Parameter, Point, Rejection, Rules, SearchSpace};

/// A space that resembles that of a matrix product of this extent.
pub(crate) fn space(extent: u64) -> Arc<SearchSpace> {
    let tiles =
        |name, parts| Parameter::new(name, Factorization::new(extent, parts, Splits::Divisible));
    Arc::new(SearchSpace::with_rules(
        vec![
            tiles("tile.m", 4),
            tiles("tile.n", 4),
            tiles("tile.k", 2),
            Parameter::new("order", Permutation::new(["m", "n", "k", "o"])),
            Parameter::new("unroll", Discrete::new([1, 2, 4, 8, 16, 32])),
            Parameter::new("pack", Categorical::new(["none", "a", "b", "both"])),
        ],
        Arc::new(Registers),
    ))
}

/// A small space of 288 points with all kinds of parameters.
pub(crate) fn small_space() -> Arc<SearchSpace> {
    Arc::new(SearchSpace::new(vec![
        Parameter::new("tile", Factorization::new(12, 2, Splits::Divisible)),
        Parameter::new("order", Permutation::new(["a", "b", "c"])),
        Parameter::new("unroll", Discrete::new([1, 2, 4, 8])),
        Parameter::new("pack", Categorical::new(["none", "some"])),
    ]))
}

/// Rejects too large innermost tiles.
#[derive(Debug)]
struct Registers;

impl Rules for Registers {
    fn check(&self, parameters: &[Parameter], point: &Point) -> Result<(), Rejection> {
        let inner = |place: usize| match parameters[place].domain() {
            Domain::Factorization(splits) => splits.value(point.rank(place))[3],
            _ => 1,
        };
        if inner(0) * inner(1) > 512 {
            let reason = "the tile does not fit the registers".to_owned();
            return Err(Rejection { rule: "registers", reason });
        }
        Ok(())
    }
}

/// A synthetic time with its minimum (1 ms) at one point. It grows with the distance of each value
/// from that point's, and more if two parameters are off together.
pub(crate) fn seconds(space: &SearchSpace, point: &Point) -> f64 {
    let mut losses = Vec::new();
    for (place, parameter) in space.parameters().iter().enumerate() {
        let rank = point.rank(place);
        losses.push(match parameter.domain() {
            Domain::Factorization(splits) => {
                let wanted = [1.0, 2.0, 3.0, 1.5];
                let parts = splits.value(rank)[1..].iter().zip(wanted);
                parts.map(|(part, want)| ((*part as f64).log2() - want).powi(2)).sum::<f64>() / 12.0
            }
            Domain::Permutation(orders) => {
                let order = orders.order(rank);
                order.iter().enumerate().map(|(at, item)| at.abs_diff(*item)).sum::<usize>() as f64
                    / 8.0
            }
            Domain::Discrete(values) => ((values.value(rank) as f64).log2() - 2.0).abs() / 3.0,
            Domain::Categorical(_) => [0.4, 0.2, 0.0, 0.6][rank as usize % 4],
        });
    }
    let together: f64 = losses.windows(2).map(|pair| pair[0] * pair[1]).sum();
    1e-3 * (1.0 + losses.iter().sum::<f64>() + together)
}

/// The outcome of a point: mostly a time, sometimes a failure.
pub(crate) fn outcome(space: &SearchSpace, point: &Point) -> Outcome {
    let hash = point.ranks().iter().fold(17_u64, |hash, rank| {
        (hash ^ u64::from(*rank)).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29)
    });
    let (reason, stderr) = ("made up".to_owned(), String::new());
    let seconds = seconds(space, point);
    // The best points work, so that there is something to find.
    match hash % 40 {
        _ if seconds < 1.3e-3 => measured(seconds),
        0 => Outcome::Illegal { rule: "late".to_owned(), reason },
        1 => Outcome::BuildFailed { reason },
        2 => Outcome::WrongResult { reason },
        3 => Outcome::Crashed { reason, stderr },
        4 => Outcome::TimedOut { phase: Phase::Time, limit: 1.0 },
        5 => Outcome::DeviceLost,
        _ => measured(seconds),
    }
}

fn measured(seconds: f64) -> Outcome {
    Outcome::Measured(Timing { seconds, raw_seconds: seconds, runs: 3, ..Timing::default() })
}
