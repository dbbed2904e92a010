//! Prints syntax trees as canonical text: minimal parentheses, a statement per line.

mod wrap;

use std::fmt::{self, Display, Write};

use super::ast::{
    Call, Comprehension, Def, Dim, Expr, ExprKind, Function, Module, Param, RangeConstraint,
    ScatterClause, Stmt,
};
use crate::ops::{ArithOp, CompareOp, LogicOp};

/// The width at which lines of definitions are broken.
const MAX_WIDTH: usize = 100;

/// A module: its definitions, separated by empty lines.
#[must_use]
pub fn print_module(module: &Module) -> String {
    let functions: String = module.functions.iter().map(print_function).collect();
    let defs = module.defs.iter().map(print_def);
    let parts: Vec<String> =
        Some(functions).into_iter().filter(|it| !it.is_empty()).chain(defs).collect();
    parts.join("\n")
}

/// A scalar function, with a trailing line break.
#[must_use]
pub fn print_function(function: &Function) -> String {
    let params = joined(function.params.iter().map(|param| &param.name));
    format!("fn {}({params}) = {}\n", function.name.name, print_expr(&function.body))
}

/// A definition, with a trailing line break.
#[must_use]
pub fn print_def(def: &Def) -> String {
    let mut text = header(def);
    for stmt in &def.body {
        text += "  ";
        text += &match stmt {
            Stmt::Comprehension(comprehension) => comprehension_text(comprehension, Some(2)),
            Stmt::Call(call) => call_text(call),
        };
        text.push('\n');
    }
    text + "}\n"
}

/// A statement, without a trailing line break.
#[must_use]
pub fn print_stmt(stmt: &Stmt) -> String {
    match stmt {
        Stmt::Comprehension(comprehension) => comprehension_text(comprehension, None),
        Stmt::Call(call) => call_text(call),
    }
}

/// An expression.
#[must_use]
pub fn print_expr(expr: &Expr) -> String {
    Shown(expr, Level::Select).to_string()
}

fn header(def: &Def) -> String {
    let returns = joined(def.returns.iter().map(|result| &result.name));
    let params: Vec<String> = def.params.iter().map(param).collect();
    let name = &def.name.name;
    let line = format!("def {name}({}) -> ({returns}) {{\n", params.join(", "));
    if line.chars().count() <= MAX_WIDTH + 1 {
        return line;
    }
    format!("def {name}(\n    {}\n) -> ({returns}) {{\n", params.join(",\n    "))
}

fn param(param: &Param) -> String {
    let prefix = if param.is_const { "const " } else { "" };
    let dims = joined(param.dims.iter().map(|dim| match dim {
        Dim::Name(name) => name.name.clone(),
        Dim::Literal(value, _) => value.to_string(),
    }));
    let sizes = if param.dims.is_empty() { String::new() } else { format!("({dims})") };
    format!("{prefix}{}{sizes} {}", param.dtype, param.name.name)
}

fn call_text(call: &Call) -> String {
    let targets = joined(call.targets.iter().map(|target| &target.name));
    let args = joined(call.args.iter().map(|arg| Shown(arg, Level::Select)));
    format!("{targets} = {}({args})", call.callee.name)
}

/// A comprehension that starts in the given column of a definition; without a column, its right
/// side is one line.
fn comprehension_text(comprehension: &Comprehension, column: Option<usize>) -> String {
    let Comprehension { target, indices, op, position, rhs, scan, scatter, constraints, .. } =
        comprehension;
    let indices = joined(indices.iter().map(|index| &index.name));
    let arg = if *position { "arg" } else { "" };
    let left = format!("{}({indices}) {arg}{} ", target.name, op.symbol());
    let right = match column {
        Some(column) => wrap::wrapped(rhs, column + left.chars().count(), column + 4),
        None => Shown(rhs, Level::Select).to_string(),
    };
    let mut text = left + &right;
    let column = column.unwrap_or(0);
    if let Some(scan) = scan {
        let start = Shown(&scan.start, Level::Select);
        text = with_clause(text, column, &format!("scan {} from {start}", scan.var.name));
    }
    if !scatter.is_empty() {
        let at = |it: &ScatterClause| format!("{} = {}", it.var.name, Shown(&it.at, Level::Select));
        let clauses = joined(scatter.iter().map(at));
        text = with_clause(text, column, &format!("scatter {clauses}"));
    }
    if !constraints.is_empty() {
        let ranges = joined(constraints.iter().map(constraint));
        text = with_clause(text, column, &format!("where {ranges}"));
    }
    text
}

