//! Static analysis of programs (FlexTensor, section 4.1).
//!
//! Counts the loops of each kind and their iterations, the connections of nodes, and the least
//! arithmetic and memory traffic.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::{AxisId, AxisKind, Expr, Index, Interval, Program, Read, Stage, TensorId};

/// The static analysis of a stage.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct StageAnalysis {
    /// The name of the stage's output.
    pub name: String,
    /// The number of spatial loops: #sl.
    pub spatial_loops: usize,
    /// The number of reduce loops: #rl.
    pub reduce_loops: usize,
    /// The trip count of every spatial loop: stc.
    pub spatial_trip_counts: Vec<i64>,
    /// The trip count of every reduce loop: rtc.
    pub reduce_trip_counts: Vec<i64>,
    /// The number of different tensors read: #in.
    pub inputs: usize,
    /// The number of outputs, always one: #out.
    pub outputs: usize,
    /// The number of stages that read the result: #cs.
    pub consumers: usize,
    /// Arithmetic operations: one per operator, function or step of a reduction on values (index
    /// arithmetic, comparisons of indices, conversions and selections are not counted).
    pub flops: u128,
    /// Bytes of the elements read and written, each counted once.
    pub min_bytes: u128,
}

/// The static analysis of a program.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Analysis {
    /// The number of stages: #node.
    pub nodes: usize,
    /// The sum of #sl over the stages.
    pub spatial_loops: usize,
    /// The sum of #rl over the stages.
    pub reduce_loops: usize,
    /// The sum over the stages.
    pub flops: u128,
    /// Bytes of inputs that are read and of outputs, each element counted once: no schedule can
    /// move less between memory and processor.
    pub min_bytes: u128,
    /// `flops / min_bytes`.
    pub arithmetic_intensity: f64,
    /// Per stage, in order.
    pub stages: Vec<StageAnalysis>,
}

impl Program {
    /// The static analysis of the program and its stages.
    #[must_use]
    pub fn analysis(&self) -> Analysis {
        let mut consumers = vec![0; self.tensors.len()];
        let mut footprint = BTreeMap::new();
        let mut stages = Vec::with_capacity(self.stages.len());
        for stage in &self.stages {
            let touched = stage_footprint(self, stage);
            touched.keys().for_each(|id| consumers[id.0 as usize] += 1);
            for (id, elements) in &touched {
                let most: &mut u128 = footprint.entry(*id).or_default();
                *most = (*most).max(*elements);
            }
            stages.push(analyse_stage(self, stage, &touched));
        }
        for (stage, analysis) in self.stages.iter().zip(&mut stages) {
            analysis.consumers = consumers[stage.output.0 as usize];
        }
        let bytes_of =
            |id: TensorId, elements: u128| elements * self.tensor(id).dtype.bytes() as u128;
        let read: u128 = self
            .input_ids()
            .filter_map(|id| footprint.get(&id).map(|elements| bytes_of(id, *elements)))
            .sum();
        let written: u128 =
            self.outputs.iter().map(|id| bytes_of(*id, self.tensor(*id).elements() as u128)).sum();
        let flops = stages.iter().map(|stage| stage.flops).sum();
        let min_bytes = read + written;
        Analysis {
            nodes: stages.len(),
            spatial_loops: stages.iter().map(|stage| stage.spatial_loops).sum(),
            reduce_loops: stages.iter().map(|stage| stage.reduce_loops).sum(),
            flops,
            min_bytes,
            arithmetic_intensity: flops as f64 / (min_bytes.max(1)) as f64,
            stages,
        }
    }
}

fn analyse_stage(
    program: &Program,
    stage: &Stage,
    touched: &BTreeMap<TensorId, u128>,
) -> StageAnalysis {
    let extents = |kind| stage.axes_of(kind).map(|(_, axis)| axis.extent()).collect::<Vec<_>>();
    let (spatial, reduce) = (extents(AxisKind::Spatial), extents(AxisKind::Reduce));
    let points = stage.trip_count(AxisKind::Spatial);
    let iterations = stage.iterations();
    let per_iteration =
        operations(stage, stage.term()) + u128::from(stage.combine.reduction().is_some());
    let read: u128 = touched
        .iter()
        .map(|(id, elements)| elements * program.tensor(*id).dtype.bytes() as u128)
        .sum();
    let output = program.tensor(stage.output);
    StageAnalysis {
        name: output.name.clone(),
        spatial_loops: spatial.len(),
        reduce_loops: reduce.len(),
        spatial_trip_counts: spatial,
        reduce_trip_counts: reduce,
        inputs: touched.len(),
        outputs: 1,
        consumers: 0,
        flops: per_iteration * iterations,
        min_bytes: read + points * output.dtype.bytes() as u128,
    }
}

