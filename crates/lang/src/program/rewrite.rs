//! Rewrites expressions: replaces axes, reads and subexpressions.

use super::{Atom, AxisId, Expr, Index, Read};

/// The rewrite rules for parts of an expression. A method returns `None` if index arithmetic
/// overflows, which fails the whole rewrite.
pub trait Rewrite {
    /// Rewrites an axis.
    fn axis(&mut self, axis: AxisId) -> Option<Index> {
        Some(Index::axis(axis))
    }

    /// Rewrites a read whose subscripts are rewritten already.
    fn read(&mut self, read: Read) -> Option<Expr> {
        Some(Expr::Read(read))
    }

    /// Rewrites a whole index expression whose parts are rewritten already.
    fn index(&mut self, index: Index) -> Option<Index> {
        Some(index)
    }

    /// Rewrites an expression that is neither a read nor a leaf and whose operands are rewritten
    /// already.
    fn expr(&mut self, expr: Expr) -> Option<Expr> {
        Some(expr)
    }
}

impl Index {
    /// Rewrites the index, in normal form; `None` if a coefficient overflows.
    pub fn rewrite(&self, rules: &mut dyn Rewrite) -> Option<Index> {
        let rebuilt = self.rebuild(rules)?;
        rules.index(rebuilt)
    }

    fn rebuild(&self, rules: &mut dyn Rewrite) -> Option<Index> {
        let mut sum = Index::constant(self.constant_term());
        for term in self.terms() {
            let atom = match &term.atom {
                Atom::Axis(axis) => rules.axis(*axis)?,
                Atom::Div(inner, divisor) => inner.rebuild(rules)?.div(*divisor)?,
                Atom::Mod(inner, divisor) => inner.rebuild(rules)?.rem(*divisor),
                Atom::Min(a, b) => a.rebuild(rules)?.min(b.rebuild(rules)?),
                Atom::Max(a, b) => a.rebuild(rules)?.max(b.rebuild(rules)?),
                Atom::Product(inner, factor) => {
                    let (inner, factor) = (inner.rebuild(rules)?, rules.axis(*factor)?);
                    match (factor.as_constant(), factor.as_axis()) {
                        (Some(factor), _) => inner.scale(factor)?,
                        (None, factor) => inner.times(factor?)?,
                    }
                }
                Atom::Value(value) => Index::value(value.rewrite(rules)?),
            };
            sum = sum.add(&atom.scale(term.coefficient)?)?;
        }
        Some(sum)
    }
}

impl Expr {
    /// Rewrites the expression; `None` if index arithmetic overflows.
    pub fn rewrite(&self, rules: &mut dyn Rewrite) -> Option<Expr> {
        let mut boxed = |expr: &Expr| expr.rewrite(rules).map(Box::new);
        let rebuilt = match self {
            Expr::Const(_) => return Some(self.clone()),
            Expr::Read(read) => {
                let subscripts: Option<Vec<Index>> =
                    read.subscripts.iter().map(|subscript| subscript.rewrite(rules)).collect();
                return rules.read(Read { subscripts: subscripts?, ..read.clone() });
            }
            Expr::Index(index, dtype) => Expr::Index(index.rewrite(rules)?, *dtype),
            Expr::CompareIndex(op, a, b) => {
                Expr::CompareIndex(*op, a.rewrite(rules)?, b.rewrite(rules)?)
            }
            Expr::Unary(op, a) => Expr::Unary(*op, boxed(a)?),
            Expr::Cast(dtype, a) => Expr::Cast(*dtype, boxed(a)?),
            Expr::Arith(op, a, b) => Expr::Arith(*op, boxed(a)?, boxed(b)?),
            Expr::Compare(op, a, b) => Expr::Compare(*op, boxed(a)?, boxed(b)?),
            Expr::Logic(op, a, b) => Expr::Logic(*op, boxed(a)?, boxed(b)?),
            Expr::Select(c, a, b) => Expr::Select(boxed(c)?, boxed(a)?, boxed(b)?),
            Expr::Call(builtin, args) => {
                let args: Option<Vec<Expr>> = args.iter().map(|arg| arg.rewrite(rules)).collect();
                Expr::Call(*builtin, args?)
            }
        };
        rules.expr(rebuilt)
    }

    /// Whether the value depends on one of the axes for which `is` holds.
    pub fn mentions(&self, is: &impl Fn(AxisId) -> bool) -> bool {
        let mut found = false;
        self.walk(&mut |expr| {
            let mut look = |index: &Index| index.walk_axes(&mut |axis| found |= is(axis));
            match expr {
                Expr::Index(index, _) => look(index),
                Expr::CompareIndex(_, a, b) => {
                    look(a);
                    look(b);
                }
                Expr::Read(read) => read.subscripts.iter().for_each(look),
                _ => {}
            }
        });
        found
    }
}

impl Index {
    /// Whether the index depends on one of the axes for which `is` holds, including through data.
    pub fn mentions(&self, is: &impl Fn(AxisId) -> bool) -> bool {
        let mut found = false;
        self.walk_axes(&mut |axis| found |= is(axis));
        found || self.outermost_values().into_iter().any(|value| value.mentions(is))
    }

    /// The coefficient of an axis if the index is an affine function of it: the axis occurs only
    /// as a term of the sum. Zero if it does not occur.
    #[must_use]
    pub fn coefficient_of(&self, axis: AxisId) -> Option<i64> {
        let mut coefficient = 0;
        for term in self.terms() {
            match &term.atom {
                Atom::Axis(found) if *found == axis => coefficient = term.coefficient,
                Atom::Axis(_) => {}
                atom if Index::atom(atom.clone()).mentions(&|found| found == axis) => return None,
                _ => {}
            }
        }
        Some(coefficient)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Split;

    impl Rewrite for Split {
        fn axis(&mut self, axis: AxisId) -> Option<Index> {
            let outer = Index::axis(AxisId(10 + axis.0)).scale(8)?;
            outer.add(&Index::axis(AxisId(20 + axis.0)))
        }
    }

    #[test]
    fn axes_are_replaced_everywhere() {
        let (i, j) = (Index::axis(AxisId(0)), Index::axis(AxisId(1)));
        let index = i.scale(3).unwrap().add(&j.div(4).unwrap()).unwrap();
        let split = index.rewrite(&mut Split).unwrap();
        let expected = Index::axis(AxisId(10))
            .scale(24)
            .unwrap()
            .add(&Index::axis(AxisId(20)).scale(3).unwrap())
            .unwrap()
            // Multiples are factored out: (8a + b) / 4 = 2a + b / 4.
            .add(&Index::axis(AxisId(11)).scale(2).unwrap())
            .unwrap()
            .add(&Index::axis(AxisId(21)).div(4).unwrap())
            .unwrap();
        assert_eq!(split, expected);
        assert_eq!(i.scale(i64::MAX).unwrap().rewrite(&mut Split), None);
    }

    #[test]
    fn coefficients() {
        let (i, j) = (Index::axis(AxisId(0)), Index::axis(AxisId(1)));
        let index = i.scale(3).unwrap().add(&j.rem(4)).unwrap();
        assert_eq!(index.coefficient_of(AxisId(0)), Some(3));
        assert_eq!(index.coefficient_of(AxisId(1)), None);
        assert_eq!(index.coefficient_of(AxisId(2)), Some(0));
    }
}
