//! [`View`]: a borrowed, strided input.
//!
//! Callers have slices, transposes, reversed and broadcast axes; kernels read dense row-major
//! memory. A view describes the former, and is checked once to stay inside its slice;
//! [`View::to_dense`] creates the latter. This needs no `unsafe` (except [`View::from_raw`]): the
//! remaining bounds checks are per run of elements, or per element of a transpose, which is
//! memory-bound anyway.

mod copy;
mod view_mut;

use std::fmt;

use self::copy::gather;
use crate::element::bytes_of;
use crate::{AlignedBuffer, AllocError, Element};

pub use self::view_mut::ViewMut;

/// A borrowed array: a slice, a shape and a stride per axis.
///
/// ```
/// use tensorwright_runtime::{AlignedBuffer, View};
///
/// // The transpose of a 2x3 matrix.
/// let matrix = [1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0];
/// let transpose = View::new(&matrix, 0, &[3, 2], &[1, 3])?;
/// let mut dense = AlignedBuffer::with_elements::<f32>(transpose.elements())?;
/// transpose.to_dense(&mut dense)?;
/// assert_eq!(dense.as_slice::<f32>(), [1.0, 4.0, 2.0, 5.0, 3.0, 6.0]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct View<'a> {
    bytes: &'a [u8],
    element_size: usize,
    /// The position of the element with all indices zero.
    offset: usize,
    shape: Vec<usize>,
    strides: Vec<isize>,
    elements: usize,
}

/// The reason why a view is invalid.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ViewError {
    /// The shape and the strides have different lengths.
    RankMismatch {
        /// The number of axes of the shape.
        shape: usize,
        /// The number of strides.
        strides: usize,
    },
    /// An element is outside of the slice.
    OutOfBounds {
        /// The lowest element of the view, relative to the start of the slice.
        lowest: i128,
        /// The highest element of the view.
        highest: i128,
        /// The number of elements in the slice.
        len: usize,
    },
    /// The number of elements does not fit into memory.
    TooLarge,
    /// Two indices may be one element, in a view to write.
    Overlapping,
}

impl fmt::Display for ViewError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::RankMismatch { shape, strides } => {
                write!(f, "a shape with {shape} axes has {strides} strides")
            }
            Self::OutOfBounds { lowest, highest, len } => {
                write!(f, "elements {lowest} to {highest} do not lie in a slice of {len}")
            }
            Self::TooLarge => f.write_str("the view has more elements than memory can hold"),
            Self::Overlapping => f.write_str("elements of a view to write may overlap"),
        }
    }
}

impl std::error::Error for ViewError {}

impl<'a> View<'a> {
    /// A view of `base` whose first element is `base[offset]`. Strides are in elements; they may be
    /// negative (a reversed axis) or zero (a broadcast one).
    ///
    /// # Errors
    /// If an element is outside of `base`, the lists have different lengths, or the dense copy does
    /// not fit into memory. An empty view is always inside.
    pub fn new<T: Element>(
        base: &'a [T],
        offset: usize,
        shape: &[usize],
        strides: &[isize],
    ) -> Result<Self, ViewError> {
        let elements = check(base, offset, shape, strides)?;
        let (shape, strides) = (shape.to_vec(), strides.to_vec());
        let (bytes, element_size) = (bytes_of(base), size_of::<T>());
        Ok(Self { bytes, element_size, offset, shape, strides, elements })
    }

    /// A row-major view of the first elements of `base`.
    ///
    /// # Errors
    /// `base` is too short.
    pub fn dense<T: Element>(base: &'a [T], shape: &[usize]) -> Result<Self, ViewError> {
        count(shape, size_of::<T>()).ok_or(ViewError::TooLarge)?;
        Self::new(base, 0, shape, &row_major(shape))
    }

