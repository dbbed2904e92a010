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
mod source;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use tensorwright_lang::dtype::DType;
use tensorwright_lang::ops::ReductionOp;
use tensorwright_lang::program::{
    AxisId, AxisKind, Combine, Expr, Index, Location, Program, Read, Rewrite, Scalar, SizedProgram,
    Stage, Tensor, TensorId,
};

use crate::nest::{
    Body, Bound, Buffer, BufferId, Loop, LoopNest, Node, Owner, Role, Size, StageId, Store, Table,
    Var,
};
use source::Source;

/// The canonical loop nest of a program.
///
/// Tensors keep their numbers: buffer `i` of the nest is tensor `i` of the program. Buffers that
/// have no tensor follow.
#[must_use]
pub fn canonical(program: &Program) -> LoopNest {
    of_source(&mut Source::of(program))
}

/// The canonical loop nest of a program for a range of sizes. Loops have their largest numbers of
/// iterations, and stores run where sizes say: see [`RunTimeNumber`](crate::nest::RunTimeNumber).
///
/// `None` if an extent overflows 64 bits.
#[must_use]
pub fn canonical_sized(program: &SizedProgram) -> Option<LoopNest> {
    let mut source = Source::sized(program);
    let nest = of_source(&mut source);
    (!source.overflows).then_some(nest)
}

fn of_source(source: &mut Source<'_>) -> LoopNest {
    let program = source.program;
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
        numbers: Vec::new(),
        size_bounds: Vec::new(),
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
    source.add_numbers(&mut nest);
    for number in 0..program.stages.len() {
        add_stage(&mut nest, source, number);
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
struct Axes<'a> {
    stage: StageId,
    loops: Vec<AxisLoop>,
    values: Vec<Index>,
    /// The variables of the sizes that vary.
    sizes: &'a [Var],
}

/// The loop of an axis.
#[derive(Clone)]
struct AxisLoop {
    var: Var,
    /// The largest number of iterations, and the number if that depends on sizes.
    extent: i64,
    count: Option<Index>,
    role: Role,
}

impl Rewrite for &Axes<'_> {
    fn axis(&mut self, axis: AxisId) -> Option<Index> {
        match axis.size() {
            Some(size) => self.sizes.get(size).copied().map(Index::axis),
            None => self.values.get(axis.0 as usize).cloned(),
        }
    }
}

impl<'a> Axes<'a> {
    fn of(nest: &mut LoopNest, source: &'a Source<'_>, number: usize) -> Self {
        let stage = &source.program.stages[number];
        let mut axes = Axes::new(stage.output, source);
        for (axis, id) in stage.axes.iter().zip((0..).map(AxisId)) {
            let scan = stage.scan.as_ref().filter(|scan| scan.axis == id);
            let role = match axis.kind {
                AxisKind::Spatial if scan.is_some() => Role::Scan,
                AxisKind::Spatial => Role::Spatial,
                AxisKind::Reduce => Role::Reduce,
            };
            let var = nest.add_var(axis.name.clone());
            let (extent, count) = source.extent(number, id);
            axes.loops.push(AxisLoop { var, extent, count, role });
            let (lo, hi) = source.ends(number, id);
            // Loops count up: one that goes backwards starts at the end.
            let value = match scan.is_some_and(|scan| scan.backwards) {
                true => hi.add(&Index::constant(-1)).and_then(|last| last.sub(&Index::axis(var))),
                false => Index::axis(var).add(&lo),
            };
            axes.values.push(value.unwrap_or_else(|| Index::axis(var)));
        }
        axes
    }

    /// No loops yet.
    fn new(buffer: BufferId, source: &'a Source<'_>) -> Self {
        let stage = StageId(buffer);
        Axes { stage, loops: Vec::new(), values: Vec::new(), sizes: &source.vars }
    }

    /// Loops over all elements of a buffer.
    fn over(
        nest: &mut LoopNest,
        source: &'a Source<'_>,
        buffer: BufferId,
        names: &[String],
    ) -> Self {
        let mut axes = Axes::new(buffer, source);
        for (dimension, name) in names.iter().enumerate() {
            let var = nest.add_var(name.clone());
            let buffer = nest.buffer(buffer);
            let extent = buffer.shape.get(dimension).copied().unwrap_or(1);
            let count = buffer.run_time.as_ref().and_then(|shape| shape.extents.get(dimension));
            let count = count.filter(|count| count.as_constant().is_none()).cloned();
            axes.loops.push(AxisLoop { var, extent, count, role: Role::Spatial });
            axes.values.push(Index::axis(var));
        }
        axes
    }

