//! Specializes programs for calls in which some ranges are empty.
//!
//! ```text
//! g(v,d) +=! dy(n,d) scatter v = token(n)      N = 0: no terms, so the neutral element
//! g(v,d) +=! 0
//!
//! y(i) = x(i) where i in 0:N                   N = 0: no elements, so the previous values
//! y(i) = y(i)
//! ```

use super::{
    Axis, AxisId, AxisKind, Combine, Expr, Index, Interval, Program, Read, Scalar, Stage, TensorId,
};
use crate::dtype::DType;
use crate::ops::{CompareOp, LogicOp, ReductionOp, UnaryOp};

/// What an empty range removes from a stage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EmptyRange {
    /// A reduced range is empty: each element is the initial value of the reduction.
    Terms,
    /// A spatial range is empty: there is nothing to compute.
    Elements,
}

impl Program {
    /// The program with empty ranges in some stages, by number: those read only the previous
    /// values.
    #[must_use]
    pub fn without_points(&self, stages: &[(usize, EmptyRange)]) -> Program {
        let mut made = self.clone();
        for (number, empty) in stages {
            let Some(stage) = made.stages.get_mut(*number) else { continue };
            let output = self.tensor(stage.output);
            match empty {
                EmptyRange::Elements => *stage = unchanged(stage, output.dtype, &output.shape),
                EmptyRange::Terms if stage.scan.is_some() => {}
                EmptyRange::Terms => {
                    let op = stage.combine.reduction().unwrap_or(ReductionOp::Sum);
                    let dtype = stage.body.dtype(&|id| self.tensor(id).dtype);
                    stage.body = Expr::Const(Scalar::neutral(op, dtype));
                    stage.scatter.clear();
                }
            }
        }
        made
    }
}

/// A stage that changes nothing: a copy of the previous values, or zeros.
fn unchanged(stage: &Stage, dtype: DType, shape: &[i64]) -> Stage {
    let axes = stage.axes.iter().zip(shape);
    let axes = axes.map(|(axis, extent)| Axis {
        kind: AxisKind::Spatial,
        lo: 0,
        hi: *extent,
        ..axis.clone()
    });
    let body = match stage.base {
        Some(base) => Expr::Read(Read {
            tensor: base,
            subscripts: (0..shape.len() as u32).map(|axis| Index::axis(AxisId(axis))).collect(),
            checked: Vec::new(),
            place: Default::default(),
        }),
        None => Expr::Const(Scalar::neutral(ReductionOp::Sum, dtype)),
    };
    Stage {
        base: None,
        axes: axes.collect(),
        combine: Combine::Assign,
        body,
        scan: None,
        scatter: Vec::new(),
        ..stage.clone()
    }
}

impl Expr {
    /// Whether the expression may read one of these tensors: conditions on indices with values in
    /// these ranges may rule it out.
    #[must_use]
    pub fn may_read(
        &self,
        range: &impl Fn(AxisId) -> Interval,
        is_one: &impl Fn(TensorId) -> bool,
    ) -> bool {
        let mut found = false;
        self.walk_possible(range, &mut |expr| {
            found |= matches!(expr, Expr::Read(read) if is_one(read.tensor));
        });
        found
    }

    /// The value of a condition, if it is constant over these ranges of the indices.
    fn decided(&self, range: &impl Fn(AxisId) -> Interval) -> Option<bool> {
        match self {
            Expr::CompareIndex(op, a, b) => {
                let mut reads = false;
                a.walk_values(&mut |_| reads = true);
                b.walk_values(&mut |_| reads = true);
                if reads {
                    return None;
                }
                let of = |index: &Index| index.interval(range, &|_| Interval::point(0));
                let (a, b) = (of(a), of(b));
                let is_point = a.lo == a.hi && a == b;
                let is_apart = a.hi < b.lo || b.hi < a.lo;
                let either = |holds: bool, fails: bool| (holds || fails).then_some(holds);
                match op {
                    CompareOp::Eq => either(is_point, is_apart),
                    CompareOp::Ne => either(is_apart, is_point),
                    CompareOp::Lt => either(a.hi < b.lo, a.lo >= b.hi),
                    CompareOp::Le => either(a.hi <= b.lo, a.lo > b.hi),
                    CompareOp::Gt => either(a.lo > b.hi, a.hi <= b.lo),
                    CompareOp::Ge => either(a.lo >= b.hi, a.hi < b.lo),
                }
            }
            Expr::Logic(op, a, b) => {
                let settles = *op == LogicOp::Or;
                match (a.decided(range), b.decided(range)) {
                    (Some(a), _) if a == settles => Some(settles),
                    (_, Some(b)) if b == settles => Some(settles),
                    (Some(_), Some(_)) => Some(!settles),
                    _ => None,
                }
            }
            Expr::Unary(UnaryOp::Not, a) => a.decided(range).map(|holds| !holds),
            _ => None,
        }
    }

