//! [`Mlp`]: a fully connected network with ReLU between its layers.

use crate::matrix::{Matrix, Packs, multiply_add};
use crate::optimiser::Optimiser;
use tensorwright_random::SplitMix;

/// A fully connected network: ReLU between the layers, no activation after the last one.
#[derive(Debug, Clone, PartialEq)]
pub struct Mlp {
    layers: Vec<Layer>,
    /// Weights (input by input) and biases of the layers, in order: a single vector, so that
    /// optimisers, copies and gradients do not depend on the layers.
    parameters: Vec<f32>,
}

/// The location of a layer's parameters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Layer {
    inputs: usize,
    outputs: usize,
    start: usize,
}

impl Layer {
    fn weights(self, parameters: &[f32]) -> Matrix<'_> {
        let weights = &parameters[self.start..self.start + self.inputs * self.outputs];
        Matrix::new(weights, self.inputs, self.outputs)
    }

    fn biases(self, parameters: &[f32]) -> &[f32] {
        let start = self.start + self.inputs * self.outputs;
        &parameters[start..start + self.outputs]
    }

    fn split_mut(self, parameters: &mut [f32]) -> (&mut [f32], &mut [f32]) {
        let end = self.start + (self.inputs + 1) * self.outputs;
        parameters[self.start..end].split_at_mut(self.inputs * self.outputs)
    }
}

/// The record of a pass through a network: the activations, and the gradient after a backward pass.
/// It is reused, so training allocates nothing after the first step.
#[derive(Debug, Clone, Default)]
pub struct Tape {
    rows: usize,
    /// The input, then the output of each layer after its ReLU.
    activations: Vec<Vec<f32>>,
    gradient: Vec<f32>,
    /// The gradients at the output and the input of the current layer.
    slopes: (Vec<f32>, Vec<f32>),
    packs: Packs,
}

impl Tape {
    /// The gradient by the parameters, from [`Mlp::backward`].
    #[must_use]
    pub fn gradient(&self) -> &[f32] {
        &self.gradient
    }

    /// Clips the gradient to a maximum norm: an outlier must not destroy a trained network.
    pub fn clip(&mut self, longest: f32) {
        let length = self.gradient.iter().map(|slope| slope * slope).sum::<f32>().sqrt();
        if length > longest {
            let factor = longest / length;
            self.gradient.iter_mut().for_each(|slope| *slope *= factor);
        }
    }
}

impl Mlp {
    /// A network with the given layer sizes, the input first. Weights are uniform with the variance
    /// of He et al. (2015), biases are zero; the seed determines both.
    #[must_use]
    pub fn new(sizes: &[usize], seed: u64) -> Self {
        let mut random = SplitMix::new(seed);
        let mut layers = Vec::new();
        let mut parameters = Vec::new();
        for pair in sizes.windows(2) {
            let (inputs, outputs) = (pair[0], pair[1]);
            layers.push(Layer { inputs, outputs, start: parameters.len() });
            let bound = (6.0 / inputs.max(1) as f64).sqrt();
            let weights = inputs * outputs;
            parameters.extend((0..weights).map(|_| ((2.0 * random.unit() - 1.0) * bound) as f32));
            parameters.resize(parameters.len() + outputs, 0.0);
        }
        Self { layers, parameters }
    }

    /// A network with the given layer sizes and [parameters](Self::parameters); `None` if their
    /// number is wrong.
    ///
    /// ```
    /// use tensorwright_learn::Mlp;
    ///
    /// let network = Mlp::new(&[2, 3, 1], 7);
    /// let copy = Mlp::of(&[2, 3, 1], network.parameters().to_vec());
    /// assert_eq!(copy, Some(network));
    /// assert_eq!(Mlp::of(&[2, 3, 1], vec![0.0; 5]), None);
    /// ```
    #[must_use]
    pub fn of(sizes: &[usize], parameters: Vec<f32>) -> Option<Self> {
        let mut layers = Vec::new();
        let mut start = 0usize;
        for pair in sizes.windows(2) {
            let (inputs, outputs) = (pair[0], pair[1]);
            layers.push(Layer { inputs, outputs, start });
            start = start.checked_add(inputs.checked_add(1)?.checked_mul(outputs)?)?;
        }
        (start == parameters.len()).then_some(Self { layers, parameters })
    }

    /// The number of inputs of a row.
    #[must_use]
    pub fn inputs(&self) -> usize {
        self.layers.first().map_or(0, |layer| layer.inputs)
    }

    /// The number of outputs of a row.
    #[must_use]
    pub fn outputs(&self) -> usize {
        self.layers.last().map_or(0, |layer| layer.outputs)
    }

