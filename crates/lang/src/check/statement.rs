//! Checks comprehensions: left sides, reduced variables, updates.

use super::coerce;
use super::elaborate::{Elaborator, Recurrence};
use super::scan;
use super::scatter;
use super::scope::{Entity, Scope};
use super::unknown;
use crate::diagnostic::{Code, Diagnostic};
use crate::dtype::DType;
use crate::hir::{Comprehension, Expr, Int, Symbol, Var};
use crate::ops::{AssignOp, ReductionOp};
use crate::source::Span;
use crate::syntax::ast;

/// Per tensor, the last reduction into it since an assignment or initialization.
pub(super) type OpenReductions = std::collections::HashMap<Symbol, (ReductionOp, Span)>;

/// Checks one comprehension; `None` if it has errors, which are reported.
pub(super) fn check<'a>(
    scope: &mut Scope<'a>,
    open: &mut OpenReductions,
    stmt: &'a ast::Comprehension,
) -> Option<Comprehension> {
    let target = check_target(scope, stmt)?;
    if stmt.indices.len() > MAX_VARS {
        too_many_indices(scope, stmt.indices[MAX_VARS].span);
        return None;
    }
    let left = check_left(scope, stmt);
    let accumulates = matches!(stmt.op, AssignOp::Reduce { initialize: false, .. });
    if accumulates {
        accumulates_onto_value(scope, stmt, target)?;
    }
    reductions_agree(scope, open, stmt, target);
    if let Some(clause) = &stmt.scan {
        scan::clause_fits(scope, stmt, clause)?;
    }
    scatter::clauses_fit(scope, stmt)?;
    let target_dtype = scope.tensor(target).dtype;
    let mut elaborator = Elaborator::new(scope);
    elaborator.set_target(target, &stmt.indices);
    elaborator.recurrence = stmt.scan.as_ref().map(Recurrence::new);
    for index in &stmt.indices {
        if elaborator.var(&index.name).is_none() {
            elaborator.add_var(&index.name, index.span);
        }
    }
    // Reduce axes with a `where` range come in its order, the others in order of appearance, so the
    // axis order does not depend on how sums inside subscripts are written.
    for c in stmt.constraints.iter().take(MAX_VARS) {
        let name = c.var.name.as_str();
        let free = elaborator.var(name).is_none() && !elaborator.scope.names.contains_key(name);
        let positions = stmt.scatter.iter().map(|scatter| &scatter.at);
        let mut sides = std::iter::once(&stmt.rhs).chain(positions);
        if let Some(span) = sides.find_map(|side| side.first_mention(name)).filter(|_| free) {
            elaborator.add_var(name, span);
        }
    }
    let rhs = elaborator.value(&stmt.rhs);
    let scatter = scatter::checked(&mut elaborator, stmt);
    let ranges: Vec<_> = stmt.constraints.iter().map(|c| constraint(&mut elaborator, c)).collect();
    let start = scan::start(&mut elaborator, stmt);
    let recurrence = elaborator.recurrence.take();
    let mut vars = elaborator.vars;
    if vars.len() > MAX_VARS {
        too_many_indices(scope, vars[MAX_VARS].span);
        return None;
    }
    let placed = place_ranges(scope, stmt, ranges, &mut vars);
    let (rhs, ty) = rhs?;
    left?;
    placed?;
    let (start, scatter) = (start?, scatter?);
    let positions = scatter::positions(&scatter);
    let start_of = start.iter().map(|(it, _)| it);
    let sides: Vec<&Expr> = std::iter::once(&rhs).chain(start_of).chain(&positions).collect();
    unknown::report_undeclared(scope, &sides, &vars, stmt.indices.len())?;
    if let Some(recurrence) = &recurrence {
        scan::is_recurrence(scope, stmt, recurrence, &vars)?;
    }
    has_reduction_operator(scope, stmt, &vars)?;
    let rhs = coerce::of_target(scope, target, (rhs, ty), stmt.rhs.span)?;
    let scan = match recurrence.zip(start) {
        Some((recurrence, start)) => {
            Some(Box::new(scan::checked(scope, stmt, target, &recurrence, start)?))
        }
        None => None,
    };
    reduction_fits_type(scope, stmt, target_dtype)?;
    Some(Comprehension {
        target,
        target_span: stmt.target.span,
        vars,
        rank: stmt.indices.len(),
        op: stmt.op,
        rhs,
        scan,
        scatter,
        joins: Vec::new(),
        span: stmt.span,
    })
}

