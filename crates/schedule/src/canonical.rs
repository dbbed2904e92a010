//! The canonical loop nest of a program: one loop chain per stage.
//!
//! ```text
//! C(m,n) +=! A(m,k) * B(k,n)      for m in 0..M {
//!                                   for n in 0..N {
//!                                     for k in 0..K {
//!                                       C(m, n) += A(m, k) * B(k, n);  // from 0
//! ```
//!
//! Loops count up, also those of recurrences that run backwards:
//!
//! ```text
//! z(t) = z(t+1) + x(t)                for t in 0..T {
//!   scan t from 0                       z(T - 1 - t) = (T - t < T ? z(T - t) : 0) + x(T - 1 - t);
//! ```
//!
//! A scatter loops over its terms. A stage `count.start` before it initializes all elements,
//! because the element that a term goes to is only known at run time.
//!
//! ```text
//! count(b) +=! 1                      for b in 0..B { count(b) = 0; }
//!   scatter b = bin(i)                for i in 0..N { count(bin(i)) += 1; }
//! ```
//!
//! A *stage* of a nest is named after the buffer that it makes. Versions of one tensor are told
//! apart by a number, `out.0`, `out.1`; the last one has the plain name.

mod scatter;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use tensorwright_lang::dtype::DType;
use tensorwright_lang::ops::ReductionOp;
use tensorwright_lang::program::{
    AxisId, AxisKind, Combine, Expr, Index, Location, Program, Read, Rewrite, Scalar, Stage,
    Tensor, TensorId,
};

use crate::nest::{
    Body, Buffer, BufferId, Loop, LoopNest, Node, Owner, Role, Size, StageId, Store, Table, Var,
};

/// The canonical loop nest of a program.
///
/// Tensors keep their numbers: buffer `i` of the nest is tensor `i` of the program. Buffers that
/// have no tensor follow.
#[must_use]
pub fn canonical(program: &Program) -> LoopNest {
    let names = version_names(program);
    let outputs: BTreeSet<TensorId> = program.outputs.iter().copied().collect();
    let owner = |id: TensorId| {
        if (id.0 as usize) < program.inputs {
            Owner::Input
        } else if outputs.contains(&id) {
            Owner::Output
        } else {
            Owner::Intermediate
        }
    };
    let ids = (0..program.tensors.len() as u32).map(TensorId);
    let buffers = program.tensors.iter().zip(ids).zip(names).map(|((tensor, id), name)| {
        Buffer::new(name, tensor.dtype, tensor.shape.clone(), owner(id))
    });
    let mut nest = LoopNest {
        name: program.name.clone(),
        buffers: buffers.collect(),
        vars: Table::default(),
        parameters: program.input_ids().collect(),
        constants: program.input_ids().filter(|id| program.tensor(*id).is_const).collect(),
        fixed: program.fixed.clone(),
        prepare: Body::default(),
        body: Body::default(),
        error_growth: 1.0,
        rounding_growth: 1.0,
        own: Size::default(),
        launches: None,
        hidden: Arc::default(),
    };
    // A tensor that is returned twice is passed once.
    let mut passed: BTreeSet<TensorId> = nest.parameters.iter().copied().collect();
    for output in &program.outputs {
        if passed.insert(*output) {
            nest.parameters.push(*output);
        }
    }
    for stage in &program.stages {
        add_stage(&mut nest, program, stage);
    }
    nest.own = Size::of(&nest);
    nest
}

/// A name per tensor: the plain one for the last version, a numbered one for earlier versions.
fn version_names(program: &Program) -> Vec<String> {
    let mut last: BTreeMap<&str, usize> = BTreeMap::new();
    for (number, tensor) in program.tensors.iter().enumerate() {
        last.insert(&tensor.name, number);
    }
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    let mut name = |(number, tensor): (usize, &Tensor)| {
        let version = seen.entry(tensor.name.clone()).or_insert(0);
        *version += 1;
        let is_last = last.get(tensor.name.as_str()) == Some(&number);
        if is_last { tensor.name.clone() } else { format!("{}.{}", tensor.name, *version - 1) }
    };
    program.tensors.iter().enumerate().map(&mut name).collect()
}

/// The neutral element of a reduction.
#[must_use]
pub fn neutral(op: ReductionOp, dtype: DType) -> Expr {
    Expr::Const(Scalar::neutral(op, dtype))
}

/// A read of an element.
pub(crate) fn element(buffer: BufferId, subscripts: Vec<Index>) -> Expr {
    let place = Location::default();
    Expr::Read(Read { tensor: buffer, subscripts, checked: Vec::new(), place })
}

/// The loops of one stage: variables, extents, and the program's axes as functions of them.
struct Axes {
    stage: StageId,
    loops: Vec<(Var, i64, Role)>,
    values: Vec<Index>,
}

impl Rewrite for &Axes {
    fn axis(&mut self, axis: AxisId) -> Option<Index> {
        self.values.get(axis.0 as usize).cloned()
    }
}

