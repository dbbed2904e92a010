//! Resolves the ranges and shapes of an inlined definition.
//!
//! Statements are processed in order. One whose tensors all have a shape is settled at once. One
//! that leaves a left-side variable open waits, because a later statement on the same tensor may
//! determine that extent: `O(b,n) = B(n)` takes the range of `b` from `O(b,n) += I(b,m) * W(n,m)`.
//! The first statement that determines an extent of a tensor sets it.

use std::borrow::Cow;

use super::bounds::{self, Mode, subscript_text};
use super::extent_mismatch;
use super::flatten::{Flat, Step};
use super::lower::{Extents, Lowering};
use super::scan;
use super::scatter;
use super::shapes::Shapes;
use super::site::Site;
use super::undetermined;
use crate::diagnostic::{Code, Diagnostic};
use crate::hir::{Comprehension, Def, Dim, Symbol};
use crate::infer::{self, Access, Origin, Range, SettledRange};
use crate::program::{
    AccessLimit, AxisId, Exact, Expr, Index, RangeReason, Scan, Scatter, TensorId,
};
use crate::source::Span;
use crate::syntax::ast::MAX_DEPTH;

/// A statement with all ranges known.
#[derive(Debug)]
pub(super) struct ResolvedStatement {
    /// Per variable of the statement.
    pub(super) ranges: Vec<(Range, RangeReason)>,
    /// The right side; tensors have the numbers of their symbols.
    pub(super) body: Expr,
    /// The scan of a recurrence; the body already contains its start.
    pub(super) scan: Option<Scan>,
    /// The positions of a scatter; the body already contains the conditions on them.
    pub(super) scatter: Vec<Scatter>,
}

/// The state of range resolution.
pub(super) struct Resolver<'a> {
    pub(super) flat: &'a Flat<'a>,
    /// The definition being bound; its parameters are the first tensors.
    pub(super) def: &'a Def,
    pub(super) sizes: &'a [i64],
    pub(super) scalars: &'a [Option<i64>],
    pub(super) shapes: Shapes<i64>,
    pub(super) mode: Mode,
    pub(super) diagnostics: Vec<Diagnostic>,
    /// What determined shapes, in order.
    pub(super) trace: Vec<Attempted>,
}

/// An attempt that found extents, or copied a shape.
#[derive(Debug)]
pub(super) struct Attempted {
    /// The number of the step.
    pub(super) step: usize,
    /// Per variable of the statement.
    pub(super) ranges: Vec<Option<Range>>,
}

/// The deepest nesting of an expression with index arithmetic in normal form, where a sum nests
/// once per term. Deeper expressions are never printed, not even in messages.
pub(super) const MAX_HEIGHT: usize = 4 * MAX_DEPTH;

pub(super) fn too_deep(span: Span) -> Diagnostic {
    let message = "this statement nests too deeply once its index arithmetic is normalized";
    Diagnostic::new(Code::NestingTooDeep, span, message)
        .here("too many terms in one subscript")
        .help("compute part of it in a statement of its own and read the result")
}

pub(super) fn too_wide(span: Span) -> Diagnostic {
    let message = "the index arithmetic of this statement needs too many bits to be exact";
    Diagnostic::new(Code::TooLarge, span, message)
        .here("too large for these sizes and types of data")
        .help("use smaller factors, or convert the data: `int32(I(m))` has 32 bits")
}

/// The result of an attempt to settle a statement.
enum Attempt {
    Done(Option<ResolvedStatement>),
    /// It needs a shape that is not known yet.
    Waits,
    /// It does not determine all ranges; these would be the errors.
    Undetermined(Vec<Diagnostic>),
}

