//! Tensor layout along a dynamic size, with slice copies.
//!
//! ```text
//! B(k,n), N varies:  rows = K, each of N steps of 4 bytes
//! B(n,k), N varies:  one row of N steps of 4 K bytes: any slice is a piece of memory
//! ```

use tensorwright::ir::Tensor;

use super::Padding;

/// The layout of a tensor along a size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Layout {
    /// The number of rows: the product of the outer extents.
    pub rows: usize,
    /// The bytes of one step along the size: the product of the inner extents.
    pub step: usize,
    /// Whether a row's length is the size; otherwise it is one step.
    pub varies: bool,
}

/// The part of a value that one kernel computes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Slice {
    /// The value.
    pub(super) value: usize,
    /// The start of the part.
    pub(super) at: usize,
    /// The length of the kernel.
    pub(super) bucket: usize,
}

impl Slice {
    /// The steps of the kernel within the value.
    fn valid(self) -> usize {
        self.bucket.min(self.value - self.at)
    }
}

impl Layout {
    /// An empty layout.
    pub(super) const EMPTY: Self = Self { rows: 0, step: 0, varies: false };

    /// The layout of a tensor with at most one dynamic dimension.
    #[must_use]
    pub fn of(tensor: &Tensor, dimension: Option<usize>) -> Self {
        let bytes = tensor.dtype.bytes();
        let product = |extents: &[i64]| extents.iter().product::<i64>() as usize;
        match dimension.and_then(|dimension| tensor.shape.split_at_checked(dimension)) {
            Some((outer, [_, inner @ ..])) => {
                Self { rows: product(outer), step: product(inner) * bytes, varies: true }
            }
            _ => Self { rows: 1, step: product(&tensor.shape) * bytes, varies: false },
        }
    }

    /// The bytes of the tensor for a value.
    #[must_use]
    pub fn bytes(&self, value: usize) -> usize {
        self.rows * self.step * if self.varies { value } else { 1 }
    }

    /// The bytes of a slice in the kernel's layout, padded beyond the value.
    pub(super) fn gather(&self, from: &[u8], slice: Slice, padding: Padding) -> Vec<u8> {
        let mut to = vec![0; self.bytes(slice.bucket)];
        let valid = slice.valid() * self.step;
        for (row, to) in to.chunks_exact_mut(slice.bucket * self.step).enumerate() {
            let start = (row * slice.value + slice.at) * self.step;
            to[..valid].copy_from_slice(&from[start..start + valid]);
            if padding == Padding::Edge {
                let (filled, rest) = to.split_at_mut(valid);
                let last = &filled[valid - self.step..];
                rest.chunks_exact_mut(self.step).for_each(|step| step.copy_from_slice(last));
            }
        }
        to
    }

    /// Writes a kernel's results for a slice back.
    pub(super) fn scatter(&self, from: &[u8], slice: Slice, to: &mut [u8]) {
        let valid = slice.valid() * self.step;
        for (row, from) in from.chunks_exact(slice.bucket * self.step).enumerate() {
            let start = (row * slice.value + slice.at) * self.step;
            to[start..start + valid].copy_from_slice(&from[..valid]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_are_cut_out_of_every_row_and_put_back() {
        let layout = Layout { rows: 2, step: 1, varies: true };
        let whole: Vec<u8> = (1..=10).collect();
        let slice = Slice { value: 5, at: 3, bucket: 4 };
        assert_eq!(layout.gather(&whole, slice, Padding::Zero), [4, 5, 0, 0, 9, 10, 0, 0]);
        let part = layout.gather(&whole, slice, Padding::Edge);
        assert_eq!(part, [4, 5, 5, 5, 9, 10, 10, 10]);
        let mut back = vec![0; 10];
        layout.scatter(&part, slice, &mut back);
        assert_eq!(back, [0, 0, 0, 4, 5, 0, 0, 0, 9, 10]);
    }
}
