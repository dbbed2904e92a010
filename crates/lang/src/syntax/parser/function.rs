//! Parses scalar functions: `fn name(params) = expression`.

use super::{Parsed, Parser};
use crate::diagnostic::{Code, Diagnostic};
use crate::ops::AssignOp;
use crate::source::Span;
use crate::syntax::ast::{Function, Ident};
use crate::syntax::token::TokenKind;

/// The most tokens of a parameter list with types, for it to be recognized.
const MAX_TYPED: usize = 64;

impl Parser<'_> {
    /// Whether a scalar function starts here. `fn f(float(N) A)` is a `def` in another language's
    /// spelling.
    pub(super) fn at_function(&self) -> bool {
        let is_word = self.kind() == TokenKind::Ident && self.slice(self.peek().span) == "fn";
        // A type is not a name; that is reported where the name is parsed.
        let is_named = matches!(self.peek_at(1).kind, TokenKind::Ident | TokenKind::Type);
        if !is_word || !is_named || self.peek_at(2).kind != TokenKind::LParen {
            return false;
        }
        let after = self.peek_at(4).kind;
        match self.peek_at(3).kind {
            TokenKind::RParen => matches!(after, TokenKind::Assign(_)),
            TokenKind::Ident => matches!(after, TokenKind::Comma | TokenKind::RParen),
            TokenKind::Type => after == TokenKind::Ident && self.is_list_before_assign(3),
            _ => false,
        }
    }

    /// Whether a list without nested parentheses ends soon, followed by `=`.
    fn is_list_before_assign(&self, start: usize) -> bool {
        let ahead = start..start + MAX_TYPED;
        let end = ahead.map(|ahead| (ahead, self.peek_at(ahead).kind)).find(|(_, kind)| {
            !matches!(kind, TokenKind::Type | TokenKind::Ident | TokenKind::Comma)
        });
        matches!(end, Some((ahead, TokenKind::RParen))
            if self.peek_at(ahead + 1).kind == TokenKind::Assign(AssignOp::Assign))
    }

    /// Whether a line starts with a function.
    pub(super) fn begins_function(&self) -> bool {
        self.peek().first_on_line && self.at_function()
    }

    pub(super) fn function(&mut self) -> Parsed<Function> {
        let start = self.bump().span;
        let name = self.name("the name of a function")?;
        let open = self.expect(TokenKind::LParen, "`(` and the parameters")?;
        let (params, close) = self.list(open.span, Self::function_param)?;
        if params.is_empty() {
            let message = format!("the function `{}` has no parameters", name.name);
            self.report(
                Diagnostic::new(Code::UnexpectedToken, open.span.to(close), message)
                    .here("expected a name")
                    .help("name what it is a function of: `fn square(x) = x * x`"),
            );
        }
        if self.eat(TokenKind::Assign(AssignOp::Assign)).is_none() {
            return self.fail(
                self.expected("`=` and what the function stands for")
                    .help("a function is one expression: `fn square(x) = x * x`; what has statements is a `def`"),
            );
        }
        self.forget(&params);
        let body = self.expr()?;
        self.eat(TokenKind::Semicolon);
        let span = start.to(body.span);
        Ok(Function { name, params, body, span })
    }

    fn function_param(&mut self) -> Parsed<Ident> {
        if self.kind() == TokenKind::Type && self.peek_at(1).kind == TokenKind::Ident {
            let (written, name) = (self.bump().span, self.peek().span);
            let message = "parameters of a function have no types";
            self.report(
                Diagnostic::new(Code::UnexpectedToken, written, message)
                    .here("not needed")
                    .help("leave it out; each use is checked with the types of its arguments")
                    .fix(Span { end: name.start, ..written }, ""),
            );
        }
        self.name("the name of a parameter")
    }

    /// Forgets the names of the previous definition.
    fn forget(&mut self, params: &[Ident]) {
        self.scalars = params.iter().map(|param| param.name.clone()).collect();
        self.scalars.sort_unstable();
        self.known = self.scalars.clone();
    }
}
