//! Follows one statement for all sizes: as the concrete binding does, with proofs.

use super::environment::{Environment, Followed};
use super::limits::{Limits, Unlimited};
use super::refuse;
use crate::bind::bounds::{self, RuntimeCheck};
use crate::bind::proofs::Ends;
use crate::bind::resolve::{self, MAX_HEIGHT, ResolvedStatement, too_deep, too_wide};
use crate::bind::{scan, scatter};
use crate::diagnostic::Diagnostic;
use crate::hir::{Comprehension, Symbol};
use crate::infer::{self, Access, Range};
use crate::ops::CompareOp;
use crate::program::{AxisId, Exact, Expr, Index, Interval, RangeReason, Scan, Scatter, TensorId};

/// A statement for all sizes.
pub(super) struct SizedStatement {
    /// The ranges as numbers include those of all sizes.
    pub(super) resolved: ResolvedStatement,
    pub(super) ranges: Vec<(Index, Index)>,
}

/// A lowered statement.
struct Parts {
    body: Expr,
    scan: Option<Scan>,
    scatter: Vec<Scatter>,
}

type Followable<T> = Result<T, Vec<Diagnostic>>;

impl Environment<'_> {
    /// Follows an attempt that left ranges open: notes what it determines.
    pub(super) fn attempt(&mut self, it: Followed<'_>) -> Followable<()> {
        let parts = self.lowered(it.stmt)?;
        let accesses = self.accesses(it.stmt, &parts);
        let ranges = self.ranges(it, &accesses)?;
        drop(accesses);
        let extent = |ends: &Ends| ends.as_ref().map(|(_, hi)| hi.clone());
        self.shapes.note(it.stmt.target, ranges[..it.stmt.rank].iter().map(extent).collect());
        Ok(())
    }

    /// Follows a statement to its end, for the reasons of the concrete ranges.
    pub(super) fn settle(
        &mut self,
        it: Followed<'_>,
        reasons: &[(Range, RangeReason)],
    ) -> Followable<SizedStatement> {
        let Followed { stmt, .. } = it;
        let mut parts = self.lowered(stmt)?;
        let accesses = self.accesses(stmt, &parts);
        let ranges = self.ranges(it, &accesses)?;
        let settled: Option<Vec<(Index, Index)>> = ranges.iter().cloned().collect();
        let settled =
            settled.ok_or_else(|| vec![refuse::statement(self.proofs, &[], stmt.span)])?;
        self.shapes
            .set(stmt.target, settled[..stmt.rank].iter().map(|(_, hi)| hi.clone()).collect());
        self.same_extents(it, &accesses, &ranges)?;
        let mut checked = self.verify(it, &accesses, &ranges)?;
        drop(accesses);
        for scatter in &mut parts.scatter {
            let places = self.verify(it, &[self.place(stmt, scatter, &ranges)], &ranges)?;
            scatter.checked = !places.is_empty();
        }
        checked.dedup();
        self.finish(stmt, parts, &checked, settled, reasons)
    }

    /// Lowers a statement. Conditions on sizes alone that decide what is read come out as for the
    /// likely sizes.
    fn lowered(&self, stmt: &Comprehension) -> Followable<Parts> {
        let mut parts = self.lowered_once(stmt)?;
        while self.decides_reads(stmt, &parts)? {
            parts = self.lowered_once(stmt)?;
        }
        Ok(parts)
    }

    fn lowered_once(&self, stmt: &Comprehension) -> Followable<Parts> {
        let one = |error| vec![error];
        let lowering = self.lowering();
        let body = lowering.expr(&stmt.rhs).map_err(one)?;
        let scan = scan::lowered(&lowering, stmt, &body).map_err(one)?;
        let scatter = scatter::lowered(&lowering, stmt).map_err(one)?;
        let positions: usize = scatter.iter().map(|scatter| scatter.at.height() + 4).sum();
        let start = scan.as_ref().map_or(0, |scan| scan.start.height());
        if body.height() + start + positions > MAX_HEIGHT {
            return Err(vec![too_deep(stmt.span)]);
        }
        Ok(Parts { body, scan, scatter })
    }

    /// Decides the first condition on sizes alone that guards a read; returns whether there is one.
    fn decides_reads(&self, stmt: &Comprehension, parts: &Parts) -> Followable<bool> {
        let target = TensorId(stmt.target.0);
        // Whether a recurrence reads itself must not depend on sizes either.
        let shape = vec![Index::default(); stmt.rank];
        let of_own = |id: TensorId| (id == target).then_some(shape.as_slice());
        let own =
            if stmt.scan.is_some() { infer::accesses(&parts.body, &of_own) } else { Vec::new() };
        let accesses = self.accesses(stmt, parts);
        let guards = accesses.iter().chain(&own).flat_map(|access| access.guards.iter());
        for guard in guards {
            let mut found = None;
            guard.condition.walk(&mut |expr| match expr {
                Expr::CompareIndex(op, lhs, rhs)
                    if self.proofs.is_of_sizes(lhs) && self.proofs.is_of_sizes(rhs) =>
                {
                    found.get_or_insert((*op, lhs, rhs));
                }
                _ => {}
            });
            let Some((op, lhs, rhs)) = found else { continue };
            let decided = self.proofs.decide_as_likely(op, lhs, rhs);
            // It has to be proven now, or lowering would not end.
            if decided && self.proofs.decides(op, lhs, rhs).is_some() {
                return Ok(true);
            }
            return Err(vec![refuse::statement(self.proofs, &[lhs, rhs], stmt.span)]);
        }
        Ok(false)
    }

    fn accesses<'b>(&self, stmt: &Comprehension, parts: &'b Parts) -> Vec<Access<'b, Index>> {
        resolve::accesses(&self.shapes, stmt, &parts.body, parts.scan.as_ref(), &parts.scatter)
    }

    /// The ranges that `where` clauses and accesses give; for the likely sizes they are the concrete
    /// ones.
    fn ranges(&self, it: Followed<'_>, accesses: &[Access<'_, Index>]) -> Followable<Vec<Ends>> {
        let ranges = self.given(it)?;
        let mut limits = Limits { proofs: self.proofs, accesses, ranges };
        limits.infer().map_err(|Unlimited { access, var }| {
            vec![refuse::limit(self, it, &accesses[access], var)]
        })?;
        let number = |index: &Index| self.proofs.at_likely(index);
        let same = |(ends, range): (&Ends, &Option<Range>)| match (ends, range) {
            (None, None) => true,
            (Some((lo, hi)), Some(range)) => {
                (number(lo), number(hi)) == (Some(range.lo), Some(range.hi))
            }
            _ => false,
        };
        if limits.ranges.iter().zip(it.likely).all(same) {
            Ok(limits.ranges)
        } else {
            Err(vec![refuse::statement(self.proofs, &[], it.stmt.span)])
        }
    }

    fn given(&self, it: Followed<'_>) -> Followable<Vec<Ends>> {
        let lowering = self.lowering();
        let mut given = Vec::with_capacity(it.stmt.vars.len());
        for var in &it.stmt.vars {
            let Some((lo, hi, span)) = &var.range else {
                given.push(None);
                continue;
            };
            let ends = lowering.extent(lo, *span).and_then(|lo| {
                let hi = lowering.extent(hi, *span)?;
                let length = hi.sub(&lo).and_then(|all| all.sub(&Index::constant(1)));
                let is_range = length.is_some_and(|last| self.proofs.require(&last));
                if !is_range || !self.proofs.require(&lo) {
                    return Err(refuse::statement(self.proofs, &[&lo, &hi], *span));
                }
                Ok((lo, hi))
            });
            given.push(Some(ends.map_err(|error| vec![error])?));
        }
        Ok(given)
    }

    /// Makes plain subscripts of one variable agree for all sizes: binding refuses others.
    fn same_extents(
        &self,
        it: Followed<'_>,
        accesses: &[Access<'_, Index>],
        ranges: &[Ends],
    ) -> Followable<()> {
        let limits = Limits { proofs: self.proofs, accesses, ranges: ranges.to_vec() };
        for (var, info) in it.stmt.vars.iter().enumerate() {
            if info.range.is_some() {
                continue;
            }
            let axis = AxisId(var as u32);
            let is_plain = |access: &&Access<'_, Index>| access.index.as_axis() == Some(axis);
            let plain: Vec<&Access<'_, Index>> = accesses.iter().filter(is_plain).collect();
            let is_other = |access: &&&Access<'_, Index>| access.extent != plain[0].extent;
            if plain.iter().find(is_other).is_none() {
                continue;
            }
            let mut limiting = plain.iter().filter(|access| !limits.is_no_limit(access, var));
            let Some(first) = limiting.next() else { continue };
            for other in limiting {
                let difference = other.extent.sub(&first.extent);
                if !difference.is_some_and(|difference| self.proofs.require_zero(&difference)) {
                    return Err(vec![refuse::limit(self, it, other, var)]);
                }
            }
        }
        Ok(())
    }

    /// Proves every access in bounds; returns those that are checked at run time.
    fn verify(
        &self,
        it: Followed<'_>,
        accesses: &[Access<'_, Index>],
        ranges: &[Ends],
    ) -> Followable<Vec<RuntimeCheck>> {
        let mut checked = Vec::new();
        for access in accesses {
            if self.proofs.is_inside(access, ranges) {
                continue;
            }
            if access.index.has_value() {
                // Even if it is proven for the likely sizes.
                checked.push((access.span, access.tensor, access.dimension as u32));
                continue;
            }
            if !self.proofs.require_inside(access, ranges) {
                return Err(vec![refuse::bounds(self, it, access, ranges)]);
            }
        }
        Ok(checked)
    }

    /// The write of a scatter, in its dimension.
    fn place<'b>(
        &self,
        stmt: &Comprehension,
        scatter: &'b Scatter,
        ranges: &[Ends],
    ) -> Access<'b, Index> {
        let dimension = scatter.axis.0 as usize;
        let hi = ranges.get(dimension).and_then(Option::as_ref).map(|(_, hi)| hi.clone());
        Access {
            tensor: TensorId(stmt.target.0),
            dimension,
            extent: hi.unwrap_or_default(),
            index: std::borrow::Cow::Borrowed(&scatter.at),
            guards: Vec::new(),
            span: scatter.place.0,
            is_target: true,
        }
    }

    fn finish(
        &self,
        stmt: &Comprehension,
        parts: Parts,
        checked: &[RuntimeCheck],
        ranges: Vec<(Index, Index)>,
        reasons: &[(Range, RangeReason)],
    ) -> Followable<SizedStatement> {
        let Parts { mut body, mut scan, mut scatter } = parts;
        let target = TensorId(stmt.target.0);
        bounds::mark_checked(&mut body, checked);
        for it in &mut scatter {
            it.at.for_each_value_mut(&mut |value| bounds::mark_checked(value, checked));
        }
        if let Some(scan) = &mut scan {
            bounds::mark_checked(&mut scan.start, checked);
            let ends = ranges[scan.axis.0 as usize].clone();
            body = scan::with_start(&body, target, scan, ends)
                .ok_or_else(|| vec![too_wide(stmt.span)])?;
        }
        let dtype = self.flat.tensors[stmt.target.0 as usize].dtype;
        body = Scatter::body(&scatter, body, scatter::nothing(stmt, dtype));
        let largest: Vec<Range> = ranges.iter().map(|ends| self.largest(ends)).collect();
        let written = Expr::Read(Scatter::element(&scatter, target, stmt.rank));
        if ![&body, &written].into_iter().all(|expr| self.is_computable(expr, &largest)) {
            return Err(vec![too_wide(stmt.span)]);
        }
        let reasons = reasons.iter().map(|(_, reason)| reason.clone());
        let numbers = largest.into_iter().zip(reasons).collect();
        let resolved = ResolvedStatement { ranges: numbers, body, scan, scatter };
        Ok(SizedStatement { resolved, ranges })
    }

    /// The range that includes those of all sizes.
    fn largest(&self, (lo, hi): &(Index, Index)) -> Range {
        let number = |value: i128| i64::try_from(value).unwrap_or(i64::MAX);
        let lo = number(self.proofs.interval(lo).lo.max(0));
        Range { lo, hi: number(self.proofs.interval(hi).hi).max(lo + 1) }
    }

    /// Whether index arithmetic can be computed exactly for all sizes.
    fn is_computable(&self, body: &Expr, ranges: &[Range]) -> bool {
        let axis = |axis: AxisId| match axis.size() {
            Some(_) => self.proofs.interval(&Index::axis(axis)),
            None => {
                ranges.get(axis.0 as usize).map_or(Interval::point(0), |range| range.interval())
            }
        };
        let dtype = |id: TensorId| self.flat.tensors[id.0 as usize].dtype;
        let extent = |id: TensorId, dimension: u32| {
            let extent = self.shapes.of(Symbol(id.0))?.get(dimension as usize)?;
            i64::try_from(self.proofs.interval(extent).hi).ok()
        };
        let exact = Exact::new(&axis, &dtype, &extent);
        exact.is_exact(body) || exact.expr(body).is_some()
    }

    /// Makes a statement cover these dimensions of its target for all sizes.
    pub(super) fn cover(
        &self,
        stmt: &Comprehension,
        ranges: &[(Index, Index)],
        covers: &[bool],
    ) -> Followable<()> {
        let shape = self.shapes.of(stmt.target).unwrap_or_default();
        let whole = covers.iter().all(|covers| *covers);
        for (dimension, ((lo, hi), extent)) in ranges.iter().zip(shape).enumerate() {
            let is_scattered = stmt.scatter.iter().any(|it| it.var.0 as usize == dimension);
            if !(whole || is_scattered && covers[dimension]) {
                continue;
            }
            let rest = extent.sub(hi);
            let is_whole = rest.is_some_and(|rest| self.proofs.require_zero(&rest));
            if !is_whole || !self.proofs.require_zero(lo) {
                return Err(vec![refuse::statement(self.proofs, &[], stmt.span)]);
            }
        }
        Ok(())
    }

    /// Makes two sizes equal, which a call or `concat` requires.
    pub(super) fn agree(&self, first: &Index, second: &Index) -> bool {
        self.proofs.decides(CompareOp::Eq, first, second) == Some(true)
            || first.sub(second).is_some_and(|difference| self.proofs.require_zero(&difference))
    }
}
