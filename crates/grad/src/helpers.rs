//! Helper values of gradients: counts of zeros and of ties.
//!
//! The gradient of `p(i) *=! x(i,k)` with respect to one factor is the product of all others, which
//! is `p / x` only where no factor is zero. So zeros are counted, and the product of all nonzero
//! factors is kept:
//!
//! ```text
//! p_zeros(i) +=! x(i,k) == 0 ? 1 : 0
//! p_nonzero(i) *=! x(i,k) == 0 ? 1 : x(i,k)
//! d_x(i,k) = p_zeros(i) == (x(i,k) == 0 ? 1 : 0)
//!            ? d_p(i) * p_nonzero(i) / (x(i,k) == 0 ? 1 : x(i,k)) : 0
//! ```
//!
//! Where another factor is zero this is zero, but its derivative is not. A gradient that is
//! differentiated again has a further term for that, which is zero and has the derivative of the
//! product (third derivatives lack terms where three factors are zero):
//!
//! ```text
//! p_nothing(i) +=! x(i,k) == 0 ? x(i,k) : 0
//! d_x(i,k) += p_zeros(i) - 1 == (x(i,k) == 0 ? 1 : 0)
//!             ? d_p(i) * (isfinite(p_nonzero(i)) ? p_nonzero(i) : 0) / (x(i,k) == 0 ? 1 : x(i,k))
//!               * (p_nothing(i) - (x(i,k) == 0 ? x(i,k) : 0)) : 0
//! ```
//!
//! The gradient of `m(i) max=! x(i,k)` is split equally among the elements that attain the maximum,
//! so an element that is read twice does not count twice. If one is NaN, so is the maximum, and all
//! elements share:
//!
//! ```text
//! m_ties(i) +=! x(i,k) < m(i) ? 0 : 1
//! d_x(i,k) = x(i,k) < m(i) ? 0 : d_m(i) / float(m_ties(i))
//! ```

use std::collections::BTreeMap;

use tensorwright_lang::dtype::DType;
use tensorwright_lang::ops::{AssignOp, CompareOp, ReductionOp};
use tensorwright_lang::syntax::ast::Expr;

use crate::build;
use crate::product::Product;
use crate::ranges::Step;
use crate::scope::Tensor;
use crate::tree;
use crate::versions::Versions;

/// The factor of a reduction's gradient for one of its terms, and the condition under which it is
/// nonzero.
pub(crate) struct Share {
    pub(crate) factor: Product,
    pub(crate) guard: Option<Expr>,
}

/// Whether a gradient may be differentiated again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
    /// It may.
    Any,
    /// It is not differentiated again.
    First,
}

/// The shares of one term in the gradient of a reduction.
pub(crate) fn shares(versions: &Versions, op: ReductionOp, step: &Step, term: &Expr) -> Vec<Share> {
    let value = step.stmt.target.name.as_str();
    let helper = |like: &str| versions.helpers.get(like).map_or(value, String::as_str);
    let read = |like: String| read_at(helper(&like), step);
    match op {
        ReductionOp::Sum => vec![Share { factor: Product::one(), guard: None }],
        ReductionOp::Product => {
            let nonzero = read(nonzero_name(value));
            let factor = Product::one().times(&nonzero).over(&unless_zero(term));
            let own_zeros = one_if(is_zero(term));
            let is = |zeros: Expr| build::compare(CompareOp::Eq, zeros, own_zeros.clone());
            let zeros = read(zeros_name(value));
            let mut shares = vec![Share { factor, guard: Some(is(zeros.clone())) }];
            if versions.helpers.contains_key(&nothing_name(value)) {
                let others = build::sub(read(nothing_name(value)), if_zero(term));
                // Zero times infinity is NaN.
                let is_finite = build::apply("isfinite", vec![nonzero.clone()]);
                let finite = build::select(is_finite, nonzero, build::int(0));
                let factor = Product::one().times(&finite).over(&unless_zero(term)).times(&others);
                let guard = is(build::sub(zeros, build::int(1)));
                shares.push(Share { factor, guard: Some(guard) });
            }
            shares
        }
        ReductionOp::Min | ReductionOp::Max => {
            let dtype = versions.scope.dtype(value);
            let ties = build::apply(dtype.name(), vec![read(ties_name(value))]);
            let guard = build::not(is_beaten(op, dtype, term, read_at(value, step)));
            vec![Share { factor: Product::one().over(&ties), guard: Some(guard) }]
        }
    }
}

fn zeros_name(value: &str) -> String {
    format!("{value}_zeros")
}

fn nonzero_name(value: &str) -> String {
    format!("{value}_nonzero")
}

fn nothing_name(value: &str) -> String {
    format!("{value}_nothing")
}

fn ties_name(value: &str) -> String {
    format!("{value}_ties")
}

