//! Parses the `scan` clause of a statement.
//!
//! `scan` and `from` are contextual keywords: elsewhere they may be names of tensors.

use super::{ErrorReported, Parsed, Parser};
use crate::syntax::ast::ScanClause;
use crate::syntax::token::TokenKind;

const FORM: &str = "a recurrence is written `y(t) = y(t-1) + x(t) scan t from 0`";

impl Parser<'_> {
    /// `scan var from start`, if there is one.
    pub(super) fn scan(&mut self) -> Parsed<Option<ScanClause>> {
        if !self.at_clause("scan") {
            return Ok(None);
        }
        let word = self.peek().span;
        self.bump();
        if !self.at(TokenKind::Ident) {
            return self.fail_clause("the index variable of the recurrence", FORM);
        }
        let var = self.name("the name of an index variable")?;
        if !self.at_word("from") {
            return self.fail_clause("`from` and the value before the first element", FORM);
        }
        self.bump();
        if self.ends_stmt() {
            return self.fail_clause("the value before the first element", FORM);
        }
        let start = self.expr()?;
        let span = word.to(self.previous());
        Ok(Some(ScanClause { var, start, span }))
    }

    pub(super) fn fail_clause<T>(&mut self, what: &str, form: &str) -> Parsed<T> {
        if self.at(TokenKind::Error) {
            return Err(ErrorReported);
        }
        self.fail(self.expected(what).help(form))
    }

    pub(super) fn at_word(&self, word: &str) -> bool {
        self.at(TokenKind::Ident) && self.slice(self.peek().span) == word
    }

    /// Whether a clause with this keyword begins here, rather than a statement that computes a
    /// tensor of that name.
    pub(super) fn at_clause(&self, word: &str) -> bool {
        let next = self.peek_at(1).kind;
        let is_target = matches!(next, TokenKind::LParen | TokenKind::Comma | TokenKind::Assign(_));
        let begins = !self.peek().first_on_line || next == TokenKind::Ident;
        self.at_word(word) && !is_target && begins
    }
}
