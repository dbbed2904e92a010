//! Texts that others wrote, on a terminal.

use std::borrow::Cow;

/// A text whose characters a terminal shows and does not obey: control characters (escape sequences
/// begin with one) and those that change the direction of writing are written as `\u{1b}`. Ends of
/// lines and tabs stay.
///
/// ```
/// assert_eq!(tensorwright_outcome::printable("gemm\u{1b}[2J"), "gemm\\u{1b}[2J");
/// assert_eq!(tensorwright_outcome::printable("two\nlines"), "two\nlines");
/// ```
#[must_use]
pub fn printable(text: &str) -> Cow<'_, str> {
    if !text.chars().any(is_obeyed) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        if is_obeyed(c) { shown.extend(c.escape_unicode()) } else { shown.push(c) }
    }
    Cow::Owned(shown)
}

/// Whether a terminal does something else with a character than to show it.
fn is_obeyed(c: char) -> bool {
    let turns = matches!(c, '\u{200e}' | '\u{200f}' | '\u{061c}')
        || ('\u{202a}'..='\u{202e}').contains(&c)
        || ('\u{2066}'..='\u{2069}').contains(&c);
    (c.is_control() && c != '\n' && c != '\t') || turns
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_obeys_is_spelled_out() {
        assert_eq!(printable("\u{1b}]0;title\u{7}\r"), "\\u{1b}]0;title\\u{7}\\u{d}");
        assert_eq!(printable("\u{9b}31m \u{202e}abc"), "\\u{9b}31m \\u{202e}abc");
        assert!(matches!(printable("größe\tM=8\n"), Cow::Borrowed(_)));
    }
}
