//! Operators, shared by the syntax tree and the program.

use serde::Serialize;

/// An operator with one operand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub enum UnaryOp {
    /// `-x`
    Neg,
    /// `!x`
    Not,
}

impl UnaryOp {
    /// Its spelling in source text.
    #[must_use]
    pub const fn symbol(self) -> &'static str {
        match self {
            UnaryOp::Neg => "-",
            UnaryOp::Not => "!",
        }
    }
}

/// An arithmetic operator with two operands of one type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub enum ArithOp {
    /// `a + b`
    Add,
    /// `a - b`
    Sub,
    /// `a * b`
    Mul,
    /// `a / b`; on integers it rounds down, and `a / 0` is 0.
    Div,
    /// `a % b`; on integers it has the sign of `b`, and `a % 0` is 0.
    Rem,
}

impl ArithOp {
    /// Its spelling in source text.
    #[must_use]
    pub const fn symbol(self) -> &'static str {
        match self {
            ArithOp::Add => "+",
            ArithOp::Sub => "-",
            ArithOp::Mul => "*",
            ArithOp::Div => "/",
            ArithOp::Rem => "%",
        }
    }
}

/// A comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub enum CompareOp {
    /// `a == b`
    Eq,
    /// `a != b`
    Ne,
    /// `a < b`
    Lt,
    /// `a <= b`
    Le,
    /// `a > b`
    Gt,
    /// `a >= b`
    Ge,
}

impl CompareOp {
    /// Its spelling in source text.
    #[must_use]
    pub const fn symbol(self) -> &'static str {
        match self {
            CompareOp::Eq => "==",
            CompareOp::Ne => "!=",
            CompareOp::Lt => "<",
            CompareOp::Le => "<=",
            CompareOp::Gt => ">",
            CompareOp::Ge => ">=",
        }
    }

    /// The comparison that holds exactly when this one does not (on integers).
    #[must_use]
    pub const fn negate(self) -> CompareOp {
        match self {
            CompareOp::Eq => CompareOp::Ne,
            CompareOp::Ne => CompareOp::Eq,
            CompareOp::Lt => CompareOp::Ge,
            CompareOp::Le => CompareOp::Gt,
            CompareOp::Gt => CompareOp::Le,
            CompareOp::Ge => CompareOp::Lt,
        }
    }

    /// Whether the comparison holds for operands in this order.
    #[must_use]
    pub fn holds(self, ordering: Option<std::cmp::Ordering>) -> bool {
        use std::cmp::Ordering::{Equal, Greater, Less};
        match self {
            CompareOp::Eq => ordering == Some(Equal),
            CompareOp::Ne => ordering != Some(Equal),
            CompareOp::Lt => ordering == Some(Less),
            CompareOp::Le => matches!(ordering, Some(Less | Equal)),
            CompareOp::Gt => ordering == Some(Greater),
            CompareOp::Ge => matches!(ordering, Some(Greater | Equal)),
        }
    }
}

/// A short-circuiting logical operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub enum LogicOp {
    /// `a && b`
    And,
    /// `a || b`
    Or,
}

impl LogicOp {
    /// Its spelling in source text.
    #[must_use]
    pub const fn symbol(self) -> &'static str {
        match self {
            LogicOp::And => "&&",
            LogicOp::Or => "||",
        }
    }
}

/// The associative and commutative reduction operators.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ReductionOp {
    /// `+=`
    Sum,
    /// `*=`
    Product,
    /// `min=`
    Min,
    /// `max=`
    Max,
}

impl ReductionOp {
    /// The spelling of the accumulating form in source text.
    #[must_use]
    pub const fn symbol(self) -> &'static str {
        match self {
            ReductionOp::Sum => "+=",
            ReductionOp::Product => "*=",
            ReductionOp::Min => "min=",
            ReductionOp::Max => "max=",
        }
    }
}

/// How a statement combines its right side into the target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub enum AssignOp {
    /// `=`
    Assign,
    /// `+=` and the like; with `!` the reduction starts from its neutral element.
    Reduce {
        /// How values are combined.
        op: ReductionOp,
        /// Whether the form has a `!`.
        initialize: bool,
    },
}

impl AssignOp {
    /// Its spelling in source text.
    #[must_use]
    pub const fn symbol(self) -> &'static str {
        match self {
            AssignOp::Assign => "=",
            AssignOp::Reduce { op, initialize: false } => op.symbol(),
            AssignOp::Reduce { op: ReductionOp::Sum, .. } => "+=!",
            AssignOp::Reduce { op: ReductionOp::Product, .. } => "*=!",
            AssignOp::Reduce { op: ReductionOp::Min, .. } => "min=!",
            AssignOp::Reduce { op: ReductionOp::Max, .. } => "max=!",
        }
    }
}
