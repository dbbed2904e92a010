//! Programs for unknown shapes: compiled for the largest, masked for smaller ones.
//!
//! ```text
//! m(i) max=! x(i,j)              J = 64
//! m(i) max=! j < end ? x(i,j) : -inf     computes every J up to 64, given as `end`
//! ```
//!
//! Consider two programs of one definition with equal bodies and equal range starts; some ranges
//! end later in the larger one. At each common point both read the same elements. So each stage of
//! the larger one has the smaller one's values at the smaller one's points, if its reductions mask
//! the extra terms. Its other values are computed from arbitrary input elements and are
//! meaningless; they must lie outside the tensors of the smaller one, because a statement that ends
//! before its tensor would change earlier values.

use super::{
    AxisId, AxisKind, Combine, Expr, Index, Program, Read, Rewrite, Scalar, Stage, Tensor, TensorId,
};
use crate::dtype::DType;
use crate::ops::CompareOp;

/// A reduced range that ends earlier in some calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ReductionGuard {
    /// The number of the stage.
    pub stage: usize,
    /// The reduce axis.
    pub axis: AxisId,
}

impl Program {
    /// The reductions of this program that end earlier in `smaller`, if it can otherwise compute
    /// what `smaller` computes.
    ///
    /// # Errors
    /// The reason, as the end of a sentence.
    pub fn guards_for(&self, smaller: &Program) -> Result<Vec<ReductionGuard>, &'static str> {
        let same = (self.tensors.len(), self.stages.len(), self.inputs, &self.outputs)
            == (smaller.tensors.len(), smaller.stages.len(), smaller.inputs, &smaller.outputs)
            && self.tensors.iter().zip(&smaller.tensors).all(|(a, b)| fits(a, b));
        if !same {
            return Err("the statements depend on sizes");
        }
        let mut guards = Vec::new();
        for (number, (stage, other)) in self.stages.iter().zip(&smaller.stages).enumerate() {
            if !is_same(stage, other) {
                return Err("the result depends on its value");
            }
            if stage.has_data_subscripts() {
                return Err("subscripts depend on data");
            }
            let extents = &smaller.tensor(other.output).shape;
            for (id, (axis, other)) in (0..).map(AxisId).zip(stage.axes.iter().zip(&other.axes)) {
                if (axis.kind, axis.lo) != (other.kind, other.lo) || axis.hi < other.hi {
                    return Err("a size determines more than the end of a range");
                }
                let ends_earlier = other.hi < axis.hi;
                let is_backwards = |scan: &super::Scan| scan.backwards && scan.axis == id;
                if ends_earlier && stage.scan.as_ref().is_some_and(is_backwards) {
                    return Err("a recurrence runs backwards");
                }
                let is_whole = |extent: &i64| other.hi == *extent;
                if ends_earlier
                    && axis.kind == AxisKind::Spatial
                    && !extents.get(id.0 as usize).is_some_and(is_whole)
                {
                    return Err("a statement computes only part of a tensor");
                }
                if ends_earlier && axis.kind == AxisKind::Reduce {
                    // The end is an `int32`.
                    if axis.hi > i64::from(i32::MAX) {
                        return Err("a reduction has more than 2147483647 terms");
                    }
                    guards.push(ReductionGuard { stage: number, axis: id });
                }
            }
        }
        Ok(guards)
    }

    /// The program with an `int32` input per guard, after all others: the end of the reduced range.
    /// `None` if index arithmetic overflows.
    #[must_use]
    pub fn guarded(&self, guards: &[ReductionGuard]) -> Option<Program> {
        let mut made = self.clone();
        let moved = Moved { from: self.inputs as u32, by: guards.len() as u32 };
        let is_free =
            |prefix: &String| !self.tensors.iter().any(|t| t.name.starts_with(prefix.as_str()));
        let prefix = (0..).map(|n| "end".to_owned() + &"_".repeat(n)).find(is_free)?;
        let ends = guards.iter().enumerate().map(|(number, _)| Tensor {
            name: format!("{prefix}{number}"),
            dtype: DType::Int32,
            shape: Vec::new(),
            is_const: false,
            span: Default::default(),
        });
        made.tensors.splice(self.inputs..self.inputs, ends);
        made.inputs += guards.len();
        made.outputs.iter_mut().for_each(|output| *output = moved.id(*output));
        for stage in &mut made.stages {
            stage.output = moved.id(stage.output);
            stage.base = stage.base.map(|base| moved.id(base));
            stage.body = stage.body.rewrite(&mut { moved })?;
            if let Some(scan) = &mut stage.scan {
                scan.start = scan.start.rewrite(&mut { moved })?;
            }
            for scatter in &mut stage.scatter {
                scatter.at = scatter.at.rewrite(&mut { moved })?;
            }
        }
        for (number, guard) in guards.iter().enumerate() {
            let stage = made.stages.get_mut(guard.stage)?;
            let (Combine::Reduce(op) | Combine::Accumulate(op)) = stage.combine else {
                return None;
            };
            let dtype = made.tensors.get(stage.output.0 as usize)?.dtype;
            let end = Read {
                tensor: TensorId(moved.from + number as u32),
                subscripts: Vec::new(),
                checked: Vec::new(),
                place: Default::default(),
            };
            let is_there = Expr::Compare(
                CompareOp::Lt,
                Box::new(Expr::Index(Index::axis(guard.axis), DType::Int32)),
                Box::new(Expr::Read(end)),
            );
            let body =
                std::mem::replace(&mut stage.body, Expr::Const(Scalar::integer(DType::Bool, 0)));
            let computed = body.dtype(&|id| made.tensors[id.0 as usize].dtype);
            debug_assert_eq!(computed.computed_in(), dtype.computed_in());
            let nothing = Expr::Const(Scalar::neutral(op, computed));
            stage.body = Expr::Select(Box::new(is_there), Box::new(body), Box::new(nothing));
        }
        Some(made)
    }
}