/// The most index variables of a statement, which bounds the cost of range inference.
const MAX_VARS: usize = 32;

fn too_many_indices(scope: &mut Scope<'_>, span: Span) {
    let message = format!("a statement may have at most {MAX_VARS} index variables");
    scope.report(
        Diagnostic::new(Code::TooManyIndices, span, message)
            .here("this is one more")
            .help("split the statement into stages"),
    );
}

/// Checks the target: not a size, not an input, always of one rank.
fn check_target(scope: &mut Scope<'_>, stmt: &ast::Comprehension) -> Option<Symbol> {
    let name = &stmt.target;
    let symbol = match scope.names.get(name.name.as_str()) {
        Some(Entity::Tensor(symbol)) => *symbol,
        _ => {
            let message = format!("`{}` is a size and cannot be computed", name.name);
            scope.report(
                Diagnostic::new(Code::NotATensor, name.span, message)
                    .here("sizes are part of the signature")
                    .help("choose another name for the tensor"),
            );
            return None;
        }
    };
    writes_no_input(scope, name, symbol)?;
    let (rank, span) = (scope.tensor(symbol).rank, scope.tensor(symbol).span);
    if stmt.indices.len() == rank {
        return Some(symbol);
    }
    let found = stmt.indices.len();
    let message =
        format!("`{}` is written with {found} subscripts here and {rank} before", name.name);
    scope.report(
        Diagnostic::new(
            Code::RankChanged,
            name.span,
            message.replace(" 1 subscripts", " 1 subscript"),
        )
        .here(format!("{found} here"))
        .label(span, format!("{rank} here"))
        .help("a tensor has one number of dimensions; use another name for the other tensor"),
    );
    None
}

/// Rejects writes to an input that is not also a result.
pub(super) fn writes_no_input(
    scope: &mut Scope<'_>,
    name: &ast::Ident,
    symbol: Symbol,
) -> Option<()> {
    let is_input = (symbol.0 as usize) < scope.params;
    if !is_input || scope.tensor(symbol).updated && !scope.tensor(symbol).is_const {
        return Some(());
    }
    let span = scope.tensor(symbol).span;
    if scope.tensor(symbol).is_const {
        let message = format!("`{}` is `const`, and this statement writes to it", name.name);
        scope.report(
            Diagnostic::new(Code::AssignsInput, name.span, message)
                .here("written here")
                .label(span, "promised not to change from one call to the next")
                .help("remove `const`, or write to a tensor with another name"),
        );
        return None;
    }
    let message = format!("`{}` is an input, and this statement writes to it", name.name);
    scope.report(
        Diagnostic::new(Code::AssignsInput, name.span, message)
            .here("written here")
            .label(span, "declared as an input")
            .help(format!(
                "write to a tensor with another name, or list `{}` among the results to update it",
                name.name
            )),
    );
    None
}

/// Checks that each index variable is on the left side once.
fn check_left(scope: &mut Scope<'_>, stmt: &ast::Comprehension) -> Option<()> {
    let mut good = Some(());
    for (position, index) in stmt.indices.iter().enumerate() {
        let before = &stmt.indices[..position];
        if let Some(first) = before.iter().find(|other| other.name == index.name) {
            let message = format!("`{}` stands twice on the left", index.name);
            scope.report(
                Diagnostic::new(Code::RepeatedIndex, index.span, message)
                    .here("again here")
                    .label(first.span, "first here")
                    .help(
                        "each dimension of the result needs an index variable of its own; to write \
                         a diagonal, use two and choose: `C(i, j) = i == j ? A(i) : 0`",
                    ),
            );
            good = None;
        }
    }
    good
}

