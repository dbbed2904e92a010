//! Parses expressions, by precedence climbing.
//!
//! From loosest to tightest, as in C:
//!
//! | operators          | associate to |
//! | ------------------ | ------------ |
//! | `c ? a : b`        | the right    |
//! | `\|\|`             | the left     |
//! | `&&`               | the left     |
//! | `== !=`            | the left     |
//! | `< <= > >=`        | the left     |
//! | `\|`, `^`, `&`, `<< >>`: each tighter than the one before | the left |
//! | `+ -`              | the left     |
//! | `* / %`            | the left     |
//! | `- ! ~` (one operand)|            |
//!
//! Unlike in C, bitwise operators bind tighter than comparisons, as in Rust and Python: `x & 1 ==
//! 0` tests a bit. In the tree they are calls of builtins.

use super::{ErrorReported, Parsed, Parser};
use crate::builtin::Builtin;
use crate::diagnostic::{Code, Diagnostic};
use crate::ops::{ArithOp, AssignOp, CompareOp, LogicOp, UnaryOp};
use crate::source::Span;
use crate::syntax::ast::{Expr, ExprKind, Ident, MAX_DEPTH};
use crate::syntax::number::{self, Number};
use crate::syntax::token::{Token, TokenKind, quote};

/// An expression under construction.
pub(super) struct Tree {
    pub(super) expr: Expr,
    /// Its span, with the parentheses around it.
    pub(super) extent: Span,
    /// The longest path from here to a leaf; parentheses count.
    height: usize,
}

impl Tree {
    fn leaf(kind: ExprKind, span: Span) -> Self {
        Tree { expr: Expr { kind, span }, extent: span, height: 1 }
    }

    fn boxed(self) -> Box<Expr> {
        Box::new(self.expr)
    }
}

/// An operator with two operands.
#[derive(Clone, Copy)]
enum BinaryOp {
    Arith(ArithOp),
    Compare(CompareOp),
    Logic(LogicOp),
    Bits(Builtin),
}

impl BinaryOp {
    fn of(kind: TokenKind) -> Option<Self> {
        Some(match kind {
            TokenKind::Arith(op) => BinaryOp::Arith(op),
            TokenKind::Compare(op) => BinaryOp::Compare(op),
            TokenKind::Logic(op) => BinaryOp::Logic(op),
            TokenKind::Bits(op) if op != Builtin::BitNot => BinaryOp::Bits(op),
            // An error, read as `==`.
            TokenKind::Assign(AssignOp::Assign) => BinaryOp::Compare(CompareOp::Eq),
            _ => return None,
        })
    }

    fn precedence(self) -> u8 {
        match self {
            BinaryOp::Logic(LogicOp::Or) => 1,
            BinaryOp::Logic(LogicOp::And) => 2,
            BinaryOp::Compare(CompareOp::Eq | CompareOp::Ne) => 3,
            BinaryOp::Compare(_) => 4,
            BinaryOp::Bits(Builtin::BitOr) => 5,
            BinaryOp::Bits(Builtin::BitXor) => 6,
            BinaryOp::Bits(Builtin::BitAnd) => 7,
            BinaryOp::Bits(_) => 8,
            BinaryOp::Arith(ArithOp::Add | ArithOp::Sub) => 9,
            BinaryOp::Arith(_) => 10,
        }
    }

    /// The node of an operator at a span.
    fn node(self, span: Span, left: Box<Expr>, right: Box<Expr>) -> ExprKind {
        match self {
            BinaryOp::Arith(op) => ExprKind::Arith(op, left, right),
            BinaryOp::Compare(op) => ExprKind::Compare(op, left, right),
            BinaryOp::Logic(op) => ExprKind::Logic(op, left, right),
            BinaryOp::Bits(op) => ExprKind::Apply(function(op, span), vec![*left, *right]),
        }
    }
}

