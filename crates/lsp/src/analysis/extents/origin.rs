//! Finds the statement that determines each tensor extent.

use std::collections::{HashMap, HashSet};

use tensorwright_lang::program::RangeReason;
use tensorwright_lang::syntax::ast::{Def, Stmt};

use crate::analysis::samples::Sample;

/// Per tensor and dimension, the first statement that determines the extent. Inputs and results of
/// calls have their extents from elsewhere.
pub(super) struct Origins<'a> {
    statements: HashMap<(&'a str, usize), usize>,
}

impl<'a> Origins<'a> {
    pub(super) fn of(def: &'a Def, samples: &[Sample]) -> Self {
        let mut elsewhere: HashSet<&str> =
            def.params.iter().map(|param| param.name.name.as_str()).collect();
        let mut statements = HashMap::new();
        for (number, stmt) in def.body.iter().enumerate() {
            match stmt {
                Stmt::Call(call) => {
                    elsewhere.extend(call.targets.iter().map(|target| target.name.as_str()));
                }
                Stmt::Comprehension(written) => {
                    let target = written.target.name.as_str();
                    if elsewhere.contains(target) {
                        continue;
                    }
                    for (dimension, index) in written.indices.iter().enumerate() {
                        let axis = samples.first().and_then(|s| s.axis(stmt.span(), &index.name));
                        if axis.is_some_and(|axis| determines(&axis.reason)) {
                            statements.entry((target, dimension)).or_insert(number);
                        }
                    }
                }
            }
        }
        Self { statements }
    }

    /// Whether a statement determines the extent of a dimension.
    pub(super) fn is(&self, stmt: usize, tensor: &str, dimension: usize) -> bool {
        self.statements.get(&(tensor, dimension)) == Some(&stmt)
    }
}

/// Whether a range comes from anything but the written tensor.
fn determines(reason: &RangeReason) -> bool {
    match reason {
        RangeReason::Where { .. } => true,
        RangeReason::Access { limits, .. } => limits.iter().any(|limit| !limit.is_target),
    }
}
