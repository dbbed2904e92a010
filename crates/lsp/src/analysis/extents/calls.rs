//! Shapes of the results of calls.

use std::collections::BTreeMap;

use tensorwright_lang::syntax::ast::{CONCAT, Call, Dim, Expr, ExprKind, Ident};

use super::FormulaInference;
use crate::analysis::bound::UpperBound;
use crate::analysis::names;
use crate::analysis::poly::Poly;

impl FormulaInference<'_, '_> {
    /// Infers the result shapes of a call whose arguments have shapes.
    pub(super) fn call(&mut self, call: &Call) -> bool {
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

    /// The shape of an argument that is a tensor name.
    fn argument(&self, arg: &Expr) -> Option<Vec<Poly>> {
        let ExprKind::Name(name) = &arg.kind else { return None };
        let shape = self.known.shapes.get(name)?;
        shape.iter().map(|extent| extent.as_ref()?.as_plain_poly().cloned()).collect()
    }

    /// `concat` adds the last extents.
    fn joined(&self, call: &Call) -> Option<Vec<Option<UpperBound>>> {
        let shapes: Vec<Vec<Poly>> =
            call.args.iter().map(|arg| self.argument(arg)).collect::<Option<_>>()?;
        let mut shape = shapes.first()?.clone();
        let mut lasts = shapes[1..].iter().map(|shape| shape.last());
        let last = shape.pop()?;
        shape.push(lasts.try_fold(last, |sum, last| sum.plus(last?))?);
        Some(shape.into_iter().map(|extent| Some(UpperBound::poly(extent))).collect())
    }

    /// The result shapes of a definition, with its sizes replaced by those of the arguments.
    fn called(&self, call: &Call) -> Option<Vec<Vec<Option<UpperBound>>>> {
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
        let replaced = |upper: &Option<UpperBound>| {
            Some(UpperBound::poly(
                upper.as_ref()?.as_plain_poly()?.substitute(|name| sizes.get(name))?,
            ))
        };
        let shape =
            |result: &Ident| Some(known.shapes.get(&result.name)?.iter().map(replaced).collect());
        callee.returns.iter().map(shape).collect()
    }
}
