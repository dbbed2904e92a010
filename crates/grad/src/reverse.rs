//! The reverse walk over statements, from the last to the first.

use std::collections::{BTreeMap, BTreeSet};

use tensorwright_lang::diagnostic::{Code, Diagnostic};
use tensorwright_lang::ops::{AssignOp, ReductionOp};
use tensorwright_lang::syntax::ast::{Comprehension, Expr};

use crate::bounds::Range;
use crate::build;
use crate::derivative::{Derivative, Flow, depends};
use crate::emit;
use crate::helpers::{Share, shares};
use crate::poly::{IndexSum, Poly};
use crate::product::Product;
use crate::ranges::{Step, Variable};
use crate::recurrence;
use crate::scope::{Application, Scope, Tensor};
use crate::shift::shifts;
use crate::transpose::{Contribution, transpose};
use crate::tree;
use crate::versions::Versions;

/// The size limit of gradients: the sum over all statements of the size of the right side times the
/// number of its reads.
const BUDGET: usize = 4_000_000;

/// The tensors that depend differentiably on the inputs, inputs included.
pub(crate) fn active(versions: &Versions, wrt: &[String]) -> BTreeSet<String> {
    let mut active: BTreeSet<String> = wrt.iter().cloned().collect();
    let shifts = shifts(versions);
    for step in &versions.steps {
        let start = step.stmt.scan.iter().map(|scan| &scan.start);
        let mut sides = std::iter::once(&step.stmt.rhs).chain(start);
        let target = &step.stmt.target.name;
        let is_active =
            sides.any(|side| depends(&versions.scope, side, &|name| active.contains(name)));
        if is_active && !shifts.contains(target) {
            active.insert(target.clone());
        }
    }
    active
}

/// The reverse walk from the results to the inputs.
pub(crate) struct Reverse<'a> {
    pub(crate) scope: Scope,
    pub(crate) versions: &'a Versions,
    pub(crate) active: &'a BTreeSet<String>,
    /// Per value, the name of its gradient; those of results are supplied.
    pub(crate) gradients: BTreeMap<String, String>,
    /// The contributions to the gradient of each value.
    contributions: BTreeMap<String, Vec<Contribution>>,
    settled: BTreeSet<String>,
    /// The rest of [`BUDGET`].
    budget: usize,
    /// The statements of the gradient.
    pub(crate) statements: Vec<Comprehension>,
}

impl<'a> Reverse<'a> {
    pub(crate) fn new(
        scope: Scope,
        versions: &'a Versions,
        active: &'a BTreeSet<String>,
        gradients: BTreeMap<String, String>,
    ) -> Self {
        let (contributions, settled, budget) = (BTreeMap::new(), BTreeSet::new(), BUDGET);
        Reverse {
            scope,
            versions,
            active,
            gradients,
            contributions,
            settled,
            budget,
            statements: Vec::new(),
        }
    }

    /// Propagates gradients from the last statement to the first.
    pub(crate) fn run(&mut self) -> Result<(), Diagnostic> {
        for step in self.versions.steps.iter().rev() {
            let value = &step.stmt.target.name;
            if !self.active.contains(value) {
                continue;
            }
            if self.settled.insert(value.clone()) {
                self.settle(value);
            }
            if let Some(gradient) = self.gradients.get(value).cloned() {
                self.pass(step, &gradient)?;
            }
        }
        Ok(())
    }

    /// Adds the contributions of a statement to the gradients of its operands.
    fn pass(&mut self, step: &Step, gradient: &str) -> Result<(), Diagnostic> {
        let body = recurrence::with_start(step)?;
        self.charge_budget(step, &body)?;
        let mut flows = self.flows(step, &body, gradient)?;
        let value = step.stmt.target.name.as_str();
        if step.stmt.scan.is_some() && flows.iter().any(|flow| flow.tensor == value) {
            let all = self.scope.fresh(&format!("d_{value}_all"));
            self.recurrence_gradient(step, &body, (gradient, &all))?;
            flows = self.flows(step, &body, &all)?;
            flows.retain(|flow| flow.tensor != value);
        }
        let dtype = self.scope.dtype(value);
        // A scattered variable has no range of its own: the gradient is read at the term's
        // position.
        let is_scattered =
            |var: &&Variable| step.stmt.scatter.iter().any(|it| it.var.name == var.name);
        let vars: Vec<Variable> =
            step.vars.iter().filter(|var| !is_scattered(var)).cloned().collect();
        for flow in flows {
            let contribution = transpose(&self.scope, &vars, &flow, dtype)?;
            self.contributions.entry(flow.tensor).or_default().push(contribution);
        }
        Ok(())
    }

    /// The gradient of the elements of a recurrence: the outside contributions plus what the
    /// elements pass to each other.
    fn recurrence_gradient(
        &mut self,
        step: &Step,
        body: &Expr,
        (gradient, all): (&str, &str),
    ) -> Result<(), Diagnostic> {
        let value = step.stmt.target.name.as_str();
        if let Some(tensor) = self.scope.tensor(value).cloned() {
            self.scope.tensors.insert(all.to_owned(), tensor);
        }
        let flows = self.flows(step, body, all)?;
        let mut contributions = Vec::new();
        for flow in flows.iter().filter(|flow| flow.tensor == value) {
            let dtype = self.scope.dtype(value);
            contributions.push(transpose(&self.scope, &step.vars, flow, dtype)?);
        }
        contributions.insert(0, self.given(gradient, &contributions));
        let statement = recurrence::statement(&self.scope, all, step, contributions);
        self.statements.push(statement.ok_or_else(|| too_long(step))?);
        Ok(())
    }

