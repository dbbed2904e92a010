//! Translates stages into stages of the error analysis.

use tensorwright_lang::builtin::Builtin;
use tensorwright_lang::dtype::DType;
use tensorwright_lang::ops::{CompareOp, ReductionOp};
use tensorwright_lang::program::{
    AxisKind, Combine, Expr, Program, Scalar, Scan, Scatter, Stage, TensorId,
};

use super::build::{
    abs, add, both, call, compare, here, infinity, is_infinite, known, number, scaled, sub, unless,
};
use super::enclosure::{Enclosure, Term, near, rounded_or};
use super::expr::Tensors;
use crate::running::rounds;
use crate::tolerance::Rounding;

/// The unit roundoff of `double`, in which the analysis computes.
pub(super) const DOUBLE: f64 = f64::EPSILON / 2.0;

/// The analysis under construction, and its tensors for those of the original program.
pub(super) struct Analysis {
    pub(super) made: Program,
    pub(super) values: Vec<TensorId>,
    pub(super) errors: Vec<Option<TensorId>>,
    /// The prefix of all generated tensor names.
    prefix: String,
}

/// Builds the stages that compute values and errors of all tensors.
pub(super) fn analysis(program: &Program) -> Option<Analysis> {
    program.stages.first()?;
    let mut made = program.clone();
    made.name = format!("{}_bounds", program.name);
    made.tensors.truncate(program.inputs);
    made.tensors.iter_mut().for_each(|tensor| tensor.is_const = false);
    made.stages.clear();
    let mut prefix = "t".to_owned();
    while made.tensors.iter().any(|tensor| tensor.name.starts_with(&prefix)) {
        prefix.push('_');
    }
    let values = program.input_ids().collect();
    let errors = vec![None; program.inputs];
    let mut analysis = Analysis { made, values, errors, prefix };
    for stage in &program.stages {
        let (value, error) = analysis.stage(program, stage)?;
        analysis.values.push(value);
        analysis.errors.push(error);
    }
    Some(analysis)
}

/// The initial values of a stage.
#[derive(Clone, Copy)]
pub(super) struct Base {
    pub(super) values: TensorId,
    pub(super) errors: TensorId,
}

impl Analysis {
    /// Builds the values and errors of a stage's tensor.
    fn stage(&mut self, program: &Program, stage: &Stage) -> Option<(TensorId, Option<TensorId>)> {
        if let Some(scan) = &stage.scan {
            return self.scan(program, stage, scan);
        }
        let stage = &self.scatter(program, stage)?;
        let base_is_exact = stage.base.is_none_or(|base| self.errors[base.0 as usize].is_none());
        let base = stage.base.map(|base| self.base(program, stage, base));
        let dtype = program.tensor(stage.output).dtype;
        let tensors = Tensors { program, values: self.values.clone(), errors: self.errors.clone() };
        match stage.combine.reduction() {
            Some(ReductionOp::Sum) if dtype.is_float() => {
                let term = tensors.term(stage, &stage.body, dtype)?;
                let (values, errors) = match stage.scatter.is_empty() {
                    true => self.sum(program, stage, term, dtype, base),
                    false => self.scattered_sum(program, stage, term, dtype, base),
                };
                Some((values, Some(errors)))
            }
            reduction => {
                let bound = tensors.stored(stage, &stage.body, dtype)?;
                let values = self.reduced(program, stage, &bound, base);
                let is_product = reduction == Some(ReductionOp::Product) && dtype.is_float();
                if bound.error.is_none() && base_is_exact && !is_product {
                    return Some((values, None));
                }
                let error = match reduction {
                    None => bound.error,
                    Some(_) if is_product => {
                        let error = self.product(program, stage, &bound, values, base);
                        return Some((values, Some(error)));
                    }
                    Some(_) => Some(self.folded(program, stage, bound, values, base)),
                };
                Some((values, Some(self.errors(program, stage, values, error, dtype, base))))
            }
        }
    }

