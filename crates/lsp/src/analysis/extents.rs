//! Ranges and shapes as formulas over the sizes of a signature.
//!
//! The compiler infers ranges for numbers. For people the same is said in symbols here, wherever
//! subscripts are sums: an index `h` that is read as `in(h + kh)` ends at `H - KH + 1`. Which
//! subscripts take part, and in which round, is what the compiler found for sample sizes; and a
//! formula counts only if it gives what the compiler infers for all of them. Where there is no such
//! formula, numbers must do.

use std::collections::{BTreeMap, HashMap};

use tensorwright_lang::program::RangeReason;
use tensorwright_lang::syntax::ast::{
    CONCAT, Call, Comprehension, Def, Dim, Expr, ExprKind, Ident, Module, Stmt,
};

use super::accesses::{Access, Guard, Subscript, accesses};
use super::affine::{Affine, Symbols};
use super::bound::{Basis, Bound, Upper};
use super::names::{self, Scope};
use super::poly::Poly;
use super::samples::Sample;

/// The formulas of one definition.
#[derive(Debug, Default)]
pub(super) struct Extents {
    /// Per tensor, the extents that are known.
    shapes: HashMap<String, Vec<Option<Upper>>>,
    /// Per statement, the upper ends of its index variables.
    ranges: HashMap<(usize, String), Upper>,
}

impl Extents {
    /// The extent of a dimension.
    pub(super) fn extent(&self, tensor: &str, dimension: usize) -> Option<&Upper> {
        self.shapes.get(tensor)?.get(dimension)?.as_ref()
    }

    /// The upper end of an index variable of a statement.
    pub(super) fn range(&self, stmt: usize, name: &str) -> Option<&Upper> {
        self.ranges.get(&(stmt, name.to_owned()))
    }
}

/// Works out the formulas of a definition. `callee` gives those of definitions that it calls.
pub(super) fn extents<'a>(
    module: &'a Module,
    number: usize,
    samples: &'a [Sample],
    callee: &dyn Fn(usize) -> Option<&'a Extents>,
) -> Extents {
    let Some(def) = module.defs.get(number) else { return Extents::default() };
    let scope = Scope::of(def);
    let mut work = Work { module, def, scope: &scope, samples, callee, known: declared(def) };
    // Every pass settles at least one range or extent, or is the last.
    while work.pass() {}
    work.keep_what_is_right();
    work.known
}

/// The shapes of the signature.
fn declared(def: &Def) -> Extents {
    let extent = |dim: &Dim| match dim {
        Dim::Name(name) => Some(Upper::poly(Poly::name(&name.name))),
        Dim::Literal(extent, _) => Some(Upper::poly(Poly::constant(*extent))),
    };
    let shape = |dims: &[Dim]| dims.iter().map(extent).collect();
    let params = def.params.iter().map(|param| (param.name.name.clone(), shape(&param.dims)));
    Extents { shapes: params.collect(), ranges: HashMap::new() }
}

struct Work<'a, 'w> {
    module: &'a Module,
    def: &'a Def,
    scope: &'w Scope<'a>,
    samples: &'a [Sample],
    callee: &'w dyn Fn(usize) -> Option<&'a Extents>,
    known: Extents,
}