impl<'a> Resolver<'a> {
    /// Resolves all steps; those with errors are `None`, and the errors are reported.
    pub(super) fn resolve(&mut self) -> Vec<Option<ResolvedStatement>> {
        let flat = self.flat;
        let mut resolved: Vec<Option<ResolvedStatement>> =
            flat.steps.iter().map(|_| None).collect();
        let mut pending: Vec<usize> = (0..flat.steps.len()).collect();
        loop {
            let before = (pending.len(), self.shapes.noted());
            let mut errors = Vec::new();
            pending.retain(|number| match self.attempt(*number, &flat.steps[*number]) {
                Attempt::Done(result) => {
                    resolved[*number] = result;
                    false
                }
                Attempt::Waits => true,
                Attempt::Undetermined(diagnostics) => {
                    errors.extend(diagnostics);
                    true
                }
            });
            if pending.is_empty() {
                break;
            }
            if (pending.len(), self.shapes.noted()) == before {
                self.diagnostics.extend(errors);
                break;
            }
        }
        resolved
    }

    fn attempt(&mut self, number: usize, step: &Step<'_>) -> Attempt {
        match step {
            Step::Alias { target, source } if self.shapes.copy(*target, *source) => {
                self.trace.push(Attempted { step: number, ranges: Vec::new() });
                Attempt::Done(None)
            }
            Step::Alias { .. } => Attempt::Waits,
            Step::Compute(stmt, site) => {
                if self.needs_a_shape(stmt) {
                    return Attempt::Waits;
                }
                let flat = self.flat;
                let called = |error| flat.with_calls(error, site.call);
                match self.compute(number, stmt, *site) {
                    Ok(Attempt::Undetermined(errors)) => {
                        Attempt::Undetermined(errors.into_iter().map(called).collect())
                    }
                    Ok(attempt) => attempt,
                    Err(errors) => {
                        self.diagnostics.extend(errors.into_iter().map(called));
                        Attempt::Done(None)
                    }
                }
            }
        }
    }