/// The arithmetic operations of one evaluation; of a selection the more expensive branch counts.
/// The start of a recurrence does not count: most elements do not use it.
fn operations(stage: &Stage, expr: &Expr) -> u128 {
    let of = |expr: &Expr| operations(stage, expr);
    match expr {
        Expr::Const(_) | Expr::Index(..) | Expr::Read(_) | Expr::CompareIndex(..) => 0,
        Expr::Unary(_, a) | Expr::Cast(_, a) => of(a),
        Expr::Arith(_, a, b) => 1 + of(a) + of(b),
        Expr::Compare(_, a, b) | Expr::Logic(_, a, b) => of(a) + of(b),
        Expr::Select(_, a, _) if stage.is_own_read(a) => 0,
        Expr::Select(c, a, b) => of(c) + of(a).max(of(b)),
        Expr::Call(_, args) => 1 + args.iter().map(of).sum::<u128>(),
    }
}

/// The number of elements of each tensor that a stage reads: the size of the bounding box of all
/// reads of the tensor, or the number of iterations if that is less.
fn stage_footprint(program: &Program, stage: &Stage) -> BTreeMap<TensorId, u128> {
    let iterations = stage.iterations();
    let mut boxes: BTreeMap<TensorId, Vec<Interval>> = BTreeMap::new();
    let mut reads: BTreeMap<TensorId, BTreeSet<&Read>> = BTreeMap::new();
    stage.walk_inputs(&mut |read| {
        reads.entry(read.tensor).or_default().insert(read);
        let region = read_box(program, stage, read);
        boxes
            .entry(read.tensor)
            .and_modify(|whole| {
                for (whole, part) in whole.iter_mut().zip(&region) {
                    *whole = Interval { lo: whole.lo.min(part.lo), hi: whole.hi.max(part.hi) };
                }
            })
            .or_insert(region);
    });
    let mut touched: BTreeMap<TensorId, u128> = boxes
        .into_iter()
        .map(|(id, region)| {
            let size: u128 = region.iter().map(|side| (side.hi - side.lo + 1) as u128).product();
            let different = reads.get(&id).map_or(1, BTreeSet::len) as u128;
            (id, size.min(iterations.saturating_mul(different)))
        })
        .collect();
    if let Some(base) = stage.base {
        touched.entry(base).or_insert(program.tensor(stage.output).elements() as u128);
    }
    touched
}

/// The bounding box of one read, cut to the tensor.
fn read_box(program: &Program, stage: &Stage, read: &Read) -> Vec<Interval> {
    let shape = &program.tensor(read.tensor).shape;
    let cut = |(subscript, extent): (&Index, &i64)| {
        let range = program.range_of(stage, subscript);
        let last = i128::from(*extent) - 1;
        Interval { lo: range.lo.clamp(0, last), hi: range.hi.clamp(0, last) }
    };
    read.subscripts.iter().zip(shape).map(cut).collect()
}

impl Program {
    /// The interval of an index expression over the ranges of the axes, ignoring guards. It may be
    /// too wide.
    #[must_use]
    pub fn range_of(&self, stage: &Stage, index: &Index) -> Interval {
        let axis = |id: AxisId| {
            if id.size().is_some() {
                return Interval { lo: 0, hi: 1 << 48 };
            }
            let axis = stage.axis(id);
            Interval { lo: i128::from(axis.lo), hi: i128::from(axis.hi) - 1 }
        };
        let value = |expr: &Expr| Interval::of_type(expr.dtype(&|id| self.tensor(id).dtype));
        index.interval(&axis, &value)
    }
}