    /// Builds the values and errors of a recurrence, as recurrences: an element inherits the error
    /// of the one it is computed from.
    fn scan(
        &mut self,
        program: &Program,
        stage: &Stage,
        scan: &Scan,
    ) -> Option<(TensorId, Option<TensorId>)> {
        let dtype = program.tensor(stage.output).dtype;
        if let Some(running) = stage.running(dtype).filter(|it| rounds(it.op, dtype)) {
            return self.running(program, stage, scan, &running);
        }
        let next = self.made.tensors.len() as u32;
        let (values, errors) = (TensorId(next), TensorId(next + 1));
        let tensors = |own: Option<TensorId>| {
            let values = self.values.iter().copied().chain([values]).collect();
            let errors = self.errors.iter().copied().chain([own]).collect();
            Tensors { program, values, errors }
        };
        let exact = tensors(None);
        let bound = exact.stored(stage, &stage.body, dtype)?;
        // A recurrence that is exact whenever its earlier elements are is exact throughout, by
        // induction.
        let is_exact = bound.error.is_none();
        let tensors = if is_exact { exact } else { tensors(Some(errors)) };
        let bound = tensors.stored(stage, &stage.body, dtype)?;
        let start = tensors.stored(stage, &scan.start, dtype)?;
        let made = if dtype.is_float() { DType::Double } else { dtype };
        let mut recurrence = |dtype: DType, body: Expr, start: Expr| {
            self.push(program, stage, dtype, |made| {
                made.body = body;
                made.scan = stage.scan.clone().map(|mut scan| {
                    scan.start = start;
                    scan
                });
            })
        };
        recurrence(made, bound.value, start.value);
        if is_exact {
            return Some((values, None));
        }
        let none = || number(0.0);
        let error = bound.error.unwrap_or_else(none);
        let error = match dtype.is_float() {
            true => {
                let value = here(values, stage.spatial());
                self::stored(&value, error, Rounding::operation(dtype))
            }
            false => error,
        };
        recurrence(DType::Double, known(error), start.error.unwrap_or_else(none));
        Some((values, Some(errors)))
    }

    /// The output of the next stage.
    pub(super) fn next(&self) -> TensorId {
        TensorId(self.made.tensors.len() as u32)
    }

    /// Adds a stage modeled on one of the program.
    pub(super) fn push(
        &mut self,
        program: &Program,
        like: &Stage,
        dtype: DType,
        change: impl FnOnce(&mut Stage),
    ) -> TensorId {
        let id = self.next();
        let mut tensor = program.tensor(like.output).clone();
        tensor.name = format!("{}{}", self.prefix, id.0);
        tensor.dtype = dtype;
        let mut stage = like.clone();
        stage.output = id;
        stage.base = None;
        change(&mut stage);
        match stage.combine.reduction() {
            Some(op) if !stage.scatter.is_empty() => {
                stage.body = Scatter::body(&stage.scatter, stage.body, Scalar::neutral(op, dtype));
            }
            _ => stage.scatter.clear(),
        }
        self.made.tensors.push(tensor);
        self.made.stages.push(stage);
        id
    }

    /// Adds an elementwise stage over the elements that a stage computes.
    pub(super) fn pointwise(
        &mut self,
        program: &Program,
        like: &Stage,
        base: Option<TensorId>,
        body: Expr,
    ) -> TensorId {
        self.push(program, like, DType::Double, |stage| {
            stage.base = base;
            stage.axes.truncate(like.spatial());
            stage.combine = Combine::Assign;
            stage.body = body;
        })
    }

    /// Adds an elementwise stage over the whole tensor.
    fn everywhere(&mut self, program: &Program, like: &Stage, body: Expr) -> TensorId {
        let mut whole = like.clone();
        for (axis, extent) in whole.axes.iter_mut().zip(&program.tensor(like.output).shape) {
            (axis.lo, axis.hi) = (0, *extent);
        }
        self.pointwise(program, &whole, None, body)
    }

