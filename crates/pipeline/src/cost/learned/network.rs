//! [`Network`]: maps features of stages to price factors.

use tensorwright_learn::{Mlp, Tape};

use super::super::Kind;
use super::super::features::COUNT;

/// The maximum price factor as a power of e.
const REACH: f32 = 2.0;

/// The cost of a stage: its amounts at scaled prices.
pub(super) fn cost(amounts: &[f64], prices: &[f64], factors: &[f32]) -> f64 {
    let terms = amounts.iter().zip(prices).zip(factors);
    terms.map(|((amount, price), by)| amount * price * f64::from(*by)).sum()
}

/// Maps features of stages to positive price factors.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Network(pub(super) Mlp);

impl Network {
    /// The layer sizes, for given hidden layers.
    pub(super) fn sizes(hidden: &[usize]) -> Vec<usize> {
        [COUNT].into_iter().chain(hidden.iter().copied()).chain([Kind::ALL.len()]).collect()
    }

    /// An untrained network: all factors are 1.
    pub(super) fn new(hidden: &[usize], seed: u64) -> Self {
        let mut mlp = Mlp::new(&Self::sizes(hidden), seed);
        let last = hidden.last().copied().unwrap_or(COUNT);
        let count = (last + 1) * Kind::ALL.len();
        mlp.parameters_mut().iter_mut().rev().take(count).for_each(|weight| *weight = 0.0);
        Self(mlp)
    }

    /// The price factors of stages, kind by kind.
    pub(crate) fn factors(&self, features: &[f32]) -> Vec<f32> {
        let mut tape = self.0.tape();
        self.forward(features, &mut tape)
    }

    /// The same, recording on the tape what [`Self::slopes`] needs.
    pub(super) fn forward(&self, features: &[f32], tape: &mut Tape) -> Vec<f32> {
        let factor = |output: &f32| libm::expf(REACH * libm::tanhf(*output));
        self.0.forward(features, tape).iter().map(factor).collect()
    }

    /// Converts derivatives by logarithms of factors to derivatives by network outputs.
    pub(super) fn slopes(factor: f32, slope: f32) -> f32 {
        let tanh = libm::logf(factor) / REACH;
        slope * REACH * (1.0 - tanh * tanh)
    }
}
