//! Programs some of whose ranges are empty in a call.
//!
//! ```text
//! g(v,d) +=! dy(n,d) scatter v = token(n)      N = 0: without terms, what a reduction starts from
//! g(v,d) +=! 0
//!
//! y(i) = x(i) where i in 0:N                   N = 0: without elements, what was there before
//! y(i) = y(i)
//! ```

use super::{Axis, AxisId, AxisKind, Combine, Expr, Index, Program, Read, Scalar, Stage, TensorId};
use crate::dtype::DType;
use crate::ops::{LogicOp, ReductionOp, UnaryOp};

/// What a stage with an empty range has none of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Lacking {
    /// A range of a reduction is empty: each element is what the reduction starts from.
    Terms,
    /// A range of a dimension is empty: there is nothing to compute.
    Elements,
}

impl Program {
    /// The same program where some stages, by number, have an empty range: they read nothing but what was there before.
    #[must_use]
    pub fn without_points(&self, stages: &[(usize, Lacking)]) -> Program {
        let mut made = self.clone();
        for (number, lacking) in stages {
            let Some(stage) = made.stages.get_mut(*number) else { continue };
            let output = self.tensor(stage.output);
            match lacking {
                Lacking::Elements => *stage = unchanged(stage, output.dtype, &output.shape),
                Lacking::Terms if stage.scan.is_some() => {}
                Lacking::Terms => {
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

/// A stage that changes nothing: a copy of what was there before, or zeros.
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
    /// Whether the expression may read one of these tensors, as far as conditions on indices alone do not rule it out.
    #[must_use]
    pub fn may_read(&self, is_one: &impl Fn(TensorId) -> bool) -> bool {
        let mut found = false;
        self.walk_possible(&mut |expr| {
            found |= matches!(expr, Expr::Read(read) if is_one(read.tensor));
        });
        found
    }

    /// Whether nothing but indices decides a condition.
    fn is_of_indices(&self) -> bool {
        match self {
            Expr::CompareIndex(_, a, b) => {
                let mut reads = false;
                a.walk_values(&mut |_| reads = true);
                b.walk_values(&mut |_| reads = true);
                !reads
            }
            Expr::Logic(_, a, b) => a.is_of_indices() && b.is_of_indices(),
            Expr::Unary(UnaryOp::Not, a) => a.is_of_indices(),
            _ => false,
        }
    }

    /// Calls `visit` with what is computed unless a condition on indices says otherwise.
    fn walk_possible<'a>(&'a self, visit: &mut impl FnMut(&'a Expr)) {
        visit(self);
        match self {
            Expr::Unary(_, a) | Expr::Cast(_, a) => a.walk_possible(visit),
            Expr::Arith(_, a, b) | Expr::Compare(_, a, b) => {
                a.walk_possible(visit);
                b.walk_possible(visit);
            }
            Expr::Logic(LogicOp::And | LogicOp::Or, a, b) => {
                a.walk_possible(visit);
                if !a.is_of_indices() {
                    b.walk_possible(visit);
                }
            }
            Expr::Select(a, _, _) if a.is_of_indices() => {}
            Expr::Select(a, b, c) => {
                a.walk_possible(visit);
                b.walk_possible(visit);
                c.walk_possible(visit);
            }
            Expr::Call(_, args) => args.iter().for_each(|arg| arg.walk_possible(visit)),
            // What is read in subscripts.
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
    use super::Lacking;
    use crate::Module;

    #[test]
    fn what_has_no_points_reads_nothing() {
        let text = "def f(int(N) to, float(N) x, float(V) y) -> (y, top) {
            y(v) += x(n) scatter v = to(n)
            top() max=! x(n)
        }";
        let module = Module::parse("t.tc", text).unwrap();
        let program = module.bind("f", [("N", 2), ("V", 3)]).unwrap();
        insta::assert_snapshot!(program.without_points(&[(0, Lacking::Terms), (1, Lacking::Terms)]), @"
        def f(int32(2) to, float(2) x, float(3) y) -> (y, top) {
          y(v) += float(0.0) where v in 0:3, n in 0:2
          top() max=! float(-INFINITY) where n in 0:2
        }
        ");
        assert!(program.stages[1].body.may_read(&|id| program.tensor(id).name == "x"));
    }

    #[test]
    fn what_has_no_elements_leaves_what_was_there() {
        let text = "def f(float(N) x) -> (y) {
            y(i) = 7 where i in 0:N+3
            y(i) = x(i) where i in 0:N
        }";
        let program = Module::parse("t.tc", text).unwrap().bind("f", [("N", 2)]).unwrap();
        insta::assert_snapshot!(program.without_points(&[(1, Lacking::Elements)]), @"
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
        assert!(!program.stages[0].body.may_read(&|_| true));
        let text = "def f(float(V) x, int(N) at) -> (y) { y() = x(at(0)) }";
        let module = Module::parse("t.tc", text).unwrap();
        let program = module.bind("f", [("N", 2), ("V", 3)]).unwrap();
        assert!(program.stages[0].body.may_read(&|id| program.tensor(id).name == "at"));
        // Data may say that it is read.
        let text = "def f(float(N) x, float(K) s) -> (y) { y(i) = s(i) > 0 ? x(0) : 1 }";
        let module = Module::parse("t.tc", text).unwrap();
        let program = module.bind("f", [("N", 2), ("K", 3)]).unwrap();
        assert!(program.stages[0].body.may_read(&|id| program.tensor(id).name == "x"));
    }
}