/// A statement and a clause of it, on one line if it fits.
fn with_clause(text: String, column: usize, clause: &str) -> String {
    let width = column + text.chars().count() + 1 + clause.chars().count();
    if width <= MAX_WIDTH {
        return format!("{text} {clause}");
    }
    format!("{text}\n{:indent$}{clause}", "", indent = column + 2)
}

fn constraint(constraint: &RangeConstraint) -> String {
    // A ternary in the lower end would capture the `:` of the range.
    let lo = Shown(&constraint.lo, Level::Or);
    let hi = Shown(&constraint.hi, Level::Select);
    format!("{} in {lo}:{hi}", constraint.var.name)
}

fn joined<T: Display>(items: impl Iterator<Item = T>) -> String {
    let texts: Vec<String> = items.map(|item| item.to_string()).collect();
    texts.join(", ")
}

/// Precedence levels, loosest first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Level {
    Select,
    Or,
    And,
    Equality,
    Order,
    Sum,
    Product,
    Unary,
    Primary,
}

impl Level {
    fn of(expr: &Expr) -> Level {
        match &expr.kind {
            ExprKind::Select(..) => Level::Select,
            ExprKind::Logic(LogicOp::Or, ..) => Level::Or,
            ExprKind::Logic(LogicOp::And, ..) => Level::And,
            ExprKind::Compare(CompareOp::Eq | CompareOp::Ne, ..) => Level::Equality,
            ExprKind::Compare(..) => Level::Order,
            ExprKind::Arith(ArithOp::Add | ArithOp::Sub, ..) => Level::Sum,
            ExprKind::Arith(..) => Level::Product,
            ExprKind::Unary(..) => Level::Unary,
            ExprKind::Int(_)
            | ExprKind::Float(_)
            | ExprKind::Bool(_)
            | ExprKind::Name(_)
            | ExprKind::DimOf(..)
            | ExprKind::Apply(..) => Level::Primary,
        }
    }

    /// The next tighter level.
    fn tighter(self) -> Level {
        match self {
            Level::Select => Level::Or,
            Level::Or => Level::And,
            Level::And => Level::Equality,
            Level::Equality => Level::Order,
            Level::Order => Level::Sum,
            Level::Sum => Level::Product,
            Level::Product => Level::Unary,
            Level::Unary | Level::Primary => Level::Primary,
        }
    }
}

/// An expression in a context that requires at least this precedence.
struct Shown<'e>(&'e Expr, Level);

impl Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Shown(expr, needed) = *self;
        if Level::of(expr) >= needed {
            return write_bare(f, expr);
        }
        f.write_char('(')?;
        write_bare(f, expr)?;
        f.write_char(')')
    }
}

fn write_bare(f: &mut fmt::Formatter<'_>, expr: &Expr) -> fmt::Result {
    let level = Level::of(expr);
    let mut binary = |symbol: &str, left, right| {
        // Operators are left-associative: on the right, the same level needs parentheses.
        write!(f, "{} {symbol} {}", Shown(left, level), Shown(right, level.tighter()))
    };
    match &expr.kind {
        ExprKind::Int(value) => write!(f, "{value}"),
        // The shortest text that parses to the same number, always with a point or exponent.
        ExprKind::Float(value) => write!(f, "{value:?}"),
        ExprKind::Bool(value) => write!(f, "{value}"),
        ExprKind::Name(name) => f.write_str(name),
        ExprKind::DimOf(tensor, dim) => write!(f, "{}.{dim}", tensor.name),
        ExprKind::Apply(callee, args) => {
            let args = joined(args.iter().map(|arg| Shown(arg, Level::Select)));
            write!(f, "{}({args})", callee.name)
        }
        ExprKind::Unary(op, operand) => {
            write!(f, "{}{}", op.symbol(), Shown(operand, Level::Unary))
        }
        ExprKind::Arith(op, left, right) => binary(op.symbol(), left, right),
        ExprKind::Compare(op, left, right) => binary(op.symbol(), left, right),
        ExprKind::Logic(op, left, right) => binary(op.symbol(), left, right),
        ExprKind::Select(condition, chosen, other) => {
            let condition = Shown(condition, Level::Or);
            let (chosen, other) = (Shown(chosen, Level::Select), Shown(other, Level::Select));
            write!(f, "{condition} ? {chosen} : {other}")
        }
    }
}

#[cfg(test)]
mod tests;
