//! Builds the graph of a program.

use std::collections::{BTreeMap, BTreeSet};

use tensorwright_lang::dtype::DType;
use tensorwright_lang::program::{self, Expr, Index, Program, Read, TensorId};

use super::{Dag, Edge, Footprint, Input, Source, Stage};

impl Dag {
    /// The graph of a program.
    #[must_use]
    pub fn new(program: &Program) -> Self {
        let input = |id: TensorId| {
            let tensor = program.tensor(id);
            let element_bytes = tensor.dtype.bytes() as i64;
            Input { name: tensor.name.clone(), bytes: tensor.bytes(), element_bytes }
        };
        let inputs = program.input_ids().map(input).collect();
        let gathered = gathered(program);
        let outputs: BTreeSet<TensorId> = program.outputs.iter().copied().collect();
        let mut stages: Vec<Stage> = Vec::with_capacity(program.stages.len());
        let mut consumers = vec![Vec::new(); program.stages.len()];
        for (number, of) in program.stages.iter().enumerate() {
            let stage = stage(program, of, &gathered, &outputs);
            for edge in &stage.edges {
                if let Source::Stage(producer) = edge.source {
                    consumers[producer].push(number);
                }
            }
            stages.push(stage);
        }
        // Epilogues of a product are computed in the product's tiles.
        for number in 0..stages.len() {
            let product = stages[number].edges.iter().any(|edge| match edge.source {
                Source::Stage(of) => {
                    edge.is_in_place
                        && stages[of].fixed == Some(PRODUCT)
                        && consumers[of].len() == 1
                        && stages[number].reduce.is_empty()
                }
                Source::Input(_) => false,
            });
            if product && stages[number].fixed.is_none() {
                stages[number].fixed = Some("it is the epilogue of a product");
                stages[number].is_movable = false;
                stages[number].is_inlinable = false;
            }
        }
        Self { stages, inputs, consumers }
    }
}

const PRODUCT: &str = "it is a product";

/// The tensors read at data-dependent positions that need bounds checks.
fn gathered(program: &Program) -> BTreeSet<TensorId> {
    let mut found = BTreeSet::new();
    for stage in &program.stages {
        stage.walk_inputs(&mut |read| {
            if !read.checked.is_empty() {
                found.extend([read.tensor, stage.output]);
            }
        });
        if stage.scatter.iter().any(|scatter| scatter.checked) {
            found.insert(stage.output);
        }
    }
    found
}

fn stage(
    program: &Program,
    stage: &program::Stage,
    gathered: &BTreeSet<TensorId>,
    outputs: &BTreeSet<TensorId>,
) -> Stage {
    let tensor = program.tensor(stage.output);
    let extents = |kind| stage.axes_of(kind).map(|(_, axis)| axis.extent()).collect::<Vec<i64>>();
    let spatial = extents(program::AxisKind::Spatial);
    let reduce = extents(program::AxisKind::Reduce);
    let edges = edges(program, stage);
    let covers = stage
        .axes_of(program::AxisKind::Spatial)
        .zip(&tensor.shape)
        .all(|((_, axis), extent)| axis.lo == 0 && axis.hi == *extent);
    let is_reduction = stage.combine.reduction().is_some();
    let fixed = match () {
        () if stage.scan.is_some() => Some("it is a recurrence"),
        () if !stage.scatter.is_empty() => Some("it is a scatter"),
        () if stage.base.is_some() && !covers => {
            Some("it preserves elements of an earlier version")
        }
        () if is_reduction && tensor.dtype.computed_in() != tensor.dtype => {
            Some("its sums are wider than its elements")
        }
        () if spatial.is_empty() => Some("it has no spatial loop"),
        () if is_reduction && is_product(&edges, &spatial) => Some(PRODUCT),
        () => None,
    };
    let is_output = outputs.contains(&stage.output);
    let is_movable = fixed.is_none() && !is_output && !gathered.contains(&stage.output);
    let together = if is_reduction { together(&edges, &spatial) } else { Vec::new() };
    let mut parts = 0;
    stage.body.walk(&mut |_| parts += 1);
    Stage {
        name: tensor.name.clone(),
        tensor: stage.output.0,
        spatial,
        scattered: scattered(stage, &reduce),
        together,
        reduce,
        element_bytes: tensor.dtype.bytes() as i64,
        operations: operations(stage.term()) + f64::from(u8::from(is_reduction)),
        parts,
        edges,
        is_output,
        fixed,
        is_movable,
        is_inlinable: is_movable && !is_reduction,
    }
}

