//! [`AlignedBuffer`]: aligned, pre-faulted memory for kernels.
//!
//! Buffers are aligned to a cache line, so vectors never straddle two of them, and their pages are
//! mapped in advance, so timings never include page faults. Large buffers request huge pages: a
//! packed panel that spans hundreds of small pages costs more in address translation than in
//! arithmetic.
#![allow(unsafe_code, reason = "owns raw memory from the global allocator")]

use std::alloc::{Layout, alloc, dealloc};
use std::fmt;
use std::ptr::NonNull;

use crate::Element;
use crate::machine::physical_memory;

/// The alignment of every buffer in bytes: a cache line, and the widest vector.
pub const ALIGNMENT: usize = 64;

/// The default size of a huge page, where huge pages exist.
const HUGE_PAGE: usize = 2 << 20;

/// Owned, zeroed memory that is aligned to [`ALIGNMENT`] bytes.
///
/// ```
/// use tensorwright_runtime::AlignedBuffer;
///
/// let mut buffer = AlignedBuffer::new(4 * size_of::<f32>())?;
/// buffer.as_mut_slice::<f32>()[2] = 1.0;
/// assert_eq!(buffer.as_slice::<f32>(), [0.0, 0.0, 1.0, 0.0]);
/// # Ok::<(), tensorwright_runtime::AllocError>(())
/// ```
pub struct AlignedBuffer {
    start: NonNull<u8>,
    len: usize,
    layout: Layout,
}

/// Memory could not be allocated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AllocError {
    /// The requested bytes.
    pub bytes: usize,
}

impl fmt::Display for AllocError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot allocate {} bytes", self.bytes)
    }
}

impl std::error::Error for AllocError {}

// SAFETY: the buffer owns its memory alone, and hands it out only under the usual borrowing rules.
unsafe impl Send for AlignedBuffer {}
// SAFETY: as above; through a shared reference the memory can only be read.
unsafe impl Sync for AlignedBuffer {}

impl AlignedBuffer {
    /// Allocates `bytes` zero bytes with mapped pages.
    ///
    /// # Errors
    /// The allocator fails, or `bytes` exceeds the machine's memory. Some systems overcommit any
    /// amount and kill the process later, so the allocator alone cannot be trusted.
    pub fn new(bytes: usize) -> Result<Self, AllocError> {
        let error = AllocError { bytes };
        if physical_memory().is_some_and(|memory| bytes as u64 > memory) {
            return Err(error);
        }
        // An empty buffer owns one byte, which avoids a special case.
        let layout = Layout::from_size_align(bytes.max(1), alignment(bytes)).map_err(|_| error)?;
        // SAFETY: the layout's size is at least one.
        let start = NonNull::new(unsafe { alloc(layout) }).ok_or(error)?;
        advise_huge_pages(start, bytes);
        // Zeroes manually instead of in the allocator: after the advice, and touching every page.
        // SAFETY: the allocation has `layout.size()` bytes and nobody else knows of it.
        unsafe { start.write_bytes(0, layout.size()) };
        Ok(Self { start, len: bytes, layout })
    }

    /// Allocates memory for `count` elements, all zero.
    ///
    /// # Errors
    /// Like [`AlignedBuffer::new`].
    pub fn with_elements<T: Element>(count: usize) -> Result<Self, AllocError> {
        let bytes = count.checked_mul(size_of::<T>());
        Self::new(bytes.ok_or(AllocError { bytes: usize::MAX })?)
    }

    /// The size in bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether the buffer has no bytes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        self.as_slice()
    }

    /// The bytes, to write.
    #[must_use]
    pub fn as_bytes_mut(&mut self) -> &mut [u8] {
        self.as_mut_slice()
    }

    /// The memory as numbers; incomplete numbers at the end are dropped.
    #[must_use]
    pub fn as_slice<T: Element>(&self) -> &[T] {
        // SAFETY: the memory is initialised, aligned to more than any element, at least
        // `len / size_of` elements long, and borrowed for as long as the slice lives. Every bit
        // pattern is a value of an `Element`.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr().cast(), self.len / size_of::<T>()) }
    }

    /// The memory as mutable numbers; incomplete numbers at the end are dropped.
    #[must_use]
    pub fn as_mut_slice<T: Element>(&mut self) -> &mut [T] {
        // SAFETY: as in `as_slice`, and the borrow is exclusive. An `Element` has no padding, so the
        // memory stays initialised.
        unsafe {
            std::slice::from_raw_parts_mut(self.start.as_ptr().cast(), self.len / size_of::<T>())
        }
    }

    /// The start of the memory. Valid for reads of [`len`](Self::len) bytes while the buffer lives.
    #[must_use]
    pub fn as_ptr(&self) -> *const u8 {
        self.start.as_ptr()
    }

    /// The mutable start of the memory. Valid for [`len`](Self::len) bytes while the buffer lives.
    #[must_use]
    pub fn as_mut_ptr(&mut self) -> *mut u8 {
        self.start.as_ptr()
    }
}

