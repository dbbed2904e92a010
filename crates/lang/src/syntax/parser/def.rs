//! Parses definitions: `def name(params) -> (returns) { body }`.

use super::{ErrorReported, Parsed, Parser};
use crate::diagnostic::{Code, Diagnostic, nearest};
use crate::dtype::DType;
use crate::ops::ArithOp;
use crate::source::Span;
use crate::syntax::ast::{Def, Dim, Ident, Param, Stmt};
use crate::syntax::number::{self, Number};
use crate::syntax::token::{TokenKind, quote};

impl Parser<'_> {
    pub(super) fn def(&mut self) -> Parsed<Def> {
        let start = self.def_keyword()?;
        let name = self.name("the name of a definition")?;
        let open = self.expect(TokenKind::LParen, "`(` and the parameters")?;
        let (params, _) = self.list(open.span, Self::param)?;
        self.record_names(&params);
        let returns = self.returns()?;
        let open = self.expect(TokenKind::LBrace, "`{` and the statements")?;
        let body = self.body(open.span);
        Ok(Def { name, params, returns, body, span: start.to(self.previous()) })
    }

    /// Records the names of the parameters and of their sizes.
    fn record_names(&mut self, params: &[Param]) {
        let sizes = params.iter().flat_map(|param| &param.dims).filter_map(|dim| match dim {
            Dim::Name(name) => Some(name),
            Dim::Literal(..) => None,
        });
        let (scalars, tensors): (Vec<&Param>, Vec<&Param>) =
            params.iter().partition(|param| param.dims.is_empty());
        let scalars = scalars.into_iter().map(|param| &param.name).chain(sizes);
        self.scalars = scalars.map(|ident| ident.name.clone()).collect();
        self.known = tensors.into_iter().map(|param| param.name.name.clone()).collect();
        self.known.extend_from_slice(&self.scalars);
        self.scalars.sort_unstable();
        self.known.sort_unstable();
    }

    fn def_keyword(&mut self) -> Parsed<Span> {
        const FOREIGN: [&str; 6] = ["fn", "func", "function", "fun", "define", "Def"];
        let token = self.peek();
        if let Some(def) = self.eat(TokenKind::Def) {
            return Ok(def.span);
        }
        let mistaken = token.kind == TokenKind::Ident
            && FOREIGN.contains(&self.slice(token.span))
            && self.peek_at(1).kind == TokenKind::Ident;
        if mistaken {
            self.report(self.expected("`def`").help("write `def`").fix(token.span, "def"));
            return Ok(self.bump().span);
        }
        if token.kind == TokenKind::RBrace {
            let message = "this `}` closes nothing";
            return self.fail(
                Diagnostic::new(Code::UnexpectedToken, token.span, message)
                    .here("there is no `{` for it")
                    .help("remove it")
                    .fix(token.span, ""),
            );
        }
        if token.kind == TokenKind::Error {
            return Err(ErrorReported);
        }
        let help = "statements stand in definitions: `def name(float(N) A) -> (B) { ... }`";
        self.fail(self.expected("`def`").help(help))
    }

    /// `[const] type name`
    fn param(&mut self) -> Parsed<Param> {
        let start = self.peek().span;
        let is_const = self.eat(TokenKind::Const).is_some();
        let dtype = self.element_type()?;
        let before = self.last_report;
        let mut dims = match self.eat(TokenKind::LParen) {
            Some(open) => self.list(open.span, Self::dim)?.0,
            None => Vec::new(),
        };
        if self.last_report != before && !self.at(TokenKind::Ident) {
            // In `float(N A)` the name was taken for a size.
            return Err(ErrorReported);
        }
        let name = self.name("the name of a parameter")?;
        if dims.is_empty() && self.at(TokenKind::LParen) {
            dims = self.dims_after_name(&name)?;
        }
        Ok(Param { is_const, dtype, dims, name, span: start.to(self.previous()) })
    }

    fn element_type(&mut self) -> Parsed<DType> {
        let token = self.peek();
        let word = self.slice(token.span);
        if let Some(dtype) = DType::from_name(word) {
            self.bump();
            return Ok(dtype);
        }
        if token.kind != TokenKind::Ident {
            return self.fail_expected("a parameter, such as `float(N) A`");
        }
        let next = self.peek_at(1).kind;
        if matches!(next, TokenKind::Comma | TokenKind::RParen | TokenKind::Colon) {
            let message = format!("the parameter {} has no type", quote(word));
            return self.fail(
                Diagnostic::new(Code::UnexpectedToken, token.span, message)
                    .here("expected a type before the name")
                    .help(format!("write `float(M, N) {word}`, or `float {word}` for a scalar")),
            );
        }
        self.report(unknown_type(word, token.span));
        self.bump();
        Ok(DType::Float)
    }

    /// A size: a name or an integer.
    fn dim(&mut self) -> Parsed<Dim> {
        let token = self.peek();
        if self.at_any_size() {
            return Ok(self.any_size());
        }
        let dim = match token.kind {
            TokenKind::Int => {
                self.bump();
                let value = match number::decode(self.slice(token.span)) {
                    Ok(Number::Int(value)) => i64::try_from(value).ok(),
                    _ => Some(0), // reported by the lexer
                };
                let value = match value {
                    Some(value) => value,
                    None => return self.fail(size_too_large(token.span)),
                };
                Dim::Literal(value, token.span)
            }
            TokenKind::Error => return Err(ErrorReported),
            _ => self.name("the name of a size").map(Dim::Name)?,
        };
        match self.kind() {
            TokenKind::Arith(_) => self.fail(computed_size(token.span.to(self.peek().span))),
            _ => Ok(dim),
        }
    }

    /// Whether "any size" or "any dimensions" of another language is next.
    fn at_any_size(&self) -> bool {
        match self.kind() {
            TokenKind::Colon | TokenKind::Question | TokenKind::Arith(ArithOp::Mul) => true,
            TokenKind::Arith(ArithOp::Sub) => self.peek_at(1).kind == TokenKind::Int,
            _ => false,
        }
    }

    /// `float(..., D)`
    fn any_size(&mut self) -> Dim {
        let token = self.bump();
        let span = match token.kind {
            TokenKind::Arith(ArithOp::Sub) => token.span.to(self.bump().span),
            _ => token.span,
        };
        self.overruled.insert(span);
        let message = format!("{} is not a size", quote(self.slice(span)));
        self.report(
            Diagnostic::new(Code::UnexpectedToken, span, message)
                .here("expected a name or a number")
                .help(
                    "every dimension of a parameter has a name or a number, as in `float(N, D) x`; \
                     tensors with more dimensions are reshaped before the call",
                ),
        );
        Dim::Literal(1, span)
    }

    /// `float A(M, N)`: sizes after the name, as in C.
    fn dims_after_name(&mut self, name: &Ident) -> Parsed<Vec<Dim>> {
        let open = self.peek().span;
        let at = self.pos;
        self.bump();
        let (dims, close) = self.list(open, Self::dim)?;
        let sizes = self.slice(open.to(close));
        let diagnostic = Diagnostic::new(
            Code::UnexpectedToken,
            open.to(close),
            "the sizes of a parameter follow its type, not its name",
        )
        .here("sizes do not belong here")
        .help(format!("write the type as `float{sizes}`, then the name"))
        .fix(name.span.to(close), format!("{sizes} {}", name.name));
        if self.last_report.is_none_or(|last| last < at) {
            self.report(diagnostic);
        }
        Ok(dims)
    }

    /// `-> (name, ...)`
    fn returns(&mut self) -> Parsed<Vec<Ident>> {
        if self.at(TokenKind::LBrace) {
            let diagnostic = self.expected("`->` and the names of the results");
            self.report(diagnostic.help("name the results: `-> (C)`"));
            return Ok(Vec::new());
        }
        self.arrow()?;
        let Some(open) = self.eat(TokenKind::LParen) else {
            return self.bare_returns();
        };
        if let Some(close) = self.eat(TokenKind::RParen) {
            let message = "a definition has at least one result";
            self.report(
                Diagnostic::new(Code::UnexpectedToken, open.span.to(close.span), message)
                    .here("expected a name")
                    .help("name what the statements compute: `-> (C)`"),
            );
            return Ok(Vec::new());
        }
        Ok(self.list(open.span, Self::result)?.0)
    }

    fn arrow(&mut self) -> Parsed<()> {
        if self.eat(TokenKind::Arrow).is_some() {
            return Ok(());
        }
        let diagnostic = self.expected("`->`").help("the results follow the parameters: `-> (C)`");
        match self.kind() {
            TokenKind::FatArrow | TokenKind::Colon => {
                self.report(diagnostic.fix(self.peek().span, "->"));
                self.bump();
                Ok(())
            }
            TokenKind::LParen => {
                self.report(diagnostic.fix(self.gap(), " ->"));
                // The parenthesis is correct; errors after it are separate.
                Ok(())
            }
            TokenKind::Error => Err(ErrorReported),
            _ => self.fail(diagnostic),
        }
    }

    /// Results without parentheses: `-> C {`.
    fn bare_returns(&mut self) -> Parsed<Vec<Ident>> {
        let start = self.pos;
        let diagnostic = self.expected("`(` and the names of the results");
        if !matches!(self.kind(), TokenKind::Ident | TokenKind::Type) {
            return self.fail(diagnostic.help("name the results: `-> (C)`"));
        }
        let mut results = vec![self.result()?];
        while self.eat(TokenKind::Comma).is_some() {
            results.push(self.result()?);
        }
        if self.last_report.is_none_or(|last| last < start) {
            let first = results.first().map_or(self.previous(), |result| result.span);
            let span = first.to(self.previous());
            let fixed = format!("({})", self.slice(span));
            self.report(diagnostic.help(format!("write {}", quote(&fixed))).fix(span, fixed));
        }
        Ok(results)
    }

    /// The name of a result. Its type is not written.
    fn result(&mut self) -> Parsed<Ident> {
        let typed = self.at(TokenKind::Type)
            && matches!(self.peek_at(1).kind, TokenKind::Ident | TokenKind::LParen);
        if typed {
            let dtype = self.bump().span;
            if let Some(open) = self.eat(TokenKind::LParen) {
                self.list(open.span, Self::dim)?;
            }
            let message = "the type of a result is not written";
            self.report(
                Diagnostic::new(Code::UnexpectedToken, dtype.to(self.previous()), message)
                    .here("this follows from the statements")
                    .help("give only the name of the result"),
            );
        }
        self.name("the name of a result")
    }

    /// The statements and the `}` of the `{` that is `open`.
    fn body(&mut self, open: Span) -> Vec<Stmt> {
        let mut body = Vec::new();
        loop {
            match self.kind() {
                TokenKind::RBrace => {
                    self.bump();
                    return body;
                }
                TokenKind::Def | TokenKind::End => {
                    let _: Parsed<()> = self.fail_unclosed(open, "{", "}");
                    return body;
                }
                TokenKind::Semicolon => {
                    self.bump();
                }
                _ => {
                    let start = self.pos;
                    match self.stmt() {
                        Ok(stmt) => body.push(stmt),
                        Err(ErrorReported) => self.skip_to_stmt(start),
                    }
                }
            }
        }
    }
}