    /// Calls `visit` with every subexpression that index conditions do not rule out.
    fn walk_possible<'a>(
        &'a self,
        range: &impl Fn(AxisId) -> Interval,
        visit: &mut impl FnMut(&'a Expr),
    ) {
        visit(self);
        match self {
            Expr::Unary(_, a) | Expr::Cast(_, a) => a.walk_possible(range, visit),
            Expr::Arith(_, a, b) | Expr::Compare(_, a, b) => {
                a.walk_possible(range, visit);
                b.walk_possible(range, visit);
            }
            Expr::Logic(op, a, b) => {
                a.walk_possible(range, visit);
                if a.decided(range) != Some(*op == LogicOp::Or) {
                    b.walk_possible(range, visit);
                }
            }
            Expr::Select(a, b, c) => {
                a.walk_possible(range, visit);
                let holds = a.decided(range);
                if holds != Some(false) {
                    b.walk_possible(range, visit);
                }
                if holds != Some(true) {
                    c.walk_possible(range, visit);
                }
            }
            Expr::Call(_, args) => args.iter().for_each(|arg| arg.walk_possible(range, visit)),
            // Reads inside subscripts.
            Expr::Read(read) => read.subscripts.iter().for_each(|at| at.walk_values(visit)),
            Expr::Index(index, _) => index.walk_values(visit),
            Expr::CompareIndex(_, a, b) => {
                a.walk_values(visit);
                b.walk_values(visit);
            }
            Expr::Const(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{AxisId, EmptyRange, Interval};
    use crate::Module;

    /// The interval [0, 0] for every axis.
    fn real(_: AxisId) -> Interval {
        Interval::point(0)
    }

    #[test]
    fn what_has_no_points_reads_nothing() {
        let text = "def f(int(N) to, float(N) x, float(V) y) -> (y, top) {
            y(v) += x(n) scatter v = to(n)
            top() max=! x(n)
        }";
        let module = Module::parse("t.tc", text).unwrap();
        let program = module.bind("f", [("N", 2), ("V", 3)]).unwrap();
        insta::assert_snapshot!(program.without_points(&[(0, EmptyRange::Terms), (1, EmptyRange::Terms)]), @"
        def f(int32(2) to, float(2) x, float(3) y) -> (y, top) {
          y(v) += 0 * n == 0 ? float(0.0) : float(0.0) where v in 0:3, n in 0:2
          top() max=! 0 * n == 0 ? float(-INFINITY) : float(-INFINITY) where n in 0:2
        }
        ");
        assert!(program.stages[1].body.may_read(&real, &|id| program.tensor(id).name == "x"));
    }

    #[test]
    fn what_has_no_elements_leaves_what_was_there() {
        let text = "def f(float(N) x) -> (y) {
            y(i) = 7 where i in 0:N+3
            y(i) = x(i) where i in 0:N
        }";
        let program = Module::parse("t.tc", text).unwrap().bind("f", [("N", 2)]).unwrap();
        insta::assert_snapshot!(program.without_points(&[(1, EmptyRange::Elements)]), @"
        def f(float(2) x) -> (y) {
          y(i) = float(7.0) where i in 0:5
          y(i) = y(i) where i in 0:5
        }
        ");
    }

    #[test]
    fn what_a_condition_leaves_out_may_not_be_read() {
        let text = "def f(float(N) x) -> (y) { y(i) = i > 0 ? x(i - 1) : 0 where i in 0:2 }";
        let program = Module::parse("t.tc", text).unwrap().bind("f", [("N", 2)]).unwrap();
        assert!(!program.stages[0].body.may_read(&real, &|_| true));
        assert!(program.stages[0].body.may_read(&|_| Interval { lo: 0, hi: 1 }, &|_| true));
        let text = "def f(float(V) x, int(N) at) -> (y) { y() = x(at(0)) }";
        let module = Module::parse("t.tc", text).unwrap();
        let program = module.bind("f", [("N", 2), ("V", 3)]).unwrap();
        assert!(program.stages[0].body.may_read(&real, &|id| program.tensor(id).name == "at"));
        // Data may select it.
        let text = "def f(float(N) x, float(K) s) -> (y) { y(i) = s(i) > 0 ? x(0) : 1 }";
        let module = Module::parse("t.tc", text).unwrap();
        let program = module.bind("f", [("N", 2), ("K", 3)]).unwrap();
        assert!(program.stages[0].body.may_read(&real, &|id| program.tensor(id).name == "x"));
    }
}
