//! [`Seconds`]: a time in a readable unit.

use std::fmt;

/// A time in a suitable unit, with the format's number of digits after the point (by default
/// three).
///
/// ```
/// use tensorwright_outcome::Seconds;
///
/// assert_eq!(Seconds(0.0021).to_string(), "2.100 ms");
/// assert_eq!(format!("{:.1}", Seconds(3.25e-7)), "325.0 ns");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd)]
pub struct Seconds(pub f64);

impl fmt::Display for Seconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (value, unit) = match self.0 {
            s if s >= 1.0 => (s, "s"),
            s if s >= 1e-3 => (s * 1e3, "ms"),
            s if s >= 1e-6 => (s * 1e6, "us"),
            s => (s * 1e9, "ns"),
        };
        write!(f, "{value:.*} {unit}", f.precision().unwrap_or(3))
    }
}
