//! The extents and ranges of a program, for fixed sizes or for a range of them.

use tensorwright_lang::dtype::DType;
use tensorwright_lang::program::{
    AxisId, AxisKind, Index, Interval, Program, Rewrite, SizeCondition, SizedProgram, TensorId,
};

use crate::nest::{BufferId, LoopNest, MAX_STRIDE, NumberSource, Owner, RunTimeShape, Var};

/// A program and, if its sizes vary, its extents and ranges as functions of them.
pub(super) struct Source<'a> {
    pub(super) program: &'a Program,
    sized: Option<&'a SizedProgram>,
    /// The variables of the sizes, in their order.
    pub(super) vars: Vec<Var>,
    /// Whether an extent overflows.
    pub(super) overflows: bool,
}

/// Replaces sizes by the variables of a nest.
struct Named<'a>(&'a [Var]);

impl Rewrite for Named<'_> {
    fn axis(&mut self, axis: AxisId) -> Option<Index> {
        self.0.get(axis.size()?).copied().map(Index::axis)
    }
}

impl<'a> Source<'a> {
    /// For fixed sizes.
    pub(super) fn of(program: &'a Program) -> Self {
        Self { program, sized: None, vars: Vec::new(), overflows: false }
    }

    /// For a range of sizes.
    pub(super) fn sized(sized: &'a SizedProgram) -> Self {
        Self { program: &sized.general, sized: Some(sized), vars: Vec::new(), overflows: false }
    }

    /// Adds the sizes to a nest, and the run-time extents and strides of its buffers.
    pub(super) fn add_numbers(&mut self, nest: &mut LoopNest) {
        let Some(sized) = self.sized else { return };
        for size in &sized.sizes {
            let source = NumberSource::Size(size.clone());
            self.vars.push(nest.add_number(&size.name, source, size.interval()));
        }
        for (number, shape) in sized.shapes.iter().enumerate() {
            let named = shape.iter().map(|extent| extent.rewrite(&mut Named(&self.vars)));
            let Some(extents) = named.collect::<Option<Vec<Index>>>() else {
                self.overflows = true;
                continue;
            };
            let id = TensorId(number as u32);
            nest.buffers[number].run_time = Self::run_time(nest, id, extents);
        }
        self.add_size_bounds(nest, sized);
    }

    /// Adds the conditions on sizes to a nest.
    fn add_size_bounds(&mut self, nest: &mut LoopNest, sized: &SizedProgram) {
        for condition in &sized.conditions {
            let indices = match condition {
                SizeCondition::AtLeastZero(index) => vec![Some(index.clone())],
                SizeCondition::Zero(index) => vec![Some(index.clone()), index.scale(-1)],
            };
            for index in indices {
                match index.and_then(|index| index.rewrite(&mut Named(&self.vars))) {
                    Some(index) => nest.add_size_bound(index, sized.condition_text(condition)),
                    None => self.overflows = true,
                }
            }
        }
    }

    /// The run-time extents and strides of a buffer; `None` if they are known.
    pub(super) fn run_time(
        nest: &mut LoopNest,
        id: BufferId,
        extents: Vec<Index>,
    ) -> Option<Box<RunTimeShape>> {
        // Callers may pass parts of larger tensors, whatever their extents.
        let is_passed = nest.buffer(id).owner != Owner::Intermediate;
        let is_known = extents.iter().all(|extent| extent.as_constant().is_some());
        (is_passed || !is_known).then(|| {
            let strides = Self::strides(nest, id, &extents);
            Box::new(RunTimeShape { extents, strides, start: None })
        })
    }

    /// The strides of a buffer: passed by the caller, or those of dense memory. The innermost is
    /// always one.
    fn strides(nest: &mut LoopNest, id: BufferId, extents: &[Index]) -> Vec<Index> {
        let (name, owner) = (nest.buffer(id).name.clone(), nest.buffer(id).owner);
        let mut strides = vec![Index::constant(1); extents.len()];
        let mut inner: Vec<Index> = Vec::new();
        for dimension in (0..extents.len().saturating_sub(1)).rev() {
            inner.push(extents[dimension + 1].clone());
            let values = Interval { lo: -i128::from(MAX_STRIDE), hi: MAX_STRIDE.into() };
            let number = match owner {
                Owner::Intermediate => NumberSource::Product(inner.clone()),
                _ => NumberSource::Stride(id, dimension),
            };
            let constant =
                inner.iter().map(Index::as_constant).try_fold(1i64, |product, extent| {
                    extent.and_then(|extent| product.checked_mul(extent))
                });
            strides[dimension] = match (owner, constant) {
                (Owner::Intermediate, Some(stride)) => Index::constant(stride),
                _ => {
                    let name = format!("{name}.stride{dimension}");
                    Index::axis(nest.add_number(&name, number, values))
                }
            };
        }
        strides
    }

    /// The first value of an axis, and one past the last, as functions of the sizes.
    pub(super) fn ends(&self, stage: usize, axis: AxisId) -> (Index, Index) {
        let fixed = self.program.stages[stage].axis(axis);
        let sized = self.sized.and_then(|sized| sized.ranges.get(stage)?.get(axis.0 as usize));
        let named = |index: &Index| index.rewrite(&mut Named(&self.vars));
        let ends = sized.and_then(|(lo, hi)| Some((named(lo)?, named(hi)?)));
        ends.unwrap_or_else(|| (Index::constant(fixed.lo), Index::constant(fixed.hi)))
    }

    /// The largest number of iterations of an axis, and the number as a function of the sizes if it
    /// depends on them.
    pub(super) fn extent(&self, stage: usize, axis: AxisId) -> (i64, Option<Index>) {
        let fixed = self.program.stages[stage].axis(axis).extent();
        let Some(sized) = self.sized else { return (fixed, None) };
        let (lo, hi) = self.ends(stage, axis);
        let Some(count) = hi.sub(&lo) else { return (fixed, None) };
        if let Some(count) = count.as_constant() {
            return (count, None);
        }
        let values = |var: Var| {
            let size = self.vars.iter().position(|known| *known == var);
            let size = size.and_then(|size| sized.sizes.get(size));
            size.map_or(Interval::of_type(DType::Int64), |size| size.interval())
        };
        let most = count.interval(&values, &|_| Interval::point(0)).hi;
        (i64::try_from(most).unwrap_or(fixed).min(fixed).max(1), Some(count))
    }

    /// Whether a stage writes every element of its tensor, for all sizes.
    pub(super) fn covers(&self, number: usize) -> bool {
        let stage = &self.program.stages[number];
        let shape = &self.program.tensor(stage.output).shape;
        let sized = self.sized.and_then(|sized| sized.shapes.get(stage.output.0 as usize));
        stage.axes_of(AxisKind::Spatial).enumerate().all(|(dimension, (id, _))| {
            let (lo, hi) = self.ends(number, id);
            let extent = match sized.and_then(|shape| shape.get(dimension)) {
                Some(extent) => extent.rewrite(&mut Named(&self.vars)),
                None => shape.get(dimension).copied().map(Index::constant),
            };
            lo.as_constant() == Some(0) && Some(hi) == extent
        })
    }
}
