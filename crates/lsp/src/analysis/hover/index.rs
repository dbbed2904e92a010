//! Hover text of an index variable: its range, and the reason.

use tensorwright_lang::ops::{AssignOp, ReductionOp};
use tensorwright_lang::program::{AccessLimit, RangeReason};
use tensorwright_lang::source::Span;
use tensorwright_lang::syntax::ast::{Comprehension, Stmt};
use tensorwright_lang::syntax::print_expr;

use super::code;
use crate::analysis::samples::Sample;
use crate::analysis::{Analysis, Inferred};

impl Analysis {
    pub(super) fn index_hover(&self, number: usize, stmt: usize, name: &str) -> Option<String> {
        let Stmt::Comprehension(written) = self.tree.defs.get(number)?.body.get(stmt)? else {
            return None;
        };
        let inferred = self.inferred(number);
        let formula = formula(written, name, inferred, stmt);
        // Without a symbolic formula, shows numbers for sample sizes.
        let is_sampled = formula.as_ref().is_none_or(|(_, sampled)| *sampled);
        let made_up = inferred.filter(|_| is_sampled).and_then(|known| known.samples.first());
        let shown = self.given_sample(number).or(made_up);
        let numbers = shown.and_then(|sample| numbers(sample, written, name));
        let lines: Vec<String> =
            formula.as_ref().map(|(range, _)| range.clone()).into_iter().chain(numbers).collect();
        let mut text = if lines.is_empty() { code(name) } else { code(&lines.join("\n")) };
        text += &format!("\n{}\n", role(written, name));
        if let Some(reason) = inferred.and_then(|known| self.reason(known, written, name)) {
            text += &format!("\n{reason}\n");
        }
        if let Some((_, true)) = formula {
            text += &format!("\n{SAMPLED}\n");
        }
        Some(text)
    }

    /// The reason for a range, over all samples.
    fn reason(&self, inferred: &Inferred, stmt: &Comprehension, name: &str) -> Option<String> {
        let mut limits: Vec<&AccessLimit> = Vec::new();
        for axis in inferred.samples.iter().filter_map(|sample| sample.axis(stmt.span, name)) {
            match &axis.reason {
                RangeReason::Where { span } => {
                    return Some(format!("Given by `where {}`.", self.one_line(*span)));
                }
                RangeReason::Access { limits: found, .. } => {
                    for limit in found {
                        let same = |l: &&AccessLimit| {
                            l.tensor == limit.tensor && l.dimension == limit.dimension
                        };
                        if !limits.iter().any(same) {
                            limits.push(limit);
                        }
                    }
                }
            }
        }
        let place = |limit: &AccessLimit| {
            let place = format!("dimension {} of `{}`", limit.dimension, limit.tensor);
            if limit.is_target {
                return format!("{place}, which another statement determines");
            }
            format!("{place}, read as `{}`", self.one_line(limit.span))
        };
        let places: Vec<String> = limits.into_iter().map(place).collect();
        (!places.is_empty()).then(|| format!("Limited by {}.", places.join("; by ")))
    }

    fn one_line(&self, span: Span) -> String {
        self.source.slice(span).split_whitespace().collect::<Vec<&str>>().join(" ")
    }
}

/// The note on a formula that was inferred from samples.
const SAMPLED: &str = "Inferred from sample sizes, because a read is conditional or a subscript is not \
                       affine: the formula holds for the sizes that were tried, and may not for others.";

/// `0 <= h < 6  # for H=8, KH=3`
fn numbers(sample: &Sample, stmt: &Comprehension, name: &str) -> Option<String> {
    let axis = sample.axis(stmt.span, name)?;
    let range = format!("{} <= {name} < {}", axis.lo, axis.hi);
    match sample.sizes_text() {
        sizes if sizes.is_empty() => Some(range),
        sizes => Some(format!("{range}  # for {sizes}")),
    }
}

/// `0 <= h < H - KH + 1`, and whether it was inferred from samples.
fn formula(
    stmt: &Comprehension,
    name: &str,
    inferred: Option<&Inferred>,
    number: usize,
) -> Option<(String, bool)> {
    if let Some(range) = stmt.constraints.iter().find(|range| range.var.name == name) {
        let (lo, hi) = (print_expr(&range.lo), print_expr(&range.hi));
        return Some((format!("{lo} <= {name} < {hi}"), false));
    }
    let upper = inferred?.extents.range(number, name)?;
    let positive: Vec<&str> = upper.basis.positive.iter().map(String::as_str).collect();
    let condition = match positive.as_slice() {
        [] => String::new(),
        names => format!("  # if {} > 0", names.join(", ")),
    };
    Some((format!("0 <= {name} < {upper}{condition}"), upper.basis.sampled))
}

/// The role of a variable in its statement.
fn role(stmt: &Comprehension, name: &str) -> String {
    let target = &stmt.target.name;
    if stmt.scan.as_ref().is_some_and(|scan| scan.var.name == name) {
        return format!(
            "An index of `{target}`, along which elements are computed one after the other."
        );
    }
    if stmt.scatter.iter().any(|scatter| scatter.var.name == name) {
        return format!("An index of `{target}`: `scatter` says to which element each value goes.");
    }
    if stmt.indices.iter().any(|index| index.name == name) {
        return format!("An index of `{target}`: there is one element for each of its values.");
    }
    let how = match stmt.op {
        AssignOp::Reduce { op: ReductionOp::Sum, .. } => "added up",
        AssignOp::Reduce { op: ReductionOp::Product, .. } => "multiplied",
        AssignOp::Reduce { op: ReductionOp::Min, .. } => "reduced to the least",
        AssignOp::Reduce { op: ReductionOp::Max, .. } => "reduced to the greatest",
        AssignOp::Assign => "combined",
    };
    format!("It stands only on the right: the values for all `{name}` are {how}.")
}