    /// The flows of a statement to its operands, from the gradient of its result.
    fn flows(&self, step: &Step, body: &Expr, gradient: &str) -> Result<Vec<Flow>, Diagnostic> {
        let value = step.stmt.target.name.as_str();
        let result = build::apply(value, tree::element(&step.stmt));
        let seed = Product::one().times(&build::apply(gradient, tree::element(&step.stmt)));
        let combine = self.versions.combine.get(value).copied();
        let term = tree::unplaced(body);
        let op = combine.unwrap_or(ReductionOp::Sum);
        let helpers = &self.versions.helpers;
        let mut derivative = Derivative {
            scope: &self.scope,
            active: self.active,
            helpers,
            last_guard: None,
            flows: Vec::new(),
        };
        let value = Some(&result).filter(|_| combine.is_none());
        for Share { factor, guard } in shares(self.versions, op, step, &term) {
            derivative.last_guard = guard;
            derivative.pass(body, seed.clone().by(&factor), &mut Vec::new(), value)?;
        }
        Ok(derivative.flows)
    }

    /// Charges the budget: the gradient of a product of n elements has n terms of n factors.
    fn charge_budget(&mut self, step: &Step, body: &Expr) -> Result<(), Diagnostic> {
        let (mut size, mut reads) = (0_usize, 1_usize);
        tree::walk(body, &mut |part| {
            size += 1;
            reads += usize::from(matches!(self.scope.applied(part), Some(Application::Read(..))));
        });
        match self.budget.checked_sub(size * reads) {
            Some(left) => self.budget = left,
            None => return Err(too_long(step)),
        }
        Ok(())
    }

    /// Sums the contributions to a value's gradient, once all are known.
    fn settle(&mut self, value: &str) {
        let Some(mut contributions) = self.contributions.remove(value) else { return };
        if let Some(given) = self.gradients.get(value) {
            contributions.insert(0, self.given(given, &contributions));
        } else if let Some(other) = self.same_as(value, &contributions) {
            self.gradients.insert(value.to_owned(), other);
            return;
        }
        let name = self.scope.fresh(&format!("d_{value}"));
        self.gradients.insert(value.to_owned(), name.clone());
        self.add_up(value, &name, contributions);
    }

    /// Emits the gradient of an input under a name; returns whether there is one.
    pub(crate) fn settle_input(&mut self, input: &str, name: &str) -> bool {
        let Some(contributions) = self.contributions.remove(input) else { return false };
        self.add_up(input, name, contributions);
        true
    }

    /// The supplied gradient of a result, as a contribution.
    fn given(&self, gradient: &str, others: &[Contribution]) -> Contribution {
        let indices = others.first().map(|other| other.indices.clone()).unwrap_or_default();
        let shape = self.scope.tensor(gradient).map(|tensor| tensor.shape.clone());
        let ranges = indices.iter().cloned().zip(shape.unwrap_or_default());
        let ranges = ranges.filter_map(|(name, extent)| Some((name, Range::up_to(extent?))));
        let value = build::apply(gradient, indices.iter().map(|i| build::name(i)).collect());
        let (ranges, reduced, scatter) = (ranges.collect(), Vec::new(), Vec::new());
        Contribution { ranges, reduced, scatter, value, indices }
    }

    /// The gradient of which this one would be a plain copy.
    fn same_as(&self, value: &str, contributions: &[Contribution]) -> Option<String> {
        let [only] = contributions else { return None };
        let Some(Application::Read(name, subscripts)) = self.scope.applied(&only.value) else {
            return None;
        };
        let same_place = subscripts.len() == only.indices.len()
            && subscripts.iter().zip(&only.indices).all(|(s, i)| build::as_name(s) == Some(i));
        let shape = |name: &str| self.scope.tensor(name).map(|tensor| tensor.shape.clone());
        let same_shape = shape(name)?.iter().zip(&shape(value)?).all(|pair| match pair {
            (Some(a), Some(b)) => Poly::of(a) == Poly::of(b),
            _ => false,
        });
        let is_gradient = !self.versions.scope.tensors.contains_key(name);
        (same_place && same_shape && is_gradient).then(|| name.to_owned())
    }

    /// Emits statements that sum contributions: first elementwise ones, then reductions.
    fn add_up(&mut self, value: &str, name: &str, contributions: Vec<Contribution>) {
        if let Some(Tensor { dtype, shape }) = self.scope.tensor(value).cloned() {
            self.scope.tensors.insert(name.to_owned(), Tensor { dtype, shape });
        }
        let (pointwise, sums): (Vec<_>, Vec<_>) =
            contributions.into_iter().partition(|contribution| contribution.reduced.is_empty());
        let all = emit::joined(pointwise).into_iter().chain(sums);
        for (place, contribution) in all.enumerate() {
            let op = match (place, contribution.reduced.is_empty()) {
                (0, true) => AssignOp::Assign,
                (_, _) => AssignOp::Reduce { op: ReductionOp::Sum, initialize: place == 0 },
            };
            let statement = emit::statement(&self.scope, name, op, &contribution);
            self.statements.push(statement);
        }
    }
}

fn too_long(step: &Step) -> Diagnostic {
    let message = format!("the gradient of `{}` would be too long", step.stmt.target.name);
    Diagnostic::new(Code::NotDifferentiable, step.stmt.span, message)
        .here("the gradient of each element read here contains all others")
        .help("split it into several statements, or its definition into several")
}
