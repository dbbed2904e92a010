//! `fn name(params) = expression`

use super::{Parsed, Parser};
use crate::diagnostic::{Code, Diagnostic};
use crate::ops::AssignOp;
use crate::syntax::ast::{Function, Ident};
use crate::syntax::token::TokenKind;

impl Parser<'_> {
    /// Whether a function of numbers starts here. `fn f(float(N) A)` is a `def` in the words of another language.
    pub(super) fn at_function(&self) -> bool {
        let is_word = self.kind() == TokenKind::Ident && self.slice(self.peek().span) == "fn";
        // A type is no name, which is said where the name is read.
        let is_named = matches!(self.peek_at(1).kind, TokenKind::Ident | TokenKind::Type);
        if !is_word || !is_named || self.peek_at(2).kind != TokenKind::LParen {
            return false;
        }
        let after = self.peek_at(4).kind;
        match self.peek_at(3).kind {
            TokenKind::RParen => matches!(after, TokenKind::Assign(_)),
            TokenKind::Ident => matches!(after, TokenKind::Comma | TokenKind::RParen),
            _ => false,
        }
    }

    /// Whether a line starts with a function.
    pub(super) fn begins_function(&self) -> bool {
        self.peek().first_on_line && self.at_function()
    }

    pub(super) fn function(&mut self) -> Parsed<Function> {
        let start = self.bump().span;
        let name = self.name("the name of a function")?;
        let open = self.expect(TokenKind::LParen, "`(` and the parameters")?;
        let (params, close) =
            self.list(open.span, |parser| parser.name("the name of a parameter"))?;
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

    /// What the definition before has named is unknown again.
    fn forget(&mut self, params: &[Ident]) {
        self.scalars = params.iter().map(|param| param.name.clone()).collect();
        self.scalars.sort_unstable();
        self.known = self.scalars.clone();
    }
}
