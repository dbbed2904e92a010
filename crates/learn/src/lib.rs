//! Small machine-learning models: neural networks and boosted trees.
//!
//! Searches train these models between measurements of some hundred milliseconds, on hundreds of
//! rows, so training steps must cost microseconds, and the same seed must give the same model. All
//! arithmetic has a fixed order, without fused operations, threads or the system's math library:
//! **the same bits on every machine**, so anybody can replay a search on a recorded landscape.
//!
//! [`Mlp`] learns a function by gradient descent:
//!
//! ```
//! use tensorwright_learn::{AdaDelta, Mlp, squared_error};
//!
//! let mut network = Mlp::new(&[2, 16, 16, 1], 7);
//! let mut optimiser = AdaDelta::default();
//! let mut tape = network.tape();
//! let rows = [0.0, 0.0, 0.0, 1.0, 1.0, 0.0, 1.0, 1.0];
//! let exclusive_or = [0.0, 1.0, 1.0, 0.0];
//! let mut gradient = Vec::new();
//! let mut loss = f32::INFINITY;
//! for _ in 0..3000 {
//!     let outputs = network.forward(&rows, &mut tape);
//!     loss = squared_error(outputs, &exclusive_or, &mut gradient);
//!     network.backward(&gradient, &mut tape);
//!     network.descend(&tape, &mut optimiser);
//! }
//! assert!(loss < 0.01);
//! ```
//!
//! [`Boosted`] learns a function by adding up trees:
//!
//! ```
//! use tensorwright_learn::{Boosted, Boosting};
//!
//! let rows: Vec<f32> = (0..200).map(|x| x as f32).collect();
//! let steps: Vec<f32> = rows.iter().map(|x| (x / 50.0).floor()).collect();
//! let model = Boosted::fit(&rows, 1, &steps, &Boosting::default(), 7);
//! assert!((model.predict(&[120.0])[0] - 2.0).abs() < 0.05);
//! ```

mod boosted;
mod matrix;
mod mlp;
mod optimiser;
#[cfg(test)]
mod tests;

pub use boosted::{Boosted, Boosting, Objective};
pub use mlp::{Mlp, Tape, softmax, squared_error};
pub use optimiser::{AdaDelta, Adam, Optimiser};