/// Checks that a reduction without `!` has a value to continue from.
fn accumulates_onto_value(
    scope: &mut Scope<'_>,
    stmt: &ast::Comprehension,
    target: Symbol,
) -> Option<()> {
    scope.used[target.0 as usize] = true;
    if scope.is_assigned(target) {
        return Some(());
    }
    let (name, symbol) = (stmt.target.name.as_str(), stmt.op.symbol());
    if scope.is_result(name) {
        scope.tensors[target.0 as usize].updated = true;
        let message = format!("`{name}` has no value yet, so the caller must supply it");
        scope.report(
            Diagnostic::new(Code::ImplicitUpdate, stmt.target.span, message)
                .here(format!("`{symbol}` adds to the value that the caller passes in"))
                .help(format!(
                    "write `{symbol}!` to start from {}, or declare `{name}` as a parameter too if \
                     the update is meant",
                    start(stmt.op)
                )),
        );
        return Some(());
    }
    let message = format!("`{name}` has no value yet that `{symbol}` could continue from");
    scope.report(
        Diagnostic::new(Code::UninitializedReduction, stmt.target.span, message)
            .here("first written here")
            .help(format!("write `{symbol}!` to start from {}", start(stmt.op))),
    );
    None
}

/// Describes the initial value of a reduction with `!`.
fn start(op: AssignOp) -> &'static str {
    match op {
        AssignOp::Reduce { op: ReductionOp::Product, .. } => "1",
        AssignOp::Reduce { op: ReductionOp::Min, .. } => "the largest value",
        AssignOp::Reduce { op: ReductionOp::Max, .. } => "the smallest value",
        AssignOp::Reduce { op: ReductionOp::Sum, .. } | AssignOp::Assign => "0",
    }
}

/// Tensor Comprehensions, section 3: all reductions into a tensor share one operator, because
/// `min(max(...))` is not `max(min(...))`. An assignment or a `!` in between starts anew.
fn reductions_agree(
    scope: &mut Scope<'_>,
    open: &mut OpenReductions,
    stmt: &ast::Comprehension,
    target: Symbol,
) {
    let AssignOp::Reduce { op, initialize } = stmt.op else {
        open.remove(&target);
        return;
    };
    if let Some((before, span)) = open.get(&target)
        && *before != op
        && !initialize
    {
        let name = &stmt.target.name;
        let message = format!(
            "`{name}` is reduced by `{}` and then by `{}`, which do not commute",
            before.symbol(),
            op.symbol()
        );
        scope.report(
            Diagnostic::new(Code::MixedReductions, stmt.span, message)
                .here(format!("`{}` here", op.symbol()))
                .label(*span, format!("`{}` here", before.symbol()))
                .help(format!(
                    "finish the first reduction: copy it with `{name}2(...) = {name}(...)` and \
                     reduce into that, or use two tensors"
                )),
        );
    }
    open.insert(target, (op, stmt.span));
}

/// Checks that a statement with reduced variables has a reduction operator.
fn has_reduction_operator(
    scope: &mut Scope<'_>,
    stmt: &ast::Comprehension,
    vars: &[Var],
) -> Option<()> {
    let reduced = &vars[stmt.indices.len().min(vars.len())..];
    if stmt.op != AssignOp::Assign || reduced.is_empty() {
        return Some(());
    }
    let var = &reduced[0];
    let message = format!(
        "`{}` stands only on the right, so values are combined over it, and `=` does not say how",
        var.name
    );
    let mut diagnostic =
        Diagnostic::new(Code::MissingReduction, var.span, message).here("not on the left").help(
            "write `+=!` for a sum (or `*=!`, `min=!`, `max=!`), or add the variable on the left",
        );
    let names = scope.names.keys().copied().filter(|name| name.chars().count() > 1);
    if let Some(near) = scope.suggest(&var.name, names) {
        diagnostic = diagnostic.note(format!(
            "a name that nothing declares is an index variable; did you mean `{near}`?"
        ));
    }
    scope.report(diagnostic);
    None
}

fn reduction_fits_type(
    scope: &mut Scope<'_>,
    stmt: &ast::Comprehension,
    dtype: DType,
) -> Option<()> {
    let AssignOp::Reduce { op: ReductionOp::Sum | ReductionOp::Product, .. } = stmt.op else {
        return Some(());
    };
    if dtype != DType::Bool {
        return Some(());
    }
    let message = format!("`{}` does not work on `bool`", stmt.op.symbol());
    scope.report(
        Diagnostic::new(Code::ReductionType, stmt.rhs.span, message).here("these are `bool`").help(
            "use `max=!` for \"any\", `min=!` for \"all\", or convert to count: `int32(...)`",
        ),
    );
    None
}

