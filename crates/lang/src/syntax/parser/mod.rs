//! The parser: tokens to syntax tree, by recursive descent.
//!
//! A parsing function that meets an unexpected token reports it and returns [`ErrorReported`]; the
//! statement (or the head of the `def`) is abandoned and parsing resumes at the next likely start
//! of one. Where the intent is clear, the error is reported and parsing continues as if the correct
//! text had been written.
//!
//! The parser never backtracks, so it takes time linear in the length of the text, and its stack is
//! bounded by [`MAX_DEPTH`](super::ast::MAX_DEPTH).

mod def;
mod expr;
mod foreign_stmt;
mod function;
mod recover;
mod scan;
mod scatter;
mod stmt;

use std::collections::HashSet;

use super::ast::{Ident, Module};
use super::input::too_large;
use super::lexer::{MAX_REPORTS, lex};
use super::token::{Token, TokenKind, quote};
use crate::builtin::{Builtin, CONSTANTS};
use crate::diagnostic::{Code, Diagnostic};
use crate::source::{Source, Span};

/// Parses a text. If there are errors among the diagnostics, the module holds the parts that could
/// be parsed.
#[must_use]
pub fn parse(source: &Source) -> (Module, Vec<Diagnostic>) {
    let text = source.text();
    if let Some(diagnostic) = too_large(text.len()) {
        return (Module::default(), vec![diagnostic]);
    }
    let (tokens, mut diagnostics) = lex(text);
    let mut parser = Parser {
        text,
        tokens,
        pos: 0,
        depth: 0,
        known: Vec::new(),
        scalars: Vec::new(),
        last_report: None,
        overruled: HashSet::new(),
        diagnostics: Vec::new(),
        #[cfg(test)]
        looks: std::cell::Cell::new(0),
    };
    let module = parser.module();
    #[cfg(test)]
    tests::check_effort(&parser);
    let is_overruled = |span: Span| parser.overruled.contains(&span);
    diagnostics.retain(|diagnostic| !diagnostic.span().is_some_and(is_overruled));
    diagnostics.append(&mut parser.diagnostics);
    (module, diagnostics)
}

/// Proof that an error has been reported.
#[derive(Debug)]
struct ErrorReported;

type Parsed<T> = Result<T, ErrorReported>;

struct Parser<'s> {
    text: &'s str,
    tokens: Vec<Token>,
    pos: usize,
    /// The nesting depth of the current expression.
    depth: usize,
    /// The parameters and sizes of the current `def`: names that are not index variables.
    known: Vec<String>,
    /// Those of them without subscripts: sizes and scalars.
    scalars: Vec<String>,
    /// The token of the last report.
    last_report: Option<usize>,
    diagnostics: Vec<Diagnostic>,
    /// Spans at which the parser's report replaces the lexer's.
    overruled: HashSet<Span>,
    /// The number of token lookups, so that tests can check that it is linear.
    #[cfg(test)]
    looks: std::cell::Cell<usize>,
}

impl<'s> Parser<'s> {
    fn module(&mut self) -> Module {
        let mut module = Module::default();
        while !self.at(TokenKind::End) {
            let start = self.pos;
            let taken = match self.at_function() {
                true => self.function().map(|function| module.functions.push(function)),
                false => self.def().map(|def| module.defs.push(def)),
            };
            if let Err(ErrorReported) = taken {
                self.skip_to_def(start);
            }
        }
        module
    }

    /// The token `ahead` tokens from here; `End` past the last one.
    fn peek_at(&self, ahead: usize) -> Token {
        #[cfg(test)]
        self.looks.set(self.looks.get() + 1);
        let end = Token { kind: TokenKind::End, first_on_line: true, span: Span::default() };
        self.tokens.get(self.pos + ahead).or(self.tokens.last()).copied().unwrap_or(end)
    }

    fn peek(&self) -> Token {
        self.peek_at(0)
    }

    fn kind(&self) -> TokenKind {
        self.peek().kind
    }

    fn at(&self, kind: TokenKind) -> bool {
        self.kind() == kind
    }

    /// Takes the next token; the end can be taken repeatedly.
    fn bump(&mut self) -> Token {
        let token = self.peek();
        if token.kind != TokenKind::End {
            self.pos += 1;
        }
        token
    }

    fn eat(&mut self, kind: TokenKind) -> Option<Token> {
        self.at(kind).then(|| self.bump())
    }

    /// The span of the last token taken.
    fn previous(&self) -> Span {
        let previous = self.pos.checked_sub(1).and_then(|pos| self.tokens.get(pos));
        previous.map_or(Span::default(), |token| token.span)
    }

    fn previous_kind(&self) -> Option<TokenKind> {
        self.pos.checked_sub(1).and_then(|pos| self.tokens.get(pos)).map(|token| token.kind)
    }

    /// The empty span after the last token taken, for fixes that insert.
    fn gap(&self) -> Span {
        let end = self.previous().end;
        Span::new(end, end)
    }

