//! The words of the language.

use crate::builtin::Builtin;
use crate::ops::{ArithOp, AssignOp, CompareOp, LogicOp};
use crate::source::Span;

/// What a token is. Values of numbers and names are read from the text when they are needed, so
/// that a token stays small.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TokenKind {
    /// A name that is no keyword and no type.
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
    /// `=>`, which only the parser can tell to be a mistaken `->` or `>=`.
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
    /// `=`, `+=`, `+=!` and their kin.
    Assign(AssignOp),
    /// Something that the lexer has already reported.
    Error,
    /// The end of the text.
    End,
}

/// A token and where it stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Token {
    /// What it is.
    pub(super) kind: TokenKind,
    /// Whether a line break (or the start of the text) comes before it.
    pub(super) first_on_line: bool,
    /// Where it stands.
    pub(super) span: Span,
}

/// A piece of the text between backquotes for a message, shortened if it is long.
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