/// `float(2*N) A`
fn computed_size(span: Span) -> Diagnostic {
    let message = "a size is a name or a number, it is not computed";
    Diagnostic::new(Code::UnexpectedToken, span, message)
        .here("expected a single name or number")
        .help("give the size a name of its own, such as `M`; its value comes with those of the other sizes")
}

fn size_too_large(span: Span) -> Diagnostic {
    Diagnostic::new(Code::InvalidNumber, span, "this size is too large")
        .here("does not fit 63 bits")
        .help(format!("the largest size is {}", i64::MAX))
}

/// E0112 for a word in the position of a type, with the most likely type.
fn unknown_type(word: &str, span: Span) -> Diagnostic {
    let aliases = DType::ALIASES.iter().map(|(alias, _)| *alias);
    let known = DType::ALL.into_iter().map(DType::name).chain(aliases);
    let foreign = DType::from_foreign_name(word).map(DType::name);
    let diagnostic =
        Diagnostic::new(Code::UnknownType, span, format!("there is no type {}", quote(word)))
            .here("expected a type");
    match foreign.or_else(|| nearest(word, known)) {
        Some(dtype) => diagnostic.help(format!("did you mean `{dtype}`?")).fix(span, dtype),
        None => {
            let names: Vec<&str> = DType::ALL.into_iter().map(DType::name).collect();
            diagnostic.help(format!("the types are {}", names.join(", ")))
        }
    }
}
