//! The ranges and shapes of a definition without calls.
//!
//! Statements are taken in order. One whose tensors all have a shape is settled at once. One that
//! leaves a variable of its left side open waits, because a later statement on the same tensor may
//! determine the shape: `O(b,n) = B(n)` takes the range of `b` from `O(b,n) += I(b,m) * W(n,m)`.

use super::Mode;
use super::bounds;
use super::flatten::{Flat, Step};
use super::lower::Lowering;
use super::site::Site;
use super::stuck;
use crate::diagnostic::{Code, Diagnostic};
use crate::hir::Comprehension;
use crate::infer::{self, Access, Origin, Range, Settled};
use crate::program::{AccessLimit, AxisId, Expr, Index, RangeReason, TensorId, index_text};
use crate::source::Span;

/// A statement with all ranges known.
#[derive(Debug)]
pub(super) struct Resolved {
    /// Per variable of the statement.
    pub(super) ranges: Vec<(Range, RangeReason)>,
    /// The right side; tensors have the numbers of their symbols.
    pub(super) body: Expr,
}

/// The state of the work.
pub(super) struct Resolver<'a> {
    pub(super) flat: &'a Flat<'a>,
    /// How many of the tensors are parameters.
    pub(super) params: usize,
    pub(super) sizes: &'a [i64],
    pub(super) scalars: &'a [Option<i64>],
    pub(super) shapes: Vec<Option<Vec<i64>>>,
    pub(super) mode: Mode,
    pub(super) diagnostics: Vec<Diagnostic>,
}

/// What became of a statement.
enum Attempt {
    Done(Option<Resolved>),
    /// It needs the shape of a tensor that has none yet.
    Waits,
    /// It does not determine all ranges by itself; this would be the error.
    Stuck(Vec<Diagnostic>),
}

