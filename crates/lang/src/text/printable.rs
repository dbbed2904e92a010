//! Sanitizes untrusted text for terminals and messages.

use std::borrow::Cow;

/// Escapes characters that a terminal would interpret or hide: control characters (escape sequences
/// begin with one), bidirectional controls and invisible characters become `\u{1b}`. Line ends and
/// tabs stay.
///
/// ```
/// use tensorwright_lang::text::printable;
///
/// assert_eq!(printable("gemm\u{1b}[2J"), "gemm\\u{1b}[2J");
/// assert_eq!(printable("two\nlines"), "two\nlines");
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

/// Whether a terminal interprets or hides a character.
#[must_use]
pub fn is_obeyed(c: char) -> bool {
    if c.is_ascii() {
        return c.is_ascii_control() && c != '\n' && c != '\t';
    }
    c.is_control() || UNSEEN.iter().any(|(first, last)| (*first..=*last).contains(&c))
}

/// Bidirectional controls, line separators and invisible characters, as ranges.
const UNSEEN: [(char, char); 16] = [
    ('\u{ad}', '\u{ad}'),
    ('\u{34f}', '\u{34f}'),
    ('\u{61c}', '\u{61c}'),
    ('\u{115f}', '\u{1160}'),
    ('\u{17b4}', '\u{17b5}'),
    ('\u{180b}', '\u{180f}'),
    ('\u{200b}', '\u{200f}'),
    ('\u{2028}', '\u{202e}'),
    ('\u{2060}', '\u{206f}'),
    ('\u{3164}', '\u{3164}'),
    ('\u{feff}', '\u{feff}'),
    ('\u{ffa0}', '\u{ffa0}'),
    ('\u{fff0}', '\u{fffb}'),
    ('\u{1bca0}', '\u{1bca3}'),
    ('\u{1d173}', '\u{1d17a}'),
    ('\u{e0000}', '\u{e0fff}'),
];

/// The longest word quoted whole, in characters.
const LONGEST_WORD: usize = 400;

/// The longest message, in characters.
const LONGEST_TEXT: usize = 20_000;

/// Prepares a text for a message: [`printable`], with long words and long texts shortened.
///
/// ```
/// use tensorwright_lang::text::readable;
///
/// let word = "a".repeat(5000);
/// assert!(readable(&format!("`{word}` is not known here")).len() < 500);
/// ```
#[must_use]
pub fn readable(text: &str) -> Cow<'_, str> {
    let shown = printable(text);
    if shown.len() <= LONGEST_WORD {
        return shown;
    }
    let is_long = |word: &str| word.chars().nth(LONGEST_WORD).is_some();
    let cut = match shown.split(char::is_whitespace).any(is_long) {
        true => shown.split_inclusive(char::is_whitespace).map(short).collect::<String>().into(),
        false => shown,
    };
    match cut.char_indices().nth(LONGEST_TEXT) {
        Some((end, _)) => Cow::Owned(format!("{}...", &cut[..end])),
        None => cut,
    }
}

/// Shortens a word, with the blank that ends it: keeps its beginning and end.
fn short(word: &str) -> Cow<'_, str> {
    const HEAD: usize = 120;
    const TAIL: usize = 40;
    let (letters, blank) = word.split_at(word.trim_end().len());
    if letters.chars().nth(LONGEST_WORD).is_none() {
        return Cow::Borrowed(word);
    }
    let head = letters.char_indices().nth(HEAD).map_or(letters.len(), |(place, _)| place);
    let tail = letters.char_indices().nth_back(TAIL - 1).map_or(0, |(place, _)| place);
    Cow::Owned(format!("{}...{}{blank}", &letters[..head], &letters[tail..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_obeys_is_spelled_out() {
        assert_eq!(printable("\u{1b}]0;title\u{7}\r"), "\\u{1b}]0;title\\u{7}\\u{d}");
        assert_eq!(printable("\u{9b}31m \u{202e}abc"), "\\u{9b}31m \\u{202e}abc");
        assert_eq!(printable("a\u{200b}b\u{e0041}"), "a\\u{200b}b\\u{e0041}");
        assert!(matches!(printable("größe\tM=8\n"), Cow::Borrowed(_)));
    }

    #[test]
    fn long_words_are_cut_in_their_middle() {
        let word = "é".repeat(4_000_000);
        let text = format!("the name `{word}` is\nnot known");
        let cut = format!("the name `{}...{}` is\nnot known", "é".repeat(119), "é".repeat(39));
        assert_eq!(readable(&text), cut);
        assert_eq!(readable(&cut), cut, "what was cut is not cut again");
        assert!(matches!(readable("a short sentence"), Cow::Borrowed(_)));
    }

    #[test]
    fn a_text_without_end_is_cut() {
        let text = "word ".repeat(1_000_000);
        assert!(readable(&text).len() < LONGEST_TEXT + 10);
    }
}