/// The number of terms of a scatter: each goes to one position along the dimensions with computed
/// positions.
fn scattered(stage: &program::Stage, reduce: &[i64]) -> Option<f64> {
    let is_whole = |axis: program::AxisId| !stage.scatter.iter().any(|of| of.axis == axis);
    let spatial = stage.axes_of(program::AxisKind::Spatial).filter(|(axis, _)| is_whole(*axis));
    let extents = spatial.map(|(_, axis)| axis.extent()).chain(reduce.iter().copied());
    (!stage.scatter.is_empty()).then(|| extents.map(|extent| extent as f64).product())
}

/// What a stage reads, one edge per tensor.
fn edges(program: &Program, stage: &program::Stage) -> Vec<Edge> {
    let own: Vec<Index> =
        (0..stage.spatial() as u32).map(|axis| Index::axis(program::AxisId(axis))).collect();
    let mut reads: BTreeMap<TensorId, Vec<&[Index]>> = BTreeMap::new();
    let mut order = Vec::new();
    let mut add = |tensor: TensorId, subscripts| {
        let list = reads.entry(tensor).or_default();
        if list.is_empty() {
            order.push(tensor);
        }
        if !list.contains(&subscripts) {
            list.push(subscripts);
        }
    };
    let mut found: Vec<&Read> = Vec::new();
    stage.walk_inputs(&mut |read| found.push(read));
    found.iter().for_each(|read| add(read.tensor, &read.subscripts));
    if let Some(base) = stage.base {
        add(base, &own);
    }
    let source = |tensor: TensorId| match (tensor.0 as usize).checked_sub(program.inputs) {
        Some(stage) => Source::Stage(stage),
        None => Source::Input(tensor.0 as usize),
    };
    let edge = |tensor: TensorId| {
        let list = reads.get(&tensor).map_or(&[][..], Vec::as_slice);
        let footprint = Footprint::of(stage, &program.tensor(tensor).shape, list);
        let in_place =
            footprint.dimensions.iter().enumerate().all(|(at, reach)| reach.is_in_place(at));
        let is_in_place = list.len() == 1 && in_place && footprint.dimensions.len() == own.len();
        Edge { source: source(tensor), footprint, reads: list.len(), is_in_place }
    };
    order.into_iter().map(edge).collect()
}

/// The maximum number of results that share an operand in a filter: those of a product do not fit
/// registers.
const FEW: i64 = 8;

/// Whether a reduction is a product: along some spatial loop one operand moves and the other does
/// not, and vice versa, for many results each. A filter with few results per pixel is not a
/// product: it is scheduled like a stencil.
fn is_product(edges: &[Edge], spatial: &[i64]) -> bool {
    let apart = |a: &Edge, b: &Edge| {
        let shared = (0..spatial.len()).filter(|d| stands(a, *d) && !stands(b, *d));
        shared.map(|d| spatial[d]).fold(1, i64::saturating_mul) > FEW
    };
    edges.iter().any(|a| edges.iter().any(|b| apart(a, b) && apart(b, a)))
}

/// Whether all elements along a dimension of a stage read the same elements.
fn stands(edge: &Edge, dimension: usize) -> bool {
    edge.footprint.dimensions.iter().all(|reach| reach.step(dimension) == Some(0))
}

/// The short spatial loops along which one operand is invariant and another moves.
fn together(edges: &[Edge], spatial: &[i64]) -> Vec<usize> {
    let is_shared = |d: &usize| {
        (2..=FEW).contains(&spatial[*d])
            && edges.iter().any(|edge| stands(edge, *d))
            && edges.iter().any(|edge| !stands(edge, *d))
    };
    (0..spatial.len().saturating_sub(1)).filter(is_shared).collect()
}

/// The approximate number of instructions of an expression.
fn operations(expr: &Expr) -> f64 {
    match expr {
        Expr::Const(_) | Expr::Read(_) => 0.0,
        Expr::Index(..) | Expr::CompareIndex(..) => 1.0,
        Expr::Unary(_, a) => 1.0 + operations(a),
        Expr::Cast(to, a) => f64::from(u8::from(*to != DType::Float)) + operations(a),
        Expr::Arith(op, a, b) => {
            use tensorwright_lang::ops::ArithOp;
            // Division by a constant becomes a multiplication only if that is exact; it costs about
            // four.
            let own = if matches!(op, ArithOp::Div | ArithOp::Rem) { 4.0 } else { 1.0 };
            own + operations(a) + operations(b)
        }
        Expr::Compare(_, a, b) | Expr::Logic(_, a, b) => 1.0 + operations(a) + operations(b),
        Expr::Select(c, a, b) => 1.0 + operations(c) + operations(a) + operations(b),
        Expr::Call(builtin, args) => {
            let own =
                if matches!(builtin.name(), "min" | "max" | "abs" | "sqrt") { 1.0 } else { 20.0 };
            own + args.iter().map(operations).sum::<f64>()
        }
    }
}