impl Resolver<'_> {
    /// Resolves all steps; those with errors have `None`, and the errors are reported.
    pub(super) fn resolve(&mut self) -> Vec<Option<Resolved>> {
        let flat = self.flat;
        let mut resolved: Vec<Option<Resolved>> = flat.steps.iter().map(|_| None).collect();
        let mut pending: Vec<usize> = (0..flat.steps.len()).collect();
        loop {
            let before = pending.len();
            let mut errors = Vec::new();
            pending.retain(|number| match self.attempt(&flat.steps[*number]) {
                Attempt::Done(result) => {
                    resolved[*number] = result;
                    false
                }
                Attempt::Waits => true,
                Attempt::Stuck(diagnostics) => {
                    errors.extend(diagnostics);
                    true
                }
            });
            if pending.is_empty() {
                break;
            }
            if pending.len() == before {
                self.diagnostics.extend(errors);
                break;
            }
        }
        resolved
    }

    fn attempt(&mut self, step: &Step<'_>) -> Attempt {
        match step {
            Step::Alias { target, source } => match self.shapes[source.0 as usize].clone() {
                None => Attempt::Waits,
                Some(shape) => {
                    self.shapes[target.0 as usize].get_or_insert(shape);
                    Attempt::Done(None)
                }
            },
            Step::Compute(stmt, site) => {
                if self.needs_a_shape(stmt) {
                    return Attempt::Waits;
                }
                let flat = self.flat;
                let called = |error| flat.with_calls(error, site.call);
                match self.compute(stmt, *site) {
                    Ok(Attempt::Stuck(errors)) => {
                        Attempt::Stuck(errors.into_iter().map(called).collect())
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

    /// Whether the statement mentions a tensor without a shape, other than the one it writes.
    fn needs_a_shape(&self, stmt: &Comprehension) -> bool {
        let mut needs = false;
        stmt.walk_symbols(&mut |symbol| {
            needs |= symbol != stmt.target && self.shapes[symbol.0 as usize].is_none();
        });
        needs
    }

    fn compute(
        &mut self,
        stmt: &Comprehension,
        site: Site<'_>,
    ) -> Result<Attempt, Vec<Diagnostic>> {
        let lowering = Lowering {
            tensors: &self.flat.tensors,
            params: self.params,
            sizes: self.sizes,
            scalars: self.scalars,
            shapes: &self.shapes,
            fold: self.mode == Mode::Bind,
        };
        let mut body = lowering.expr(&stmt.rhs).map_err(|error| vec![error])?;
        let given = self.given_ranges(stmt, &lowering)?;
        let accesses = self.accesses(stmt, &body);
        let tensors = &self.flat.tensors;
        let dtype = |id: TensorId| tensors[id.0 as usize].dtype;
        let settled = infer::infer(&given, &accesses, &dtype);
        let statement =
            bounds::Statement { stmt, site, tensors, accesses: &accesses, mode: self.mode };
        let Some(settled) = settled.iter().cloned().collect::<Option<Vec<Settled>>>() else {
            let errors = stuck::explain(&statement, &settled, &given, &dtype);
            return Ok(if self.mode == Mode::Structure && errors.is_empty() {
                Attempt::Done(None)
            } else {
                Attempt::Stuck(errors)
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
        let ranges: Vec<Option<Range>> = settled.iter().map(|s| Some(s.range)).collect();
        let checked = bounds::verify(&statement, &ranges, &dtype)?;
        let ranges = settled
            .iter()
            .zip(&stmt.vars)
            .map(|(settled, var)| {
                let given = var.range.as_ref().map(|(_, _, span)| *span);
                (settled.range, self.reason(stmt, settled, &accesses, given))
            })
            .collect();
        drop(accesses);
        bounds::mark_checked(&mut body, &checked);
        Ok(Attempt::Done(Some(Resolved { ranges, body })))
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

    /// The accesses of the right side, and those of the left where its shape is known.
    fn accesses<'b>(&self, stmt: &Comprehension, body: &'b Expr) -> Vec<Access<'b>> {
        let shape = |id: TensorId| self.shapes[id.0 as usize].as_deref();
        let mut accesses = infer::accesses(body, &shape);
        if let Some(shape) = shape(TensorId(stmt.target.0)) {
            accesses.extend(shape.iter().enumerate().map(|(dimension, extent)| Access {
                tensor: TensorId(stmt.target.0),
                dimension,
                extent: *extent,
                index: Index::axis(AxisId(dimension as u32)),
                guards: Vec::new(),
                span: stmt.target_span,
                is_target: true,
            }));
        }
        accesses
    }

    /// A tensor without a shape gets that of the first statement that determines it.
    fn set_shape(&mut self, stmt: &Comprehension, settled: &[Settled]) {
        let slot = &mut self.shapes[stmt.target.0 as usize];
        if slot.is_none() {
            *slot = Some(settled[..stmt.rank].iter().map(|s| s.range.hi.max(1)).collect());
        }
    }

    fn reason(
        &self,
        stmt: &Comprehension,
        settled: &Settled,
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
        AccessLimit {
            tensor: self.flat.tensors[access.tensor.0 as usize].name.clone(),
            dimension: access.dimension,
            extent: access.extent,
            subscript: subscript_text(stmt, &self.flat.tensors, &access.index),
            span: access.span,
            is_target: access.is_target,
        }
    }
}

/// An index expression with the names of the statement.
pub(super) fn subscript_text(
    stmt: &Comprehension,
    tensors: &[crate::hir::Tensor],
    index: &Index,
) -> String {
    let axis = |axis: AxisId| stmt.vars[axis.0 as usize].name.clone();
    let tensor = |id: TensorId| tensors[id.0 as usize].name.clone();
    index_text(index, &axis, &tensor)
}

/// Structure is checked with made-up sizes, for which a range may happen to be empty.
fn at_least_one(mut settled: Settled) -> Settled {
    settled.range.hi = settled.range.hi.max(settled.range.lo + 1);
    settled
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
