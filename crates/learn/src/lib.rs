//! The two kinds of models that searches learn with: small networks and boosted trees.
//!
//! Both are small on purpose. A search trains them between measurements of some hundred
//! milliseconds, on hundreds of rows, so what counts is that a step costs microseconds and that the
//! same seed gives the same model. Everything here is plain arithmetic in a fixed order, without
//! fused operations, threads or the system's mathematical library: **the same bits on every
//! machine**, which is what makes a search that was replayed on a recorded landscape replayable by
//! anybody.
//!
//! [`Mlp`] learns a function by following gradients:
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
//! [`Boosted`] learns it by adding up trees:
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
