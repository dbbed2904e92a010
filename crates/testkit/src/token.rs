//! An independent tokenizer, just enough to rewrite a text.

/// The kind of a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TokenKind {
    /// A name, keyword, type or builtin.
    Word,
    /// A number.
    Number,
    /// An operator or a delimiter.
    Symbol,
    /// The `.` of `A.0`, which allows no blanks around it.
    Dot,
}

/// A token, and whether a line ends between it and the one before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Token<'a> {
    /// The kind.
    pub kind: TokenKind,
    /// Its text.
    pub text: &'a str,
    /// Whether it is the first of its line.
    pub starts_line: bool,
}

/// Operators of more than one character, longer ones before their prefixes.
const SYMBOLS: [&str; 22] = [
    "argmin=!", "argmax=!", "min=!", "max=!", "min=", "max=", "<<", ">>", "+=!", "*=!", "+=", "*=",
    "->", "==", "!=", "<=", ">=", "&&", "||", "//", "/*", "*/",
];

/// The tokens of a text, without blanks and comments. Characters the language does not use become
/// symbols of one character.
#[must_use]
pub fn tokens(text: &str) -> Vec<Token<'_>> {
    let mut found: Vec<Token<'_>> = Vec::new();
    let mut rest = text;
    let mut starts_line = true;
    loop {
        let trimmed = rest.trim_start();
        starts_line |= rest[..rest.len() - trimmed.len()].contains('\n');
        let blank = rest.len() != trimmed.len();
        rest = trimmed;
        if rest.starts_with('#') {
            rest = &rest[rest.find('\n').unwrap_or(rest.len())..];
            continue;
        }
        if rest.is_empty() {
            return found;
        }
        let after = if blank { None } else { found.last().map(|token| token.kind) };
        let (kind, length) = first(rest, after);
        found.push(Token { kind, text: &rest[..length], starts_line });
        rest = &rest[length..];
        starts_line = false;
    }
}

/// The kind and the length of the first token of a text that starts with neither a blank nor a
/// comment. `after` is the kind of the token that touches it.
fn first(text: &str, after: Option<TokenKind>) -> (TokenKind, usize) {
    let symbol = SYMBOLS.iter().find(|symbol| text.starts_with(**symbol));
    if let Some(symbol) = symbol.filter(|_| !is_name_before_equality(text)) {
        return (TokenKind::Symbol, symbol.len());
    }
    let next = |at: usize| text.as_bytes().get(at).copied().unwrap_or(b' ');
    match next(0) {
        b'.' if after == Some(TokenKind::Word) => (TokenKind::Dot, 1),
        b'.' if next(1).is_ascii_digit() => (TokenKind::Number, number_length(text)),
        b'0'..=b'9' if after == Some(TokenKind::Dot) => (TokenKind::Number, word_length(text)),
        b'0'..=b'9' => {
            let (word, number) = (word_length(text), number_length(text));
            // `2LUT` is a name: it does not end where the number would.
            if number < word { (TokenKind::Word, word) } else { (TokenKind::Number, number) }
        }
        b'_' | b'a'..=b'z' | b'A'..=b'Z' => (TokenKind::Word, word_length(text)),
        _ => (TokenKind::Symbol, text.chars().next().map_or(1, char::len_utf8)),
    }
}

/// Whether a text starts like `min=` and yet is the name `min` before `==`.
fn is_name_before_equality(text: &str) -> bool {
    text.starts_with("min==") || text.starts_with("max==")
}

fn word_length(text: &str) -> usize {
    let inside = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    text.bytes().take_while(|byte| inside(byte)).count()
}

fn digits(bytes: &[u8]) -> usize {
    bytes.iter().take_while(|byte| byte.is_ascii_digit()).count()
}

/// The length of the C number at the start of a text.
fn number_length(text: &str) -> usize {
    let bytes = text.as_bytes();
    if text.starts_with("0x") || text.starts_with("0X") {
        let hex = bytes[2..].iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
        return 2 + hex + suffix(&bytes[2 + hex..], b"uUlL");
    }
    let mut length = digits(bytes);
    let mut float = false;
    if bytes.get(length) == Some(&b'.') {
        float = true;
        length += 1 + digits(&bytes[length + 1..]);
    }
    if matches!(bytes.get(length), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(bytes.get(length + 1), Some(b'+' | b'-')));
        let exponent = digits(&bytes[(length + 1 + sign).min(bytes.len())..]);
        if exponent > 0 {
            float = true;
            length += 1 + sign + exponent;
        }
    }
    length + suffix(&bytes[length..], if float { b"fF" } else { b"uUlL" })
}

fn suffix(bytes: &[u8], letters: &[u8]) -> usize {
    bytes.iter().take_while(|byte| letters.contains(byte)).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(text: &str) -> Vec<&str> {
        tokens(text).iter().map(|token| token.text).collect()
    }

    #[test]
    fn operators_names_and_numbers() {
        assert_eq!(
            texts("2LUT(i)min=!1e-3*.5f+ A.0 # no\n->0x1F"),
            ["2LUT", "(", "i", ")", "min=!", "1e-3", "*", ".5f", "+", "A", ".", "0", "->", "0x1F"]
        );
        assert_eq!(texts("x<=!y 2. 10u"), ["x", "<=", "!", "y", "2.", "10u"]);
    }

    #[test]
    fn anything_can_be_tokenized() {
        assert_eq!(texts("é→\u{0}$"), ["é", "→", "\u{0}", "$"]);
        assert_eq!(texts("1e+"), ["1e", "+"]);
        assert_eq!(texts("min == 0x"), ["min", "==", "0x"]);
    }

    #[test]
    fn lines_are_known() {
        let found = tokens("a # b\n(c");
        assert_eq!(
            found.iter().map(|token| token.starts_line).collect::<Vec<_>>(),
            [true, true, false]
        );
    }
}
