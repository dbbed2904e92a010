//! Recorded landscapes: outcomes of a space's points for replaying searches.
//!
//! A landscape has every legal point of a space, or a sample, measured once. A search on a
//! [`Landscape`] receives recorded outcomes instead of new measurements, so that comparing searches
//! takes seconds, gives the same answer everywhere, and can be repeated by anyone. A landscape is
//! self-contained: its file has the parameters with all their values.
//!
//! ```
//! use tensorwright_landscape::{Comparison, Landscape, Provenance, Experiment};
//! use tensorwright_outcome::{Outcome, Timing};
//! use tensorwright_space::{Parameter, SearchSpace, parameter::Discrete};
//!
//! let space = SearchSpace::new(vec![Parameter::new("tile", Discrete::new(1..100))]);
//! let measured = |rank: u32| Timing { seconds: 1.0 + f64::from(rank.abs_diff(60)), ..Timing::default() };
//! let outcomes = space.points().map(|p| { let t = measured(p.rank(0)); (p, Outcome::Measured(t)) });
//! let landscape = Landscape::new(Provenance::default(), space.parameters().to_vec(), outcomes)?;
//! let again = Landscape::decode(&landscape.encode()?)?;
//!
//! let strategies = [tensorwright_search::find("descent").ok_or("no such strategy")?];
//! let experiment = Experiment { seeds: 5, trials: 50, ..Experiment::default() };
//! let comparison = Comparison::run(&again, &strategies, &experiment, &|| 0.0, &|_, _| ());
//! println!("{comparison}");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The crate reads no files and no clock: bytes and a clock are passed in.

mod cell;
mod comparison;
mod error;
mod file;
mod landscape;
mod quartiles;
mod replay;
mod table;
#[cfg(test)]
mod tests;

pub use comparison::{After, Comparison, Experiment, Reach, Row};
pub use error::LandscapeError;
pub use landscape::{Landscape, Provenance};
pub use quartiles::Quartiles;
pub use replay::{Replay, Trace, Trial, replay};
