//! Symbolic ranges and shapes, as formulas over sizes.
//!
//! The compiler infers ranges for concrete sizes. Here they are inferred symbolically, for users to
//! read, wherever subscripts are affine: an index `h` read as `in(h + kh)` ends at `H - KH + 1`.
//! Which subscripts take part, and in which round, is taken from what the compiler found for sample
//! sizes; a formula is kept only if it agrees with the compiler for all of them. Without a formula,
//! ranges are shown as numbers.

mod calls;
mod origin;

use std::collections::{BTreeMap, HashMap};

use tensorwright_lang::program::RangeReason;
use tensorwright_lang::syntax::ast::{Comprehension, Def, Dim, Expr, Module, Stmt};

use super::accesses::{Access, Guard, Subscript, accesses};
use super::affine::{Affine, Symbols};
use super::bound::{Basis, Formula, UpperBound};
use super::names::{self, Scope};
use super::poly::Poly;
use super::samples::Sample;
use origin::Origins;

/// The formulas of one definition.
#[derive(Debug, Default)]
pub(super) struct Extents {
    /// Per tensor, its known extents.
    shapes: HashMap<String, Vec<Option<UpperBound>>>,
    /// Per statement, the upper bounds of its index variables.
    ranges: HashMap<(usize, String), UpperBound>,
}

impl Extents {
    /// The extent of a dimension.
    pub(super) fn extent(&self, tensor: &str, dimension: usize) -> Option<&UpperBound> {
        self.shapes.get(tensor)?.get(dimension)?.as_ref()
    }

    /// The upper bound of an index variable of a statement.
    pub(super) fn range(&self, stmt: usize, name: &str) -> Option<&UpperBound> {
        self.ranges.get(&(stmt, name.to_owned()))
    }
}

/// Infers the formulas of a definition. `callee` gives those of called definitions.
pub(super) fn extents<'a>(
    module: &'a Module,
    number: usize,
    samples: &'a [Sample],
    callee: &dyn Fn(usize) -> Option<&'a Extents>,
) -> Extents {
    let Some(def) = module.defs.get(number) else { return Extents::default() };
    let scope = Scope::of(def);
    let origins = Origins::of(def, samples);
    let known = declared(def);
    let mut work = FormulaInference { module, def, scope: &scope, samples, callee, origins, known };
    // Every pass but the last settles at least one range or extent.
    while work.pass() {}
    work.drop_wrong_formulas();
    work.known
}

/// The shapes of the signature.
fn declared(def: &Def) -> Extents {
    let extent = |dim: &Dim| match dim {
        Dim::Name(name) => Some(UpperBound::poly(Poly::atom(name.name.as_str()))),
        Dim::Literal(extent, _) => Some(UpperBound::poly(Poly::constant(*extent))),
    };
    let shape = |dims: &[Dim]| dims.iter().map(extent).collect();
    let params = def.params.iter().map(|param| (param.name.name.clone(), shape(&param.dims)));
    Extents { shapes: params.collect(), ranges: HashMap::new() }
}

struct FormulaInference<'a, 'w> {
    module: &'a Module,
    def: &'a Def,
    scope: &'w Scope<'a>,
    samples: &'a [Sample],
    callee: &'w dyn Fn(usize) -> Option<&'a Extents>,
    origins: Origins<'a>,
    known: Extents,
}

