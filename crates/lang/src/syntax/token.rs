//! Tokens.

use crate::builtin::Builtin;
use crate::ops::{ArithOp, AssignOp, CompareOp, LogicOp};
use crate::source::Span;

/// The kind of a token. Values of numbers and names are read from the text on demand, so that a
/// token stays small.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TokenKind {
    /// A name other than keywords and types.
    Ident,
    /// `A.0`, all of it.
    DimOf,
    /// An integer literal.
    Int,
    /// A floating-point literal.
    Float,
    /// The name of an element type.
    Type,
    /// `def`
    Def,
    /// `where`
    Where,
    /// `const`
    Const,
    /// `true`
    True,
    /// `false`
    False,
    /// `(`
    LParen,
    /// `)`
    RParen,
    /// `{`
    LBrace,
    /// `}`
    RBrace,
    /// `,`
    Comma,
    /// `;`
    Semicolon,
    /// `:`
    Colon,
    /// `?`
    Question,
    /// `->`
    Arrow,
    /// `=>`, a mistaken `->` or `>=`, which only the parser can tell.
    FatArrow,
    /// `!`
    Not,
    /// `+ - * / %`
    Arith(ArithOp),
    /// `== != < <= > >=`
    Compare(CompareOp),
    /// `&&`, `||`
    Logic(LogicOp),
    /// `& | ^ ~ << >>`
    Bits(Builtin),
    /// `=`, `+=`, `+=!` and the like.
    Assign(AssignOp),
    /// An error that the lexer has reported.
    Error,
    /// The end of the text.
    End,
}

/// A token and its span.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Token {
    /// The kind.
    pub(super) kind: TokenKind,
    /// Whether it is the first token on its line.
    pub(super) first_on_line: bool,
    /// Its span.
    pub(super) span: Span,
}

/// Quotes a piece of the text in backquotes, shortened if it is long.
pub(super) fn quote(text: &str) -> String {
    const LONGEST: usize = 40;
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("`{}...`", &text[..end]),
        None => format!("`{text}`"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_are_short() {
        assert_eq!(quote("abc"), "`abc`");
        assert_eq!(quote(&"é".repeat(1000)), format!("`{}...`", "é".repeat(40)));
    }

    #[test]
    fn tokens_are_small() {
        assert!(size_of::<Token>() <= 12, "a text of 4 MiB may have as many tokens");
    }
}
