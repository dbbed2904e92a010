//! [`Timing`]: how long a candidate took.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::Seconds;

/// How long a candidate took.
///
/// The machine may be busy with other work. `raw_seconds` is what the clock said, `seconds` is the
/// time corrected by a probe that ran in turns with the candidate: what the clock would have said had
/// the probe run at its best speed. Candidates are ranked by `seconds`.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Timing {
    /// The median time of a call, corrected by the probe.
    pub seconds: f64,
    /// The median time of a call as the clock saw it.
    #[serde(default)]
    pub raw_seconds: f64,
    /// The distance between the quartiles in units of the median.
    #[serde(default)]
    pub spread: f64,
    /// How many calls were timed.
    #[serde(default)]
    pub runs: u32,
    /// The share of the machine's roofline that the median reaches, if that is known.
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
