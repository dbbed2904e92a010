//! Formats numbers and texts, escaped for HTML.

use std::collections::BTreeMap;
use std::fmt::{self, Write};

pub(crate) use tensorwright_lang::text::grouped;

/// Escapes a text for an element or a quoted attribute.
pub(crate) struct Escaped<'t>(pub(crate) &'t str);

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for character in self.0.chars() {
            match character {
                '&' => f.write_str("&amp;")?,
                '<' => f.write_str("&lt;")?,
                '>' => f.write_str("&gt;")?,
                '"' => f.write_str("&quot;")?,
                '\'' => f.write_str("&#39;")?,
                '\n' | '\t' => f.write_char(character)?,
                // Replace control characters, such as terminal escapes.
                control if control.is_control() => f.write_char('\u{fffd}')?,
                plain => f.write_char(plain)?,
            }
        }
        Ok(())
    }
}

/// Escapes JSON for a `script` element: nothing in it can end the element.
pub(crate) fn embedded(json: &str) -> String {
    let mut text = String::with_capacity(json.len());
    for character in json.chars() {
        match character {
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => {
                // Writing to a string cannot fail.
                let _ = write!(text, "\\u{:04x}", u32::from(character));
            }
            plain => text.push(plain),
        }
    }
    text
}

/// At most `at_most` characters of a text; an ellipsis marks a cut.
pub(crate) fn shortened(text: &str, at_most: usize) -> String {
    match text.char_indices().nth(at_most) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}…", &text[..end]),
    }
}

/// A time in a suitable unit, with four digits.
pub(crate) fn duration(seconds: f64) -> String {
    let (value, unit) = match seconds {
        s if s >= 1.0 => (s, "s"),
        s if s >= 1e-3 => (s * 1e3, "ms"),
        s if s >= 1e-6 => (s * 1e6, "µs"),
        s => (s * 1e9, "ns"),
    };
    format!("{} {unit}", digits(value))
}

/// A time span: `12 s`, `4 min 10 s`, `2 h 5 min`.
pub(crate) fn span(seconds: f64) -> String {
    let whole = seconds.max(0.0).round() as u64;
    match whole {
        s if seconds < 10.0 && s < 10 => format!("{seconds:.1} s"),
        s if s < 120 => format!("{s} s"),
        s if s < 7200 => format!("{} min {} s", s / 60, s % 60),
        s => format!("{} h {} min", s / 3600, s % 3600 / 60),
    }
}

/// A positive number with about four digits.
pub(crate) fn digits(value: f64) -> String {
    match value {
        v if v >= 1e6 => format!("{v:.3e}"),
        v if v >= 1000.0 => grouped(v.round() as u64),
        v if v >= 100.0 => format!("{v:.1}"),
        v if v >= 10.0 => format!("{v:.2}"),
        v if v >= 0.001 => format!("{v:.3}"),
        v => format!("{v:.2e}"),
    }
}

/// A count: `1 trial`, `2 trials`.
pub(crate) fn counted(number: u64, thing: &str) -> String {
    format!("{} {thing}{}", grouped(number), if number == 1 { "" } else { "s" })
}

/// A share: `78 %`, `0.4 %`.
pub(crate) fn percent(share: f64) -> String {
    let percent = share * 100.0;
    if percent != 0.0 && percent < 1.0 {
        format!("{percent:.1} %")
    } else {
        format!("{percent:.0} %")
    }
}

/// Sizes: `K=64 M=128`.
pub(crate) fn sizes(sizes: &BTreeMap<String, i64>) -> String {
    let list: Vec<String> = sizes.iter().map(|(name, size)| format!("{name}={size}")).collect();
    list.join(" ")
}

/// A date and time: `2026-03-14 15:09 UTC`.
pub(crate) fn moment(milliseconds: i64) -> String {
    let minutes = milliseconds.div_euclid(60_000);
    let (days, minute) = (minutes.div_euclid(1440), minutes.rem_euclid(1440));
    let (year, month, day) = date(days);
    format!("{year:04}-{month:02}-{day:02} {:02}:{:02} UTC", minute / 60, minute % 60)
}

/// The Gregorian date of a day since 1970, computed in eras of 400 years that begin in March, so
/// that the leap day is the last of its year.
fn date(days: i64) -> (i64, i64, i64) {
    let days = days.saturating_add(719_468);
    let (era, day) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let of_year = day - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let of_month = of_year - (153 * month + 2) / 5 + 1;
    let (month, next) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    (year + era * 400 + next, month, of_month)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_gets_out_of_its_element() {
        let text = Escaped("</pre><script>alert('x')</script>\u{1b}[31m & \"q\"").to_string();
        assert!(!text.contains('<') && !text.contains('"') && !text.contains('\u{1b}'), "{text}");
        let json = embedded(r#"{"a":"</script><!--&\u2028"}"#);
        assert!(!json.contains('<') && !json.contains("-->"), "{json}");
        let back: serde_json::Value = serde_json::from_str(&json).unwrap();
        assert_eq!(back["a"], "</script><!--&\u{2028}");
    }

    #[test]
    fn numbers_are_readable() {
        assert_eq!(duration(0.002_134_5), "2.135 ms");
        assert_eq!(duration(12.5e-6), "12.50 µs");
        assert_eq!(span(4.25), "4.2 s");
        assert_eq!(span(250.0), "4 min 10 s");
        assert_eq!(span(7500.0), "2 h 5 min");
        assert_eq!(counted(1, "trial"), "1 trial");
        assert_eq!(percent(0.004), "0.4 %");
        assert_eq!(percent(0.784), "78 %");
        assert_eq!(digits(1234.4), "1,234");
        assert_eq!(shortened("äöü", 2), "äö…");
    }

    #[test]
    fn moments_are_dates() {
        assert_eq!(moment(0), "1970-01-01 00:00 UTC");
        assert_eq!(moment(1_582_934_400_000), "2020-02-29 00:00 UTC");
        for odd in [i64::MIN, i64::MAX] {
            assert!(moment(odd).ends_with("UTC"));
        }
    }
}
