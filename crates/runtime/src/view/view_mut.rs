//! [`ViewMut`]: a borrowed, strided output.

use std::marker::PhantomData;

use super::{ViewError, check, count, row_major};
use crate::Element;

/// A borrowed array to write: a slice, a shape and a stride per axis, such as a part of an image.
///
/// ```
/// use tensorwright_runtime::ViewMut;
///
/// // Two rows of three elements in rows of ten.
/// let mut image = [0.0f32; 100];
/// let part = ViewMut::new(&mut image, 42, &[2, 3], &[10, 1])?;
/// assert_eq!((part.shape(), part.strides()), (&[2, 3][..], &[10, 1][..]));
/// // Rows of three that begin two apart have elements in common.
/// assert!(ViewMut::new(&mut image, 0, &[2, 3], &[2, 1]).is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct ViewMut<'a> {
    first: *mut u8,
    element_size: usize,
    shape: Vec<usize>,
    strides: Vec<isize>,
    memory: PhantomData<&'a mut [u8]>,
}

// SAFETY: it is a borrow of numbers, which may be sent and shared as `&mut [u8]` may.
#[allow(unsafe_code, reason = "a pointer that stands for an exclusive borrow")]
unsafe impl Send for ViewMut<'_> {}

// SAFETY: as above.
#[allow(unsafe_code, reason = "a pointer that stands for an exclusive borrow")]
unsafe impl Sync for ViewMut<'_> {}

impl<'a> ViewMut<'a> {
    /// A view of `base` whose first element is `base[offset]`. Strides are in elements, and may be
    /// negative (a reversed axis).
    ///
    /// # Errors
    /// If an element is outside of `base`, the lists have different lengths, or two elements might
    /// be one: axes have to lie inside each other, as rows in an image.
    pub fn new<T: Element>(
        base: &'a mut [T],
        offset: usize,
        shape: &[usize],
        strides: &[isize],
    ) -> Result<Self, ViewError> {
        if check(base, offset, shape, strides)? > 0 {
            check_distinct(shape, strides)?;
        }
        let first = base.as_mut_ptr().wrapping_add(offset.min(base.len())).cast();
        let (shape, strides) = (shape.to_vec(), strides.to_vec());
        Ok(Self { first, element_size: size_of::<T>(), shape, strides, memory: PhantomData })
    }

    /// A row-major view of the first elements of `base`.
    ///
    /// # Errors
    /// `base` is too short.
    pub fn dense<T: Element>(base: &'a mut [T], shape: &[usize]) -> Result<Self, ViewError> {
        count(shape, size_of::<T>()).ok_or(ViewError::TooLarge)?;
        Self::new(base, 0, shape, &row_major(shape))
    }

    /// The extent of each axis.
    #[must_use]
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// The stride of each axis, in elements.
    #[must_use]
    pub fn strides(&self) -> &[isize] {
        &self.strides
    }

    /// The size of an element in bytes.
    #[must_use]
    pub fn element_size(&self) -> usize {
        self.element_size
    }

    /// The address of the element whose indices are all zero; dangling if the view is empty.
    pub fn as_mut_ptr(&mut self) -> *mut u8 {
        self.first
    }
}

/// Checks that different indices are different elements: each axis steps over all that shorter
/// steps reach.
fn check_distinct(shape: &[usize], strides: &[isize]) -> Result<(), ViewError> {
    let axes = shape.iter().zip(strides).filter(|(extent, _)| **extent > 1);
    let mut axes: Vec<(u128, u128)> =
        axes.map(|(extent, stride)| (stride.unsigned_abs() as u128, *extent as u128)).collect();
    axes.sort_unstable();
    let mut reach = 0u128;
    for (stride, extent) in axes {
        if stride <= reach {
            return Err(ViewError::Overlapping);
        }
        reach = reach.saturating_add(stride.saturating_mul(extent - 1));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_are_distinct_and_inside() {
        let mut base = [0u16; 24];
        let mut view = |offset, shape: &[usize], strides: &[isize]| {
            ViewMut::new(&mut base, offset, shape, strides).map(|view| view.shape.len())
        };
        assert_eq!(view(0, &[4, 6], &[6, 1]), Ok(2));
        assert_eq!(view(5, &[6, 4], &[-1, 6]), Ok(2));
        assert_eq!(view(23, &[24], &[-1]), Ok(1));
        assert_eq!(view(0, &[1, 6], &[0, 1]), Ok(2));
        assert_eq!(view(0, &[0, 6], &[0, 0]), Ok(2));
        assert_eq!(view(0, &[2, 6], &[0, 1]), Err(ViewError::Overlapping));
        assert_eq!(view(0, &[3, 3], &[2, 1]), Err(ViewError::Overlapping));
        assert!(matches!(view(1, &[4, 6], &[6, 1]), Err(ViewError::OutOfBounds { .. })));
        assert!(matches!(view(0, &[4], &[6, 1]), Err(ViewError::RankMismatch { .. })));
        let mut base = [1i32, 2, 3, 4];
        let mut view = ViewMut::new(&mut base, 1, &[2], &[2]).unwrap();
        assert_eq!(view.element_size(), 4);
        let first = view.as_mut_ptr().cast::<i32>();
        // SAFETY: the elements of the view are the second and the fourth of `base`.
        #[allow(unsafe_code, reason = "writes what the view borrows")]
        unsafe {
            *first = 20;
            *first.add(2) = 40;
        }
        assert_eq!(base, [1, 20, 3, 40]);
    }
}
