//! HIR: checked definitions with resolved names and types, but symbolic sizes.
//!
//! There are two kinds of expression. [`Int`] is exact index arithmetic: subscripts, `where`
//! clauses, and comparisons with index variables or sizes. [`Expr`] is a value of a tensor's
//! element type.

use crate::builtin::Builtin;
use crate::dtype::DType;
use crate::ops::{ArithOp, AssignOp, CompareOp, LogicOp, UnaryOp};
use crate::source::Span;

/// The number of a tensor in [`Def::tensors`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Symbol(pub(crate) u32);

/// The number of a size in [`Def::sizes`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct SizeId(pub(crate) u32);

/// The number of an index variable in [`Comprehension::vars`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct VarId(pub(crate) u32);

/// A checked `def`.
#[derive(Debug, Clone)]
pub(crate) struct Def {
    pub(crate) name: String,
    pub(crate) span: Span,
    pub(crate) sizes: Vec<Size>,
    /// Parameters first, in order, then the computed tensors.
    pub(crate) tensors: Vec<Tensor>,
    pub(crate) params: usize,
    pub(crate) returns: Vec<Symbol>,
    pub(crate) body: Vec<Stmt>,
    /// The number of statements after inlining.
    pub(crate) expanded: usize,
}

/// A size name of a signature.
#[derive(Debug, Clone)]
pub(crate) struct Size {
    pub(crate) name: String,
    pub(crate) span: Span,
}

/// A parameter, or a computed tensor.
#[derive(Debug, Clone)]
pub(crate) struct Tensor {
    pub(crate) name: String,
    pub(crate) dtype: DType,
    pub(crate) rank: usize,
    pub(crate) span: Span,
    /// The sizes of a parameter; empty for a computed tensor.
    pub(crate) dims: Vec<Dim>,
    pub(crate) is_const: bool,
    /// Whether it is a result whose initial value comes from the caller.
    pub(crate) updated: bool,
}

/// A size in a signature.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Dim {
    Size(SizeId),
    Literal(i64),
}

/// A statement.
#[derive(Debug, Clone)]
pub(crate) enum Stmt {
    Comprehension(Comprehension),
    Call(Call),
}

/// `target(vars[..rank]) op rhs`
#[derive(Debug, Clone)]
pub(crate) struct Comprehension {
    pub(crate) target: Symbol,
    pub(crate) target_span: Span,
    /// The index variables of the left side, then the others in order of appearance.
    pub(crate) vars: Vec<Var>,
    /// The number of variables on the left side.
    pub(crate) rank: usize,
    pub(crate) op: AssignOp,
    pub(crate) rhs: Expr,
    /// The scan, if it is a recurrence.
    pub(crate) scan: Option<Box<Scan>>,
    /// The scatter positions.
    pub(crate) scatter: Vec<Scatter>,
    /// The operands of a `concat`: all their dimensions but the last must agree.
    pub(crate) joins: Vec<(Symbol, Span)>,
    pub(crate) span: Span,
}

/// `scan var from start`
#[derive(Debug, Clone)]
pub(crate) struct Scan {
    pub(crate) var: VarId,
    /// Whether elements are computed from last to first.
    pub(crate) backwards: bool,
    pub(crate) start: Expr,
}

/// `scatter var = at`
#[derive(Debug, Clone)]
pub(crate) struct Scatter {
    pub(crate) var: VarId,
    pub(crate) at: Int,
    pub(crate) span: Span,
}

/// An index variable.
#[derive(Debug, Clone)]
pub(crate) struct Var {
    pub(crate) name: String,
    pub(crate) span: Span,
    /// The range that a `where` clause gives.
    pub(crate) range: Option<(Int, Int, Span)>,
}

/// `targets = defs[callee](args)`
#[derive(Debug, Clone)]
pub(crate) struct Call {
    pub(crate) callee: usize,
    pub(crate) args: Vec<Arg>,
    pub(crate) targets: Vec<Symbol>,
    pub(crate) span: Span,
}

/// An argument of a call.
#[derive(Debug, Clone)]
pub(crate) enum Arg {
    Tensor(Symbol, Span),
    Int(Int),
    Float(f64),
}

/// Index arithmetic.
#[derive(Debug, Clone)]
pub(crate) enum Int {
    Literal(i64),
    Size(SizeId),
    DimOf(Symbol, u32),
    Var(VarId),
    /// An integer scalar parameter.
    Scalar(Symbol, Span),
    Arith(ArithOp, Box<Int>, Box<Int>, Span),
    Min(Box<Int>, Box<Int>),
    Max(Box<Int>, Box<Int>),
    /// A data-dependent integer value.
    Value(Box<Expr>),
}