impl<'a> Work<'a, '_> {
    /// Settles what can be settled now; whether there was anything.
    fn pass(&mut self) -> bool {
        let mut progress = false;
        for (number, stmt) in self.def.body.iter().enumerate() {
            progress |= match stmt {
                Stmt::Comprehension(stmt) => self.comprehension(number, stmt),
                Stmt::Call(call) => self.call(call),
            };
        }
        progress
    }

    fn comprehension(&mut self, number: usize, stmt: &Comprehension) -> bool {
        let Some(rounds) = self.rounds(stmt) else { return false };
        let mut progress = false;
        let mut order: Vec<(&str, u32)> = rounds.iter().map(|(name, at)| (*name, *at)).collect();
        order.sort_by_key(|(_, round)| *round);
        for (name, _) in order {
            let key = (number, name.to_owned());
            if self.known.ranges.contains_key(&key) {
                continue;
            }
            let Some(upper) = self.upper(number, stmt, name, &rounds) else { continue };
            progress = true;
            if let Some(dimension) = stmt.indices.iter().position(|index| index.name == name) {
                let unknown = vec![None; stmt.indices.len()];
                let shape = self.known.shapes.entry(stmt.target.name.clone()).or_insert(unknown);
                if let Some(extent) = shape.get_mut(dimension) {
                    extent.get_or_insert_with(|| upper.clone());
                }
            }
            self.known.ranges.insert(key, upper);
        }
        progress
    }

    /// The round in which each variable was settled; 0 for a `where`.
    fn rounds(&self, stmt: &Comprehension) -> Option<BTreeMap<&'a str, u32>> {
        let stage = self.samples.first()?.stage(stmt.span)?;
        let round = |reason: &RangeReason| match reason {
            RangeReason::Where { .. } => 0,
            RangeReason::Access { round, .. } => *round,
        };
        Some(stage.axes.iter().map(|axis| (axis.name.as_str(), round(&axis.reason))).collect())
    }

    /// The upper end of a variable.
    fn upper(
        &self,
        number: usize,
        stmt: &Comprehension,
        name: &str,
        rounds: &BTreeMap<&str, u32>,
    ) -> Option<Upper> {
        if let Some(range) = stmt.constraints.iter().find(|range| range.var.name == name) {
            return Some(self.written(&range.hi));
        }
        let mut least: Option<Upper> = None;
        let (mut sampled, mut apart) = (false, false);
        for access in accesses(stmt, self.scope) {
            if !self.has_a_say(&access, name, rounds) {
                continue;
            }
            let is_limit = self.is_limit(stmt, &access, name);
            let limit = match access.subscript {
                // The left side has a say once the tensor has a shape from elsewhere.
                Subscript::Written(_) => {
                    let extent = self.known.extent(access.tensor, access.dimension);
                    let Some(extent) = extent.filter(|_| is_limit) else { continue };
                    extent.clone()
                }
                Subscript::Read(_) => {
                    let uncertain = access.guard == Guard::Shared || self.affine(&access).is_none();
                    apart |= access.guard == Guard::Apart;
                    sampled |= uncertain;
                    if uncertain && !is_limit {
                        continue;
                    }
                    self.limit(number, stmt, &access, name)?
                }
            };
            least = Some(match least {
                Some(least) => least.or(limit),
                None => limit,
            });
        }
        let mut least = least?;
        // Where all say the same, one that is silent changes nothing; if all were, binding fails.
        least.basis.sampled |= sampled || apart && least.bounds.len() > 1;
        Some(least)
    }

    /// Whether a subscript can limit a variable: all its other variables are settled before.
    fn has_a_say(&self, access: &Access<'_>, name: &str, rounds: &BTreeMap<&str, u32>) -> bool {
        let indices = access.subscript.indices(self.scope);
        let settled = |other: &&str| *other == name || rounds.get(*other) < rounds.get(name);
        indices.contains(&name)
            && indices.iter().all(settled)
            && !access.subscript.reads_data(self.scope)
    }

    /// Whether a sample names the access as a reason for the range.
    fn is_limit(&self, stmt: &Comprehension, access: &Access<'_>, name: &str) -> bool {
        self.samples.iter().filter_map(|sample| sample.axis(stmt.span, name)).any(|axis| {
            matches!(&axis.reason, RangeReason::Access { limits, .. } if limits.iter().any(|limit| {
                limit.span == access.span && limit.dimension == access.dimension
            }))
        })
    }

    fn affine(&self, access: &Access<'_>) -> Option<Affine> {
        match access.subscript {
            Subscript::Read(expr) => self.sum(expr),
            Subscript::Written(name) => Some(Affine::index(name)),
        }
    }

    fn sum(&self, expr: &Expr) -> Option<Affine> {
        let extent = |tensor: &str, dimension: usize| {
            self.known.extent(tensor, dimension)?.as_plain_poly().cloned()
        };
        Affine::of(expr, &Symbols { scope: self.scope, extent: &extent })
    }

    /// The end of a `where`: a polynomial if it is one.
    fn written(&self, hi: &Expr) -> Upper {
        match self.sum(hi).filter(|sum| sum.indices.is_empty()) {
            Some(sum) => Upper::poly(sum.rest),
            None => Upper::new(Bound::Written(hi.clone())),
        }
    }

    /// How far a variable may go so that a subscript stays in bounds for all values of the others:
    /// `c*v + others + rest < extent`, or `>= 0` where `c` is negative.
    fn limit(
        &self,
        number: usize,
        stmt: &Comprehension,
        access: &Access<'_>,
        name: &str,
    ) -> Option<Upper> {
        let Affine { rest, mut indices } = self.affine(access)?;
        let coefficient = indices.remove(name)?;
        let mut basis = Basis::default();
        let rises = self.is_positive(&coefficient, &mut basis)?;
        let mut worst = rest;
        for (other, factor) in &indices {
            let greatest = rises == self.is_positive(factor, &mut basis)?;
            let end = if greatest {
                self.known.range(number, other)?.as_poly(&mut basis)?.minus(&Poly::constant(1))?
            } else {
                self.lowest(stmt, other)?
            };
            worst = worst.plus(&factor.times(&end)?)?;
        }
        let one = Poly::constant(1);
        let (room, divisor) = if rises {
            let extent = self.known.extent(access.tensor, access.dimension)?;
            let extent = extent.as_poly(&mut basis)?;
            (extent.minus(&one)?.minus(&worst)?, coefficient)
        } else {
            (worst, coefficient.times(&Poly::constant(-1))?)
        };
        let bound = if divisor == one {
            Bound::Poly(room.plus(&one)?)
        } else {
            Bound::Steps { numerator: room, divisor }
        };
        Some(Upper { basis, ..Upper::new(bound) })
    }

    /// The sign of a coefficient; integer scalars are taken to be positive, and remembered.
    fn is_positive(&self, coefficient: &Poly, basis: &mut Basis) -> Option<bool> {
        let scalars = coefficient.names().filter(|name| self.scope.is_tensor(name));
        basis.positive.extend(scalars.map(str::to_owned));
        coefficient.is_positive()
    }

    /// The first value of a variable.
    fn lowest(&self, stmt: &Comprehension, name: &str) -> Option<Poly> {
        match stmt.constraints.iter().find(|range| range.var.name == name) {
            None => Some(Poly::default()),
            Some(range) => {
                let lo = self.sum(&range.lo)?;
                lo.indices.is_empty().then_some(lo.rest)
            }
        }
    }

    /// The shapes of what a call makes, where its arguments have shapes.
    fn call(&mut self, call: &Call) -> bool {
        if call.targets.iter().all(|target| self.known.shapes.contains_key(&target.name)) {
            return false;
        }
        let shapes = match call.callee.name.as_str() {
            CONCAT => self.joined(call).map(|shape| vec![shape]),
            _ => self.called(call),
        };
        let before = self.known.shapes.len();
        for (target, shape) in call.targets.iter().zip(shapes.unwrap_or_default()) {
            self.known.shapes.entry(target.name.clone()).or_insert(shape);
        }
        self.known.shapes.len() > before
    }

    /// The shape of an argument that is the name of a tensor.
    fn argument(&self, arg: &Expr) -> Option<Vec<Poly>> {
        let ExprKind::Name(name) = &arg.kind else { return None };
        let shape = self.known.shapes.get(name)?;
        shape.iter().map(|extent| extent.as_ref()?.as_plain_poly().cloned()).collect()
    }

    /// `concat` adds up the last extents.
    fn joined(&self, call: &Call) -> Option<Vec<Option<Upper>>> {
        let shapes: Vec<Vec<Poly>> =
            call.args.iter().map(|arg| self.argument(arg)).collect::<Option<_>>()?;
        let mut shape = shapes.first()?.clone();
        let mut lasts = shapes[1..].iter().map(|shape| shape.last());
        let last = shape.pop()?;
        shape.push(lasts.try_fold(last, |sum, last| sum.plus(last?))?);
        Some(shape.into_iter().map(|extent| Some(Upper::poly(extent))).collect())
    }

    /// The shapes of the results of a definition, with its sizes replaced by those of arguments.
    fn called(&self, call: &Call) -> Option<Vec<Vec<Option<Upper>>>> {
        let number = *names::defs_by_name(self.module).get(call.callee.name.as_str())?;
        let callee = self.module.defs.get(number)?;
        let known = (self.callee)(number)?;
        let mut sizes: BTreeMap<String, Poly> = BTreeMap::new();
        for (param, arg) in callee.params.iter().zip(&call.args) {
            if param.dims.is_empty() {
                let value = self.sum(arg).filter(|sum| sum.indices.is_empty());
                sizes.extend(value.map(|sum| (param.name.name.clone(), sum.rest)));
            }
            for (dim, extent) in param.dims.iter().zip(self.argument(arg).unwrap_or_default()) {
                if let Dim::Name(name) = dim {
                    sizes.entry(name.name.clone()).or_insert(extent);
                }
            }
        }
        let replaced = |upper: &Option<Upper>| {
            Some(Upper::poly(upper.as_ref()?.as_plain_poly()?.substitute(&sizes)?))
        };
        let shape =
            |result: &Ident| Some(known.shapes.get(&result.name)?.iter().map(replaced).collect());
        callee.returns.iter().map(shape).collect()
    }

    /// Drops every formula that does not give what was inferred for the samples.
    fn keep_what_is_right(&mut self) {
        let (def, samples) = (self.def, self.samples);
        self.known.ranges.retain(|(number, name), upper| {
            let Some(stmt) = def.body.get(*number) else { return false };
            samples.iter().all(|sample| {
                let axis = sample.axis(stmt.span(), name);
                axis.is_some_and(|axis| upper.value(&sample.sizes) == Some(axis.hi))
            })
        });
        for (name, shape) in &mut self.known.shapes {
            if def.params.iter().any(|param| param.name.name == *name) {
                continue;
            }
            let declared = names::tensor(def, name);
            for (dimension, extent) in shape.iter_mut().enumerate() {
                let agrees = |upper: &Upper| {
                    samples.iter().all(|sample| {
                        let tensor = declared.and_then(|span| sample.tensor(span));
                        let inferred = tensor.and_then(|tensor| tensor.shape.get(dimension));
                        upper.value(&sample.sizes).as_ref() == inferred
                    })
                };
                *extent = extent.take().filter(|upper| !samples.is_empty() && agrees(upper));
            }
        }
    }
}

#[cfg(test)]
mod tests;
