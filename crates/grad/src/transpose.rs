//! Transposes reads into writes: gradient contributions as sums over tensor elements.
//!
//! ```text
//! out(i) +=! in(s*i + k) * w(k)
//!     contributes  d_out(i) * w(k)  to  d_in(s*i + k)
//!     as           d_in(x) += (x - k) % s == 0 && ... ? d_out((x - k) / s) * w(k) : 0
//! ```
//!
//! Left-side subscripts are plain indices, so every read subscript `S(i, k)` is an equation `S(i,
//! k) == x` that is solved for one variable, preferably one of the left side: windows are small and
//! results are large. A solution brings conditions: divisions are exact, and the variable is in its
//! range. Those that hold for all sizes are dropped. An unsolvable equation (an index from data, a
//! `clamp`) becomes a scatter position. If part of a subscript was solved, the rest is a condition,
//! and the sum runs over all values of its variables.

mod scatter;

use tensorwright_lang::diagnostic::{Code, Diagnostic};
use tensorwright_lang::dtype::DType;
use tensorwright_lang::ops::{ArithOp, CompareOp};
use tensorwright_lang::source::Span;
use tensorwright_lang::syntax::ast::{Expr, ExprKind};

use crate::bounds::{Bounds, Range, Ranges};
use crate::build;
use crate::derivative::Flow;
use crate::poly::{Atom, IndexSum, Linear, Poly};
use crate::product;
use crate::ranges::Variable;
use crate::scope::{Scope, ValueKind};
use crate::substitute::{Solution, SubscriptEquality, Substitute};
use crate::tree;

/// A sum that is part of the gradient of a tensor.
#[derive(Debug)]
pub(crate) struct Contribution {
    /// The variables that index the tensor.
    pub(crate) indices: Vec<String>,
    /// The variables that are summed over.
    pub(crate) reduced: Vec<String>,
    /// The ranges of all of them.
    pub(crate) ranges: Ranges,
    /// The scatter indices, with their positions.
    pub(crate) scatter: Vec<(String, Expr)>,
    /// The summand.
    pub(crate) value: Expr,
}

/// An equation `subscript == index`.
struct Equation {
    subscript: Poly,
    index: Poly,
}

struct Solver<'a> {
    scope: &'a Scope,
    /// The unsolved variables.
    unknown: Vec<Variable>,
    /// The ranges of the unsolved variables and of the indices.
    ranges: Ranges,
    solutions: Vec<Solution>,
    guards: Vec<Expr>,
    pending: Vec<Equation>,
    /// Unsolved equations of independent dimensions, by index name: scatter positions.
    scattered: Vec<(String, Poly)>,
    dtype: DType,
}

/// Prefix of placeholder index names during solving; it cannot occur in source text.
const INDEX: char = '\'';

fn index_name(dim: usize) -> String {
    format!("{INDEX}{dim}")
}

/// Turns the gradient of a read into a sum over the elements of the tensor.
pub(crate) fn transpose(
    scope: &Scope,
    vars: &[Variable],
    flow: &Flow,
    target: DType,
) -> Result<Contribution, Diagnostic> {
    let mut ranges = Ranges::new();
    for var in vars {
        let range = var.range.clone().ok_or_else(|| unclear(var, flow))?;
        ranges.insert(var.name.clone(), range);
    }
    let shape = scope.tensor(&flow.tensor).map(|tensor| tensor.shape.clone()).unwrap_or_default();
    let mut known = Vec::new();
    let mut pending = Vec::new();
    for (dim, (subscript, extent)) in flow.subscripts.iter().zip(&shape).enumerate() {
        let extent = extent.clone().unwrap_or_else(|| {
            build::expr(ExprKind::DimOf(build::ident(&flow.tensor), dim as u32))
        });
        ranges.insert(index_name(dim), Range::up_to(extent));
        let (subscript, index) = (Poly::of(subscript), Poly::name(&index_name(dim)));
        known.push(SubscriptEquality { subscript: subscript.clone(), index: index.clone() });
        pending.push(Equation { subscript, index });
    }
    let unknown = vars.to_vec();
    let (solutions, guards, scattered) = (Vec::new(), Vec::new(), Vec::new());
    let dtype = target;
    let mut solver =
        Solver { scope, unknown, ranges, solutions, guards, pending, scattered, dtype };
    solver.solve_plain();
    while let Some(equation) = solver.pending.pop() {
        solver.solve(equation);
    }
    solver.use_equalities(&flow.guards);
    Ok(solver.finish(flow, &known))
}

