//! The syntax tree, before names and types are resolved.

use crate::dtype::DType;
use crate::ops::{ArithOp, AssignOp, CompareOp, LogicOp, UnaryOp};
use crate::source::Span;

/// A name and its span.
#[derive(Debug, Clone, PartialEq)]
pub struct Ident {
    /// The name.
    pub name: String,
    /// Its span.
    pub span: Span,
}

/// A source text: `def`s and scalar functions.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Module {
    /// The functions, in source order.
    pub functions: Vec<Function>,
    /// The definitions, in source order.
    pub defs: Vec<Def>,
}

/// `fn name(params) = body`: a scalar function, expanded at its uses.
#[derive(Debug, Clone, PartialEq)]
pub struct Function {
    /// The name.
    pub name: Ident,
    /// The parameters.
    pub params: Vec<Ident>,
    /// The body.
    pub body: Expr,
    /// From `fn` to the end of the body.
    pub span: Span,
}

/// `def name(params) -> (returns) { body }`
#[derive(Debug, Clone, PartialEq)]
pub struct Def {
    /// The name.
    pub name: Ident,
    /// The parameters.
    pub params: Vec<Param>,
    /// The names of the results.
    pub returns: Vec<Ident>,
    /// The statements.
    pub body: Vec<Stmt>,
    /// From `def` to the closing brace.
    pub span: Span,
}

/// `const float(M, K) A`, or `float a` for a scalar.
#[derive(Debug, Clone, PartialEq)]
pub struct Param {
    /// Whether it is marked `const`: its values do not change between calls.
    pub is_const: bool,
    /// The element type.
    pub dtype: DType,
    /// The sizes; empty for a scalar.
    pub dims: Vec<Dim>,
    /// The name.
    pub name: Ident,
    /// The whole parameter.
    pub span: Span,
}

/// One size of a parameter.
#[derive(Debug, Clone, PartialEq)]
pub enum Dim {
    /// A size, bound later.
    Name(Ident),
    /// A size fixed in the text.
    Literal(i64, Span),
}

impl Dim {
    /// Its span.
    #[must_use]
    pub fn span(&self) -> Span {
        match self {
            Dim::Name(ident) => ident.span,
            Dim::Literal(_, span) => *span,
        }
    }
}

/// A statement.
#[derive(Debug, Clone, PartialEq)]
pub enum Stmt {
    /// `C(m, n) +=! A(m, k) * B(k, n) where k in 0:K`
    Comprehension(Comprehension),
    /// `a, b = f(x, y)`
    Call(Call),
}

impl Stmt {
    /// The whole statement.
    #[must_use]
    pub fn span(&self) -> Span {
        match self {
            Stmt::Comprehension(comprehension) => comprehension.span,
            Stmt::Call(call) => call.span,
        }
    }
}

/// `target(indices) op rhs scan var from start scatter var = at where constraints`
#[derive(Debug, Clone, PartialEq)]
pub struct Comprehension {
    /// The tensor that is written.
    pub target: Ident,
    /// The index variables on the left.
    pub indices: Vec<Ident>,
    /// `=`, or a reduction.
    pub op: AssignOp,
    /// Whether it computes the position of the extreme: `argmax=!` or `argmin=!`, which
    /// [`expand`](super::expand) lowers to two plain reductions.
    pub position: bool,
    /// The value.
    pub rhs: Expr,
    /// The `scan` clause, which makes the statement a recurrence.
    pub scan: Option<ScanClause>,
    /// The `scatter` clauses: the data-dependent positions of values.
    pub scatter: Vec<ScatterClause>,
    /// The `where` clause.
    pub constraints: Vec<RangeConstraint>,
    /// The whole statement.
    pub span: Span,
}

/// `scan var from start`
#[derive(Debug, Clone, PartialEq)]
pub struct ScanClause {
    /// The index variable of the recurrence.
    pub var: Ident,
    /// The value of elements before the first one.
    pub start: Expr,
    /// The whole clause.
    pub span: Span,
}

/// `var = at` of a `scatter` clause
#[derive(Debug, Clone, PartialEq)]
pub struct ScatterClause {
    /// The index variable of the left side.
    pub var: Ident,
    /// Its value, in terms of the other index variables and of data.
    pub at: Expr,
    /// The variable and its value.
    pub span: Span,
}