impl Parser<'_> {
    /// An expression.
    pub(super) fn expr(&mut self) -> Parsed<Expr> {
        self.tree().map(|tree| tree.expr)
    }

    /// An expression, with its extent and height.
    pub(super) fn tree(&mut self) -> Parsed<Tree> {
        let condition = self.binary(0)?;
        let Some(question) = self.eat(TokenKind::Question) else {
            return Ok(condition);
        };
        let chosen = self.nested(Self::tree)?;
        if self.eat(TokenKind::Colon).is_none() {
            return self.fail_select(question);
        }
        let other = self.nested(Self::tree)?;
        let span = condition.extent.to(other.extent);
        let height = condition.height.max(chosen.height).max(other.height);
        let kind = ExprKind::Select(condition.boxed(), chosen.boxed(), other.boxed());
        self.node(kind, span, height)
    }

    fn fail_select<T>(&mut self, question: Token) -> Parsed<T> {
        if self.at(TokenKind::Error) {
            return Err(ErrorReported);
        }
        let diagnostic = self.expected("`:` and the other value");
        self.fail(
            diagnostic
                .label(question.span, "for this `?`")
                .help("a conditional expression is `condition ? a : b`"),
        )
    }

    /// Operators of at least the given precedence and their operands.
    pub(super) fn binary(&mut self, least: u8) -> Parsed<Tree> {
        let mut left = self.unary()?;
        while let Some(op) = self.binary_op().filter(|op| op.precedence() >= least) {
            match self.kind() {
                TokenKind::Assign(_) => self.report_assignment(),
                TokenKind::Ident => self.report_word(op),
                _ => {}
            }
            let at = self.bump().span;
            let right = self.nested(|parser| parser.binary(op.precedence() + 1))?;
            let span = left.extent.to(right.extent);
            let height = left.height.max(right.height);
            left = self.node(op.node(at, left.boxed(), right.boxed()), span, height)?;
        }
        Ok(left)
    }

    /// The next operator, possibly in another language's spelling: `a and b`.
    fn binary_op(&self) -> Option<BinaryOp> {
        let token = self.peek();
        let logic = match self.slice(token.span) {
            "and" => LogicOp::And,
            "or" => LogicOp::Or,
            _ => return BinaryOp::of(token.kind),
        };
        // It may be the name of a tensor that starts the next statement.
        (!token.first_on_line && !self.looks_like_stmt()).then_some(BinaryOp::Logic(logic))
    }

    /// `and` and `or`, which are written `&&` and `||`.
    fn report_word(&mut self, op: BinaryOp) {
        let span = self.peek().span;
        let symbol = if op.precedence() == 1 { "||" } else { "&&" };
        let message = format!("{} is not an operator", quote(self.slice(span)));
        self.report(
            Diagnostic::new(Code::UnexpectedToken, span, message)
                .here("not part of the language")
                .help(format!("write `{symbol}`"))
                .fix(span, symbol),
        );
    }

    /// E0110.
    fn report_assignment(&mut self) {
        let span = self.peek().span;
        self.report(
            Diagnostic::new(Code::AssignmentInExpression, span, "`=` stands in an expression")
                .here("this is an assignment")
                .help("write `==` to compare")
                .fix(span, "=="),
        );
    }

    fn unary(&mut self) -> Parsed<Tree> {
        let token = self.peek();
        let op = match token.kind {
            TokenKind::Arith(ArithOp::Sub) => UnaryOp::Neg,
            TokenKind::Not => UnaryOp::Not,
            TokenKind::Bits(Builtin::BitNot) => return self.other_bits(),
            TokenKind::Arith(ArithOp::Add) => return self.plus(),
            _ => return self.primary(),
        };
        self.bump();
        let operand = self.nested(Self::unary)?;
        let (span, height) = (token.span.to(operand.extent), operand.height);
        self.node(ExprKind::Unary(op, operand.boxed()), span, height)
    }

    /// `~x`
    fn other_bits(&mut self) -> Parsed<Tree> {
        let tilde = self.bump().span;
        let operand = self.nested(Self::unary)?;
        let (span, height) = (tilde.to(operand.extent), operand.height);
        let callee = function(Builtin::BitNot, tilde);
        self.node(ExprKind::Apply(callee, vec![operand.expr]), span, height)
    }

    /// `+x`, which is not an expression.
    fn plus(&mut self) -> Parsed<Tree> {
        let (plus, before) = (self.peek().span, self.previous());
        let diagnostic = self.expected("an expression");
        let reduction = self.slice(before) == "=" && before.end == plus.start;
        self.report(if reduction {
            diagnostic.help("did you mean `+=`?").fix(before.to(plus), "+=")
        } else {
            diagnostic.help("remove the `+`: it has no use before a number").fix(plus, "")
        });
        self.bump();
        self.nested(Self::unary)
    }

    fn primary(&mut self) -> Parsed<Tree> {
        if self.begins_stmt_line() {
            return self.fail_at_next_stmt();
        }
        let token = self.peek();
        let kind = match token.kind {
            TokenKind::Int | TokenKind::Float => literal(self.slice(token.span)),
            TokenKind::True => ExprKind::Bool(true),
            TokenKind::False => ExprKind::Bool(false),
            TokenKind::DimOf => dim_of(self.slice(token.span), token.span),
            TokenKind::Ident | TokenKind::Type => return self.name_or_apply(),
            TokenKind::LParen => return self.parenthesized(),
            // A parameter with the name of a keyword has been reported.
            TokenKind::Where | TokenKind::Const if self.is_known(token.span) => {
                return self.name_or_apply();
            }
            TokenKind::Where if self.peek_at(1).kind == TokenKind::LParen => {
                return self.where_of_arrays();
            }
            _ => return self.fail_operand(),
        };
        self.bump();
        Ok(Tree::leaf(kind, token.span))
    }

    /// `where(c, a, b)`, the selection of array libraries.
    fn where_of_arrays(&mut self) -> Parsed<Tree> {
        let (at, word) = (self.pos, self.bump().span);
        let open = self.bump().span;
        let callee = Ident { name: "where".to_owned(), span: word };
        let tree = self.apply(callee, open)?;
        let ExprKind::Apply(_, args) = &tree.expr.kind else { return Err(ErrorReported) };
        let message = "`where` gives ranges to index variables, and chooses no values";
        let diagnostic = Diagnostic::new(Code::UnexpectedToken, tree.extent, message)
            .here("not part of an expression");
        let diagnostic = match args.as_slice() {
            [c, a, b] => {
                let [c, a, b] = [c, a, b].map(|arg| self.slice(arg.span));
                let choice = format!("({c} ? {a} : {b})");
                let help = format!("choose by a condition: {}", quote(&choice));
                diagnostic.help(help).fix(tree.extent, choice)
            }
            _ => diagnostic.help("choose by a condition: `c ? a : b`"),
        };
        // Errors inside have been reported.
        if self.last_report.is_none_or(|last| last < at) {
            self.report(diagnostic);
        }
        Ok(tree)
    }

    fn fail_operand<T>(&mut self) -> Parsed<T> {
        match self.kind() {
            TokenKind::Error => Err(ErrorReported),
            TokenKind::Arith(_)
            | TokenKind::Compare(_)
            | TokenKind::Logic(_)
            | TokenKind::Bits(_) => {
                let help = "an operand is missing before this operator";
                self.fail(self.expected("an expression").help(help))
            }
            _ if self.after_operator() => self.fail(self.expected_after()),
            _ => self.fail_expected("an expression"),
        }
    }

    fn is_known(&self, span: Span) -> bool {
        self.known.binary_search_by(|name| name.as_str().cmp(self.slice(span))).is_ok()
    }

    fn after_operator(&self) -> bool {
        use TokenKind::{Arith, Assign, Bits, Compare, Logic, Not};
        let before = self.previous_kind();
        matches!(before, Some(Arith(_) | Assign(_) | Compare(_) | Logic(_) | Bits(_) | Not))
    }

    /// The expression is incomplete. Reports the error at its end, rather than at the next token.
    fn expected_after(&self) -> Diagnostic {
        let before = self.previous();
        let message = format!("expected an expression after {}", quote(self.slice(before)));
        Diagnostic::new(Code::UnexpectedToken, before, message)
            .here("something is missing after this")
    }

    /// The expression is incomplete, and the next line is a separate statement.
    fn fail_at_next_stmt<T>(&mut self) -> Parsed<T> {
        let next = self.peek().span;
        self.fail(self.expected_after().label(next, "this starts another statement"))
    }

    /// `A`, `A(i, j)`, `exp(x)` or `float(x)`.
    fn name_or_apply(&mut self) -> Parsed<Tree> {
        let token = self.bump();
        let name = self.slice(token.span);
        let next = self.peek();
        if next.kind == TokenKind::LParen && !next.first_on_line {
            self.bump();
            return self.apply(Ident { name: name.to_owned(), span: token.span }, next.span);
        }
        if token.kind == TokenKind::Type {
            let message = format!("the type `{name}` is not a value");
            return self.fail(
                Diagnostic::new(Code::UnexpectedToken, token.span, message)
                    .here("expected an expression")
                    .help(format!("a conversion is written `{name}(x)`")),
            );
        }
        Ok(Tree::leaf(ExprKind::Name(name.to_owned()), token.span))
    }

    fn apply(&mut self, callee: Ident, open: Span) -> Parsed<Tree> {
        let mut height = 0;
        let (args, close) = self.list(open, |parser| {
            let arg = parser.nested(Self::tree)?;
            height = height.max(arg.height);
            Ok(arg.expr)
        })?;
        let span = callee.span.to(close);
        self.node(ExprKind::Apply(callee, args), span, height)
    }

    fn parenthesized(&mut self) -> Parsed<Tree> {
        let open = self.bump().span;
        let inner = self.nested(Self::tree)?;
        let close = self.close(open)?;
        let height = self.grown(inner.height)?;
        Ok(Tree { expr: inner.expr, extent: open.to(close), height })
    }

    /// A node above subtrees, the highest of which has the given height.
    fn node(&mut self, kind: ExprKind, span: Span, height: usize) -> Parsed<Tree> {
        let height = self.grown(height)?;
        Ok(Tree { expr: Expr { kind, span }, extent: span, height })
    }

    fn grown(&mut self, height: usize) -> Parsed<usize> {
        if height < MAX_DEPTH { Ok(height + 1) } else { self.fail_depth() }
    }

    /// Parses one level deeper, unless that is too deep: this bounds the stack of the parser and of
    /// all later passes.
    fn nested<T>(&mut self, parse: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        if self.depth + 1 >= MAX_DEPTH {
            return self.fail_depth();
        }
        self.depth += 1;
        let parsed = parse(self);
        self.depth -= 1;
        parsed
    }

    /// E0105.
    fn fail_depth<T>(&mut self) -> Parsed<T> {
        let message = format!("this expression nests more than {MAX_DEPTH} levels deep");
        self.fail(
            Diagnostic::new(Code::NestingTooDeep, self.previous(), message)
                .here("the limit is reached here")
                .note("a chain of operators such as `a + b + c` nests once per operator")
                .help("split it into stages: compute a part of it in a statement of its own"),
        )
    }
}

/// The name of a builtin, at the span of its operator.
fn function(builtin: Builtin, span: Span) -> Ident {
    Ident { name: builtin.name().to_owned(), span }
}

/// The value of a literal; the lexer has reported invalid ones.
fn literal(text: &str) -> ExprKind {
    match number::decode(text) {
        Ok(Number::Int(value)) => ExprKind::Int(value),
        Ok(Number::Float(value)) => ExprKind::Float(value),
        Err(_) => ExprKind::Int(0),
    }
}

/// `A.0`; the lexer has reported invalid numbers.
fn dim_of(text: &str, span: Span) -> ExprKind {
    let (name, dim) = text.split_once('.').unwrap_or((text, ""));
    let name_span = Span::new(span.start, span.start + name.len() as u32);
    let ident = Ident { name: name.to_owned(), span: name_span };
    ExprKind::DimOf(ident, dim.parse().unwrap_or(0))
}