    fn base(&mut self, program: &Program, stage: &Stage, base: TensorId) -> Base {
        let place = base.0 as usize;
        let rank = stage.spatial();
        let is_float = program.tensor(base).dtype.is_float();
        let values = if is_float && place < program.inputs {
            let read = Expr::Cast(DType::Double, Box::new(here(base, rank)));
            self.everywhere(program, stage, read)
        } else {
            self.values[place]
        };
        let errors = match self.errors[place] {
            Some(errors) => errors,
            None => self.everywhere(program, stage, number(0.0)),
        };
        Base { values, errors }
    }

    /// Adds the same reduction of values.
    pub(super) fn reduced(
        &mut self,
        program: &Program,
        stage: &Stage,
        bound: &Enclosure,
        base: Option<Base>,
    ) -> TensorId {
        let dtype = if bound.dtype.is_float() { DType::Double } else { bound.dtype };
        self.push(program, stage, dtype, |made| {
            made.base = base.map(|base| base.values);
            made.body = bound.value.clone();
        })
    }

    /// Adds a reduction of errors or magnitudes; an accumulating one starts from `onto`.
    pub(super) fn reduction(
        &mut self,
        program: &Program,
        stage: &Stage,
        op: ReductionOp,
        body: Expr,
        onto: Option<Expr>,
    ) -> TensorId {
        let base = stage
            .base
            .map(|_| self.everywhere(program, stage, onto.unwrap_or_else(|| number(0.0))));
        self.push(program, stage, DType::Double, |made| {
            made.base = base;
            made.combine = match stage.combine {
                Combine::Accumulate(_) => Combine::Accumulate(op),
                _ => Combine::Reduce(op),
            };
            made.body = body;
        })
    }

    /// Adds the errors of stored elements.
    fn errors(
        &mut self,
        program: &Program,
        stage: &Stage,
        values: TensorId,
        error: Option<Expr>,
        dtype: DType,
        base: Option<Base>,
    ) -> TensorId {
        let rounding = Rounding::operation(dtype);
        let body = match error {
            None => number(0.0),
            Some(error) if !dtype.is_float() => error,
            Some(error) => stored(&here(values, stage.spatial()), error, rounding),
        };
        self.pointwise(program, stage, base.map(|base| base.errors), known(body))
    }

    /// The error of a minimum or a maximum, and of reductions of integers.
    fn folded(
        &mut self,
        program: &Program,
        stage: &Stage,
        bound: Enclosure,
        values: TensorId,
        base: Option<Base>,
    ) -> Expr {
        let rank = stage.spatial();
        let reduction = stage.combine.reduction();
        let is_sum = reduction == Some(ReductionOp::Sum);
        let op = if is_sum { ReductionOp::Sum } else { ReductionOp::Max };
        let error = bound.error.unwrap_or_else(|| number(0.0));
        let onto = base.map(|base| here(base.errors, rank));
        let errors = self.reduction(program, stage, op, known(error), onto);
        let error = here(errors, rank);
        match reduction {
            Some(ReductionOp::Min | ReductionOp::Max) => error,
            // Uncertain integers may wrap around.
            Some(ReductionOp::Sum) => near(&here(values, rank), error, bound.dtype),
            _ => unless(compare(CompareOp::Eq, error, number(0.0))),
        }
    }