    /// The current environment for lowering.
    pub(super) fn lowering(&self) -> Lowering<'_> {
        Lowering {
            tensors: &self.flat.tensors,
            params: self.def.params,
            scalars: self.scalars,
            extents: Extents::Known { sizes: self.sizes, shapes: &self.shapes },
            fold: self.mode == Mode::Bind,
        }
    }

    /// Whether the statement uses a tensor without a shape, other than its target.
    fn needs_a_shape(&self, stmt: &Comprehension) -> bool {
        let mut needs = false;
        stmt.walk_symbols(&mut |symbol| {
            needs |= symbol != stmt.target && self.shapes.of(symbol).is_none();
        });
        needs
    }

    fn compute(
        &mut self,
        number: usize,
        stmt: &Comprehension,
        site: Site<'_>,
    ) -> Result<Attempt, Vec<Diagnostic>> {
        let lowering = self.lowering();
        let mut body = lowering.expr(&stmt.rhs).map_err(|error| vec![error])?;
        let mut scan = scan::lowered(&lowering, stmt, &body).map_err(|error| vec![error])?;
        let mut scatter = scatter::lowered(&lowering, stmt).map_err(|error| vec![error])?;
        let positions: usize = scatter.iter().map(|scatter| scatter.at.height() + 4).sum();
        let start = scan.as_ref().map_or(0, |scan| scan.start.height());
        if body.height() + start + positions > MAX_HEIGHT {
            return Err(vec![too_deep(stmt.span)]);
        }
        let given = self.given_ranges(stmt, &lowering)?;
        if self.mode == Mode::Structure && given.iter().all(Option::is_some) {
            let settled = |range: &Range| SettledRange { range: *range, origin: Origin::Given };
            let settled: Vec<SettledRange> = given.iter().flatten().map(settled).collect();
            self.set_shape(stmt, &settled);
            return Ok(Attempt::Done(None));
        }
        let accesses = accesses(&self.shapes, stmt, &body, scan.as_ref(), &scatter);
        let tensors = &self.flat.tensors;
        let dtype = |id: TensorId| tensors[id.0 as usize].dtype;
        let target = TensorId(stmt.target.0);
        let settled = infer::infer(&given, &accesses, &dtype);
        let statement =
            bounds::Statement { stmt, site, tensors, accesses: &accesses, mode: self.mode };
        let Some(settled) = settled.iter().cloned().collect::<Option<Vec<SettledRange>>>() else {
            let errors = undetermined::explain(&statement, &settled, &given, &dtype);
            self.note_extents(stmt, &settled);
            let ranges = settled.iter().map(|it| it.as_ref().map(|it| it.range)).collect();
            self.trace.push(Attempted { step: number, ranges });
            return Ok(if self.mode == Mode::Structure && errors.is_empty() {
                Attempt::Done(None)
            } else {
                Attempt::Undetermined(errors)
            });
        };
        let settled = match self.mode {
            Mode::Bind => settled,
            Mode::Structure => settled.into_iter().map(at_least_one).collect(),
        };
        self.set_shape(stmt, &settled);
        if self.mode == Mode::Structure {
            return Ok(Attempt::Done(None));
        }
        bounds::not_empty(&statement, &settled, &dtype)?;
        extent_mismatch::same_extents(&statement, &settled, &dtype)?;
        let known: Vec<Option<Range>> = settled.iter().map(|s| Some(s.range)).collect();
        let checked = bounds::verify(&statement, &known, &dtype)?;
        let mut decided = scatter.clone();
        scatter::verify(&statement, &mut decided, &known, &dtype)?;
        let ranges = settled
            .iter()
            .zip(&stmt.vars)
            .map(|(settled, var)| {
                let given = var.range.as_ref().map(|(_, _, span)| *span);
                (settled.range, self.reason(stmt, settled, &accesses, given))
            })
            .collect();
        drop(accesses);
        self.trace.push(Attempted { step: number, ranges: known });
        scatter = decided;
        bounds::mark_checked(&mut body, &checked);
        for it in &mut scatter {
            it.at.for_each_value_mut(&mut |value| bounds::mark_checked(value, &checked));
        }
        if let Some(scan) = &mut scan {
            bounds::mark_checked(&mut scan.start, &checked);
            let Range { lo, hi } = settled[scan.axis.0 as usize].range;
            let ends = (Index::constant(lo), Index::constant(hi));
            body = scan::with_start(&body, target, scan, ends)
                .ok_or_else(|| vec![too_wide(stmt.span)])?;
        }
        body = Scatter::body(&scatter, body, scatter::nothing(stmt, dtype(target)));
        let written = Expr::Read(Scatter::element(&scatter, target, stmt.rank));
        if ![&body, &written].into_iter().all(|expr| self.is_computable(expr, &settled)) {
            return Err(vec![too_wide(stmt.span)]);
        }
        Ok(Attempt::Done(Some(ResolvedStatement { ranges, body, scan, scatter })))
    }

    /// Whether index arithmetic on these ranges and types of data can be computed exactly.
    fn is_computable(&self, body: &Expr, settled: &[SettledRange]) -> bool {
        let axis = |axis: AxisId| settled[axis.0 as usize].range.interval();
        let dtype = |id: TensorId| self.flat.tensors[id.0 as usize].dtype;
        let extent = |id: TensorId, dimension: u32| {
            self.shapes.of(Symbol(id.0))?.get(dimension as usize).copied()
        };
        let exact = Exact::new(&axis, &dtype, &extent);
        exact.is_exact(body) || exact.expr(body).is_some()
    }

    fn given_ranges(
        &self,
        stmt: &Comprehension,
        lowering: &Lowering<'_>,
    ) -> Result<Vec<Option<Range>>, Vec<Diagnostic>> {
        let mut errors = Vec::new();
        let mut given = Vec::with_capacity(stmt.vars.len());
        for var in &stmt.vars {
            let Some((lo, hi, span)) = &var.range else {
                given.push(None);
                continue;
            };
            let range = lowering.constant(lo, *span).and_then(|lo| {
                let hi = lowering.constant(hi, *span)?;
                check_range(&var.name, lo, hi, *span, self.mode)
            });
            match range {
                Ok(range) => given.push(Some(range)),
                Err(error) => errors.push(error),
            }
        }
        if errors.is_empty() { Ok(given) } else { Err(errors) }
    }

    /// Records the extents that a statement determines although others stay open.
    fn note_extents(&mut self, stmt: &Comprehension, settled: &[Option<SettledRange>]) {
        let extent = |settled: &Option<SettledRange>| Some(settled.as_ref()?.range.hi.max(1));
        self.shapes.note(stmt.target, settled[..stmt.rank].iter().map(extent).collect());
    }

    /// Sets the shape of a tensor from the first statement that determines it.
    fn set_shape(&mut self, stmt: &Comprehension, settled: &[SettledRange]) {
        let extents = settled[..stmt.rank].iter().map(|settled| settled.range.hi.max(1));
        self.shapes.set(stmt.target, extents.collect());
    }

    fn reason(
        &self,
        stmt: &Comprehension,
        settled: &SettledRange,
        accesses: &[Access<'_>],
        given: Option<Span>,
    ) -> RangeReason {
        match &settled.origin {
            Origin::Given => RangeReason::Where { span: given.unwrap_or(stmt.span) },
            Origin::Accesses { round, limits, .. } => RangeReason::Access {
                round: *round,
                limits: limits.iter().map(|number| self.limit(stmt, &accesses[*number])).collect(),
            },
        }
    }

    fn limit(&self, stmt: &Comprehension, access: &Access<'_>) -> AccessLimit {
        let number = access.tensor.0 as usize;
        let params = &self.def.tensors[..self.def.params];
        let size = match params.get(number).and_then(|param| param.dims.get(access.dimension)) {
            Some(Dim::Size(size)) => Some(self.def.sizes[size.0 as usize].name.clone()),
            _ => None,
        };
        AccessLimit {
            tensor: self.flat.tensors[number].name.clone(),
            dimension: access.dimension,
            extent: access.extent,
            size,
            subscript: subscript_text(stmt, &self.flat.tensors, &access.index),
            span: access.span,
            is_target: access.is_target,
        }
    }
}

