//! How numbers are written where people read them.

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