type Range = Option<(Int, Int)>;

/// The two ends of a `where` range: constants, sizes and integer scalars.
fn constraint<'a>(elaborator: &mut Elaborator<'_, 'a>, c: &'a ast::RangeConstraint) -> Range {
    let lo = bound(elaborator, &c.lo);
    let hi = bound(elaborator, &c.hi);
    Some((lo?, hi?))
}

fn bound<'a>(elaborator: &mut Elaborator<'_, 'a>, expr: &'a ast::Expr) -> Option<Int> {
    let known = elaborator.vars.len();
    let int = elaborator.int(expr)?;
    let new_vars = elaborator.forget_vars(known);
    if let Some(unknown) = new_vars.first() {
        if !elaborator.scope.unknown.insert(unknown.name.clone()) {
            return None;
        }
        let message = format!("`{}` is not known here", unknown.name);
        let names = elaborator.scope.names.keys().copied();
        let near = elaborator.scope.suggest(&unknown.name, names);
        let mut diagnostic = Diagnostic::new(Code::UnknownName, unknown.span, message)
            .here("not a size, not a scalar");
        diagnostic = match near {
            Some(near) => {
                diagnostic.help(format!("did you mean `{near}`?")).fix(unknown.span, near)
            }
            None => diagnostic.help(format!(
                "a range is made of numbers, the sizes of the signature, sizes of tensors such as \
                 `A.0`, and integer scalars: `int {}` would be one",
                unknown.name
            )),
        };
        elaborator.report(diagnostic);
        return None;
    }
    if is_constant(&int) {
        return Some(int);
    }
    elaborator.report(
        Diagnostic::new(Code::ConstraintNotConstant, expr.span, "a range must be constant")
            .here("this changes from one iteration to the next, or with the data")
            .help("ranges are rectangular; to leave out points, choose: `j < i ? A(i, j) : 0`"),
    );
    None
}

fn is_constant(int: &Int) -> bool {
    match int {
        Int::Literal(_) | Int::Size(_) | Int::DimOf(..) | Int::Scalar(..) => true,
        Int::Arith(_, lhs, rhs, _) | Int::Min(lhs, rhs) | Int::Max(lhs, rhs) => {
            is_constant(lhs) && is_constant(rhs)
        }
        Int::Var(_) | Int::Value(_) => false,
    }
}

/// Attaches the ranges to their variables: each used, each once.
fn place_ranges(
    scope: &mut Scope<'_>,
    stmt: &ast::Comprehension,
    ranges: Vec<Range>,
    vars: &mut [Var],
) -> Option<()> {
    let mut good = Some(());
    for (range, c) in ranges.into_iter().zip(&stmt.constraints) {
        let Some(var) = vars.iter_mut().find(|var| var.name == c.var.name) else {
            let message = format!("the statement does not use `{}`", c.var.name);
            let near = scope.suggest(&c.var.name, vars.iter().map(|var| var.name.as_str()));
            let mut diagnostic = Diagnostic::new(Code::UnusedConstraint, c.var.span, message)
                .here("a range for nothing");
            diagnostic = match near {
                Some(near) => {
                    diagnostic.help(format!("did you mean `{near}`?")).fix(c.var.span, near)
                }
                None => {
                    let used: Vec<String> = vars.iter().map(|v| format!("`{}`", v.name)).collect();
                    diagnostic.help(format!("its index variables are {}", used.join(", ")))
                }
            };
            scope.report(diagnostic);
            good = None;
            continue;
        };
        if let Some((_, _, first)) = &var.range {
            let message = format!("`{}` has two ranges", c.var.name);
            scope.report(
                Diagnostic::new(Code::DuplicateConstraint, c.span, message)
                    .here("again here")
                    .label(*first, "first here"),
            );
            good = None;
            continue;
        }
        match range {
            Some((lo, hi)) => var.range = Some((lo, hi, c.span)),
            None => good = None,
        }
    }
    good
}