    /// The parameters: weights and biases of each layer.
    #[must_use]
    pub fn parameters(&self) -> &[f32] {
        &self.parameters
    }

    /// Mutable access to the parameters.
    pub fn parameters_mut(&mut self) -> &mut [f32] {
        &mut self.parameters
    }

    /// Copies another network, as target networks do periodically.
    pub fn copy_from(&mut self, other: &Self) {
        self.layers.clone_from(&other.layers);
        self.parameters.clone_from(&other.parameters);
    }

    /// A tape for passes through this network.
    #[must_use]
    pub fn tape(&self) -> Tape {
        Tape { activations: vec![Vec::new(); self.layers.len() + 1], ..Tape::default() }
    }

    /// The outputs for rows of inputs, row-major. Inputs of an incomplete last row are ignored.
    ///
    /// A row's output does not depend on the other rows, to the bit.
    pub fn forward<'tape>(&self, rows: &[f32], tape: &'tape mut Tape) -> &'tape [f32] {
        let count = rows.len() / self.inputs().max(1);
        tape.rows = count;
        tape.activations.resize(self.layers.len() + 1, Vec::new());
        tape.activations[0].clear();
        tape.activations[0].extend_from_slice(&rows[..count * self.inputs()]);
        for (place, layer) in self.layers.iter().enumerate() {
            let (before, after) = tape.activations.split_at_mut(place + 1);
            let (input, output) = (&before[place], &mut after[0]);
            output.clear();
            for _ in 0..count {
                output.extend_from_slice(layer.biases(&self.parameters));
            }
            let input = Matrix::new(input, count, layer.inputs);
            multiply_add(input, layer.weights(&self.parameters), output, &mut tape.packs);
            if place + 1 < self.layers.len() {
                output.iter_mut().for_each(|value| *value = value.max(0.0));
            }
        }
        &tape.activations[self.layers.len()]
    }

    /// Backpropagates a gradient by the outputs, of any loss, through the last forward pass; leaves
    /// the gradient by the parameters on the tape. Missing output gradients count as zero.
    pub fn backward(&self, output_gradient: &[f32], tape: &mut Tape) {
        let Tape { rows, activations, gradient, slopes: (slopes, below), packs } = tape;
        gradient.clear();
        gradient.resize(self.parameters.len(), 0.0);
        slopes.clear();
        slopes.extend(output_gradient.iter().take(*rows * self.outputs()));
        slopes.resize(*rows * self.outputs(), 0.0);
        for (place, layer) in self.layers.iter().enumerate().rev() {
            let input = &activations[place];
            let (weights, biases) = layer.split_mut(gradient);
            let outer = Matrix::new(slopes, *rows, layer.outputs);
            let turned = Matrix::new(input, *rows, layer.inputs).transposed();
            multiply_add(turned, outer, weights, packs);
            for row in slopes.chunks_exact(layer.outputs.max(1)) {
                biases.iter_mut().zip(row).for_each(|(bias, slope)| *bias += slope);
            }
            if place > 0 {
                below.clear();
                below.resize(*rows * layer.inputs, 0.0);
                let weights = layer.weights(&self.parameters).transposed();
                multiply_add(outer, weights, below, packs);
                // The ReLU of the layer below passes gradients where it passed a value.
                for (slope, value) in below.iter_mut().zip(input) {
                    *slope = if *value > 0.0 { *slope } else { 0.0 };
                }
                std::mem::swap(slopes, below);
            }
        }
    }

    /// Takes one optimiser step with the gradient from [`Mlp::backward`].
    pub fn descend(&mut self, tape: &Tape, optimiser: &mut impl Optimiser) {
        optimiser.step(&mut self.parameters, &tape.gradient);
    }
}

/// The mean squared error, and its gradient by the outputs.
pub fn squared_error(outputs: &[f32], targets: &[f32], gradient: &mut Vec<f32>) -> f32 {
    let scale = 1.0 / outputs.len().max(1) as f32;
    let differences = || outputs.iter().zip(targets).map(|(output, target)| output - target);
    gradient.clear();
    gradient.extend(differences().map(|difference| 2.0 * scale * difference));
    scale * differences().map(|difference| difference * difference).sum::<f32>()
}

/// Turns logits into probabilities, in place. The exponential function is implemented in this
/// workspace, so it has the same results everywhere.
pub fn softmax(logits: &mut [f32]) {
    let highest = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    logits.iter_mut().for_each(|value| *value = libm::expf(*value - highest));
    let total: f32 = logits.iter().sum();
    logits.iter_mut().for_each(|value| *value /= total);
}

#[cfg(test)]
mod tests;