/// Whether a tensor is at least as large as another one.
fn fits(larger: &Tensor, smaller: &Tensor) -> bool {
    (larger.dtype, larger.shape.len(), larger.is_const)
        == (smaller.dtype, smaller.shape.len(), smaller.is_const)
        && larger.shape.iter().zip(&smaller.shape).all(|(a, b)| a >= b)
}

/// Whether two stages compute the same at the same points.
fn is_same(a: &Stage, b: &Stage) -> bool {
    let starts = |stage: &Stage| {
        stage.scan.as_ref().map(|scan| (scan.axis, scan.backwards, scan.start.clone()))
    };
    (a.output, a.base, a.combine, &a.body) == (b.output, b.base, b.combine, &b.body)
        && a.axes.len() == b.axes.len()
        && a.scatter.len() == b.scatter.len()
        && starts(a) == starts(b)
}

/// Renumbers tensors from one on.
#[derive(Clone, Copy)]
struct Moved {
    from: u32,
    by: u32,
}

impl Moved {
    fn id(self, id: TensorId) -> TensorId {
        if id.0 < self.from { id } else { TensorId(id.0 + self.by) }
    }
}

impl Rewrite for Moved {
    fn read(&mut self, read: Read) -> Option<Expr> {
        Some(Expr::Read(Read { tensor: self.id(read.tensor), ..read }))
    }
}

#[cfg(test)]
mod tests {
    use crate::Module;

    const SOFTMAX: &str = "def softmax(float(N,D) x) -> (y) {
        m(n) max=! x(n,d)
        s(n) +=! exp(x(n,d) - m(n))
        y(n,d) = exp(x(n,d) - m(n)) / s(n)
    }";

    fn refusal(text: &str, large: i64, small: i64) -> Result<usize, &'static str> {
        let module = Module::parse("t.tc", text).unwrap();
        let name = module.defs().next().unwrap().name().to_owned();
        let bind = |n: i64| module.bind(&name, [("N", n)]).unwrap();
        bind(large).guards_for(&bind(small)).map(|guards| guards.len())
    }

    #[test]
    fn reductions_leave_out_what_is_not_there() {
        let module = Module::parse("t.tc", SOFTMAX).unwrap();
        let bind = |n: i64, d: i64| module.bind("softmax", [("N", n), ("D", d)]).unwrap();
        let (large, small) = (bind(4, 8), bind(3, 5));
        let guards = large.guards_for(&small).unwrap();
        assert_eq!(guards.len(), 2);
        insta::assert_snapshot!(large.guarded(&guards).unwrap(), @"
        def softmax(float(4, 8) x, int32 end0, int32 end1) -> (y) {
          m(n) max=! int32(d) < end0 ? x(n, d) : -INFINITY where n in 0:4, d in 0:8
          s(n) +=! int32(d) < end1 ? exp(x(n, d) - m(n)) : 0.0 where n in 0:4, d in 0:8
          y(n, d) = exp(x(n, d) - m(n)) / s(n) where n in 0:4, d in 0:8
        }
        ");
        assert!(large.guards_for(&large).unwrap().is_empty());
        assert!(small.guards_for(&large).is_err());
    }

    #[test]
    fn what_depends_on_a_size_in_another_way_is_refused() {
        assert_eq!(refusal("def f(float(N) x) -> (y) { y(i) +=! x(i) * x(j) }", 8, 5), Ok(1));
        assert_eq!(refusal("def f(float(N) x) -> (y) { y(i) = x(i) + x(i+1) }", 8, 5), Ok(0));
        let part = Err("a statement computes only part of a tensor");
        let update = "def f(float(N) x) -> (y) { y(i) = x(i)  y(i) += x(i) where i in 0:N-2 }";
        assert_eq!(refusal(update, 8, 5), part);
        let tail =
            "def f(float(N) x) -> (y) { y(i) = 7 where i in 0:N+3  y(i) = x(i) where i in 0:N }";
        assert_eq!(refusal(tail, 8, 5), part);
        let head = "def f(float(N) x) -> (y) { y(i) = x(i)  y(i) = 0 where i in 0:2 }";
        assert_eq!(refusal(head, 8, 5), Ok(0));
        let used = Err("the result depends on its value");
        assert_eq!(refusal("def f(float(N) x) -> (y) { y(i) = x(i) / N }", 8, 5), used);
        assert_eq!(
            refusal("def f(float(N) x) -> (y) { y(i) = x(N-1-i) where i in 0:N }", 8, 5),
            used
        );
        let data = "def f(float(E) t, int32(N) x) -> (y) { y(i) = t(x(i)) }";
        let module = Module::parse("t.tc", data).unwrap();
        let bind = |n: i64| module.bind("f", [("N", n), ("E", 4)]).unwrap();
        assert_eq!(bind(8).guards_for(&bind(5)), Err("subscripts depend on data"));
    }
}
