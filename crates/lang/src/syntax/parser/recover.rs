//! Error recovery.
//!
//! All lookahead is bounded, so recovery is linear even in a text full of errors.

use super::Parser;
use crate::syntax::token::TokenKind;

impl Parser<'_> {
    /// After an error in the definition that began at token `start`, skips to the next one.
    pub(super) fn skip_to_def(&mut self, start: usize) {
        if self.pos == start {
            self.bump();
        }
        while !matches!(self.kind(), TokenKind::Def | TokenKind::End) && !self.begins_function() {
            self.bump();
        }
    }

    /// After an error in the statement that began at token `start`, skips to the next statement or
    /// to the end of the body.
    pub(super) fn skip_to_stmt(&mut self, start: usize) {
        let mut braces = 0usize;
        loop {
            match self.kind() {
                TokenKind::Def | TokenKind::End => return,
                TokenKind::RBrace if braces == 0 => return,
                TokenKind::Semicolon if braces == 0 => return,
                TokenKind::RBrace => braces -= 1,
                TokenKind::LBrace => braces += 1,
                _ if self.pos > start && braces == 0 && self.begins_stmt_line() => return,
                _ => {}
            }
            self.bump();
        }
    }

    /// Whether the most likely error is an unclosed parenthesis before the next token.
    pub(super) fn looks_unclosed(&self) -> bool {
        use TokenKind::{Arrow, Assign, Def, End, LBrace, RBrace, Semicolon, Where};
        matches!(self.kind(), Arrow | Assign(_) | Def | End | LBrace | RBrace | Semicolon | Where)
            || self.begins_stmt_line()
    }

    /// Whether the next token is the first on its line and starts a statement.
    pub(super) fn begins_stmt_line(&self) -> bool {
        self.peek().first_on_line && self.looks_like_stmt()
    }

    /// Whether a left side and an assignment come next: `C(...) +=`, `a, b =` or `(a, b) =`. The
    /// lookahead is bounded, but covers every valid left side.
    pub(super) fn looks_like_stmt(&self) -> bool {
        let next = self.peek_at(1);
        let after = match (self.kind(), next.kind) {
            (TokenKind::Ident, TokenKind::LParen) if !next.first_on_line => self.after_subscripts(),
            (TokenKind::Ident, _) => self.after_names(0),
            (TokenKind::LParen, _) => {
                let after = self.after_names(1);
                after.filter(|at| self.peek_at(*at).kind == TokenKind::RParen).map(|at| at + 1)
            }
            _ => None,
        };
        after.is_some_and(|at| self.assigns_at(at))
    }

    /// The end of the subscripts after the next token. On the left side they should be index
    /// variables, but in an invalid text may be anything.
    fn after_subscripts(&self) -> Option<usize> {
        let mut parentheses = 0usize;
        for ahead in 1..FARTHEST {
            match self.peek_at(ahead).kind {
                TokenKind::LParen => parentheses += 1,
                TokenKind::RParen if parentheses == 1 => return Some(ahead + 1),
                TokenKind::RParen => parentheses -= 1,
                TokenKind::Assign(_) | TokenKind::Semicolon | TokenKind::LBrace => return None,
                TokenKind::RBrace | TokenKind::Def | TokenKind::End => return None,
                _ => {}
            }
        }
        None
    }

    /// The end of a list of names that starts `ahead` of here.
    fn after_names(&self, mut ahead: usize) -> Option<usize> {
        while ahead < FARTHEST && self.peek_at(ahead).kind == TokenKind::Ident {
            if self.peek_at(ahead + 1).kind != TokenKind::Comma {
                return Some(ahead + 1);
            }
            ahead += 2;
        }
        None
    }

    /// Whether an assignment is `ahead` of here, possibly `min =` instead of `min=`.
    fn assigns_at(&self, ahead: usize) -> bool {
        let token = self.peek_at(ahead);
        let reduction = token.kind == TokenKind::Ident
            && !token.first_on_line
            && matches!(self.slice(token.span), "min" | "max");
        let at = if reduction { ahead + 1 } else { ahead };
        matches!(self.peek_at(at).kind, TokenKind::Assign(_))
    }
}

/// The most tokens of a recognized left side.
const FARTHEST: usize = 100;
