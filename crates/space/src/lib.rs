//! Spaces of schedules.
//!
//! Two layers. The lower one knows nothing of tensors: a [`SearchSpace`] is a product of
//! [`Parameter`]s, each a finite set with the topology of OpEvo section 3 and the directions of
//! FlexTensor section 5.1; it knows its exact size, samples uniformly, and walks. All searches work
//! on it, so they work on every program, and on recorded landscapes.
//!
//! The upper one, [`ScheduleSpace`], is generated from a program and a target without a template
//! per operator, decodes a [`Point`] to a schedule, and says why a point is illegal.

mod cost;
mod decode;
mod features;
mod generate;
mod group;
mod limits;
mod options;
pub mod parameter;
mod point;
mod rank;
mod rng;
mod rules;
mod schedule_space;
mod search_space;
mod start;
mod tiling;
mod untuned;

pub use options::{Options, Preset};
pub use parameter::{Domain, Parameter};
pub use point::Point;
pub use rng::Rng;
pub use rules::{Anything, Rejection, Rules};
pub use schedule_space::{Count, Pruning, ScheduleSpace};
pub use search_space::SearchSpace;
pub use untuned::{Untuned, untuned_schedule};