fn unclear(var: &Variable, flow: &Flow) -> Diagnostic {
    let name = &var.name;
    let message = format!("the range of `{name}` cannot be expressed in sizes");
    Diagnostic::new(Code::NotDifferentiable, var.span, message)
        .here("which values does it have?")
        .label(flow.span, "the gradient of this element is a sum over it")
        .help(format!("state it: `where {name} in 0:...`"))
}

impl Solver<'_> {
    /// Solves plain subscripts first: they need no conditions.
    fn solve_plain(&mut self) {
        let mut place = 0;
        while place < self.pending.len() {
            let subscript = self.pending[place].subscript.to_expr();
            match build::as_name(&subscript).filter(|name| self.is_unknown(name)) {
                Some(var) => {
                    let equation = self.pending.remove(place);
                    self.assign(var, equation.index, None);
                }
                None => place += 1,
            }
        }
        // They are taken from the end.
        self.pending.reverse();
    }

    fn is_unknown(&self, name: &str) -> bool {
        self.unknown.iter().any(|var| var.name == name)
    }

    /// Whether it contains no index variable.
    fn is_fixed(&self, sum: &Poly) -> bool {
        !self.unknown.iter().any(|var| sum.mentions(&var.name))
    }

    fn is_size(&self, sum: &Poly) -> bool {
        !self.ranges.keys().any(|name| sum.mentions(name)) && !self.scope.reads_data(&sum.to_expr())
    }

    fn solve(&mut self, equation: Equation) {
        let solved = self.digits(&equation)
            || self.linear(&equation, true)
            || self.quotient(&equation)
            || self.remainder(&equation)
            || self.linear(&equation, false);
        if solved {
            return;
        }
        let (subscript, index) = (equation.subscript.to_expr(), equation.index.to_expr());
        match build::as_name(&index) {
            // The index of a dimension itself.
            Some(name) if name.starts_with(INDEX) => {
                self.scattered.push((name.to_owned(), equation.subscript));
            }
            _ => self.guards.push(build::compare(CompareOp::Eq, subscript, index)),
        }
    }

    /// `m*u + low == x` where `low` is in `0:m`: then `low == x % m` and `u == x / m`.
    fn digits(&mut self, equation: &Equation) -> bool {
        let found = equation.subscript.terms().iter().find_map(|term| {
            let ([atom], 1) = (term.atoms.as_slice(), term.coefficient) else { return None };
            let radix = match &atom.expr.kind {
                ExprKind::Name(name) if self.is_unknown(name) => {
                    let range = self.ranges.get(name)?;
                    (Poly::of(&range.lo) == Poly::default()).then(|| Poly::of(&range.hi))?
                }
                ExprKind::Arith(ArithOp::Rem, _, divisor) => Poly::of(divisor),
                _ => return None,
            };
            let low = Poly::atom(atom.clone());
            let (high, rest) = equation.subscript.minus(&low)?.split_by(&radix);
            let fits = self.is_size(&radix)
                && radix.as_constant() != Some(1)
                && !self.is_fixed(&high)
                && !self.is_fixed(&low)
                && self.is_fixed(&rest);
            fits.then_some((low, high, rest, radix))
        });
        let Some((low, high, rest, radix)) = found else { return false };
        let Some(index) = equation.index.minus(&rest) else { return false };
        let substitute = self.substitute(&[]);
        let parts = substitute.quotient(&index, &radix).zip(substitute.remainder(&index, &radix));
        let Some((above, below)) = parts else { return false };
        let (low, high) =
            (Equation { subscript: low, index: below }, Equation { subscript: high, index: above });
        // A plain variable is solved directly; a remainder follows from the higher digits.
        let is_variable = build::as_name(&low.subscript.to_expr()).is_some();
        let (first, second) = if is_variable { (low, high) } else { (high, low) };
        self.pending.push(second);
        self.solve(first);
        true
    }

    /// `factor*var + rest == x`
    fn linear(&mut self, equation: &Equation, spatial: bool) -> bool {
        let candidates = self.unknown.iter().filter(|var| var.spatial == spatial);
        let found = candidates.filter_map(|var| {
            let linear = equation.subscript.linear_in_var(&var.name)?;
            self.is_size(&linear.factor).then(|| (var.name.clone(), linear))
        });
        let Some((var, Linear { factor, rest })) = found.min_by_key(|(_, linear)| {
            linear.factor.as_constant().is_none_or(|factor| factor.abs() != 1)
        }) else {
            return false;
        };
        let falls = factor.terms().iter().all(|term| term.coefficient < 0);
        let numerator = match falls {
            true => rest.minus(&equation.index),
            false => equation.index.minus(&rest),
        };
        let factor = if falls { factor.scale(-1) } else { Some(factor) };
        let (Some(numerator), Some(factor)) = (numerator, factor) else { return false };
        let divisor = (factor.as_constant() != Some(1)).then_some(factor);
        self.assign(&var, numerator, divisor);
        true
    }

    /// `e / a + rest == x`: then `e == a*(x - rest) + r` for an `r` in `0:a`.
    fn quotient(&mut self, equation: &Equation) -> bool {
        let is_quotient = |atom: &Atom| matches!(atom.expr.kind, ExprKind::Arith(ArithOp::Div, ..));
        let Some((atom, rest)) = equation.subscript.atom_and_rest(is_quotient) else {
            return false;
        };
        let ExprKind::Arith(_, inner, divisor) = &atom.expr.kind else { return false };
        let (inner, divisor) = (Poly::of(inner), Poly::of(divisor));
        if !self.is_fixed(&rest) || self.is_fixed(&inner) || !self.is_size(&divisor) {
            return false;
        }
        let first = equation.index.minus(&rest).and_then(|index| index.times(&divisor));
        let Some(first) = first else { return false };
        let name = self.new_variable("r", Range::up_to(divisor.to_expr()));
        let Some(index) = first.plus(&Poly::name(&name)) else { return false };
        self.solve(Equation { subscript: inner, index });
        true
    }

    /// `e % a + rest == x`
    fn remainder(&mut self, equation: &Equation) -> bool {
        let is_remainder =
            |atom: &Atom| matches!(atom.expr.kind, ExprKind::Arith(ArithOp::Rem, ..));
        let Some((atom, rest)) = equation.subscript.atom_and_rest(is_remainder) else {
            return false;
        };
        let ExprKind::Arith(_, inner, divisor) = &atom.expr.kind else { return false };
        let (inner, divisor) = (Poly::of(inner), Poly::of(divisor));
        let Some(index) = equation.index.minus(&rest) else { return false };
        if !self.is_fixed(&rest) || !self.is_size(&divisor) {
            return false;
        }
        let solved = self.rotation(&inner, &divisor, &index);
        let Some((var, value)) = solved.or_else(|| self.laps(&inner, &divisor, &index)) else {
            return false;
        };
        let (low, high) = (build::int(0), divisor.to_expr());
        self.guards.push(build::compare(CompareOp::Ge, index.to_expr(), low));
        self.guards.push(build::compare(CompareOp::Lt, index.to_expr(), high));
        self.assign(&var, value, None);
        true
    }

    /// `(var + rest) % a == x` for a variable in `0:a`: then it is `(x - rest) % a`.
    fn rotation(&self, inner: &Poly, divisor: &Poly, index: &Poly) -> Option<(String, Poly)> {
        let full = Range::up_to(divisor.to_expr());
        let turns = |var: &Variable| {
            let Linear { factor, rest } = inner.linear_in_var(&var.name)?;
            let range = self.ranges.get(&var.name)?;
            let value = match factor.as_constant()? {
                1 => index.minus(&rest)?,
                -1 => rest.minus(index)?,
                _ => return None,
            };
            let value = self.substitute(&[]).remainder(&value, divisor)?;
            range.equals(&full).then(|| (var.name.clone(), value))
        };
        self.unknown.iter().find_map(turns)
    }

    /// `var % a == x`: then it is `x + a*t` for some `t`.
    fn laps(&mut self, inner: &Poly, divisor: &Poly, index: &Poly) -> Option<(String, Poly)> {
        let inner = inner.to_expr();
        let var = build::as_name(&inner).filter(|name| self.is_unknown(name))?.to_owned();
        let hi = Poly::of(&self.ranges.get(&var)?.hi);
        let last = hi.plus(divisor)?.minus(&Poly::constant(1))?;
        let count = self.substitute(&[]).quotient(&last, divisor)?;
        let lap = self.new_variable("t", Range::up_to(count.to_expr()));
        let value = index.plus(&divisor.times(&Poly::name(&lap))?)?;
        Some((var, value))
    }

    fn new_variable(&mut self, like: &str, range: Range) -> String {
        let taken = |name: &String| {
            self.ranges.contains_key(name)
                || self.solutions.iter().any(|solution| solution.var == *name)
                || self.scope.tensors.contains_key(name)
                || self.scope.sizes.contains(name)
        };
        let numbered = (2_u32..).map(|number| format!("{like}{number}"));
        let mut names = std::iter::once(like.to_owned()).chain(numbered);
        let name = names.find(|name| !taken(name)).unwrap_or_default();
        self.ranges.insert(name.clone(), range.clone());
        let (spatial, span) = (false, Span::default());
        self.unknown.push(Variable { name: name.clone(), spatial, range: Some(range), span });
        name
    }

    fn substitute<'s>(&'s self, known: &'s [SubscriptEquality]) -> Substitute<'s> {
        Substitute {
            scope: self.scope,
            ranges: &self.ranges,
            solutions: &self.solutions,
            known,
            dtype: self.dtype,
        }
    }

    /// Records the solution of a variable and its conditions, and substitutes it everywhere.
    fn assign(&mut self, var: &str, numerator: Poly, divisor: Option<Poly>) {
        let Some(range) = self.ranges.remove(var) else { return };
        let spatial = self.unknown.iter().any(|unknown| unknown.name == var && unknown.spatial);
        self.unknown.retain(|unknown| unknown.name != var);
        let value = numerator.to_expr();
        let quotient = match &divisor {
            Some(divisor) => {
                let remainder = build::arith(ArithOp::Rem, value.clone(), divisor.to_expr());
                self.guards.push(build::compare(CompareOp::Eq, remainder, build::int(0)));
                build::div(value.clone(), divisor.to_expr())
            }
            None => value.clone(),
        };
        // An exact quotient has the sign of its numerator.
        let from_zero = build::is_int(&range.lo, 0);
        let low = if from_zero { value } else { quotient.clone() };
        // Ranges are not empty.
        if !(from_zero && numerator.as_constant() == Some(0)) {
            self.guards.push(build::compare(CompareOp::Ge, low, range.lo));
            self.guards.push(build::compare(CompareOp::Lt, quotient, range.hi));
        }
        self.solutions.push(Solution { var: var.to_owned(), spatial, numerator, divisor });
        self.propagate();
    }

    /// Substitutes the latest solution into all equations and conditions.
    fn propagate(&mut self) {
        let Some(last) = self.solutions.last().cloned() else { return };
        let only = [last.clone()];
        let substitute = Substitute { solutions: &only, ..self.substitute(&[]) };
        let poly = |sum: &Poly| substitute.poly(sum).unwrap_or_else(|| sum.clone());
        let guards = self.guards.iter().map(|guard| substitute.value(guard)).collect();
        let pending = self
            .pending
            .iter()
            .map(|e| Equation { subscript: poly(&e.subscript), index: poly(&e.index) })
            .collect();
        let solutions = self.solutions.iter().map(|solution| match solution.var == last.var {
            true => solution.clone(),
            false => Solution { numerator: poly(&solution.numerator), ..solution.clone() },
        });
        let solutions = solutions.collect();
        let scattered = self.scattered.iter().map(|(name, at)| (name.clone(), poly(at))).collect();
        (self.guards, self.pending, self.solutions) = (guards, pending, solutions);
        self.scattered = scattered;
    }

    /// An equality guard determines a variable, which saves a sum over it.
    fn use_equalities(&mut self, guards: &[Expr]) {
        for guard in guards.iter().flat_map(tree::conjuncts) {
            let guard = self.substitute(&[]).value(guard);
            let ExprKind::Compare(CompareOp::Eq, lhs, rhs) = &guard.kind else { continue };
            if self.scope.kind(lhs) == ValueKind::Int && self.scope.kind(rhs) == ValueKind::Int {
                let (subscript, index) = (Poly::of(lhs), Poly::of(rhs));
                let equation = match self.is_fixed(&index) {
                    true => Equation { subscript, index },
                    false => Equation { subscript: index, index: subscript },
                };
                let only = self.is_fixed(&equation.index);
                let _ = only && (self.linear(&equation, false) || self.linear(&equation, true));
            }
        }
    }

    /// The contribution, with readable names.
    fn finish(mut self, flow: &Flow, known: &[SubscriptEquality]) -> Contribution {
        self.settle_scattered(flow);
        let solver = &self;
        let is_open = |known: &&SubscriptEquality| {
            let index = known.index.to_expr();
            solver.scattered.iter().all(|(name, _)| build::as_name(&index) != Some(name))
        };
        let known: Vec<SubscriptEquality> = known.iter().filter(is_open).cloned().collect();
        let substitute = solver.substitute(&known);
        let known_guards = flow.guards.iter().map(|guard| substitute.value(guard));
        let guards: Vec<Expr> = solver.guards.iter().cloned().chain(known_guards).collect();
        let value = substitute.value(&product::sum(&flow.sum));
        let bounds = Bounds { scope: solver.scope, ranges: &solver.ranges };
        let mut needed: Vec<Expr> = Vec::new();
        for part in guards.iter().flat_map(tree::conjuncts) {
            if !bounds.holds(part) && !needed.iter().any(|other| build::same(other, part)) {
                needed.push(part.clone());
            }
        }
        let scatter = self.positions(&needed);
        let positions: Vec<Expr> = scatter.iter().map(|(_, at)| at.clone()).collect();
        let value = self.times_unused(value, &[needed.clone(), positions.clone()].concat());
        let value = build::guarded(needed, value);
        let names = self.index_names(flow);
        let new = |name: &str| {
            let dim = (0..names.len()).find(|dim| index_name(*dim) == name)?;
            Some(names[dim].clone())
        };
        let reduced: Vec<String> = self.unknown.iter().map(|var| var.name.clone()).collect();
        let is_used = |name: &String| {
            std::iter::once(&value).chain(&positions).any(|expr| tree::mentions(expr, name))
        };
        let reduced = reduced.into_iter().filter(is_used).collect();
        let scatter = scatter.into_iter().map(|(name, at)| {
            let var = new(&name).unwrap_or(name);
            (var, tree::rename(&at, &new))
        });
        let scatter = scatter.collect();
        let ranges = self.ranges.into_iter().map(|(name, range)| match new(&name) {
            Some(new) => (new, range),
            None => (name, range),
        });
        let (ranges, value) = (ranges.collect(), tree::rename(&value, &new));
        Contribution { indices: names, reduced, ranges, scatter, value }
    }

    /// Replaces a sum over an unused variable by a multiplication.
    fn times_unused(&mut self, value: Expr, guards: &[Expr]) -> Expr {
        let mut value = value;
        for var in &self.unknown {
            let used = std::iter::once(&value).chain(guards).any(|e| tree::mentions(e, &var.name));
            if let Some(range) = self.ranges.get(&var.name).filter(|_| !used) {
                let extent = range.extent();
                let is_plain =
                    !tree::rounds(&extent) && !matches!(extent.kind, ExprKind::Apply(..));
                let factor = match is_plain {
                    true => extent,
                    false => build::apply(self.dtype.name(), vec![extent]),
                };
                value = build::mul(value, factor);
            }
        }
        value
    }

    /// Names the index of a dimension after the solved variable, if there is one, and otherwise
    /// after the size of the dimension.
    fn index_names(&self, flow: &Flow) -> Vec<String> {
        let mut names: Vec<String> = Vec::new();
        for dim in 0..flow.subscripts.len() {
            let own = index_name(dim);
            let solved = self.solutions.iter().filter(|solution| {
                solution.numerator.mentions(&own)
                    && tree::mentions(&flow.subscripts[dim], &solution.var)
            });
            let solved = solved.min_by_key(|solution| !solution.spatial);
            let extent = self.ranges.get(&own).and_then(|range| build::as_name(&range.hi));
            let candidates = [
                solved.map(|solution| solution.var.clone()),
                extent.map(str::to_lowercase),
                Some("x".to_owned()),
            ];
            let is_free = |name: &String| {
                !names.contains(name)
                    && !self.is_unknown(name)
                    && !self.scope.tensors.contains_key(name)
                    && !self.scope.sizes.contains(name)
                    && self.scope.may_be_variable(name)
            };
            let numbered = (2_u32..).map(|number| format!("x{number}"));
            let mut all = candidates.into_iter().flatten().chain(numbered);
            names.push(all.find(is_free).unwrap_or_default());
        }
        names
    }
}