/// A read of the element that a statement computes.
fn read_at(name: &str, step: &Step) -> Expr {
    build::apply(name, tree::element(&step.stmt))
}

/// 1 where a factor is zero, and the factor itself elsewhere.
fn unless_zero(factor: &Expr) -> Expr {
    build::select(is_zero(factor), build::int(1), factor.clone())
}

/// The factor where it is zero, and 0 elsewhere: always zero, but with a derivative.
fn if_zero(factor: &Expr) -> Expr {
    build::select(is_zero(factor), factor.clone(), build::int(0))
}

/// Whether a term is not the maximum or minimum. A 16-bit extremum was rounded when it was stored,
/// so the term is rounded too.
fn is_beaten(op: ReductionOp, dtype: DType, term: &Expr, most: Expr) -> Expr {
    let term = match dtype.bytes() {
        // Values are computed in a wider type than they are stored in, so a conversion to their own
        // type rounds nothing.
        2 => build::apply(dtype.name(), vec![build::apply("float", vec![term.clone()])]),
        _ => term.clone(),
    };
    let beaten = if op == ReductionOp::Min { CompareOp::Gt } else { CompareOp::Lt };
    build::compare(beaten, term, most)
}

fn one_if(condition: Expr) -> Expr {
    build::select(condition, build::int(1), build::int(0))
}

fn is_zero(factor: &Expr) -> Expr {
    build::compare(CompareOp::Eq, factor.clone(), build::int(0))
}

/// Adds the statements that compute helpers, each after the last statement of its reduction. Unused
/// ones are removed at the end.
pub(crate) fn add_helpers(versions: &mut Versions, order: Order) {
    let mut last: BTreeMap<String, usize> = BTreeMap::new();
    for (place, step) in versions.steps.iter().enumerate() {
        last.insert(step.stmt.target.name.clone(), place);
    }
    let mut reductions: BTreeMap<String, Vec<Step>> = BTreeMap::new();
    let mut steps: Vec<Step> = Vec::with_capacity(versions.steps.len());
    for (place, step) in std::mem::take(&mut versions.steps).into_iter().enumerate() {
        let value = step.stmt.target.name.clone();
        let Some(op) = versions.combine.get(&value).copied() else {
            steps.push(step);
            continue;
        };
        let terms = reductions.entry(value.clone()).or_default();
        terms.push(step.clone());
        steps.push(step);
        if last.get(&value) == Some(&place) {
            steps.extend(helpers(versions, order, op, &value, terms));
        }
    }
    versions.steps = steps;
}

fn helpers(
    versions: &mut Versions,
    order: Order,
    op: ReductionOp,
    value: &str,
    steps: &[Step],
) -> Vec<Step> {
    let tensor = versions.scope.tensor(value).filter(|tensor| tensor.dtype.is_float());
    let Some(tensor) = tensor.cloned() else { return Vec::new() };
    let count = Tensor { dtype: DType::Int32, shape: tensor.shape.clone() };
    let mut named = |like: String, tensor: Tensor| {
        let name = versions.scope.fresh(&like);
        versions.scope.tensors.insert(name.clone(), tensor);
        versions.helpers.insert(like, name.clone());
        name
    };
    match op {
        ReductionOp::Sum => Vec::new(),
        ReductionOp::Product => {
            let zeros = named(zeros_name(value), count);
            let nonzero = named(nonzero_name(value), tensor.clone());
            let zero = |step: &Step| one_if(is_zero(&step.stmt.rhs));
            let mut made = like(steps, &zeros, ReductionOp::Sum, zero);
            made.extend(like(steps, &nonzero, op, |step| unless_zero(&step.stmt.rhs)));
            if order == Order::Any {
                let nothing = named(nothing_name(value), tensor);
                made.extend(like(steps, &nothing, ReductionOp::Sum, |step| {
                    if_zero(&step.stmt.rhs)
                }));
            }
            made
        }
        ReductionOp::Min | ReductionOp::Max => {
            let ties = named(ties_name(value), count);
            like(steps, &ties, ReductionOp::Sum, |step| {
                let beaten = is_beaten(op, tensor.dtype, &step.stmt.rhs, read_at(value, step));
                one_if(build::not(beaten))
            })
        }
    }
}

/// Copies the statements of a reduction with other terms and another operator.
fn like(steps: &[Step], name: &str, op: ReductionOp, term: impl Fn(&Step) -> Expr) -> Vec<Step> {
    let other = |step: &Step| {
        let mut other = step.clone();
        other.stmt.target.name = name.to_owned();
        other.stmt.rhs = term(step);
        other.stmt.op = match step.stmt.op {
            AssignOp::Assign => AssignOp::Assign,
            AssignOp::Reduce { initialize, .. } => AssignOp::Reduce { op, initialize },
        };
        other
    };
    steps.iter().map(other).collect()
}