/// A value.
#[derive(Debug, Clone)]
pub(crate) enum Expr {
    /// A floating-point literal; typed once it meets another operand.
    Float(f64, Option<DType>),
    /// Index arithmetic as a value; typed once it meets another operand.
    Int(Int, Option<DType>, Span),
    Bool(bool),
    Read(Symbol, Vec<Int>, Span),
    Unary(UnaryOp, Box<Expr>),
    Arith(ArithOp, Box<Expr>, Box<Expr>),
    Compare(CompareOp, Box<Expr>, Box<Expr>),
    CompareInt(CompareOp, Int, Int),
    Logic(LogicOp, Box<Expr>, Box<Expr>),
    Select(Box<Expr>, Box<Expr>, Box<Expr>),
    Call(Builtin, Vec<Expr>),
    Cast(DType, Box<Expr>),
}

/// The type of an expression during checking.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ty {
    /// An element type.
    Typed(DType),
    /// Consists of integer literals, sizes and index variables: takes the type of its context.
    AnyInt,
    /// Consists of floating-point literals: takes the floating-point type of its context.
    AnyFloat,
    /// Unknown, because of an error elsewhere or a tensor that is not computed yet.
    Unknown,
}

impl Ty {
    /// The type of an operation on operands of these types, or the first where they disagree.
    pub(crate) fn join(self, other: Ty) -> Ty {
        match (self, other) {
            (Ty::Typed(_), _) => self,
            (_, Ty::Typed(_)) => other,
            (Ty::Unknown, _) | (_, Ty::Unknown) => Ty::Unknown,
            (Ty::AnyFloat, _) | (_, Ty::AnyFloat) => Ty::AnyFloat,
            (Ty::AnyInt, Ty::AnyInt) => Ty::AnyInt,
        }
    }

    /// The element type of a tensor with this type.
    pub(crate) fn settle(self) -> DType {
        match self {
            Ty::Typed(dtype) => dtype,
            Ty::AnyInt => DType::Int32,
            Ty::AnyFloat | Ty::Unknown => DType::Float,
        }
    }

    pub(crate) fn is_integer(self) -> bool {
        matches!(self, Ty::AnyInt) || matches!(self, Ty::Typed(dtype) if dtype.is_integer())
    }
}

impl Int {
    pub(crate) fn arith(op: ArithOp, lhs: Int, rhs: Int, span: Span) -> Int {
        Int::Arith(op, Box::new(lhs), Box::new(rhs), span)
    }

    /// Whether `/` or `%` occurs outside of values.
    pub(crate) fn has_division(&self) -> bool {
        match self {
            Int::Arith(ArithOp::Div | ArithOp::Rem, ..) => true,
            Int::Arith(_, lhs, rhs, _) | Int::Min(lhs, rhs) | Int::Max(lhs, rhs) => {
                lhs.has_division() || rhs.has_division()
            }
            _ => false,
        }
    }
}

impl Comprehension {
    /// Calls `visit` with every tensor whose shape the statement needs: read, or queried for a
    /// size.
    pub(crate) fn walk_symbols(&self, visit: &mut impl FnMut(Symbol)) {
        for (lo, hi, _) in self.vars.iter().filter_map(|var| var.range.as_ref()) {
            lo.walk_symbols(visit);
            hi.walk_symbols(visit);
        }
        self.rhs.walk_symbols(visit);
        if let Some(scan) = &self.scan {
            scan.start.walk_symbols(visit);
        }
        self.scatter.iter().for_each(|scatter| scatter.at.walk_symbols(visit));
    }
}

impl Int {
    pub(crate) fn walk_symbols(&self, visit: &mut impl FnMut(Symbol)) {
        match self {
            Int::Literal(_) | Int::Size(_) | Int::Var(_) => {}
            Int::DimOf(symbol, _) | Int::Scalar(symbol, _) => visit(*symbol),
            Int::Arith(_, lhs, rhs, _) | Int::Min(lhs, rhs) | Int::Max(lhs, rhs) => {
                lhs.walk_symbols(visit);
                rhs.walk_symbols(visit);
            }
            Int::Value(value) => value.walk_symbols(visit),
        }
    }
}

impl Expr {
    pub(crate) fn walk_symbols(&self, visit: &mut impl FnMut(Symbol)) {
        match self {
            Expr::Float(..) | Expr::Bool(_) => {}
            Expr::Int(int, ..) => int.walk_symbols(visit),
            Expr::Read(symbol, subscripts, _) => {
                visit(*symbol);
                subscripts.iter().for_each(|subscript| subscript.walk_symbols(visit));
            }
            Expr::Unary(_, operand) | Expr::Cast(_, operand) => operand.walk_symbols(visit),
            Expr::Arith(_, lhs, rhs) | Expr::Compare(_, lhs, rhs) | Expr::Logic(_, lhs, rhs) => {
                lhs.walk_symbols(visit);
                rhs.walk_symbols(visit);
            }
            Expr::CompareInt(_, lhs, rhs) => {
                lhs.walk_symbols(visit);
                rhs.walk_symbols(visit);
            }
            Expr::Select(condition, then, otherwise) => {
                condition.walk_symbols(visit);
                then.walk_symbols(visit);
                otherwise.walk_symbols(visit);
            }
            Expr::Call(_, args) => args.iter().for_each(|arg| arg.walk_symbols(visit)),
        }
    }
}