    fn slice(&self, span: Span) -> &'s str {
        self.text.get(span.start as usize..span.end as usize).unwrap_or_default()
    }

    /// Records a diagnostic, unless one was already reported at this token, of which this is then a
    /// consequence.
    fn report(&mut self, diagnostic: Diagnostic) {
        let news = self.last_report != Some(self.pos);
        self.last_report = Some(self.pos);
        if news && self.diagnostics.len() < MAX_REPORTS {
            self.diagnostics.push(diagnostic);
        }
    }

    /// Reports an error and fails.
    fn fail<T>(&mut self, diagnostic: Diagnostic) -> Parsed<T> {
        self.report(diagnostic);
        Err(ErrorReported)
    }

    /// "expected this, found that" at the next token.
    fn expected(&self, what: &str) -> Diagnostic {
        let token = self.peek();
        let message = format!("expected {what}, found {}", self.describe(token));
        Diagnostic::new(Code::UnexpectedToken, token.span, message).here(format!("expected {what}"))
    }

    fn describe(&self, token: Token) -> String {
        let text = quote(self.slice(token.span));
        match token.kind {
            TokenKind::End => "the end of the text".to_owned(),
            TokenKind::Def | TokenKind::Where | TokenKind::Const => format!("the keyword {text}"),
            TokenKind::Type => format!("the type {text}"),
            TokenKind::Int | TokenKind::Float => format!("the number {text}"),
            _ => text,
        }
    }

    /// Fails at the next token. Errors of the lexer are not reported again.
    fn fail_expected<T>(&mut self, what: &str) -> Parsed<T> {
        match self.kind() {
            TokenKind::Error => Err(ErrorReported),
            _ => self.fail(self.expected(what)),
        }
    }

    fn expect(&mut self, kind: TokenKind, what: &str) -> Parsed<Token> {
        match self.eat(kind) {
            Some(token) => Ok(token),
            None => self.fail_expected(what),
        }
    }

    /// Parses a new name: E0108 if it is reserved.
    fn name(&mut self, what: &str) -> Parsed<Ident> {
        let token = self.peek();
        let name = self.slice(token.span);
        let owner = match token.kind {
            TokenKind::Ident => builtin_owner(name),
            TokenKind::Type => Some("a type"),
            TokenKind::Def | TokenKind::Where | TokenKind::Const => Some("a keyword"),
            TokenKind::True | TokenKind::False => Some("a truth value"),
            _ => return self.fail_expected(what),
        };
        if let Some(owner) = owner {
            self.report(
                Diagnostic::new(
                    Code::ReservedName,
                    token.span,
                    format!("`{name}` is {owner} and cannot be the name of {}", indefinite(what)),
                )
                .here("this name is reserved")
                .help(format!("choose another name, such as `{name}_`")),
            );
        }
        self.bump();
        Ok(Ident { name: name.to_owned(), span: token.span })
    }

    /// Parses `item, item, ...)`, after the `(` at `open`. Returns the closing parenthesis too.
    fn list<T>(
        &mut self,
        open: Span,
        mut item: impl FnMut(&mut Self) -> Parsed<T>,
    ) -> Parsed<(Vec<T>, Span)> {
        let mut items = Vec::new();
        if let Some(close) = self.eat(TokenKind::RParen) {
            return Ok((items, close.span));
        }
        loop {
            items.push(item(self)?);
            if let Some(close) = self.eat(TokenKind::RParen) {
                return Ok((items, close.span));
            }
            self.separator(open)?;
            if let Some(close) = self.eat(TokenKind::RParen) {
                return Ok((items, close.span));
            }
        }
    }

    /// The `,` between the items of a list.
    fn separator(&mut self, open: Span) -> Parsed<()> {
        if let Some(comma) = self.eat(TokenKind::Comma) {
            if self.at(TokenKind::RParen) {
                let message = "a list does not end with a comma";
                self.report(
                    Diagnostic::new(Code::UnexpectedToken, comma.span, message)
                        .here("nothing follows this comma")
                        .help("remove it")
                        .fix(comma.span, ""),
                );
            }
            return Ok(());
        }
        if self.looks_unclosed() {
            return self.fail_unclosed(open, "(", ")");
        }
        if !self.starts_item() {
            return self.fail_expected("`,` or `)`");
        }
        let diagnostic = self.expected("`,` or `)`").help("separate the two by a comma");
        self.report(diagnostic.fix(self.gap(), ","));
        Ok(())
    }

    fn starts_item(&self) -> bool {
        use TokenKind::{Const, DimOf, Float, Ident, Int, Type};
        matches!(self.kind(), Ident | Type | Const | Int | Float | DimOf)
    }

    /// The `)` of the `(` at `open`.
    fn close(&mut self, open: Span) -> Parsed<Span> {
        if let Some(close) = self.eat(TokenKind::RParen) {
            return Ok(close.span);
        }
        if self.looks_unclosed() {
            return self.fail_unclosed(open, "(", ")");
        }
        self.fail_expected("`)`")
    }

    fn fail_unclosed<T>(&mut self, open: Span, opening: &str, closing: &str) -> Parsed<T> {
        let message = format!("this `{opening}` is never closed");
        let found = self.peek();
        self.fail(
            Diagnostic::new(Code::UnclosedDelimiter, open, message)
                .here("opened here")
                .label(found.span, format!("expected `{closing}` before {}", self.describe(found)))
                .help(format!("add the missing `{closing}`")),
        )
    }
}

/// The meaning of a reserved name.
fn builtin_owner(name: &str) -> Option<&'static str> {
    if name == super::ast::CONCAT {
        Some("a built-in operation")
    } else if Builtin::from_name(name).is_some() {
        Some("a built-in function")
    } else if CONSTANTS.iter().any(|(constant, _)| *constant == name) {
        Some("a constant")
    } else {
        None
    }
}

/// "the name of a tensor" to "a tensor".
fn indefinite(what: &str) -> &str {
    what.strip_prefix("the name of ").unwrap_or(what)
}

#[cfg(test)]
mod tests;