/// The accesses of the right side, and of the left side where its extents are known. The self-reads
/// of a recurrence exist for any range, and limit none.
pub(super) fn accesses<'b, E: Clone>(
    shapes: &Shapes<E>,
    stmt: &Comprehension,
    body: &'b Expr,
    scan: Option<&'b Scan>,
    scatter: &'b [Scatter],
) -> Vec<Access<'b, E>> {
    let target = TensorId(stmt.target.0);
    let of_others =
        |id: TensorId| shapes.of(Symbol(id.0)).filter(|_| scan.is_none() || id != target);
    let mut accesses = infer::accesses(body, &of_others);
    accesses.extend(scan.iter().flat_map(|scan| infer::accesses(&scan.start, &of_others)));
    let inside = |it: &'b Scatter| infer::accesses_inside(&it.at, &of_others);
    accesses.extend(scatter.iter().flat_map(inside));
    accesses.extend((0..stmt.rank).filter_map(|dimension| {
        Some(Access {
            tensor: target,
            dimension,
            extent: shapes.extent(stmt.target, dimension)?.clone(),
            index: Cow::Owned(Index::axis(AxisId(dimension as u32))),
            guards: Vec::new(),
            span: stmt.target_span,
            is_target: true,
        })
    }));
    accesses
}

/// The structural check uses synthetic sizes, for which a range may be empty by chance.
fn at_least_one(settled: SettledRange) -> SettledRange {
    SettledRange { range: settled.range.at_least_one(), ..settled }
}

fn check_range(name: &str, lo: i64, hi: i64, span: Span, mode: Mode) -> Result<Range, Diagnostic> {
    if mode == Mode::Structure {
        let lo = lo.clamp(0, i64::MAX / 2);
        return Ok(Range { lo, hi: hi.max(lo + 1) });
    }
    if lo < 0 {
        let message =
            format!("the range of `{name}` starts at {lo}, and must not start below zero");
        return Err(Diagnostic::new(Code::NegativeRange, span, message)
            .here(format!("{lo} to {hi} (excluded)"))
            .help(format!(
                "start at 0 and subtract where `{name}` is used: `{name} - {}`",
                lo.unsigned_abs()
            )));
    }
    if hi <= lo {
        let message = format!("the range of `{name}` is empty");
        return Err(Diagnostic::new(Code::EmptyRange, span, message)
            .here(format!("{lo} to {hi} (excluded) for these sizes"))
            .help("make the sizes larger, or the range"));
    }
    Ok(Range { lo, hi })
}
