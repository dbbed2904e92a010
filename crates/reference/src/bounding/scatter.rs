//! Error analysis of scatters.

use tensorwright_lang::builtin::Builtin;
use tensorwright_lang::dtype::DType;
use tensorwright_lang::ops::{CompareOp, ReductionOp};
use tensorwright_lang::program::{AxisKind, Combine, Program, Stage, TensorId};

use super::build::{abs, add, call, compare, div, here, known, mul, number, scaled, sub, unless};
use super::enclosure::{Enclosure, Term};
use super::expr::Tensors;
use super::stages::{Analysis, Base, DOUBLE, stored};
use crate::tolerance::Rounding;

impl Analysis {
    /// Rewrites a scatter for the analysis: a plain value, and positions in terms of the analysis
    /// tensors. Where positions are uncertain a term may belong to any element, so each element
    /// visits every term.
    pub(super) fn scatter(&self, program: &Program, stage: &Stage) -> Option<Stage> {
        let mut made = stage.clone();
        let (values, errors) = (self.values.clone(), self.errors.clone());
        let tensors = Tensors { program, values, errors };
        let mut is_exact = true;
        for it in &mut made.scatter {
            let (at, error) = tensors.index(stage, &it.at)?;
            is_exact &= error.is_none();
            it.at = at;
        }
        if is_exact {
            made.body = stage.term().clone();
        } else {
            made.scatter.clear();
        }
        Some(made)
    }

    /// A floating-point sum. The terms of each element are counted: most go elsewhere.
    pub(super) fn scattered_sum(
        &mut self,
        program: &Program,
        stage: &Stage,
        term: Term,
        dtype: DType,
        base: Option<Base>,
    ) -> (TensorId, TensorId) {
        let Term { value, relative, absolute, error } = term;
        let (rank, sum) = (stage.spatial(), ReductionOp::Sum);
        let held = base.filter(|_| matches!(stage.combine, Combine::Accumulate(_)));
        let rounding = Rounding::accumulation(dtype);
        let bound = Enclosure { dtype, value, error: None };
        let values = self.reduced(program, stage, &bound, base);
        // The initial value is a term, too.
        let counts = self.reduction(program, stage, sum, number(1.0), Some(number(1.0)));
        let of_base = held.map(|base| abs(&here(base.values, rank)));
        let magnitudes = self.reduction(program, stage, sum, abs(&bound.value), of_base);
        let errors = error.map(|error| self.reduction(program, stage, sum, error, None));
        let terms = here(counts, rank);
        // Adding the first one to zero is exact. The other evaluation's rounding, and ours in
        // `double`.
        let steps = call(Builtin::Max, vec![sub(terms.clone(), number(1.0)), number(0.0)]);
        let theirs = scaled(rounding.unit - DOUBLE, steps);
        let growth = div(theirs.clone(), add(number(1.0), theirs));
        let growth = add(growth, scaled(DOUBLE, terms.clone()));
        let grown = add(number(1.0), growth.clone());
        // The rounding of the sum of magnitudes.
        let exactly =
            1.0 + 4.0 * (stage.trip_count(AxisKind::Reduce) as f64 + 1.0) * DOUBLE + 1e-12;
        let magnitude = scaled(exactly, here(magnitudes, rank));
        let inherited = errors.map(|errors| scaled(exactly, here(errors, rank)));
        let all = match &inherited {
            Some(inherited) => add(magnitude.clone(), inherited.clone()),
            None => magnitude.clone(),
        };
        let fits = compare(CompareOp::Le, all, number(rounding.largest / 2.0));
        let coefficient = add(scaled(relative, grown.clone()), growth);
        let mut total = add(mul(coefficient, magnitude), unless(fits));
        let of_base = held.map(|base| here(base.errors, rank));
        for error in inherited.into_iter().chain(of_base) {
            total = add(total, mul(grown.clone(), error));
        }
        let total = add(total, scaled(2.0 * absolute, terms));
        let body = stored(&here(values, rank), total, Rounding::operation(dtype));
        let errors = self.pointwise(program, stage, base.map(|base| base.errors), known(body));
        (values, errors)
    }
}