impl Axes {
    fn of(nest: &mut LoopNest, stage: &Stage) -> Self {
        let mut axes = Axes { stage: StageId(stage.output), loops: Vec::new(), values: Vec::new() };
        for (axis, id) in stage.axes.iter().zip((0..).map(AxisId)) {
            let scan = stage.scan.as_ref().filter(|scan| scan.axis == id);
            let role = match axis.kind {
                AxisKind::Spatial if scan.is_some() => Role::Scan,
                AxisKind::Spatial => Role::Spatial,
                AxisKind::Reduce => Role::Reduce,
            };
            let var = nest.add_var(axis.name.clone());
            axes.loops.push((var, axis.extent(), role));
            // Loops count up: one that goes backwards starts at the end.
            let value = match scan.is_some_and(|scan| scan.backwards) {
                true => Index::constant(axis.hi - 1).sub(&Index::axis(var)),
                false => Index::axis(var).add(&Index::constant(axis.lo)),
            };
            axes.values.push(value.unwrap_or_else(|| Index::axis(var)));
        }
        axes
    }

    fn spatial(&self) -> Vec<Index> {
        let spatial = self.loops.iter().zip(&self.values);
        spatial.filter(|((.., role), _)| *role != Role::Reduce).map(|(_, v)| v.clone()).collect()
    }

    fn around(&self, store: Store) -> Node {
        self.loops.iter().rev().fold(Node::Store(store), |node, (var, extent, role)| {
            Node::Loop(Loop::new(*var, *extent, *role, vec![node]).of(self.stage))
        })
    }
}

fn add_stage(nest: &mut LoopNest, program: &Program, stage: &Stage) {
    if !stage.scatter.is_empty() {
        scatter::add_stage(nest, program, stage);
        return;
    }
    let tensor = program.tensor(stage.output);
    if let Some(base) = stage.base.filter(|_| !covers(program, stage)) {
        copy_base(nest, stage.output, base);
    }
    let axes = Axes::of(nest, stage);
    // Binding refuses programs whose index arithmetic could overflow.
    let value = stage.body.rewrite(&mut &axes).unwrap_or_else(|| stage.body.clone());
    let mut store = Store::new(stage.output, axes.spatial(), value);
    let base = |dtype: DType| {
        stage.base.map(|base| widen(element(base, axes.spatial()), tensor.dtype, dtype))
    };
    match stage.combine {
        Combine::Assign => nest.body.push(axes.around(store)),
        Combine::Reduce(op) | Combine::Accumulate(op) => {
            let dtype = tensor.dtype.computed_in();
            let start = match stage.combine {
                Combine::Accumulate(_) => base(dtype),
                _ => None,
            };
            store.combine = Some(op);
            store.init = Some(start.unwrap_or_else(|| neutral(op, dtype)));
            if dtype == tensor.dtype {
                nest.body.push(axes.around(store));
            } else {
                store.value = widen(store.value, tensor.dtype, dtype);
                add_narrow(nest, stage, &axes, store, dtype);
            }
        }
    }
}

fn widen(value: Expr, from: DType, to: DType) -> Expr {
    if from == to { value } else { Expr::Cast(to, Box::new(value)) }
}

/// A reduction in a type that is too narrow to accumulate in: a stage `out.sum` in the wider type,
/// then a stage that converts.
fn add_narrow(nest: &mut LoopNest, stage: &Stage, axes: &Axes, mut store: Store, wide: DType) {
    let sum = wide_sum(nest, stage, wide);
    store.buffer = sum;
    let axes = Axes { stage: StageId(sum), loops: axes.loops.clone(), values: Vec::new() };
    nest.body.push(axes.around(store));
    convert(nest, stage, sum);
}

/// A buffer like the result of a stage in a wider type.
fn wide_sum(nest: &mut LoopNest, stage: &Stage, wide: DType) -> BufferId {
    let target = nest.buffer(stage.output).clone();
    let name = format!("{}.sum", target.name);
    nest.add_buffer(Buffer { name, dtype: wide, owner: Owner::Intermediate, ..target })
}

/// The stage that converts sums to the type of the result.
fn convert(nest: &mut LoopNest, stage: &Stage, sum: BufferId) {
    let narrow = nest.dtype(stage.output);
    let convert = Axes::of(nest, stage);
    let spatial = Axes {
        stage: StageId(stage.output),
        loops: convert.loops.iter().copied().filter(|(.., r)| *r == Role::Spatial).collect(),
        values: convert.spatial(),
    };
    let value = Expr::Cast(narrow, Box::new(element(sum, spatial.values.clone())));
    let store = Store::new(stage.output, spatial.values.clone(), value);
    nest.body.push(spatial.around(store));
}

/// Whether a stage writes every element of its tensor.
fn covers(program: &Program, stage: &Stage) -> bool {
    let shape = &program.tensor(stage.output).shape;
    stage
        .axes_of(AxisKind::Spatial)
        .zip(shape)
        .all(|((_, axis), extent)| axis.lo == 0 && axis.hi == *extent)
}

/// Copies the earlier version of a tensor if a stage writes only a part of it.
fn copy_base(nest: &mut LoopNest, output: BufferId, base: BufferId) {
    let shape = nest.buffer(output).shape.clone();
    let vars: Vec<Var> = (0..shape.len()).map(|d| nest.add_var(format!("d{d}"))).collect();
    let subscripts: Vec<Index> = vars.iter().map(|var| Index::axis(*var)).collect();
    let store = Store::new(output, subscripts.clone(), element(base, subscripts));
    let loops = vars.iter().zip(&shape).rev();
    let node = loops.fold(Node::Store(store), |node, (var, extent)| {
        Node::Loop(Loop::new(*var, *extent, Role::Spatial, vec![node]).of(StageId(output)))
    });
    nest.body.push(node);
}