    fn spatial(&self) -> Vec<Index> {
        let spatial = self.loops.iter().zip(&self.values);
        spatial.filter(|(l, _)| l.role != Role::Reduce).map(|(_, v)| v.clone()).collect()
    }

    fn around(&self, mut store: Store) -> Node {
        for AxisLoop { var, count, role, .. } in &self.loops {
            let last = count.as_ref().and_then(|count| count.add(&Index::constant(-1)));
            let index = last.and_then(|last| last.sub(&Index::axis(*var)));
            let term = *role == Role::Reduce;
            store.domain.extend(index.map(|index| Bound { index, padding: false, term }));
        }
        self.loops.iter().rev().fold(Node::Store(store), |node, l| {
            let mut made = Loop::new(l.var, l.extent, l.role, vec![node]).of(self.stage);
            made.is_sized = l.count.is_some();
            Node::Loop(made)
        })
    }
}

fn add_stage(nest: &mut LoopNest, source: &Source<'_>, number: usize) {
    let stage = &source.program.stages[number];
    if !stage.scatter.is_empty() {
        scatter::add_stage(nest, source, number);
        return;
    }
    let tensor = source.program.tensor(stage.output);
    if let Some(base) = stage.base.filter(|_| !source.covers(number)) {
        copy_base(nest, source, stage.output, base);
    }
    let axes = Axes::of(nest, source, number);
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
                add_narrow(nest, source, number, &axes, store);
            }
        }
    }
}

fn widen(value: Expr, from: DType, to: DType) -> Expr {
    if from == to { value } else { Expr::Cast(to, Box::new(value)) }
}

/// A reduction in a type that is too narrow to accumulate in: a stage `out.sum` in the wider type,
/// then a stage that converts.
fn add_narrow(
    nest: &mut LoopNest,
    source: &Source<'_>,
    number: usize,
    axes: &Axes<'_>,
    mut store: Store,
) {
    let stage = &source.program.stages[number];
    let wide = source.program.tensor(stage.output).dtype.computed_in();
    let sum = wide_sum(nest, stage, wide);
    store.buffer = sum;
    let axes = Axes { loops: axes.loops.clone(), ..Axes::new(sum, source) };
    nest.body.push(axes.around(store));
    convert(nest, source, number, sum);
}

/// A buffer like the result of a stage in a wider type.
fn wide_sum(nest: &mut LoopNest, stage: &Stage, wide: DType) -> BufferId {
    let target = nest.buffer(stage.output).clone();
    let name = format!("{}.sum", target.name);
    let sum = Buffer::new(name, wide, target.shape, Owner::Intermediate);
    let sum = nest.add_buffer(sum);
    // The strides of a result are the caller's.
    nest.buffers[sum.0 as usize].run_time =
        target.run_time.and_then(|shape| Source::run_time(nest, sum, shape.extents));
    sum
}

/// The stage that converts sums to the type of the result.
fn convert(nest: &mut LoopNest, source: &Source<'_>, number: usize, sum: BufferId) {
    let stage = &source.program.stages[number];
    let narrow = nest.dtype(stage.output);
    let convert = Axes::of(nest, source, number);
    let spatial = Axes {
        loops: convert.loops.iter().filter(|l| l.role == Role::Spatial).cloned().collect(),
        values: convert.spatial(),
        ..Axes::new(stage.output, source)
    };
    let value = Expr::Cast(narrow, Box::new(element(sum, spatial.values.clone())));
    let store = Store::new(stage.output, spatial.values.clone(), value);
    nest.body.push(spatial.around(store));
}

/// Copies the earlier version of a tensor if a stage writes only a part of it.
fn copy_base(nest: &mut LoopNest, source: &Source<'_>, output: BufferId, base: BufferId) {
    let rank = nest.buffer(output).shape.len();
    let names: Vec<String> = (0..rank).map(|d| format!("d{d}")).collect();
    let axes = Axes::over(nest, source, output, &names);
    let store = Store::new(output, axes.values.clone(), element(base, axes.values.clone()));
    nest.body.push(axes.around(store));
}
