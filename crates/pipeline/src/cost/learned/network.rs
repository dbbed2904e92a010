//! [`Network`]: from the features of stages to the factors of their prices.

use tensorwright_learn::{Mlp, Tape};

use super::super::Kind;
use super::super::features::COUNT;

/// Prices differ from those of the analytical model by at most this power of e.
const REACH: f32 = 2.0;

/// What a stage costs: its amounts at prices that differ by factors.
pub(super) fn cost(amounts: &[f64], prices: &[f64], factors: &[f32]) -> f64 {
    let terms = amounts.iter().zip(prices).zip(factors);
    terms.map(|((amount, price), by)| amount * price * f64::from(*by)).sum()
}

/// From the features of stages to the factors of their prices, which are positive.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Network(pub(super) Mlp);

impl Network {
    /// The sizes of the layers, of which those in the middle are given.
    pub(super) fn sizes(hidden: &[usize]) -> Vec<usize> {
        [COUNT].into_iter().chain(hidden.iter().copied()).chain([Kind::ALL.len()]).collect()
    }

    /// A network that has learned nothing: all factors are 1.
    pub(super) fn new(hidden: &[usize], seed: u64) -> Self {
        let mut mlp = Mlp::new(&Self::sizes(hidden), seed);
        let last = hidden.last().copied().unwrap_or(COUNT);
        let count = (last + 1) * Kind::ALL.len();
        mlp.parameters_mut().iter_mut().rev().take(count).for_each(|weight| *weight = 0.0);
        Self(mlp)
    }

    /// The factors of stages, kind by kind.
    pub(crate) fn factors(&self, features: &[f32]) -> Vec<f32> {
        let mut tape = self.0.tape();
        self.forward(features, &mut tape)
    }

    /// The same; what [`Self::slopes`] needs stays on the tape.
    pub(super) fn forward(&self, features: &[f32], tape: &mut Tape) -> Vec<f32> {
        let factor = |output: &f32| libm::expf(REACH * libm::tanhf(*output));
        self.0.forward(features, tape).iter().map(factor).collect()
    }

    /// From slopes with respect to logarithms of factors to slopes with respect to outputs of the network.
    pub(super) fn slopes(factor: f32, slope: f32) -> f32 {
        let tanh = libm::logf(factor) / REACH;
        slope * REACH * (1.0 - tanh * tanh)
    }
}
