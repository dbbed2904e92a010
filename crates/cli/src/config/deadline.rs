//! Parser for device deadlines.

use std::time::Duration;

use tensorwright_tuner::parse_duration;

/// The shortest deadline; no runtime compiles a kernel faster.
const LEAST: Duration = Duration::from_millis(100);

/// Parses `60s` or `10m`.
pub(super) fn parse_deadline(text: &str) -> Result<Duration, String> {
    let deadline = parse_duration(text.trim())?;
    match deadline >= LEAST {
        true => Ok(deadline),
        false => Err(format!("a deadline of `{text}` is shorter than {LEAST:?}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deadlines_are_read() {
        assert_eq!(parse_deadline(" 90s "), Ok(Duration::from_secs(90)));
        assert_eq!(parse_deadline("2m"), Ok(Duration::from_secs(120)));
        for wrong in ["", "0s", "-1s", "soon"] {
            assert!(parse_deadline(wrong).is_err(), "{wrong}");
        }
    }
}
