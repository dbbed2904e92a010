//! Formatting of numbers and untrusted text.

mod printable;

pub use printable::{is_obeyed, printable, readable};

/// Digits in groups of three: `1,234,567`.
///
/// ```
/// use tensorwright_lang::text::grouped;
///
/// assert_eq!(grouped(1_234_567), "1,234,567");
/// assert_eq!(grouped(999), "999");
/// ```
#[must_use]
pub fn grouped(number: impl ToString) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A number with a unit, in steps of `step`: `1.50 KiB`, `2.10 GFLOP`.
///
/// ```
/// use tensorwright_lang::text::quantity;
///
/// assert_eq!(quantity(1536.0, "B", 1024.0), "1.50 KiB");
/// assert_eq!(quantity(12.0, "B", 1024.0), "12 B");
/// assert_eq!(quantity(2.1e9, "FLOP", 1000.0), "2.10 GFLOP");
/// ```
#[must_use]
pub fn quantity(value: f64, unit: &str, step: f64) -> String {
    let binary = step > 1000.0;
    let prefixes = if binary { ["Ki", "Mi", "Gi", "Ti", "Pi"] } else { ["k", "M", "G", "T", "P"] };
    if value < step {
        return format!("{value} {unit}");
    }
    let mut scaled = value;
    let mut prefix = "";
    for next in prefixes {
        if scaled < step {
            break;
        }
        scaled /= step;
        prefix = next;
    }
    format!("{scaled:.2} {prefix}{unit}")
}
