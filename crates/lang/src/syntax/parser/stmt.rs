//! Parses statements: comprehensions, calls, and `where` clauses.

use super::{ErrorReported, Parsed, Parser};
use crate::builtin::Builtin;
use crate::diagnostic::{Code, Diagnostic};
use crate::dtype::DType;
use crate::ops::{AssignOp, CompareOp, ReductionOp};
use crate::source::Span;
use crate::syntax::ast::{Call, Comprehension, Expr, ExprKind, Ident, RangeConstraint, Stmt};
use crate::syntax::token::{TokenKind, quote};

const ASSIGN: TokenKind = TokenKind::Assign(AssignOp::Assign);

impl Parser<'_> {
    /// A statement, without its terminator.
    pub(super) fn stmt(&mut self) -> Parsed<Stmt> {
        let next = self.peek_at(1);
        let subscripts = next.kind == TokenKind::LParen && !next.first_on_line;
        if self.at_foreign_stmt() {
            return self.foreign_stmt();
        }
        let stmt = match self.kind() {
            TokenKind::LParen => self.assignment_of_call()?,
            TokenKind::Type if next.kind == TokenKind::Ident => return self.declaration(),
            TokenKind::Ident | TokenKind::Type | TokenKind::Where if subscripts => {
                Stmt::Comprehension(self.comprehension()?)
            }
            TokenKind::Ident => self.assignment_of_call()?,
            TokenKind::Where => {
                let help = "`where` follows the statement whose index variables it is about";
                return self.fail(self.expected("a statement").help(help));
            }
            _ => return self.fail_expected("a statement, such as `C(i) = A(i)`"),
        };
        self.end_of_stmt()?;
        Ok(stmt)
    }

    /// `float x = ...`: tensors are not declared.
    fn declaration(&mut self) -> Parsed<Stmt> {
        let dtype = self.peek().span;
        let message = "tensors are not declared: their types follow from their statements";
        self.fail(
            Diagnostic::new(Code::UnexpectedToken, dtype, message)
                .here("no type belongs here")
                .help("remove the type; `s() = ...` computes a scalar"),
        )
    }

    /// `target(indices) op rhs scan var from start scatter var = at where constraints`
    fn comprehension(&mut self) -> Parsed<Comprehension> {
        let target = self.name("the name of a tensor")?;
        let open = self.expect(TokenKind::LParen, "`(`")?;
        let (indices, _) = self.list(open.span, |parser| parser.index(&target))?;
        let position = self.wants_position();
        let op = self.assign_op()?;
        let rhs = self.expr()?;
        let scan = self.scan()?;
        let scatter = self.scatter()?;
        let constraints = self.constraints()?;
        let span = target.span.to(self.previous());
        let indices = indices.into_iter().flatten().collect();
        Ok(Comprehension { target, indices, op, position, rhs, scan, scatter, constraints, span })
    }

    /// Takes `argmax=!` or `argmin=!`, if it is next.
    fn wants_position(&mut self) -> bool {
        let token = self.peek();
        let name = self.slice(token.span).trim_end_matches(['!', '=']);
        let is_position = matches!(token.kind, TokenKind::Assign(_)) && name.starts_with("arg");
        if is_position && !self.slice(token.span).ends_with('!') {
            let message = format!("`{name}=` cannot continue: a position has no initial value");
            self.report(
                Diagnostic::new(Code::UnexpectedToken, token.span, message)
                    .here("the `!` is missing")
                    .help(format!("write `{name}=!`"))
                    .fix(token.span, format!("{name}=!")),
            );
        }
        is_position
    }

    /// A left-side subscript; `None` if it is not the name of an index variable.
    fn index(&mut self, target: &Ident) -> Parsed<Option<Ident>> {
        let next = self.peek_at(1).kind;
        let ends = matches!(next, TokenKind::Comma | TokenKind::RParen | TokenKind::Assign(_));
        if ends && !matches!(self.kind(), TokenKind::Int | TokenKind::Float | TokenKind::DimOf) {
            return self.name("the name of an index variable").map(Some);
        }
        let before = self.last_report;
        let tree = self.tree()?;
        // `C(i j)` lacks a comma, which the list reports.
        if let ExprKind::Name(name) = tree.expr.kind {
            return Ok(Some(Ident { name, span: tree.extent }));
        }
        if self.last_report == before {
            self.report(bad_index(target, &tree.expr, tree.extent, self.slice(tree.extent)));
        }
        Ok(None)
    }

    /// `=` or a reduction, after a left side with subscripts.
    fn assign_op(&mut self) -> Parsed<AssignOp> {
        let token = self.peek();
        match token.kind {
            TokenKind::Assign(op) => {
                self.bump();
                Ok(op)
            }
            TokenKind::Compare(CompareOp::Eq) => {
                let diagnostic = self.expected("`=`").help("`==` compares; `=` assigns");
                self.report(diagnostic.fix(token.span, "="));
                self.bump();
                Ok(AssignOp::Assign)
            }
            TokenKind::Ident if self.peek_at(1).kind == ASSIGN => self.split_reduction(),
            TokenKind::Error => Err(ErrorReported),
            _ => {
                let help = "a statement is `C(i) = ...`, or `C(i) +=! ...` for a sum";
                self.fail(self.expected("`=` or a reduction such as `+=!`").help(help))
            }
        }
    }

    /// `min = x`, with an extra blank, or `avg=`, which does not exist.
    fn split_reduction(&mut self) -> Parsed<AssignOp> {
        let (word, equals) = (self.peek().span, self.peek_at(1).span);
        let (name, whole) = (self.slice(word), word.to(equals));
        let op = match name {
            "min" => ReductionOp::Min,
            "max" => ReductionOp::Max,
            _ => {
                let message = format!("there is no reduction {}", quote(&format!("{name}=")));
                return self.fail(
                    Diagnostic::new(Code::UnexpectedToken, whole, message)
                        .here("not a reduction")
                        .help("the reductions are `+=`, `*=`, `min=`, `max=`, `argmin=!` and `argmax=!`"),
                );
            }
        };
        let message = format!("the reduction `{name}=` is written without a blank");
        self.report(
            Diagnostic::new(Code::UnexpectedToken, whole, message)
                .here("a blank too many")
                .help(format!("write `{name}=`"))
                .fix(whole, format!("{name}=")),
        );
        self.bump();
        self.bump();
        Ok(AssignOp::Reduce { op, initialize: false })
    }

    /// `a, b = f(x, y)`. Also a statement without its subscripts: `C = A(i) + 1`.
    fn assignment_of_call(&mut self) -> Parsed<Stmt> {
        let start = self.peek().span;
        let targets = self.targets()?;
        let op = match self.kind() {
            TokenKind::Assign(op) => op,
            TokenKind::Error => return Err(ErrorReported),
            _ => return self.fail_targets(&targets, start),
        };
        self.bump();
        let (before, at) = (self.diagnostics.len(), self.pos);
        let value = self.tree()?;
        let bare = value.extent == value.expr.span;
        let constraints = self.at(TokenKind::Where);
        match value.expr.kind {
            ExprKind::Apply(callee, args)
                if op == AssignOp::Assign && bare && !constraints && is_def(&callee) =>
            {
                let span = start.to(self.previous());
                Ok(Stmt::Call(Call { targets, callee, args, span }))
            }
            kind => {
                if self.at(TokenKind::Error) {
                    return Err(ErrorReported);
                }
                let rhs = Expr { kind, span: value.expr.span };
                if self.diagnostics.len() == before && self.last_report < Some(at) {
                    self.report(self.needs_parentheses(&targets, op, &rhs));
                }
                self.recovered_comprehension(targets, op, rhs)
            }
        }
    }

    /// The most likely meaning of `C = A(i) + 1`, after it was reported.
    fn recovered_comprehension(
        &mut self,
        targets: Vec<Ident>,
        op: AssignOp,
        rhs: Expr,
    ) -> Parsed<Stmt> {
        let scan = self.scan()?;
        let scatter = self.scatter()?;
        let constraints = self.constraints()?;
        let Some(target) = targets.into_iter().next() else {
            return Err(ErrorReported);
        };
        let span = target.span.to(self.previous());
        let indices = Vec::new();
        Ok(Stmt::Comprehension(Comprehension {
            target,
            indices,
            op,
            position: false,
            rhs,
            scan,
            scatter,
            constraints,
            span,
        }))
    }

    /// E0109.
    fn needs_parentheses(&self, targets: &[Ident], op: AssignOp, rhs: &Expr) -> Diagnostic {
        let first = targets.first().map_or(rhs.span, |target| target.span);
        let [target] = targets else {
            let message = "only a call of a definition has several results";
            return Diagnostic::new(Code::TargetNeedsParentheses, rhs.span, message)
                .here("this is not a call")
                .help("write one statement for each tensor, with its subscripts: `C(i) = ...`");
        };
        let name = &target.name;
        let message = format!("the left side {} has no subscripts", quote(name));
        let diagnostic = Diagnostic::new(Code::TargetNeedsParentheses, first, message)
            .here("expected subscripts, in parentheses")
            .note("without them, the right side must be a call of a definition: `C = f(A)`");
        let (mut indices, symbol) = (Vec::new(), op.symbol());
        self.subscript_names(rhs, false, &mut indices);
        if indices.is_empty()
            && let Some(tensor) = self.bare_tensor(rhs)
        {
            return diagnostic.help(format!(
                "write the index variables on both sides, `{name}(i) {symbol} ... {tensor}(i) ...`, \
                 or `{name}() {symbol} ...` for a scalar"
            ));
        }
        // All index variables of a plain assignment are on its left side; a reduction may give a
        // scalar.
        if op != AssignOp::Assign {
            indices.clear();
        }
        let subscripts = format!("({})", indices.join(", "));
        let scalar = if indices.is_empty() { " for a scalar" } else { "" };
        diagnostic
            .help(format!("write `{name}{subscripts} {symbol} ...`{scalar}"))
            .fix(Span::new(first.end, first.end), subscripts)
    }

    /// A name outside subscripts that may be a tensor.
    fn bare_tensor<'e>(&self, expr: &'e Expr) -> Option<&'e str> {
        match &expr.kind {
            ExprKind::Name(name) => {
                let constant = super::builtin_owner(name).is_some();
                let scalar = constant || self.scalars.binary_search(name).is_ok();
                (!scalar).then_some(name.as_str())
            }
            ExprKind::Apply(callee, _) if is_def(callee) => None,
            ExprKind::Apply(_, args) => args.iter().find_map(|arg| self.bare_tensor(arg)),
            ExprKind::Unary(_, x) => self.bare_tensor(x),
            ExprKind::Arith(_, a, b) | ExprKind::Compare(_, a, b) | ExprKind::Logic(_, a, b) => {
                self.bare_tensor(a).or_else(|| self.bare_tensor(b))
            }
            ExprKind::Select(c, a, b) => [c, a, b].into_iter().find_map(|x| self.bare_tensor(x)),
            ExprKind::Int(_) | ExprKind::Float(_) | ExprKind::Bool(_) | ExprKind::DimOf(..) => None,
        }
    }

    /// The names in the subscripts of an expression that may be index variables.
    fn subscript_names<'e>(&self, expr: &'e Expr, inside: bool, names: &mut Vec<&'e str>) {
        match &expr.kind {
            ExprKind::Name(name) => {
                let known = self.known.binary_search(name).is_ok();
                // Ten subscripts are enough for a suggestion.
                if inside && !known && names.len() < 10 && !names.contains(&name.as_str()) {
                    names.push(name);
                }
            }
            ExprKind::Apply(callee, args) => {
                let inside = inside || is_def(callee);
                args.iter().for_each(|arg| self.subscript_names(arg, inside, names));
            }
            ExprKind::Unary(_, x) => self.subscript_names(x, inside, names),
            ExprKind::Arith(_, a, b) | ExprKind::Compare(_, a, b) | ExprKind::Logic(_, a, b) => {
                self.subscript_names(a, inside, names);
                self.subscript_names(b, inside, names);
            }
            ExprKind::Select(c, a, b) => {
                [c, a, b].into_iter().for_each(|x| self.subscript_names(x, inside, names));
            }
            ExprKind::Int(_) | ExprKind::Float(_) | ExprKind::Bool(_) | ExprKind::DimOf(..) => {}
        }
    }

    /// `a, b` or `(a, b)`
    fn targets(&mut self) -> Parsed<Vec<Ident>> {
        const WHAT: &str = "the name of a tensor";
        if let Some(open) = self.eat(TokenKind::LParen) {
            if self.at(TokenKind::RParen) {
                return self.fail_expected(WHAT);
            }
            return Ok(self.list(open.span, |parser| parser.name(WHAT))?.0);
        }
        let mut targets = vec![self.name(WHAT)?];
        while self.eat(TokenKind::Comma).is_some() {
            targets.push(self.name(WHAT)?);
        }
        Ok(targets)
    }

    /// Fails at names without a `=`.
    fn fail_targets<T>(&mut self, targets: &[Ident], start: Span) -> Parsed<T> {
        let next = self.peek();
        let diagnostic = self.expected("`=`");
        let name = targets.first().map_or("", |target| target.name.as_str());
        if next.kind == TokenKind::LParen {
            let (name, help) = (quote(name), "must stand on the line of the name");
            return self
                .fail(diagnostic.help(format!("the `(` of the subscripts of {name} {help}")));
        }
        if self.slice(start) == "(" {
            let help = "the `(` of subscripts must stand on the line of the name before it";
            return self.fail(diagnostic.help(help));
        }
        self.fail(diagnostic.help("a statement is `C(i) = ...` or `C = f(A)`"))
    }

    /// `where var in lo:hi, ...`, if there is one.
    fn constraints(&mut self) -> Parsed<Vec<RangeConstraint>> {
        let mut constraints = Vec::new();
        if self.eat(TokenKind::Where).is_none() {
            return Ok(constraints);
        }
        loop {
            constraints.push(self.constraint()?);
            match self.kind() {
                TokenKind::Comma => {
                    self.bump();
                }
                TokenKind::Logic(_) => {
                    let comma = self.peek().span;
                    let diagnostic = self.expected("`,`").help("separate ranges by commas");
                    self.report(diagnostic.fix(comma, ","));
                    self.bump();
                }
                _ => return Ok(constraints),
            }
        }
    }

    /// `var in lo:hi`
    fn constraint(&mut self) -> Parsed<RangeConstraint> {
        const FORM: &str = "a range is written `i in 0:N`, the upper end excluded";
        if !self.at(TokenKind::Ident) {
            let diagnostic = self.expected("an index variable and its range").help(FORM);
            return if self.at(TokenKind::Error) {
                Err(ErrorReported)
            } else {
                self.fail(diagnostic)
            };
        }
        let var = self.name("the name of an index variable")?;
        let next = self.peek();
        if next.kind == TokenKind::Ident && self.slice(next.span) == "in" {
            self.bump();
        } else if matches!(next.kind, ASSIGN | TokenKind::Colon) {
            self.report(self.expected("`in`").help(FORM).fix(next.span, "in"));
            self.bump();
        } else if next.kind == TokenKind::Error {
            return Err(ErrorReported);
        } else {
            return self.fail(self.expected("`in`").help(FORM));
        }
        let (lo, hi) = self.range()?;
        let span = var.span.to(self.previous());
        Ok(RangeConstraint { var, lo, hi, span })
    }

    /// `lo:hi`. The lower end has no unparenthesized ternary, so that its `:` is the range's.
    fn range(&mut self) -> Parsed<(Expr, Expr)> {
        if self.at(TokenKind::Colon) {
            let diagnostic = self.expected("the lower end of the range");
            let fix = Span::new(self.peek().span.start, self.peek().span.start);
            return self.fail(diagnostic.help("ranges mostly start at `0`").fix(fix, "0"));
        }
        let lo = self.binary(0)?;
        match self.kind() {
            TokenKind::Colon => {
                self.bump();
            }
            TokenKind::Error => return Err(ErrorReported),
            TokenKind::Question => {
                let help =
                    "a range does not depend on a condition; choose by `min`, `max` or `clamp`";
                return self.fail(self.expected("`:`").help(help));
            }
            _ => {
                let message = "this range has only one end";
                let end = self.slice(lo.extent);
                let start = Span::new(lo.extent.start, lo.extent.start);
                return self.fail(
                    Diagnostic::new(Code::UnexpectedToken, lo.extent, message)
                        .here("expected `lo:hi`")
                        .help(format!("write {}", quote(&format!("0:{end}"))))
                        .fix(start, "0:"),
                );
            }
        }
        if self.ends_stmt() {
            return self.fail_expected("the upper end of the range");
        }
        Ok((lo.expr, self.expr()?))
    }

    pub(super) fn ends_stmt(&self) -> bool {
        use TokenKind::{Def, End, RBrace, Semicolon};
        matches!(self.kind(), Def | End | RBrace | Semicolon) || self.begins_stmt_line()
    }

    /// Checks that the next token may follow a statement, and takes a `;`.
    fn end_of_stmt(&mut self) -> Parsed<()> {
        let next = self.peek();
        match next.kind {
            TokenKind::Semicolon => {
                self.bump();
                Ok(())
            }
            TokenKind::RBrace | TokenKind::Def | TokenKind::End => Ok(()),
            TokenKind::Ident | TokenKind::LParen | TokenKind::Type if next.first_on_line => Ok(()),
            TokenKind::Ident | TokenKind::LParen if self.looks_like_stmt() => Ok(()),
            TokenKind::Error => Err(ErrorReported),
            TokenKind::RParen => {
                let message = "this `)` closes nothing";
                self.fail(
                    Diagnostic::new(Code::UnexpectedToken, next.span, message)
                        .here("there is no `(` for it")
                        .help("remove it")
                        .fix(next.span, ""),
                )
            }
            TokenKind::Where => {
                let help = "a statement has one `where`; separate its ranges by commas";
                self.fail(self.expected("the end of the statement").help(help))
            }
            kind => {
                let diagnostic = self.expected("an operator or the end of the statement");
                let previous = self.slice(self.previous());
                let text = self.slice(next.span);
                let help = if kind == TokenKind::LParen && previous == ")" {
                    Some("all subscripts stand in one pair of parentheses: `A(i, j)`")
                } else if kind == TokenKind::Float && text.starts_with('.') {
                    Some("`A.0`, without a blank, is the size of dimension 0 of `A`")
                } else if kind == TokenKind::FatArrow {
                    Some("write `>=` to compare")
                } else if text == "if" || previous == "if" {
                    Some("a conditional expression is `condition ? a : b`")
                } else if previous == "not" {
                    Some("a condition is negated by `!`: `!(a < b)`")
                } else {
                    None
                };
                self.fail(match help {
                    Some(help) => diagnostic.help(help),
                    None => diagnostic,
                })
            }
        }
    }
}

