//! Programs for strided (non-dense) inputs.
//!
//! ```text
//! x(n,d), a slice of rows of length 128:   memory(n, d + 64), of shape (N, 128)
//! x(n,d), transposed:                      memory(d, n)
//! x(n,d), broadcast along n:               memory(d)
//! ```
//!
//! `memory` is the smallest dense tensor that ends with the last element of the input. It begins
//! before the first element by the number of elements that [`Program::with_strides`] returns;
//! there may be no memory there, because elements are only read forwards.

use super::{Atom, Expr, Index, Program, Read, Rewrite, TensorId};

impl Program {
    /// The program with an input whose neighbours along each axis are `strides` elements apart, and
    /// the number of elements by which the required memory begins before the first element. `None`
    /// if no dense tensor has such parts, or if a read may lie before the first element.
    #[must_use]
    pub fn with_strides(&self, input: TensorId, strides: &[i64]) -> Option<(Program, i64)> {
        let tensor =
            self.tensors.get(input.0 as usize).filter(|_| (input.0 as usize) < self.inputs)?;
        if tensor.shape.len() != strides.len() || strides.iter().any(|stride| *stride < 0) {
            return None;
        }
        // The axes with a nonzero stride, from the outermost of memory to the innermost.
        let mut axes: Vec<usize> = (0..strides.len())
            .filter(|axis| tensor.shape[*axis] > 1 && strides[*axis] > 0)
            .collect();
        axes.sort_by_key(|axis| std::cmp::Reverse(strides[*axis]));
        let mut shape = Vec::with_capacity(axes.len() + 1);
        for (place, axis) in axes.iter().enumerate() {
            let outer = place.checked_sub(1).map(|place| strides[axes[place]]);
            let (extent, stride) = (tensor.shape[*axis], strides[*axis]);
            shape.push(match outer {
                None => extent,
                Some(outer) if outer % stride == 0 && outer / stride >= extent => outer / stride,
                Some(_) => return None,
            });
        }
        let apart = axes.last().map_or(1, |axis| strides[*axis]);
        let moved: Vec<(usize, i64)> = axes
            .iter()
            .zip(&shape)
            .map(|(axis, extent)| (*axis, extent - tensor.shape[*axis]))
            .collect();
        if apart > 1 {
            shape.push(apart);
        }
        let before = moved.iter().try_fold(apart - 1, |sum: i64, (axis, by)| {
            sum.checked_add(by.checked_mul(strides[*axis])?)
        })?;
        let mut made = self.clone();
        made.tensors[input.0 as usize].shape = shape;
        made.tensors[input.0 as usize].is_const = false;
        let mut rules = Relaid { input, moved, apart };
        for stage in &mut made.stages {
            stage.body = stage.body.rewrite(&mut rules)?;
            if let Some(scan) = &mut stage.scan {
                scan.start = scan.start.rewrite(&mut rules)?;
            }
            for scatter in &mut stage.scatter {
                scatter.at = scatter.at.rewrite(&mut rules)?;
            }
        }
        Some((made, before))
    }
}

/// Rewrites the subscripts of reads of an input.
struct Relaid {
    input: TensorId,
    /// The axes of the input in memory order, and the offset of each.
    moved: Vec<(usize, i64)>,
    apart: i64,
}

impl Rewrite for Relaid {
    fn read(&mut self, read: Read) -> Option<Expr> {
        if read.tensor != self.input {
            return Some(Expr::Read(read));
        }
        // Reads next to an element must not lie before it.
        let is_forward = |index: &Index| {
            index
                .terms()
                .iter()
                .all(|term| term.coefficient >= 0 && matches!(term.atom, Atom::Axis(_)))
        };
        if !read.checked.is_empty() || !read.subscripts.iter().all(is_forward) {
            return None;
        }
        let mut subscripts = Vec::with_capacity(self.moved.len() + 1);
        for (axis, by) in &self.moved {
            subscripts.push(read.subscripts.get(*axis)?.add(&Index::constant(*by))?);
        }
        if self.apart > 1 {
            subscripts.push(Index::constant(self.apart - 1));
        }
        Some(Expr::Read(Read { subscripts, ..read }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Module;

    fn strided(strides: &[i64]) -> Option<(String, i64)> {
        let text = "def f(float(N,D) x) -> (y) { y(n,d) = 2 * x(n,d) }";
        let program = Module::parse("t.tc", text).unwrap().bind("f", [("N", 3), ("D", 4)]).unwrap();
        let (made, before) = program.with_strides(TensorId(0), strides)?;
        Some((made.to_string().lines().take(2).collect::<Vec<_>>().join("\n"), before))
    }

    #[test]
    fn memory_is_a_dense_tensor_that_ends_with_the_input() {
        let found = |strides: &[i64]| strided(strides).unwrap();
        let (text, before) = found(&[10, 1]);
        assert_eq!((text.lines().next().unwrap(), before), ("def f(float(3, 10) x) -> (y) {", 6));
        assert!(text.contains("x(n, d + 6)"), "{text}");
        let (text, before) = found(&[1, 3]);
        assert!(
            text.contains("float(4, 3) x") && text.contains("x(d, n)") && before == 0,
            "{text}"
        );
        let (text, before) = found(&[0, 1]);
        assert!(text.contains("float(4) x") && text.contains("x(d)") && before == 0, "{text}");
        let (text, before) = found(&[20, 2]);
        assert!(text.contains("float(3, 10, 2) x") && text.contains("x(n, d + 6, 1)"), "{text}");
        assert_eq!(before, 13);
        assert_eq!(found(&[0, 0]).1, 0);
    }

    #[test]
    fn what_is_no_part_of_a_dense_tensor_is_refused() {
        for strides in [&[3, 1][..], &[-4, 1], &[7, 2], &[1, 1], &[4]] {
            assert!(strided(strides).is_none(), "{strides:?}");
        }
        let text = "def f(float(N) x) -> (y) { y(i) = x(N-1-i) where i in 0:N }";
        let program = Module::parse("t.tc", text).unwrap().bind("f", [("N", 3)]).unwrap();
        assert!(program.with_strides(TensorId(0), &[2]).is_none());
    }
}
