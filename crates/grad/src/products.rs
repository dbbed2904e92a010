//! Gradients of products over index variables.
//!
//! The gradient of `p(i) *=! x(i,k)` by one factor is the product of all others, which is `p / x` only
//! where no factor is zero. So the zeros are counted, and the product of everything else is kept:
//!
//! ```text
//! p_zeros(i) +=! x(i,k) == 0 ? 1 : 0
//! p_nonzero(i) *=! x(i,k) == 0 ? 1 : x(i,k)
//! d_x(i,k) = p_zeros(i) == (x(i,k) == 0 ? 1 : 0)
//!            ? d_p(i) * p_nonzero(i) / (x(i,k) == 0 ? 1 : x(i,k)) : 0
//! ```

use tensorwright_lang::dtype::DType;
use tensorwright_lang::ops::{AssignOp, CompareOp, ReductionOp};
use tensorwright_lang::syntax::ast::Expr;

use crate::build;
use crate::product::Product;
use crate::ranges::Step;
use crate::scope::{Scope, Tensor};
use crate::versions::Versions;

fn zeros_name(value: &str) -> String {
    format!("{value}_zeros")
}

fn nonzero_name(value: &str) -> String {
    format!("{value}_nonzero")
}

/// 1 where a factor is zero, and the factor itself elsewhere.
fn unless_zero(factor: &Expr) -> Expr {
    build::select(is_zero(factor), build::int(1), factor.clone())
}

fn count_of_zeros(factor: &Expr) -> Expr {
    build::select(is_zero(factor), build::int(1), build::int(0))
}

fn is_zero(factor: &Expr) -> Expr {
    build::compare(CompareOp::Eq, factor.clone(), build::int(0))
}

/// What the gradient of a product is multiplied with for one of its factors, and where that is not
/// zero.
pub(crate) fn seed(value: &str, indices: Vec<Expr>, factor: &Expr) -> (Product, Expr) {
    let nonzero = build::apply(&nonzero_name(value), indices.clone());
    let others = Product::one().times(&nonzero).over(&unless_zero(factor));
    let zeros = build::apply(&zeros_name(value), indices);
    (others, build::compare(CompareOp::Eq, zeros, count_of_zeros(factor)))
}

/// Adds the statements that count zeros and multiply everything else, for every product.
pub(crate) fn add_helpers(versions: &mut Versions) {
    let is_product =
        |step: &Step| versions.combine.get(&step.stmt.target.name) == Some(&ReductionOp::Product);
    let mut steps = Vec::with_capacity(versions.steps.len());
    for step in std::mem::take(&mut versions.steps) {
        let helpers = is_product(&step).then(|| helpers(&mut versions.scope, &step));
        steps.push(step);
        steps.extend(helpers.into_iter().flatten());
    }
    versions.steps = steps;
}

fn helpers(scope: &mut Scope, step: &Step) -> [Step; 2] {
    let value = step.stmt.target.name.clone();
    let helper = |name: String, rhs: Expr, op: AssignOp| {
        let mut step = step.clone();
        step.stmt.target.name = name;
        step.stmt.rhs = rhs;
        step.stmt.op = op;
        step
    };
    let sum = match step.stmt.op {
        AssignOp::Assign => AssignOp::Assign,
        AssignOp::Reduce { initialize, .. } => {
            AssignOp::Reduce { op: ReductionOp::Sum, initialize }
        }
    };
    if let Some(tensor) = scope.tensor(&value).cloned() {
        let zeros = Tensor { dtype: DType::Int32, shape: tensor.shape.clone() };
        scope.tensors.insert(zeros_name(&value), zeros);
        scope.tensors.insert(nonzero_name(&value), tensor);
    }
    let factor = &step.stmt.rhs;
    [
        helper(zeros_name(&value), count_of_zeros(factor), sum),
        helper(nonzero_name(&value), unless_zero(factor), step.stmt.op),
    ]
}
