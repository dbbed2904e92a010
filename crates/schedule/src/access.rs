//! Memory access patterns of a stage: strides, reuse and periods.

use tensorwright_lang::program::{Atom, Index, Term};

use crate::nest::{BufferId, LoopNest, Role, Use, Var};
use crate::placement::store_of;
use crate::primitives::loops_of;

/// A loop of a stage.
#[derive(Debug, Clone)]
pub struct Axis {
    /// The name of the loop.
    pub name: String,
    /// Its variable.
    pub var: Var,
    /// Its number of iterations.
    pub extent: i64,
    /// Whether it is a spatial or a reduction loop.
    pub role: Role,
}

/// A read or the write of a stage, as a position in memory.
#[derive(Debug, Clone)]
pub struct Access {
    /// The tensor.
    pub buffer: BufferId,
    /// The position, one subscript per dimension.
    pub subscripts: Vec<Index>,
    offset: Option<Index>,
}

/// The loops, reads and write of a stage.
#[derive(Debug, Clone)]
pub struct Accesses {
    /// The loops of the stage itself, outermost first.
    pub axes: Vec<Axis>,
    /// The reads, in the order of the text.
    pub reads: Vec<Access>,
    /// The write.
    pub write: Access,
}

impl Accesses {
    /// The accesses of a stage; `None` if the nest has no such stage.
    #[must_use]
    pub fn of(nest: &LoopNest, stage: &str) -> Option<Self> {
        let store = store_of(nest, stage)?;
        let axis = |l: &&crate::nest::Loop| Axis {
            name: nest.var_name(l.var).to_owned(),
            var: l.var,
            extent: l.extent,
            role: l.role,
        };
        let own = |l: &&&crate::nest::Loop| l.stage == Some(store.stage());
        let axes = loops_of(nest, stage).iter().filter(own).map(axis).collect();
        // A reduction reads its initial value once per element, which does not matter here.
        let of_terms = store.reads().into_iter().filter(|(what, _)| *what == Use::Value);
        let reads = of_terms.map(|(_, read)| {
            let gathers = read.subscripts.iter().any(Index::has_value);
            let offset = nest.buffer(read.tensor).offset(&read.subscripts);
            let (buffer, subscripts) = (read.tensor, read.subscripts.clone());
            Access { buffer, subscripts, offset: offset.filter(|_| !gathers) }
        });
        let reads = reads.collect();
        let offset = nest.buffer(store.buffer).offset(&store.subscripts);
        let (buffer, subscripts) = (store.buffer, store.subscripts.clone());
        Some(Self { axes, reads, write: Access { buffer, subscripts, offset } })
    }

    /// The loops of a role.
    pub fn of_role(&self, role: Role) -> impl Iterator<Item = &Axis> {
        self.axes.iter().filter(move |axis| axis.role == role)
    }

    /// The reads that are neither contiguous nor constant along a loop.
    #[must_use]
    pub fn strided(&self, axis: &Axis) -> Vec<&Access> {
        self.reads.iter().filter(|read| !matches!(read.stride(axis), Some(0 | 1))).collect()
    }

    /// The number of iterations after which subscripts that use the loop variable modulo a constant
    /// repeat. One if there are none, `None` if they have no common period.
    #[must_use]
    pub fn period(&self, axis: &Axis) -> Option<i64> {
        let mut period = 1;
        for term in self.reads.iter().flat_map(|read| &read.subscripts).flat_map(Index::terms) {
            match &term.atom {
                Atom::Mod(of, by) if of.coefficient_of(axis.var) != Some(0) => {
                    if period != 1 && period != *by {
                        return None;
                    }
                    period = *by;
                }
                _ => {}
            }
        }
        Some(period)
    }

    /// Whether iterations of a loop read the same vectors along another loop, whose lanes are
    /// `apart` iterations apart.
    #[must_use]
    pub fn shares_vectors(&self, axis: &Axis, vector: &Axis, apart: i64) -> bool {
        let moves = |read: &&Access| read.stride_of(vector, apart) != Some(0);
        let mut vectors = self.reads.iter().filter(moves).peekable();
        vectors.peek().is_some() && vectors.all(|read| read.stride(axis) == Some(0))
    }

    /// Whether some reads change with a loop and others do not: the others are reused by a tile.
    #[must_use]
    pub fn has_reuse(&self, axis: &Axis) -> bool {
        let still = self.reads.iter().filter(|read| read.stride(axis) == Some(0)).count();
        still > 0
    }
}

impl Access {
    /// The distance in memory between two iterations of a loop; `None` if it is not constant.
    #[must_use]
    pub fn stride(&self, axis: &Axis) -> Option<i64> {
        self.stride_of(axis, 1)
    }

    /// The distance in memory over `iterations` iterations of a loop; `None` if it is not constant.
    #[must_use]
    pub fn stride_of(&self, axis: &Axis, iterations: i64) -> Option<i64> {
        let repeats = |atom: &Atom| matches!(atom, Atom::Mod(_, by) if *by == iterations);
        let moving = self.offset.as_ref()?.terms().iter().filter(|term| !repeats(&term.atom));
        let stride = |term: &Term| {
            Index::atom(term.atom.clone()).coefficient_of(axis.var)?.checked_mul(term.coefficient)
        };
        let mut strides = moving.map(stride);
        strides.try_fold(0i64, |sum, stride| sum.checked_add(stride?))?.checked_mul(iterations)
    }

    /// The only dimension that moves with a loop, if it moves by one.
    #[must_use]
    pub fn dimension_of(&self, axis: &Axis) -> Option<usize> {
        let moves = |s: &Index| s.coefficient_of(axis.var) != Some(0);
        let mut moved = self.subscripts.iter().enumerate().filter(|(_, s)| moves(s));
        let (dimension, subscript) = moved.next()?;
        let alone = moved.next().is_none() && subscript.coefficient_of(axis.var) == Some(1);
        alone.then_some(dimension)
    }
}

#[cfg(test)]
mod tests {
    use tensorwright_lang::Module;

    use super::*;
    use crate::canonical;

    #[test]
    fn remainders_repeat() {
        let text = "def f(float(N) a, float(3,2,5) w) -> (out) { out(c,x) +=! w(c,x%2,j) * a(x+j) where x in 0:64 }";
        let program = Module::parse("f.tc", text).unwrap().bind("f", [("N", 68)]).unwrap();
        let accesses = Accesses::of(&canonical(&program), "out").unwrap();
        let axis = |name: &str| accesses.axes.iter().find(|axis| axis.name == name).unwrap();
        let (c, x, j) = (axis("c"), axis("x"), axis("j"));
        let periods = [c, x, j].map(|axis| accesses.period(axis));
        assert_eq!(periods, [Some(1), Some(2), Some(1)]);
        let strides = |apart| -> Vec<_> {
            accesses.reads.iter().map(|read| read.stride_of(x, apart)).collect()
        };
        assert_eq!(strides(1), [None, Some(1)]);
        assert_eq!(strides(2), [Some(0), Some(2)]);
        assert!(accesses.shares_vectors(c, x, 2) && !accesses.shares_vectors(c, x, 1));
        assert!(!accesses.shares_vectors(j, x, 2));
    }
}
