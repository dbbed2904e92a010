//! Gives every value one name, as in SSA form.
//!
//! ```text
//! out(b,n) = bias(n)                          out_1(b,n) = bias(n)
//! out(b,n) += x(b,m) * w(n,m)            ->   out_1(b,n) += x(b,m) * w(n,m)
//! out(b,n) = max(out(b,n), 0)                 out(b,n) = max(out_1(b,n), 0)
//! ```
//!
//! An accumulation continues the same value as long as nothing reads it in between. A partial
//! update becomes an update of the whole tensor that selects between new and old elements.

use std::collections::{BTreeMap, BTreeSet};

use tensorwright_lang::diagnostic::{Code, Diagnostic};
use tensorwright_lang::ops::{AssignOp, CompareOp, ReductionOp};
use tensorwright_lang::syntax::ast::{Expr, Ident};

use crate::bounds::{Bounds, Range, Ranges};
use crate::build;
use crate::flatten::{Flat, statement};
use crate::ranges::{Step, Variable};
use crate::scope::Scope;
use crate::tree;

/// A definition in which every tensor is one value.
#[derive(Debug, Clone)]
pub(crate) struct Versions {
    pub(crate) scope: Scope,
    pub(crate) steps: Vec<Step>,
    /// The final version of each result.
    pub(crate) results: Vec<(String, String)>,
    /// The reduction operator of each value that is not assigned.
    pub(crate) combine: BTreeMap<String, ReductionOp>,
    /// The versions of tensors that have more than one.
    pub(crate) renamed: BTreeSet<String>,
    /// The names of helper values, by their preferred names.
    pub(crate) helpers: BTreeMap<String, String>,
}

impl Versions {
    /// The index variable of a dimension of a value.
    pub(crate) fn index_of(&self, value: &str, dim: usize) -> String {
        let step = self.steps.iter().find(|step| step.stmt.target.name == value);
        let index = step.and_then(|step| step.stmt.indices.get(dim));
        index.map_or_else(|| dim.to_string(), |index| index.name.clone())
    }
}

/// The current version of a tensor.
struct CurrentVersion {
    name: String,
    /// Whether a later statement may continue the accumulation.
    open: bool,
    /// Whether statements computed it (rather than the caller).
    computed: bool,
}

/// Gives every value its own name.
pub(crate) fn number(flat: &Flat, steps: Vec<Step>) -> Result<Versions, Diagnostic> {
    let params = flat.def.params.iter().map(|param| {
        let name = param.name.name.clone();
        (name.clone(), CurrentVersion { name, open: false, computed: false })
    });
    let mut numbering = Numbering {
        scope: flat.scope.clone(),
        counts: BTreeMap::new(),
        current: params.collect(),
        params: flat.def.params.iter().map(|param| param.name.name.clone()).collect(),
        origins: Vec::new(),
        steps: Vec::new(),
        combine: BTreeMap::new(),
    };
    for step in steps {
        numbering.step(step)?;
    }
    numbering.name_last_values();
    let results = flat.def.returns.iter().map(|result| {
        let last = numbering.current.get(&result.name).map(|current| current.name.clone());
        (result.name.clone(), last.unwrap_or_else(|| result.name.clone()))
    });
    let results = results.collect();
    let renamed = numbering.values_of_many();
    let Numbering { scope, steps, combine, .. } = numbering;
    let helpers = BTreeMap::new();
    Ok(Versions { scope, steps, results, combine, renamed, helpers })
}

struct Numbering {
    scope: Scope,
    /// The number of versions of each tensor so far.
    counts: BTreeMap<String, usize>,
    current: BTreeMap<String, CurrentVersion>,
    params: Vec<String>,
    /// Pairs of a tensor and one of its versions.
    origins: Vec<(String, String)>,
    steps: Vec<Step>,
    combine: BTreeMap<String, ReductionOp>,
}

