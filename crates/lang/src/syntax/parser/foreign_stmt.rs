//! Reports statements of other languages: loops, `if`, `return`, declarations.
//!
//! Each gets one report, however many tokens it has.

use super::{Parsed, Parser};
use crate::diagnostic::{Code, Diagnostic};
use crate::source::Span;
use crate::syntax::ast::Stmt;
use crate::syntax::token::{TokenKind, quote};

/// The message and help for a statement that starts with the word.
fn advice(word: &str) -> Option<(&'static str, &'static str)> {
    Some(match word {
        "for" | "while" => (
            "there are no loops",
            "a statement runs over all its index variables: `C(i) = A(i)`, with `where i in 0:N` if need be",
        ),
        "if" | "else" => {
            ("there is no `if`", "choose on the right side: `C(i) = condition ? a : b`")
        }
        "return" => ("there is no `return`", "the results are those named after `->`"),
        "let" | "var" | "auto" | "val" => (
            "tensors are not declared",
            "start with the name: `s(i) = ...`, or `s() = ...` for a scalar",
        ),
        _ => return None,
    })
}

impl Parser<'_> {
    /// Whether a foreign statement starts here. A tensor may have such a name: `if(i) = A(i)`.
    pub(super) fn at_foreign_stmt(&self) -> bool {
        let token = self.peek();
        token.kind == TokenKind::Ident
            && advice(self.slice(token.span)).is_some()
            && !self.looks_like_stmt()
    }

    /// Reports a foreign statement and skips its head and its blocks. What follows `let` may still
    /// be a valid statement.
    pub(super) fn foreign_stmt(&mut self) -> Parsed<Stmt> {
        let span = self.peek().span;
        let word = self.slice(span);
        let (problem, help) = advice(word).unwrap_or_default();
        let message = format!("{} does not start a statement: {problem}", quote(word));
        let diagnostic = Diagnostic::new(Code::UnexpectedToken, span, message)
            .here("expected a statement, such as `C(i) = A(i)`")
            .help(help);
        let declares = problem == "tensors are not declared"
            && self.peek_at(1).kind == TokenKind::Ident
            && self.peek_at(2).kind == TokenKind::LParen;
        if declares {
            let next = self.peek_at(1).span;
            self.report(diagnostic.fix(Span::new(span.start, next.start), ""));
            self.bump();
            return self.stmt();
        }
        let failed = self.fail(diagnostic);
        self.skip_blocks();
        failed
    }

    /// Skips `word (...) {...}`, and the `else` branches that follow.
    fn skip_blocks(&mut self) {
        loop {
            self.bump();
            self.skip_balanced(TokenKind::LParen, TokenKind::RParen);
            self.skip_balanced(TokenKind::LBrace, TokenKind::RBrace);
            let word = self.peek();
            if word.kind != TokenKind::Ident || !matches!(self.slice(word.span), "else" | "if") {
                return;
            }
        }
    }

    /// Skips a balanced pair of delimiters, if the first one is next. Stops early where a
    /// definition ends.
    fn skip_balanced(&mut self, open: TokenKind, close: TokenKind) {
        let mut depth = 0usize;
        while !matches!(self.kind(), TokenKind::Def | TokenKind::End) {
            let kind = self.kind();
            if kind == open {
                depth += 1;
            } else if depth == 0 || (kind == TokenKind::RBrace && close != kind) {
                return;
            } else if kind == close {
                depth -= 1;
            }
            self.bump();
            if depth == 0 {
                return;
            }
        }
    }
}