    /// A row-major view of foreign memory. A shape with more elements than memory can hold gives an
    /// empty view.
    ///
    /// # Safety
    /// `pointer` points to as many initialized elements as the shape has, aligned to them, which
    /// are neither written nor freed during `'a`.
    #[must_use]
    #[allow(unsafe_code, reason = "the caller vouches for the memory")]
    pub unsafe fn from_raw(pointer: *const u8, element_size: usize, shape: &[usize]) -> Self {
        let elements = count(shape, element_size).unwrap_or(0);
        let bytes = match elements * element_size {
            0 => &[][..],
            // SAFETY: guaranteed by the caller.
            length => unsafe { std::slice::from_raw_parts(pointer, length) },
        };
        let (strides, shape) = (row_major(shape), shape.to_vec());
        Self { bytes, element_size, offset: 0, shape, strides, elements }
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

    /// The number of elements.
    #[must_use]
    pub fn elements(&self) -> usize {
        self.elements
    }

    /// The size of an element in bytes.
    #[must_use]
    pub fn element_size(&self) -> usize {
        self.element_size
    }

    /// Whether the elements are contiguous in row-major order, so a kernel can use
    /// [`as_ptr`](Self::as_ptr) without a copy.
    #[must_use]
    pub fn is_dense(&self) -> bool {
        self.dense_bytes().is_some()
    }

    /// The address of the first element, aligned to the element size only.
    #[must_use]
    pub fn as_ptr(&self) -> *const u8 {
        self.bytes[(self.offset * self.element_size).min(self.bytes.len())..].as_ptr()
    }

    /// The bytes of the view if it [is dense](Self::is_dense).
    #[must_use]
    pub fn dense_bytes(&self) -> Option<&'a [u8]> {
        let axes = self.merged();
        let dense = self.elements == 0 || axes.is_empty() || matches!(axes[..], [(_, 1)]);
        let start = if self.elements == 0 { 0 } else { self.offset * self.element_size };
        dense.then(|| &self.bytes[start..start + self.elements * self.element_size])
    }

    /// Copies the elements in row-major order to the start of `target`, which is replaced by a larger
    /// buffer if it is too small.
    ///
    /// # Errors
    /// The larger buffer cannot be allocated.
    pub fn to_dense(&self, target: &mut AlignedBuffer) -> Result<(), AllocError> {
        let bytes = self.elements * self.element_size;
        if target.len() < bytes {
            *target = AlignedBuffer::new(bytes)?;
        }
        let target = &mut target.as_bytes_mut()[..bytes];
        match (self.dense_bytes(), self.element_size) {
            (Some(source), _) => target.copy_from_slice(source),
            (None, 1) => gather::<1>(self.bytes, self.offset, self.merged(), target),
            (None, 2) => gather::<2>(self.bytes, self.offset, self.merged(), target),
            (None, 4) => gather::<4>(self.bytes, self.offset, self.merged(), target),
            (None, _) => gather::<8>(self.bytes, self.offset, self.merged(), target),
        }
        Ok(())
    }

    /// The axes as (extent, stride), without those of extent one; axes are merged if a step of the
    /// outer one equals a whole run of the inner one.
    fn merged(&self) -> Vec<(usize, isize)> {
        let mut axes: Vec<(usize, isize)> = Vec::with_capacity(self.shape.len());
        for (&extent, &stride) in self.shape.iter().zip(&self.strides) {
            if extent == 1 {
                continue;
            }
            match axes.last_mut() {
                Some(outer) if Some(outer.1) == stride.checked_mul(extent as isize) => {
                    *outer = (outer.0 * extent, stride);
                }
                _ => axes.push((extent, stride)),
            }
        }
        axes
    }
}

/// The number of elements, if a dense copy of them fits into memory.
fn count(shape: &[usize], element_size: usize) -> Option<usize> {
    if shape.contains(&0) {
        return Some(0);
    }
    let elements = shape.iter().try_fold(1usize, |all, &extent| all.checked_mul(extent))?;
    isize::try_from(elements.checked_mul(element_size)?).ok()?;
    Some(elements)
}

/// Row-major strides of a shape whose elements fit into memory.
fn row_major(shape: &[usize]) -> Vec<isize> {
    let mut strides = vec![0; shape.len()];
    let mut inner = 1usize;
    for (stride, &extent) in strides.iter_mut().zip(shape).rev() {
        *stride = inner as isize;
        inner = inner.saturating_mul(extent);
    }
    strides
}

/// Checks that a view is inside its slice, and counts its elements.
fn check<T: Element>(
    base: &[T],
    offset: usize,
    shape: &[usize],
    strides: &[isize],
) -> Result<usize, ViewError> {
    if shape.len() != strides.len() {
        let (shape, strides) = (shape.len(), strides.len());
        return Err(ViewError::RankMismatch { shape, strides });
    }
    let elements = count(shape, size_of::<T>()).ok_or(ViewError::TooLarge)?;
    if elements > 0 {
        check_bounds(base.len(), offset, shape, strides)?;
    }
    Ok(elements)
}

fn check_bounds(
    len: usize,
    offset: usize,
    shape: &[usize],
    strides: &[isize],
) -> Result<(), ViewError> {
    let (mut lowest, mut highest) = (offset as i128, offset as i128);
    for (&extent, &stride) in shape.iter().zip(strides) {
        // Saturating: a product of 127 bits is out of bounds, whatever its value.
        let reach = (extent as i128 - 1).saturating_mul(stride as i128);
        let end = if reach < 0 { &mut lowest } else { &mut highest };
        *end = end.saturating_add(reach);
    }
    let inside = lowest >= 0 && highest < len as i128;
    if inside { Ok(()) } else { Err(ViewError::OutOfBounds { lowest, highest, len }) }
}