impl Numbering {
    fn step(&mut self, mut step: Step) -> Result<(), Diagnostic> {
        let target = step.stmt.target.name.clone();
        let reads_itself = tree::names(&step.stmt.rhs).contains(target.as_str());
        self.read_versions(&mut step);
        let before = self.current.get(&target);
        match step.stmt.op {
            AssignOp::Assign | AssignOp::Reduce { initialize: true, .. } => {
                if before.is_some() {
                    self.complete(&mut step)?;
                }
                self.start(step, &target);
            }
            AssignOp::Reduce { op, initialize: false } => {
                let goes_on = before.is_some_and(|before| before.open) && !reads_itself;
                if !goes_on {
                    self.copy(&step, &target);
                }
                let current = self.current.get(&target).map(|current| current.name.clone());
                step.stmt.target.name = current.unwrap_or(target);
                self.combine.insert(step.stmt.target.name.clone(), op);
                self.steps.push(step);
            }
        }
        Ok(())
    }

    /// Rewrites reads to the current versions, which closes them. The self-reads of a recurrence
    /// have no version yet and stay.
    fn read_versions(&mut self, step: &mut Step) {
        let own = step.stmt.scan.as_ref().map(|_| step.stmt.target.name.clone());
        let is_own = |name: &str| own.as_deref() == Some(name);
        let sides = tree::sides(&step.stmt);
        let mentioned: Vec<String> = sides.flat_map(tree::names).map(str::to_owned).collect();
        for name in mentioned.into_iter().filter(|name| !is_own(name)) {
            if let Some(current) = self.current.get_mut(&name) {
                current.open = false;
            }
        }
        let version = |name: &str| {
            let current = self.current.get(name).filter(|_| !is_own(name));
            current.map(|current| current.name.clone())
        };
        rename(step, &version);
    }

    /// Starts a new version of a tensor.
    fn start(&mut self, mut step: Step, target: &str) {
        let name = self.new_name(target);
        if let AssignOp::Reduce { op, .. } = step.stmt.op {
            self.combine.insert(name.clone(), op);
        }
        let current = CurrentVersion { name: name.clone(), open: true, computed: true };
        self.current.insert(target.to_owned(), current);
        if step.stmt.scan.is_some() {
            rename(&mut step, &|own| (own == target).then(|| name.clone()));
        }
        step.stmt.target = Ident { name, span: step.stmt.target.span };
        self.steps.push(step);
    }

    /// `out_1`, `out_2`, ...
    fn new_name(&mut self, target: &str) -> String {
        let count = self.counts.entry(target.to_owned()).or_insert(0);
        *count += 1;
        let name = self.scope.fresh(&format!("{target}_{count}"));
        if let Some(tensor) = self.scope.tensor(target).cloned() {
            self.scope.tensors.insert(name.clone(), tensor);
        }
        self.origins.push((target.to_owned(), name.clone()));
        name
    }

    /// The final version of a tensor keeps its name, unless the caller's value has it.
    fn name_last_values(&mut self) {
        let computed = self.current.iter().filter(|(_, current)| current.computed);
        let supplied = |target: &str| self.params.iter().any(|param| param == target);
        let last: BTreeMap<String, String> = computed
            .filter(|(target, _)| !supplied(target))
            .map(|(target, current)| (current.name.clone(), target.clone()))
            .collect();
        let new = |name: &str| last.get(name).cloned();
        for step in &mut self.steps {
            let target = &mut step.stmt.target.name;
            *target = new(target).unwrap_or_else(|| target.clone());
            rename(step, &new);
        }
        for (name, op) in std::mem::take(&mut self.combine) {
            self.combine.insert(new(&name).unwrap_or(name), op);
        }
        for (_, value) in &mut self.origins {
            *value = new(value).unwrap_or_else(|| value.clone());
        }
        for current in self.current.values_mut() {
            current.name = new(&current.name).unwrap_or_else(|| current.name.clone());
        }
    }

    /// The versions of tensors that have more than one.
    fn values_of_many(&self) -> BTreeSet<String> {
        let several =
            |origin: &&(String, String)| self.counts.get(&origin.0).is_some_and(|n| *n > 1);
        let supplied = |origin: &&(String, String)| self.params.contains(&origin.0);
        let many = self.origins.iter().filter(|origin| several(origin) || supplied(origin));
        many.map(|(_, value)| value.clone()).collect()
    }

