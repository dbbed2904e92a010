//! [`Cell`]: a compact encoding of an outcome.

use tensorwright_outcome::{Outcome, Phase, Timing};

/// Mantissa bits of times: one part in 8192, far below measurement noise.
const MANTISSA: u32 = 13;

/// The most distinct reasons; the others share one text.
const MOST_REASONS: usize = 254;

/// The text of the other reasons.
const OTHER: &str = "(another reason)";

/// An outcome in a few bytes: what a search learns from, and a readable reason.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Cell {
    /// The index of the kind in [`Outcome::KINDS`].
    pub(crate) kind: u8,
    /// The seconds of a measured point, rounded; 0 for others.
    pub(crate) seconds: f32,
    /// For a measured point its spread in units of 0.5 %; for others the number of the reason.
    pub(crate) detail: u8,
}

/// The reasons that cells refer to.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Reasons(pub(crate) Vec<String>);

impl Cell {
    /// The seconds of a measured point.
    pub(crate) fn measured(self) -> Option<f64> {
        (self.kind == 0).then_some(f64::from(self.seconds))
    }

    /// Whether the fields are consistent; those of a file may not be.
    pub(crate) fn is_sound(self, reasons: &Reasons) -> bool {
        match self.kind {
            0 => self.seconds.is_finite() && self.seconds > 0.0,
            kind => {
                usize::from(kind) < Outcome::KINDS.len()
                    && self.seconds == 0.0
                    && (self.detail == 0 || usize::from(self.detail) <= reasons.0.len())
            }
        }
    }

    /// Decodes the outcome.
    pub(crate) fn outcome(self, reasons: &Reasons) -> Outcome {
        let number = usize::from(self.detail).checked_sub(1);
        let reason = number.and_then(|n| reasons.0.get(n)).cloned().unwrap_or_default();
        match self.kind {
            0 => Outcome::Measured(Timing {
                seconds: f64::from(self.seconds),
                raw_seconds: f64::from(self.seconds),
                spread: f64::from(self.detail) / 200.0,
                runs: 1,
                ..Timing::default()
            }),
            1 => Outcome::Illegal { rule: "recorded".to_owned(), reason },
            2 => Outcome::BuildFailed { reason },
            3 => Outcome::WrongResult { reason },
            4 => Outcome::Crashed { reason, stderr: String::new() },
            5 => Outcome::TimedOut { phase: Phase::Time, limit: 0.0 },
            _ => Outcome::DeviceLost,
        }
    }
}

impl Reasons {
    /// Encodes an outcome. A time that is not a positive number becomes a wrong result.
    pub(crate) fn cell(&mut self, outcome: &Outcome) -> Cell {
        let kind = outcome.kind_index() as u8;
        match outcome.timing() {
            Some(timing) => {
                let seconds = rounded(timing.seconds as f32);
                if !(seconds.is_finite() && seconds > 0.0) {
                    let detail = self.number("the time is not a positive number");
                    return Cell { kind: 3, seconds: 0.0, detail };
                }
                let detail = (timing.spread * 200.0).round().clamp(0.0, 255.0) as u8;
                Cell { kind, seconds, detail }
            }
            None => {
                let reason = outcome.reason().unwrap_or_default();
                let line = reason.lines().next().unwrap_or_default();
                Cell { kind, seconds: 0.0, detail: self.number(line) }
            }
        }
    }

    /// The number of a reason, from 1.
    fn number(&mut self, reason: &str) -> u8 {
        let short: String = reason.chars().take(200).collect();
        let known = self.0.iter().position(|other| *other == short);
        let place = known.unwrap_or_else(|| {
            if self.0.len() < MOST_REASONS {
                self.0.push(short);
            } else if self.0.len() == MOST_REASONS {
                self.0.push(OTHER.to_owned());
            }
            self.0.len() - 1
        });
        place as u8 + 1
    }
}

/// Rounds a number to fewer bits, so that it compresses.
fn rounded(x: f32) -> f32 {
    let dropped = f32::MANTISSA_DIGITS - 1 - MANTISSA;
    let half = 1u32 << (dropped - 1);
    f32::from_bits((x.to_bits().saturating_add(half)) & !((1 << dropped) - 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outcomes_survive_in_what_matters() {
        let mut reasons = Reasons::default();
        let timing = Timing { seconds: 0.001_234_567, spread: 0.03, ..Timing::default() };
        let cell = reasons.cell(&Outcome::Measured(timing));
        let back = cell.outcome(&reasons);
        assert!((back.cost().unwrap_or(0.0) / 0.001_234_567 - 1.0).abs() < 1e-4);
        assert_eq!(back.timing().map(|t| t.spread), Some(0.03));
        let failed = Outcome::BuildFailed { reason: "no registers\nsecond line".into() };
        let cell = reasons.cell(&failed);
        assert_eq!(cell.outcome(&reasons), Outcome::BuildFailed { reason: "no registers".into() });
        for odd in [f64::NAN, f64::INFINITY, 0.0, -1.0, 1e-300, 1e300] {
            let odd = Outcome::Measured(Timing { seconds: odd, ..Timing::default() });
            let cell = reasons.cell(&odd);
            assert_eq!(cell.kind, 3);
            assert!(cell.is_sound(&reasons));
        }
        for number in 0..1000 {
            let cell = reasons.cell(&Outcome::WrongResult { reason: format!("{number}") });
            assert!(cell.is_sound(&reasons));
        }
        assert_eq!(reasons.0.last().map(String::as_str), Some(OTHER));
    }
}