    /// A sum of floating-point numbers.
    fn sum(
        &mut self,
        program: &Program,
        stage: &Stage,
        term: Term,
        dtype: DType,
        base: Option<Base>,
    ) -> (TensorId, TensorId) {
        let Term { value, relative, absolute, error } = term;
        let rank = stage.spatial();
        let accumulates = matches!(stage.combine, Combine::Accumulate(_));
        let terms = stage.trip_count(AxisKind::Reduce) as f64 + f64::from(accumulates);
        let rounding = Rounding::accumulation(dtype);
        // The other evaluation's rounding, and ours in `double`.
        let theirs = (terms - 1.0).max(1.0) * (rounding.unit - DOUBLE);
        let growth = theirs / (1.0 + theirs) + terms * DOUBLE;
        let coefficient = (1.0 + growth) * relative + growth;
        let bound = Enclosure { dtype, value, error: None };
        let values = self.reduced(program, stage, &bound, base);
        let magnitude = abs(&bound.value);
        let held = base.filter(|_| accumulates);
        let of_base = held.map(|base| abs(&here(base.values, rank)));
        let sums = match error {
            None => self.reduction(program, stage, ReductionOp::Sum, magnitude, of_base),
            Some(error) => {
                let error = scaled((1.0 + growth) / coefficient, error);
                let both = add(magnitude, error);
                self.reduction(program, stage, ReductionOp::Sum, both, of_base)
            }
        };
        // The rounding of the sum of magnitudes.
        let exactly = 1.0 + 4.0 * terms * DOUBLE + 1e-12;
        let sum = scaled(exactly, here(sums, rank));
        let fits = compare(CompareOp::Le, sum.clone(), number(rounding.largest / 2.0));
        let total = add(scaled(coefficient, sum), unless(fits));
        let total = add(total, number(2.0 * terms * absolute));
        let of_base = held.map(|base| scaled(1.0 + growth, here(base.errors, rank)));
        let total = both(Some(total), of_base).unwrap_or_else(infinity);
        let body = stored(&here(values, rank), total, Rounding::operation(dtype));
        let errors = self.pointwise(program, stage, base.map(|base| base.errors), known(body));
        (values, errors)
    }

    /// A floating-point product: `(1 + γn) Π (|vi| + ei) - Π |vi|`, plus underflow in partial
    /// products.
    fn product(
        &mut self,
        program: &Program,
        stage: &Stage,
        bound: &Enclosure,
        values: TensorId,
        base: Option<Base>,
    ) -> TensorId {
        let rank = stage.spatial();
        let rounding = Rounding::accumulation(bound.dtype);
        let terms = stage.trip_count(AxisKind::Reduce) as f64 + 1.0;
        let largest = |magnitude: Expr| call(Builtin::Max, vec![known(magnitude), number(1.0)]);
        let magnitude = both(Some(abs(&bound.value)), bound.error.clone()).unwrap_or_else(infinity);
        let held = base.map(|base| add(abs(&here(base.values, rank)), here(base.errors, rank)));
        let all = (magnitude.clone(), held.clone());
        let whole = self.reduction(program, stage, ReductionOp::Product, all.0, all.1);
        let greatest = (largest(magnitude), held.map(largest));
        let greatest = self.reduction(program, stage, ReductionOp::Product, greatest.0, greatest.1);
        let nu = terms * rounding.unit;
        let growth = if nu < 1.0 { 1.0 / (1.0 - nu) } else { f64::INFINITY };
        let value = here(values, rank);
        let error = sub(scaled(growth, here(whole, rank)), abs(&value));
        let error = add(error, scaled(terms * rounding.underflow, here(greatest, rank)));
        let fits = compare(
            CompareOp::Lt,
            scaled(growth, here(greatest, rank)),
            number(rounding.largest / 2.0),
        );
        let error = add(error, unless(fits));
        let body = stored(&value, error, Rounding::operation(bound.dtype));
        self.pointwise(program, stage, base.map(|base| base.errors), known(body))
    }
}

/// The error of a stored value. An infinite value that cannot come from overflow is exact.
pub(super) fn stored(value: &Expr, error: Expr, rounding: Rounding) -> Expr {
    let otherwise = unless(is_infinite(abs(value)));
    rounded_or(value, Some(error), rounding.unit, rounding, otherwise)
}