    /// `new(i) = old(i)`, from which an accumulation continues.
    fn copy(&mut self, step: &Step, target: &str) {
        let Some(old) = self.current.get(target).map(|current| current.name.clone()) else {
            return;
        };
        let indices: Vec<String> =
            step.stmt.indices.iter().map(|index| index.name.clone()).collect();
        let subscripts = indices.iter().map(|index| build::name(index)).collect();
        let rhs = Expr { span: step.stmt.span, ..build::apply(&old, subscripts) };
        let stmt = statement(target, &indices, rhs, Vec::new(), step.stmt.span);
        let vars = self.whole(target, &step.vars);
        self.start(Step { stmt, vars }, target);
    }

    /// The left-side variables, ranging over the whole tensor.
    fn whole(&self, target: &str, vars: &[Variable]) -> Vec<Variable> {
        let shape = self.scope.tensor(target).map(|tensor| tensor.shape.clone());
        let spatial = vars.iter().filter(|var| var.spatial).cloned();
        spatial
            .zip(shape.unwrap_or_default())
            .map(|(var, extent)| Variable { range: extent.map(Range::up_to), ..var })
            .collect()
    }

    /// Extends a partial update to the whole tensor.
    fn complete(&mut self, step: &mut Step) -> Result<(), Diagnostic> {
        let target = step.stmt.target.name.clone();
        let whole = self.whole(&target, &step.vars);
        let mut inside = Vec::new();
        for (var, all) in step.vars.iter().zip(&whole) {
            let (Some(range), Some(all)) = (&var.range, &all.range) else {
                return Err(unclear(&target, var));
            };
            if !range.equals(all) {
                inside.extend(within(&self.scope, &build::name(&var.name), range, &var.name, all));
            }
        }
        let Some(condition) = build::all(inside) else { return Ok(()) };
        if step.stmt.op != AssignOp::Assign {
            return Err(partial_reduction(step));
        }
        let old = self.current.get(&target).map_or(&target, |current| &current.name);
        let subscripts = step.stmt.indices.iter().map(|index| build::name(&index.name)).collect();
        let old = Expr { span: step.stmt.span, ..build::apply(old, subscripts) };
        step.stmt.rhs = build::select(condition, step.stmt.rhs.clone(), old);
        step.stmt.constraints = Vec::new();
        step.vars = whole;
        Ok(())
    }
}

/// Renames the reads of a statement.
fn rename(step: &mut Step, new: &impl Fn(&str) -> Option<String>) {
    step.stmt.rhs = tree::rename(&step.stmt.rhs, new);
    if let Some(scan) = &mut step.stmt.scan {
        scan.start = tree::rename(&scan.start, new);
    }
    for scatter in &mut step.stmt.scatter {
        scatter.at = tree::rename(&scatter.at, new);
    }
}

/// The conditions that keep a value in a range, except those that always hold.
fn within(scope: &Scope, value: &Expr, range: &Range, var: &str, all: &Range) -> Vec<Expr> {
    let ranges = Ranges::from([(var.to_owned(), all.clone())]);
    let bounds = Bounds { scope, ranges: &ranges };
    let conditions = [
        build::compare(CompareOp::Ge, value.clone(), range.lo.clone()),
        build::compare(CompareOp::Lt, value.clone(), range.hi.clone()),
    ];
    conditions.into_iter().filter(|condition| !bounds.holds(condition)).collect()
}

fn unclear(target: &str, var: &Variable) -> Diagnostic {
    let name = &var.name;
    let message = format!("cannot tell which elements of `{target}` are overwritten");
    Diagnostic::new(Code::NotDifferentiable, var.span, message)
        .here(format!("the range of `{name}` cannot be expressed in sizes"))
        .help(format!("state it: `where {name} in 0:...`"))
}

fn partial_reduction(step: &Step) -> Diagnostic {
    let message = format!("a sum that restarts for part of `{}`", step.stmt.target.name);
    Diagnostic::new(Code::NotDifferentiable, step.stmt.span, message)
        .here("the other elements keep their values")
        .help("compute it into a tensor of its own, and choose between both in a third statement")
}
