//! Proves accesses in bounds, and reports those that are not.

use std::collections::HashMap;

use super::site::Site;
use crate::diagnostic::{Code, Diagnostic};
use crate::dtype::DType;
use crate::hir::{self, Comprehension};
use crate::infer::{
    Access, Origin, Range, RangeContext, SettledRange, Verdict, coefficient, index_axes,
};
use crate::program::{AxisId, Expr, Index, Interval, TensorId, index_text};
use crate::source::Span;

/// The purpose of the sizes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    /// Binding: everything must fit.
    Bind,
    /// A structural check with synthetic sizes: tests whether ranges can be determined; nothing
    /// needs to fit.
    Structure,
}

/// A statement with its accesses.
pub(super) struct Statement<'a> {
    pub(super) stmt: &'a Comprehension,
    pub(super) site: Site<'a>,
    pub(super) tensors: &'a [hir::Tensor],
    pub(super) accesses: &'a [Access<'a>],
    pub(super) mode: Mode,
}

/// Prints an index expression with the names of the statement.
pub(super) fn subscript_text(
    stmt: &Comprehension,
    tensors: &[hir::Tensor],
    index: &Index,
) -> String {
    let axis = |axis: AxisId| stmt.vars[axis.0 as usize].name.clone();
    let tensor = |id: TensorId| tensors[id.0 as usize].name.clone();
    index_text(index, &axis, &tensor)
}

impl Statement<'_> {
    /// The source name of the tensor of an access.
    pub(super) fn tensor_name(&self, access: &Access<'_>) -> &str {
        let tensor = self.site.tensor(access);
        &tensor.unwrap_or(&self.tensors[access.tensor.0 as usize]).name
    }

    pub(super) fn subscript(&self, access: &Access<'_>) -> String {
        subscript_text(self.stmt, self.tensors, &access.index)
    }

    /// The interval of a subscript over these ranges, ignoring guards.
    fn interval(&self, access: &Access<'_>, ranges: &[Option<Range>]) -> Interval {
        let anything = Interval { lo: 0, hi: i128::from(i64::MAX) };
        let axis = |axis: AxisId| ranges[axis.0 as usize].map_or(anything, Range::interval);
        access.index.interval(&axis, &|_| anything)
    }

    /// Lists the variables of a subscript with their ranges: `` `i` is 0 to 7, `k` is 0 to 2 ``
    fn ranges_in_words(&self, vars: u64, ranges: &[Option<Range>]) -> Option<String> {
        let words = self.stmt.vars.iter().enumerate().filter_map(|(var, info)| {
            let range = ranges[var].filter(|_| vars >> var & 1 == 1)?;
            Some(format!("`{}` is {} to {}", info.name, range.lo, range.hi - 1))
        });
        let words: Vec<String> = words.collect();
        (!words.is_empty()).then(|| words.join(", "))
    }
}

/// Reports empty ranges: no value of the variable keeps some access in bounds.
pub(super) fn not_empty(
    statement: &Statement<'_>,
    settled: &[SettledRange],
    dtype: &impl Fn(TensorId) -> DType,
) -> Result<(), Vec<Diagnostic>> {
    let ranges: Vec<Option<Range>> =
        settled.iter().map(|settled| Some(settled.range.at_least_one())).collect();
    let mut errors = Vec::new();
    for (var, settled) in settled.iter().enumerate() {
        let Origin::Accesses { limits, below, .. } = &settled.origin else { continue };
        let Some(access) = limits.first().map(|number| &statement.accesses[*number]) else {
            continue;
        };
        if settled.range.hi > 0 {
            continue;
        }
        if *below {
            let verdict = RangeContext { ranges: &ranges, dtype }.verdict(access);
            let mut error = outside(statement, access, &verdict, &ranges);
            error.notes = vec!["ranges start at 0 unless a `where` says otherwise".to_owned()];
            report(&mut errors, error);
        } else {
            errors.push(empty(statement, access, var, &ranges));
        }
    }
    if errors.is_empty() { Ok(()) } else { Err(errors) }
}

fn empty(
    statement: &Statement<'_>,
    access: &Access<'_>,
    var: usize,
    ranges: &[Option<Range>],
) -> Diagnostic {
    let info = &statement.stmt.vars[var];
    let (name, subscript) = (&info.name, statement.subscript(access));
    let reached = statement.interval(access, ranges).hi;
    let others = index_axes(&access.index) & !(1 << var);
    let diagnostic = Diagnostic::new(
        Code::EmptyRange,
        info.span,
        format!("the range of `{name}` is empty"),
    )
    .here(format!("not even `{name} = 0` is possible"))
    .label(
        access.span,
        format!(
            "at `{name} = 0`, `{subscript}` reaches {reached}; dimension {} of `{}` has extent {}",
            access.dimension,
            statement.tensor_name(access),
            access.extent
        ),
    );
    match statement.ranges_in_words(others, ranges) {
        Some(words) => diagnostic
            .note(words)
            .help("make that dimension larger, or the ranges of the other variables smaller"),
        None => diagnostic.help("make that dimension larger, or the offset smaller"),
    }
}

/// A read (by its span) and a dimension whose subscript is checked at run time.
pub(super) type RuntimeCheck = (Span, TensorId, u32);

/// Proves every access in bounds; returns the data-dependent subscripts, which are checked at run
/// time.
pub(super) fn verify(
    statement: &Statement<'_>,
    ranges: &[Option<Range>],
    dtype: &impl Fn(TensorId) -> DType,
) -> Result<Vec<RuntimeCheck>, Vec<Diagnostic>> {
    let known = RangeContext { ranges, dtype };
    let mut checked = Vec::new();
    let mut errors = Vec::new();
    for access in statement.accesses {
        let verdict = known.verdict(access);
        if verdict == Verdict::Inside {
            continue;
        }
        if access.index.has_value() {
            checked.push((access.span, access.tensor, access.dimension as u32));
        } else {
            report(&mut errors, outside(statement, access, &verdict, ranges));
        }
    }
    if errors.is_empty() { Ok(checked) } else { Err(errors) }
}