impl Drop for AlignedBuffer {
    fn drop(&mut self) {
        // SAFETY: `start` came from `alloc` with this layout, and is given back once.
        unsafe { dealloc(self.start.as_ptr(), self.layout) };
    }
}

impl fmt::Debug for AlignedBuffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AlignedBuffer").field("len", &self.len).finish_non_exhaustive()
    }
}

/// The alignment: a huge page for buffers that fill one, otherwise a cache line.
fn alignment(bytes: usize) -> usize {
    if bytes >= HUGE_PAGE { HUGE_PAGE } else { ALIGNMENT }
}

/// Requests huge pages for the part of the memory that fills them.
#[cfg(target_os = "linux")]
fn advise_huge_pages(start: NonNull<u8>, bytes: usize) {
    let whole = bytes / HUGE_PAGE * HUGE_PAGE;
    if whole > 0 {
        // SAFETY: the range lies inside an allocation of ours and starts at a page boundary; the
        // advice changes how it is backed, never what it holds. A refusal is harmless.
        unsafe { libc::madvise(start.as_ptr().cast(), whole, libc::MADV_HUGEPAGE) };
    }
}

#[cfg(not(target_os = "linux"))]
fn advise_huge_pages(_start: NonNull<u8>, _bytes: usize) {}

#[cfg(test)]
mod tests {
    use super::{ALIGNMENT, AlignedBuffer, HUGE_PAGE};

    #[test]
    fn memory_is_zero_and_aligned() {
        for bytes in [0, 1, 63, 64, 1000, HUGE_PAGE - 1, HUGE_PAGE, 2 * HUGE_PAGE + 5] {
            let buffer = AlignedBuffer::new(bytes).unwrap();
            assert_eq!(buffer.len(), bytes);
            assert_eq!(buffer.is_empty(), bytes == 0);
            assert_eq!(buffer.as_ptr().align_offset(ALIGNMENT), 0);
            assert!(buffer.as_bytes().iter().all(|&byte| byte == 0));
        }
    }

    #[test]
    fn absurd_sizes_are_refused() {
        for bytes in [usize::MAX, isize::MAX as usize, isize::MAX as usize - 64, 1 << 50] {
            assert_eq!(AlignedBuffer::new(bytes).unwrap_err().bytes, bytes);
        }
        assert!(AlignedBuffer::with_elements::<f64>(usize::MAX / 4).is_err());
    }

    #[test]
    fn numbers_and_bytes_are_the_same_memory() {
        let mut buffer = AlignedBuffer::with_elements::<u16>(3).unwrap();
        buffer.as_mut_slice::<u16>().copy_from_slice(&[0x0102, 0x0304, 0x0506]);
        assert_eq!(buffer.as_bytes()[2..4], 0x0304u16.to_ne_bytes());
        assert_eq!(buffer.as_slice::<u32>().len(), 1, "the last two bytes do not fill a u32");
        buffer.as_bytes_mut().fill(0xff);
        assert_eq!(buffer.as_slice::<i16>(), [-1, -1, -1]);
        assert_eq!(buffer.as_slice::<u64>(), []);
        assert_eq!(buffer.as_mut_ptr().cast_const(), buffer.as_ptr());
    }

    #[test]
    fn buffers_move_between_threads() {
        let mut buffer = AlignedBuffer::with_elements::<f32>(8).unwrap();
        let buffer = std::thread::spawn(move || {
            buffer.as_mut_slice::<f32>().fill(2.5);
            buffer
        });
        assert_eq!(buffer.join().unwrap().as_slice::<f32>(), [2.5; 8]);
    }
}
