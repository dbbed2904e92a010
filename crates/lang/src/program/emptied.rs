//! Programs some of whose ranges are empty in a call: what has no terms is what a reduction starts from.
//!
//! ```text
//! g(v,d) +=! dy(n,d) scatter v = token(n)      N = 0
//! g(v,d) +=! 0                                 reads nothing, goes nowhere
//! ```

use super::{Combine, Expr, Program, Scalar, TensorId};
use crate::ops::{LogicOp, ReductionOp};

impl Program {
    /// The same program where some stages, by number, have no points: they read nothing and are what they start from.
    #[must_use]
    pub fn without_points(&self, stages: &[usize]) -> Program {
        let mut made = self.clone();
        for number in stages {
            let Some(stage) = made.stages.get_mut(*number).filter(|stage| stage.scan.is_none())
            else {
                continue;
            };
            let op = match stage.combine {
                Combine::Reduce(op) | Combine::Accumulate(op) => op,
                _ => ReductionOp::Sum,
            };
            let dtype = stage.body.dtype(&|id| self.tensor(id).dtype);
            stage.body = Expr::Const(Scalar::neutral(op, dtype));
            stage.scatter.clear();
        }
        made
    }
}

impl Expr {
    /// Whether the expression reads one of these tensors whatever its conditions say.
    #[must_use]
    pub fn always_reads(&self, is_one: &impl Fn(TensorId) -> bool) -> bool {
        let mut found = false;
        self.walk_certain(&mut |expr| {
            found |= matches!(expr, Expr::Read(read) if is_one(read.tensor));
        });
        found
    }

    /// Calls `visit` with what is computed whatever conditions say.
    fn walk_certain<'a>(&'a self, visit: &mut impl FnMut(&'a Expr)) {
        visit(self);
        match self {
            Expr::Unary(_, a) | Expr::Cast(_, a) => a.walk_certain(visit),
            Expr::Arith(_, a, b) | Expr::Compare(_, a, b) => {
                a.walk_certain(visit);
                b.walk_certain(visit);
            }
            Expr::Logic(LogicOp::And | LogicOp::Or, a, _) | Expr::Select(a, _, _) => {
                a.walk_certain(visit);
            }
            Expr::Call(_, args) => args.iter().for_each(|arg| arg.walk_certain(visit)),
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
    use crate::Module;

    #[test]
    fn what_has_no_points_reads_nothing() {
        let text = "def f(int(N) to, float(N) x, float(V) y) -> (y, top) {
            y(v) += x(n) scatter v = to(n)
            top() max=! x(n)
        }";
        let module = Module::parse("t.tc", text).unwrap();
        let program = module.bind("f", [("N", 2), ("V", 3)]).unwrap();
        insta::assert_snapshot!(program.without_points(&[0, 1]), @"
        def f(int32(2) to, float(2) x, float(3) y) -> (y, top) {
          y(v) += float(0.0) where v in 0:3, n in 0:2
          top() max=! float(-INFINITY) where n in 0:2
        }
        ");
        assert!(program.stages[1].body.always_reads(&|id| program.tensor(id).name == "x"));
    }

    #[test]
    fn what_a_condition_leaves_out_may_not_be_read() {
        let text = "def f(float(N) x) -> (y) { y(i) = i > 0 ? x(i - 1) : 0 where i in 0:2 }";
        let program = Module::parse("t.tc", text).unwrap().bind("f", [("N", 2)]).unwrap();
        assert!(!program.stages[0].body.always_reads(&|_| true));
        let text = "def f(float(V) x, int(N) at) -> (y) { y() = x(at(0)) }";
        let module = Module::parse("t.tc", text).unwrap();
        let program = module.bind("f", [("N", 2), ("V", 3)]).unwrap();
        assert!(program.stages[0].body.always_reads(&|id| program.tensor(id).name == "at"));
    }
}