/// Adds an error, or a note to the previous error about the same read: one error per read, however
/// many of its subscripts are wrong.
fn report(errors: &mut Vec<Diagnostic>, error: Diagnostic) {
    match errors.last_mut() {
        Some(last) if last.code == error.code && last.span() == error.span() => {
            let what = error.labels.first().map_or("", |label| label.text.as_str());
            last.notes.push(format!("also, {}: {what}", error.message));
        }
        _ => errors.push(error),
    }
}

fn outside(
    statement: &Statement<'_>,
    access: &Access<'_>,
    verdict: &Verdict,
    ranges: &[Option<Range>],
) -> Diagnostic {
    let (name, subscript) = (statement.tensor_name(access), statement.subscript(access));
    let (extent, dimension) = (access.extent, access.dimension);
    let Verdict::Outside(point) = verdict else {
        let message = format!(
            "cannot prove that `{subscript}` stays in dimension {dimension} of `{name}` (extent {extent})"
        );
        return Diagnostic::new(Code::OutOfBounds, access.span, message)
            .here("may be out of bounds")
            .help("state the condition in the form of the subscript: `0 <= s && s < extent ? A(s) : 0`");
    };
    let value_at = |axis: AxisId| {
        let at = point.get(axis.0 as usize).copied().flatten();
        let lo = ranges[axis.0 as usize].map_or(0, |range| range.lo);
        at.and_then(|at| i64::try_from(at).ok()).unwrap_or(lo)
    };
    let index = access.index.eval::<()>(&value_at, &mut |_| Ok(0)).unwrap_or(0);
    let vars = index_axes(&access.index);
    let place: Vec<String> = (0..statement.stmt.vars.len())
        .filter(|var| vars >> var & 1 == 1)
        .map(|var| format!("{} = {}", statement.stmt.vars[var].name, value_at(AxisId(var as u32))))
        .collect();
    let verb = if access.is_target { "written" } else { "read" };
    if place.is_empty() {
        let message = format!("`{name}` is {verb} out of bounds");
        return Diagnostic::new(Code::OutOfBounds, access.span, message)
            .here(format!(
                "the subscript {index} is outside of dimension {dimension}, which has extent {extent}"
            ))
            .help(format!("subscripts there go from 0 to {}", extent - 1));
    }
    let message = format!("`{name}` is {verb} out of bounds at {}", place.join(", "));
    let diagnostic = Diagnostic::new(Code::OutOfBounds, access.span, message)
        .here(format!(
            "`{subscript}` is {index} there; dimension {dimension} of `{name}` has extent {extent}"
        ))
        .help(advice(statement, access, ranges, index < 0));
    match statement.ranges_in_words(vars, ranges) {
        Some(words) => diagnostic.note(format!("for these sizes {words}")),
        None => diagnostic,
    }
}

/// The help for an access that leaves its tensor, below zero or above.
fn advice(
    statement: &Statement<'_>,
    access: &Access<'_>,
    ranges: &[Option<Range>],
    below: bool,
) -> String {
    if access.is_target {
        return "make the range smaller, or the tensor larger where it is first computed"
            .to_owned();
    }
    let subscript = statement.subscript(access);
    let values = statement.interval(access, ranges);
    let extent = statement.site.extent(access).unwrap_or_else(|| access.extent.to_string());
    let mut conditions = Vec::new();
    if values.lo < 0 {
        conditions.push(format!("{subscript} >= 0"));
    }
    if values.hi >= i128::from(access.extent) {
        conditions.push(format!("{subscript} < {extent}"));
    }
    let choose = format!("choose what to use outside: `{} ? ... : 0`", conditions.join(" && "));
    let vars = index_axes(&access.index);
    let only = (vars.count_ones() == 1).then(|| vars.trailing_zeros() as usize);
    let Some(var) = only else { return format!("make a range smaller with `where`, or {choose}") };
    let name = &statement.stmt.vars[var].name;
    let step = coefficient(&access.index, AxisId(var as u32));
    if step != 1 {
        return format!("make the range of `{name}` smaller with `where`, or {choose}");
    }
    let offset = access.index.constant_term();
    if !below {
        let end = access.extent.saturating_sub(offset);
        return format!("let `{name}` end below {end} with `where`, or {choose}");
    }
    let start = offset.unsigned_abs();
    // A result starts at 0, so its variable cannot simply start later.
    if var < statement.stmt.rank {
        format!("write `{name} + {start}` for `{name}` on the right side, or {choose}")
    } else {
        format!("let `{name}` start at {start} (`where {name} in {start}:...`), or {choose}")
    }
}

/// Marks the subscripts that must be checked at run time.
pub(super) fn mark_checked(body: &mut Expr, checked: &[RuntimeCheck]) {
    if checked.is_empty() {
        return;
    }
    let mut dimensions: HashMap<(Span, TensorId), Vec<u32>> = HashMap::new();
    for (span, tensor, dimension) in checked {
        dimensions.entry((*span, *tensor)).or_default().push(*dimension);
    }
    for list in dimensions.values_mut() {
        list.sort_unstable();
        list.dedup();
    }
    body.for_each_read_mut(&mut |read| {
        read.checked = dimensions.get(&(read.place.0, read.tensor)).cloned().unwrap_or_default();
    });
}