/// Whether a name may be a `def` or a tensor, rather than a builtin function.
fn is_def(callee: &Ident) -> bool {
    Builtin::from_name(&callee.name).is_none() && DType::from_name(&callee.name).is_none()
}

/// E0111.
fn bad_index(target: &Ident, expr: &Expr, span: Span, text: &str) -> Diagnostic {
    let message = format!("the subscript {} on the left is not an index variable", quote(text));
    let help = match expr.kind {
        ExprKind::Int(_) => "a statement computes all elements: choose by the index, \
                             `C(i) = i == 0 ? a : b`, or give a part of its range, `where i in lo:hi`"
            .to_owned(),
        _ if reads(expr) => {
            let (name, at) = (quote(&target.name), quote(text));
            let (name, at) = (name.trim_matches('`'), at.trim_matches('`'));
            format!(
                "data decide where values go in a scatter, which reduces them: \
                 `{name}(b) +=! ... scatter b = {at} where b in 0:B`"
            )
        }
        _ => "use a plain name on the left, and shift the subscripts on the right side instead"
            .to_owned(),
    };
    Diagnostic::new(Code::TargetSubscript, span, message)
        .here("expected a name, such as `i`")
        .help(help)
}

/// Whether an expression reads elements of a tensor.
fn reads(expr: &Expr) -> bool {
    match &expr.kind {
        ExprKind::Apply(callee, args) => is_def(callee) || args.iter().any(reads),
        ExprKind::Unary(_, x) => reads(x),
        ExprKind::Arith(_, a, b) | ExprKind::Compare(_, a, b) | ExprKind::Logic(_, a, b) => {
            reads(a) || reads(b)
        }
        ExprKind::Select(c, a, b) => [c, a, b].into_iter().any(|x| reads(x)),
        ExprKind::Int(_)
        | ExprKind::Float(_)
        | ExprKind::Bool(_)
        | ExprKind::Name(_)
        | ExprKind::DimOf(..) => false,
    }
}
