//! Optimisers: [`AdaDelta`] and [`Adam`].

/// A gradient-descent optimiser.
pub trait Optimiser {
    /// Moves the parameters against the gradient. An optimiser belongs to one set of parameters.
    fn step(&mut self, parameters: &mut [f32], gradient: &[f32]);
}

/// AdaDelta (Zeiler, "ADADELTA: an adaptive learning rate method", 2012), algorithm 1: steps are as
/// large as recent steps, relative to recent gradients. It needs no learning rate.
#[derive(Debug, Clone)]
pub struct AdaDelta {
    /// The decay rate of the averages: the paper's 0.95.
    pub rho: f32,
    /// Makes the first step nonzero: the paper's 1e-6.
    pub epsilon: f32,
    /// A factor on every step; 1 in the paper.
    pub rate: f32,
    gradients: Vec<f32>,
    steps: Vec<f32>,
}

impl Default for AdaDelta {
    fn default() -> Self {
        Self { rho: 0.95, epsilon: 1e-6, rate: 1.0, gradients: Vec::new(), steps: Vec::new() }
    }
}

impl Optimiser for AdaDelta {
    fn step(&mut self, parameters: &mut [f32], gradient: &[f32]) {
        self.gradients.resize(parameters.len(), 0.0);
        self.steps.resize(parameters.len(), 0.0);
        let (rho, epsilon, rate) = (self.rho, self.epsilon, self.rate);
        let averages = self.gradients.iter_mut().zip(&mut self.steps);
        for ((parameter, slope), (gradients, steps)) in
            parameters.iter_mut().zip(gradient).zip(averages)
        {
            *gradients = rho * *gradients + (1.0 - rho) * slope * slope;
            let step = ((*steps + epsilon) / (*gradients + epsilon)).sqrt() * slope;
            *steps = rho * *steps + (1.0 - rho) * step * step;
            *parameter -= rate * step;
        }
    }
}

/// Adam (Kingma and Ba, 2015), algorithm 1, with the paper's parameters.
#[derive(Debug, Clone)]
pub struct Adam {
    /// The learning rate.
    pub rate: f32,
    /// The decay rate of the average gradient.
    pub beta1: f32,
    /// The decay rate of the average squared gradient.
    pub beta2: f32,
    /// Avoids divisions by zero.
    pub epsilon: f32,
    first: Vec<f32>,
    second: Vec<f32>,
    /// `beta1` and `beta2` to the power of the number of steps.
    powers: (f32, f32),
}

impl Default for Adam {
    fn default() -> Self {
        let (first, second) = (Vec::new(), Vec::new());
        let (rate, beta1, beta2, epsilon) = (1e-3, 0.9, 0.999, 1e-8);
        Self { rate, beta1, beta2, epsilon, first, second, powers: (1.0, 1.0) }
    }
}

impl Adam {
    /// Adam with another learning rate.
    #[must_use]
    pub fn with_rate(rate: f32) -> Self {
        Self { rate, ..Self::default() }
    }
}

impl Optimiser for Adam {
    fn step(&mut self, parameters: &mut [f32], gradient: &[f32]) {
        self.first.resize(parameters.len(), 0.0);
        self.second.resize(parameters.len(), 0.0);
        self.powers = (self.powers.0 * self.beta1, self.powers.1 * self.beta2);
        let (beta1, beta2, epsilon) = (self.beta1, self.beta2, self.epsilon);
        let rate = self.rate * (1.0 - self.powers.1).sqrt() / (1.0 - self.powers.0);
        let moments = self.first.iter_mut().zip(&mut self.second);
        for ((parameter, slope), (first, second)) in
            parameters.iter_mut().zip(gradient).zip(moments)
        {
            *first = beta1 * *first + (1.0 - beta1) * slope;
            *second = beta2 * *second + (1.0 - beta2) * slope * slope;
            *parameter -= rate * *first / (second.sqrt() + epsilon);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Zeiler's algorithm 1 by hand: the first step is `sqrt(epsilon / (0.05 g^2 + epsilon)) g`.
    #[test]
    fn the_first_steps_are_those_of_the_papers() {
        let mut parameters = [1.0];
        AdaDelta::default().step(&mut parameters, &[2.0]);
        let expected = (1e-6_f32 / (0.05 * 4.0 + 1e-6)).sqrt() * 2.0;
        assert!((1.0 - parameters[0] - expected).abs() < 1e-7);

        // Adam's first step is the rate, whatever the gradient.
        let mut parameters = [1.0, 1.0];
        Adam::with_rate(0.01).step(&mut parameters, &[2.0, -0.003]);
        assert!((parameters[0] - 0.99).abs() < 1e-5);
        assert!((parameters[1] - 1.01).abs() < 1e-5);
    }
}
