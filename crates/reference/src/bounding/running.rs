//! Error analysis of running sums and products.

use tensorwright_lang::builtin::Builtin;
use tensorwright_lang::dtype::DType;
use tensorwright_lang::ops::{ArithOp, CompareOp, ReductionOp};
use tensorwright_lang::program::{Expr, Index, Program, Read, Running, Scan, Stage, TensorId};

use super::build::{
    abs, add, both, call, compare, div, here, infinity, known, mul, number, scaled, select, sub,
    unless,
};
use super::enclosure::Term;
use super::expr::Tensors;
use super::stages::{Analysis, DOUBLE, stored};
use crate::tolerance::Rounding;

impl Analysis {
    /// The values and errors of a running sum or product.
    pub(super) fn running(
        &mut self,
        program: &Program,
        stage: &Stage,
        scan: &Scan,
        running: &Running<'_>,
    ) -> Option<(TensorId, Option<TensorId>)> {
        let dtype = program.tensor(stage.output).dtype;
        let tensors = Tensors { program, values: self.values.clone(), errors: self.errors.clone() };
        let start = tensors.stored(stage, &scan.start, dtype)?;
        let lines = Lines { program, stage, running };
        let (values, error) = match running.op {
            ReductionOp::Sum => {
                let term = tensors.term(stage, &running.term, dtype)?;
                self.running_sum(&lines, term, start.value, start.error, dtype)?
            }
            _ => {
                let term = tensors.stored(stage, &running.term, dtype)?;
                let (term, start) = ((term.value, term.error), (start.value, start.error));
                self.running_product(&lines, term, start, dtype)?
            }
        };
        let mut like = stage.clone();
        like.scan = None;
        let body = stored(&here(values, stage.spatial()), error, Rounding::operation(dtype));
        let errors = self.pointwise(program, &like, None, known(body));
        Some((values, Some(errors)))
    }

    /// The bound of a sum, as in `Analysis::sum`.
    fn running_sum(
        &mut self,
        lines: &Lines<'_>,
        term: Term,
        start: Expr,
        start_error: Option<Expr>,
        dtype: DType,
    ) -> Option<(TensorId, Expr)> {
        let Term { value, relative, absolute, error } = term;
        let rank = lines.stage.spatial();
        let rounding = Rounding::accumulation(dtype);
        let magnitudes = (abs(&value), abs(&start));
        let values = lines.scan(self, ReductionOp::Sum, value, start)?;
        let sums = lines.scan(self, ReductionOp::Sum, magnitudes.0, magnitudes.1)?;
        let errors = match (error, start_error) {
            (None, None) => None,
            (error, start) => {
                let [error, start] =
                    [error, start].map(|it| known(it.unwrap_or_else(|| number(0.0))));
                Some(lines.scan(self, ReductionOp::Sum, error, start)?)
            }
        };
        // The rounding of the sum of magnitudes.
        let most = lines.steps()? as f64 + 1.0;
        let exactly = 1.0 + 4.0 * most * DOUBLE + 1e-12;
        let sum = scaled(exactly, here(sums, rank));
        let errors = errors.map(|errors| scaled(exactly, here(errors, rank)));
        let steps = lines.steps_so_far()?;
        // The other evaluation's rounding, and ours in `double`.
        let theirs = scaled(rounding.unit - DOUBLE, steps.clone());
        let theirs = div(theirs.clone(), add(number(1.0), theirs));
        let growth = add(theirs, scaled(DOUBLE, add(steps.clone(), number(1.0))));
        let own = (relative > 0.0).then(|| scaled(relative, sum.clone()));
        let all = both(Some(sum.clone()), errors.clone()).unwrap_or_else(infinity);
        let fits = compare(CompareOp::Le, all, number(rounding.largest / 2.0));
        let mut total = mul(growth.clone(), sum);
        if let Some(propagated) = both(own, errors) {
            total = add(total, mul(add(number(1.0), growth), propagated));
        }
        if absolute > 0.0 {
            total = add(total, scaled(2.0 * absolute, add(steps, number(1.0))));
        }
        Some((values, add(total, unless(fits))))
    }

    /// The bound of a product, as in `Analysis::product`.
    fn running_product(
        &mut self,
        lines: &Lines<'_>,
        (value, error): (Expr, Option<Expr>),
        (start, start_error): (Expr, Option<Expr>),
        dtype: DType,
    ) -> Option<(TensorId, Expr)> {
        let rank = lines.stage.spatial();
        let rounding = Rounding::accumulation(dtype);
        let largest = |magnitude: Expr| call(Builtin::Max, vec![known(magnitude), number(1.0)]);
        let size = |value: &Expr, error| both(Some(abs(value)), error).unwrap_or_else(infinity);
        let sizes = (size(&value, error), size(&start, start_error));
        let values = lines.scan(self, ReductionOp::Product, value, start)?;
        let whole = lines.scan(self, ReductionOp::Product, sizes.0.clone(), sizes.1.clone())?;
        let greatest =
            lines.scan(self, ReductionOp::Product, largest(sizes.0), largest(sizes.1))?;
        let terms = add(lines.steps_so_far()?, number(2.0));
        let nu = scaled(rounding.unit, terms.clone());
        let growth = select(
            compare(CompareOp::Lt, nu.clone(), number(1.0)),
            div(number(1.0), sub(number(1.0), nu)),
            infinity(),
        );
        let value = here(values, rank);
        let error = sub(mul(growth.clone(), here(whole, rank)), abs(&value));
        let lost = mul(scaled(rounding.underflow, terms), here(greatest, rank));
        let fits = compare(
            CompareOp::Lt,
            mul(growth, here(greatest, rank)),
            number(rounding.largest / 2.0),
        );
        Some((values, add(add(error, lost), unless(fits))))
    }
}

/// The lines along which a running stage accumulates.
struct Lines<'a> {
    program: &'a Program,
    stage: &'a Stage,
    running: &'a Running<'a>,
}

impl Lines<'_> {
    /// The number of steps of a line.
    fn steps(&self) -> Option<i64> {
        let scan = self.stage.scan.as_ref()?;
        Some(self.stage.axes.get(scan.axis.0 as usize)?.extent())
    }

    /// The number of terms up to a point.
    fn steps_so_far(&self) -> Option<Expr> {
        let scan = self.stage.scan.as_ref()?;
        let axis = self.stage.axes.get(scan.axis.0 as usize)?;
        let at = Index::axis(scan.axis);
        let steps = match scan.backwards {
            true => Index::constant(axis.hi).sub(&at)?,
            false => at.sub(&Index::constant(axis.lo - 1))?,
        };
        Some(Expr::Cast(DType::Double, Box::new(Expr::Index(steps, DType::Int64))))
    }

    /// The same recurrence of other terms, in `double`.
    fn scan(
        &self,
        analysis: &mut Analysis,
        op: ReductionOp,
        term: Expr,
        start: Expr,
    ) -> Option<TensorId> {
        let own = analysis.next();
        let before = match self.running.before {
            Expr::Select(condition, ..) => {
                let read = Expr::Read(Read { tensor: own, ..self.running.read.clone() });
                Expr::Select(condition.clone(), Box::new(read), Box::new(start.clone()))
            }
            _ => return None,
        };
        let op = if op == ReductionOp::Product { ArithOp::Mul } else { ArithOp::Add };
        let body = Expr::Arith(op, Box::new(before), Box::new(term));
        let made = analysis.push(self.program, self.stage, DType::Double, |made| {
            made.body = body;
            made.scan = made.scan.take().map(|mut scan| {
                scan.start = start;
                scan
            });
        });
        (made == own).then_some(own)
    }
}
