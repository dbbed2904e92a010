//! [`Timing`]: the measured time of a candidate.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::Seconds;

/// The measured time of a candidate.
///
/// The machine may be busy with other work. `raw_seconds` is the time by the clock; `seconds` is
/// corrected by a probe that alternated with the candidate: the time at the probe's best speed.
/// Candidates are ranked by `seconds`.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Timing {
    /// The median time of a call, corrected by the probe.
    pub seconds: f64,
    /// The median time of a call by the clock.
    #[serde(default)]
    pub raw_seconds: f64,
    /// The interquartile range relative to the median.
    #[serde(default)]
    pub spread: f64,
    /// The number of timed calls.
    #[serde(default)]
    pub runs: u32,
    /// The share of the roofline that the median reaches, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub roofline: Option<f64>,
    /// Whether timing ended early because the candidate was several times slower than the best.
    #[serde(default)]
    pub cut: bool,
}

impl fmt::Display for Timing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let runs = if self.runs == 1 { "run" } else { "runs" };
        let (time, spread) = (Seconds(self.seconds), self.spread * 100.0);
        write!(f, "{time} ±{spread:.0} % ({} {runs}", self.runs)?;
        f.write_str(if self.cut { ", cut short)" } else { ")" })
    }
}