/// `targets = callee(args)`
#[derive(Debug, Clone, PartialEq)]
pub struct Call {
    /// The tensors that take the results.
    pub targets: Vec<Ident>,
    /// The `def` that is called, or `concat`.
    pub callee: Ident,
    /// Names of tensors, or constant expressions for scalar parameters.
    pub args: Vec<Expr>,
    /// The whole statement.
    pub span: Span,
}

/// `var in lo:hi`, the upper end excluded.
#[derive(Debug, Clone, PartialEq)]
pub struct RangeConstraint {
    /// The index variable.
    pub var: Ident,
    /// The first value.
    pub lo: Expr,
    /// One past the last value.
    pub hi: Expr,
    /// The whole constraint.
    pub span: Span,
}

/// An expression.
#[derive(Debug, Clone, PartialEq)]
pub struct Expr {
    /// What it is.
    pub kind: ExprKind,
    /// Its span (without parentheses around it).
    pub span: Span,
}

/// The kinds of expression.
#[derive(Debug, Clone, PartialEq)]
pub enum ExprKind {
    /// An integer literal.
    Int(u64),
    /// A floating-point literal; never negative, never NaN, always finite.
    Float(f64),
    /// `true` or `false`.
    Bool(bool),
    /// An index variable, a size, a scalar, or a named constant.
    Name(String),
    /// `A.0`: the size of dimension 0 of `A`.
    DimOf(Ident, u32),
    /// `A(i, j)`, `exp(x)` or `float(x)`; name resolution tells them apart.
    Apply(Ident, Vec<Expr>),
    /// `-x`, `!x`
    Unary(UnaryOp, Box<Expr>),
    /// `a + b` and the like.
    Arith(ArithOp, Box<Expr>, Box<Expr>),
    /// `a < b` and the like.
    Compare(CompareOp, Box<Expr>, Box<Expr>),
    /// `a && b`, `a || b`
    Logic(LogicOp, Box<Expr>, Box<Expr>),
    /// `c ? a : b`
    Select(Box<Expr>, Box<Expr>, Box<Expr>),
}

impl Expr {
    /// The operands, in source order.
    #[must_use]
    pub fn operands(&self) -> Vec<&Expr> {
        match &self.kind {
            ExprKind::Int(_)
            | ExprKind::Float(_)
            | ExprKind::Bool(_)
            | ExprKind::Name(_)
            | ExprKind::DimOf(..) => Vec::new(),
            ExprKind::Apply(_, args) => args.iter().collect(),
            ExprKind::Unary(_, a) => vec![a],
            ExprKind::Arith(_, a, b) | ExprKind::Compare(_, a, b) | ExprKind::Logic(_, a, b) => {
                vec![a, b]
            }
            ExprKind::Select(c, a, b) => vec![c, a, b],
        }
    }

    /// The operands, mutable.
    #[must_use]
    pub fn operands_mut(&mut self) -> Vec<&mut Expr> {
        match &mut self.kind {
            ExprKind::Int(_)
            | ExprKind::Float(_)
            | ExprKind::Bool(_)
            | ExprKind::Name(_)
            | ExprKind::DimOf(..) => Vec::new(),
            ExprKind::Apply(_, args) => args.iter_mut().collect(),
            ExprKind::Unary(_, a) => vec![a],
            ExprKind::Arith(_, a, b) | ExprKind::Compare(_, a, b) | ExprKind::Logic(_, a, b) => {
                vec![a, b]
            }
            ExprKind::Select(c, a, b) => vec![c, a, b],
        }
    }

    /// The first occurrence of a bare name in the expression.
    #[must_use]
    pub fn first_mention(&self, name: &str) -> Option<Span> {
        match &self.kind {
            ExprKind::Name(other) => (other == name).then_some(self.span),
            _ => self.operands().into_iter().find_map(|operand| operand.first_mention(name)),
        }
    }
}

/// The deepest nesting of expressions; the parser rejects deeper ones, so that no later pass can
/// overflow its stack. A chain of operators (`a + b + c`) nests once per operator.
pub const MAX_DEPTH: usize = 160;

/// The name of the built-in operation that joins tensors along their last dimension.
pub const CONCAT: &str = "concat";
