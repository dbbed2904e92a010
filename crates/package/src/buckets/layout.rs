//! How a tensor lies in memory along a size that varies, and how slices of it are copied.
//!
//! ```text
//! B(k,n), N varies:  rows = K, each of N steps of 4 bytes
//! B(n,k), N varies:  one row of N steps of 4 K bytes: any slice is a piece of memory
//! ```

use tensorwright::ir::Tensor;

use super::Padding;

/// How a tensor lies in memory along a size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Layout {
    /// The number of rows: the product of the extents further out.
    pub rows: usize,
    /// The bytes of one step along the size: the product of the extents further in.
    pub step: usize,
    /// Whether a row has as many steps as the size says; otherwise it has one.
    pub varies: bool,
}

/// The part of a value that a kernel of a bucket computes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Slice {
    /// The value.
    pub(super) value: usize,
    /// Where the part begins.
    pub(super) at: usize,
    /// The steps that the kernel has.
    pub(super) bucket: usize,
}

impl Slice {
    /// The steps of the kernel that are inside of the value.
    fn valid(self) -> usize {
        self.bucket.min(self.value - self.at)
    }
}

impl Layout {
    /// Of nothing.
    pub(super) const EMPTY: Self = Self { rows: 0, step: 0, varies: false };

    /// The layout of a tensor of which one dimension may vary.
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

    /// The bytes of a slice as the kernel wants them, with what is beyond the value padded.
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

    /// Puts what a kernel computed for a slice where it belongs.
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
