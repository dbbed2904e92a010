//! Elaborates the self-reads of a recurrence.

use super::Elaborator;
use crate::diagnostic::{Code, Diagnostic};
use crate::ops::ArithOp;
use crate::source::Span;
use crate::syntax::ast::{self, ExprKind, Ident};

/// The longest distance of a self-read, in elements.
const MAX_STEPS: u64 = 16;

/// The most self-reads of a recurrence: each one duplicates its start.
const MAX_READS: usize = 64;

/// The elaboration of a statement with a `scan` clause.
pub(in crate::check) struct Recurrence<'a> {
    /// The clause.
    pub(in crate::check) clause: &'a ast::ScanClause,
    /// Whether the start is being elaborated, rather than the right side.
    pub(in crate::check) in_start: bool,
    /// The number of self-reads so far.
    pub(in crate::check) reads: usize,
    /// The first self-read, and whether it is of a following element.
    first: Option<(bool, Span)>,
}

impl<'a> Recurrence<'a> {
    pub(in crate::check) fn new(clause: &'a ast::ScanClause) -> Self {
        Self { clause, in_start: false, reads: 0, first: None }
    }

    /// Whether the last element is computed first.
    pub(in crate::check) fn is_backwards(&self) -> bool {
        self.first.is_some_and(|(backwards, _)| backwards)
    }
}

impl Elaborator<'_, '_> {
    /// Elaborates a self-read: the element a few steps back.
    pub(super) fn read_of_itself(
        &mut self,
        name: &str,
        span: Span,
        args: &[ast::Expr],
    ) -> Option<()> {
        self.outside_subscripts(name, span)?;
        let (Some((_, left)), Some(recurrence)) = (self.target, &mut self.recurrence) else {
            return Some(());
        };
        if recurrence.in_start {
            let diagnostic = start_reads(name, span);
            self.report(diagnostic);
            return None;
        }
        recurrence.reads += 1;
        let diagnostic = match backwards(&recurrence.clause.var.name, left, args) {
            Some(backwards) => match recurrence.first {
                Some((first, place)) if first != backwards => two_ways(name, span, place),
                _ if recurrence.reads > MAX_READS => too_many(name, span),
                _ => {
                    recurrence.first.get_or_insert((backwards, span));
                    return Some(());
                }
            },
            None => {
                let var = recurrence.clause.var.name.clone();
                not_a_step(name, &var, left, args, span)
            }
        };
        self.report(diagnostic);
        None
    }
}

/// Whether a self-read is of a following element; `None` if it is not a constant number of steps
/// along the variable.
fn backwards(var: &str, left: &[Ident], args: &[ast::Expr]) -> Option<bool> {
    let mut direction = None;
    for (index, arg) in left.iter().zip(args) {
        if index.name == var {
            direction = Some(step(var, arg)?);
        } else if !is_name(arg, &index.name) {
            return None;
        }
    }
    direction
}

fn is_name(expr: &ast::Expr, name: &str) -> bool {
    matches!(&expr.kind, ExprKind::Name(found) if found == name)
}

/// Matches `t - 1` or `t + 1`: which of them.
fn step(var: &str, expr: &ast::Expr) -> Option<bool> {
    let ExprKind::Arith(op, a, b) = &expr.kind else { return None };
    let (backwards, steps) = match op {
        ArithOp::Sub if is_name(a, var) => (false, b),
        ArithOp::Add if is_name(a, var) => (true, b),
        ArithOp::Add if is_name(b, var) => (true, a),
        _ => return None,
    };
    let fits = matches!(steps.kind, ExprKind::Int(steps) if (1..=MAX_STEPS).contains(&steps));
    fits.then_some(backwards)
}

/// E0409.
fn not_a_step(name: &str, var: &str, left: &[Ident], args: &[ast::Expr], span: Span) -> Diagnostic {
    let read = |step: &str| {
        let indices: Vec<String> = left
            .iter()
            .map(|index| match index.name == var {
                true => format!("{var} {step}"),
                false => index.name.clone(),
            })
            .collect();
        format!("`{name}({})`", indices.join(", "))
    };
    let message =
        format!("this recurrence reads `{name}` in a way that gives no order of elements");
    let diagnostic = Diagnostic::new(Code::ScanRead, span, message);
    let mut pairs = left.iter().zip(args);
    if let Some((other, _)) =
        pairs.find(|(index, arg)| index.name != var && !is_name(arg, &index.name))
    {
        return diagnostic.here(format!("not only a number of steps along `{var}`")).help(format!(
            "a recurrence goes along one variable: this one, along `{var}`, reads {} or {} and other \
             steps along `{var}`; write one along `{}` in a statement of its own",
            read("- 1"),
            read("+ 1"),
            other.name,
        ));
    }
    diagnostic.here(format!("not a number of steps along `{var}`")).help(format!(
        "read an element before this one, such as {}, or after it, such as {}; the number of steps is \
         written as a literal from 1 to {MAX_STEPS}",
        read("- 1"),
        read("+ 1"),
    ))
}

/// E0409.
fn two_ways(name: &str, span: Span, first: Span) -> Diagnostic {
    let message = format!("this recurrence reads elements of `{name}` before and after its own");
    Diagnostic::new(Code::ScanRead, span, message)
        .here("the other way here")
        .label(first, "one way here")
        .help("write two statements, one forwards and one backwards, for two tensors")
}

/// E0409.
fn too_many(name: &str, span: Span) -> Diagnostic {
    let message = format!("a recurrence may read its own elements {MAX_READS} times at most");
    Diagnostic::new(Code::ScanRead, span, message)
        .here(format!("one more read of `{name}`"))
        .help("compute what does not depend on them in a statement before this one")
}

/// E0413.
fn start_reads(name: &str, span: Span) -> Diagnostic {
    let message =
        format!("the start of the recurrence reads `{name}`, which has no value before it");
    Diagnostic::new(Code::ScanStart, span, message)
        .here("read here")
        .help("start from a number, a scalar, or another tensor: `scan t from x(n, 0)`")
}