impl<'a> FormulaInference<'a, '_> {
    /// Settles as many ranges and extents as possible; returns whether there were any.
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
            let dimension = stmt.indices.iter().position(|index| index.name == name);
            let target = &stmt.target.name;
            if let Some(dimension) = dimension.filter(|d| self.origins.is(number, target, *d)) {
                let unknown = vec![None; stmt.indices.len()];
                let shape = self.known.shapes.entry(target.clone()).or_insert(unknown);
                if let Some(extent) = shape.get_mut(dimension) {
                    extent.get_or_insert_with(|| upper.clone());
                }
            }
            self.known.ranges.insert(key, upper);
        }
        progress
    }

    /// The round that settled each variable; 0 for a `where`.
    fn rounds(&self, stmt: &Comprehension) -> Option<BTreeMap<&'a str, u32>> {
        let stage = self.samples.first()?.stage(stmt.span)?;
        let round = |reason: &RangeReason| match reason {
            RangeReason::Where { .. } => 0,
            RangeReason::Access { round, .. } => *round,
        };
        Some(stage.axes.iter().map(|axis| (axis.name.as_str(), round(&axis.reason))).collect())
    }

    /// The upper bound of a variable.
    fn upper(
        &self,
        number: usize,
        stmt: &Comprehension,
        name: &str,
        rounds: &BTreeMap<&str, u32>,
    ) -> Option<UpperBound> {
        if let Some(range) = stmt.constraints.iter().find(|range| range.var.name == name) {
            return Some(self.written(&range.hi));
        }
        let mut least: Option<UpperBound> = None;
        let (mut sampled, mut apart) = (false, false);
        for access in accesses(stmt, self.scope) {
            if !self.can_limit(&access, name, rounds) {
                continue;
            }
            let limit = match access.subscript {
                // The statement that determines the tensor's extent is not limited by it; all
                // others are.
                Subscript::Written(_)
                    if self.origins.is(number, access.tensor, access.dimension) =>
                {
                    continue;
                }
                Subscript::Written(_) => {
                    self.known.extent(access.tensor, access.dimension)?.clone()
                }
                Subscript::Read(_) => {
                    let uncertain = access.guard == Guard::Shared || self.affine(&access).is_none();
                    apart |= access.guard == Guard::Apart;
                    sampled |= uncertain;
                    if uncertain && !self.is_limit(stmt, &access, name) {
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
        // If all limits agree, one more without effect changes nothing; if none has effect, binding
        // fails.
        least.basis.sampled |= sampled || apart && least.bounds.len() > 1;
        Some(least)
    }

    /// Whether a subscript can limit a variable: all its other variables were settled before.
    fn can_limit(&self, access: &Access<'_>, name: &str, rounds: &BTreeMap<&str, u32>) -> bool {
        let indices = access.subscript.indices(self.scope);
        let settled = |other: &&str| *other == name || rounds.get(*other) < rounds.get(name);
        indices.contains(&name)
            && indices.iter().all(settled)
            && !access.subscript.reads_data(self.scope)
    }

    /// Whether a sample reports the access as a reason for the range.
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

    /// The upper bound from a `where`: a polynomial if it is one.
    fn written(&self, hi: &Expr) -> UpperBound {
        match self.sum(hi).filter(|sum| sum.indices.is_empty()) {
            Some(sum) => UpperBound::poly(sum.rest),
            None => UpperBound::new(Formula::Written(hi.clone())),
        }
    }

    /// The upper bound of a variable that keeps a subscript in bounds for all values of the others:
    /// `c*v + others + rest < extent`, or `>= 0` where `c` is negative.
    fn limit(
        &self,
        number: usize,
        stmt: &Comprehension,
        access: &Access<'_>,
        name: &str,
    ) -> Option<UpperBound> {
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
            Formula::Poly(room.plus(&one)?)
        } else {
            Formula::Steps { numerator: room, divisor }
        };
        Some(UpperBound { basis, ..UpperBound::new(bound) })
    }

    /// The sign of a coefficient; integer scalars are assumed to be positive, which is recorded.
    fn is_positive(&self, coefficient: &Poly, basis: &mut Basis) -> Option<bool> {
        let scalars = coefficient.atoms().filter(|name| self.scope.is_tensor(name));
        basis.positive.extend(scalars.cloned());
        coefficient.is_positive()
    }

    /// The lower bound of a variable.
    fn lowest(&self, stmt: &Comprehension, name: &str) -> Option<Poly> {
        match stmt.constraints.iter().find(|range| range.var.name == name) {
            None => Some(Poly::default()),
            Some(range) => {
                let lo = self.sum(&range.lo)?;
                lo.indices.is_empty().then_some(lo.rest)
            }
        }
    }

    /// Drops every formula that disagrees with a sample.
    fn drop_wrong_formulas(&mut self) {
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
                let agrees = |upper: &UpperBound| {
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
