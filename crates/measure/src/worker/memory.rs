//! [`Region`]: memory for a candidate, with nothing beside it.
#![allow(unsafe_code, reason = "maps memory")]

use std::io;
use std::ptr::{self, NonNull};

/// The size of a huge page; regions that fill one start at one, as with
/// [`AlignedBuffer`](tensorwright_runtime::AlignedBuffer).
const HUGE_PAGE: usize = 2 << 20;

/// Memory with inaccessible pages before and after it. Reads and writes beyond it end the process
/// instead of changing something else, as long as they do not go far beyond.
///
/// It is mapped once and used by one candidate after the other: mapping and clearing 12 MB takes
/// longer than many kernels.
#[derive(Debug)]
pub(super) struct Region {
    /// All that is mapped, the inaccessible pages included.
    mapping: NonNull<u8>,
    mapped: usize,
    start: NonNull<u8>,
    len: usize,
}

// SAFETY: the region owns its memory, which is not tied to a thread.
unsafe impl Send for Region {}

impl Region {
    /// Zeros, all pages present.
    pub(super) fn new(len: usize) -> io::Result<Self> {
        let too_large = || io::Error::from(io::ErrorKind::OutOfMemory);
        let inner = len.max(1).checked_next_multiple_of(4096).ok_or_else(too_large)?;
        // Room to move the start to a huge page, and an inaccessible one at either end.
        let mapped = inner.checked_add(3 * HUGE_PAGE).ok_or_else(too_large)?;
        // SAFETY: a new private mapping without any access touches nothing that exists.
        let mapping = unsafe {
            let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
            libc::mmap(ptr::null_mut(), mapped, libc::PROT_NONE, flags, -1, 0)
        };
        if mapping == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let mapping = NonNull::new(mapping.cast::<u8>()).ok_or_else(too_large)?;
        let to_boundary = mapping.as_ptr().align_offset(HUGE_PAGE);
        let offset = if to_boundary == 0 { HUGE_PAGE } else { to_boundary };
        // SAFETY: `offset` is at most a huge page, and the mapping has three more than `inner`.
        let start = unsafe { mapping.add(offset) };
        let mut region = Self { mapping, mapped, start, len };
        region.protect(inner, libc::PROT_READ | libc::PROT_WRITE)?;
        // SAFETY: the range is inside the mapping; the advice changes no contents.
        unsafe { libc::madvise(start.as_ptr().cast(), inner, libc::MADV_HUGEPAGE) };
        region.bytes_mut().fill(0);
        Ok(region)
    }

    /// Makes the memory read-only: what a candidate must not change.
    pub(super) fn freeze(self) -> io::Result<Frozen> {
        self.protect(self.len.max(1), libc::PROT_READ)?;
        Ok(Frozen(self))
    }

    pub(super) fn bytes(&self) -> &[u8] {
        // SAFETY: the memory is mapped for reading, initialised (by the system, with zeros), and
        // borrowed as long as the slice lives.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }

    pub(super) fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `bytes`; mapped for writing until it is frozen, which takes the region away,
        // and borrowed exclusively.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.len) }
    }

    /// Where it starts, for a kernel to write to.
    pub(super) fn pointer(&mut self) -> *mut u8 {
        self.start.as_ptr()
    }

    fn protect(&self, len: usize, protection: libc::c_int) -> io::Result<()> {
        // SAFETY: the range starts at a page and ends inside the mapping, which is ours alone.
        let status = unsafe { libc::mprotect(self.start.as_ptr().cast(), len, protection) };
        if status == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, and nobody can have a reference into it any more.
        unsafe { libc::munmap(self.mapping.as_ptr().cast(), self.mapped) };
    }
}

/// A region that can only be read.
#[derive(Debug)]
pub(super) struct Frozen(Region);

impl Frozen {
    pub(super) fn bytes(&self) -> &[u8] {
        self.0.bytes()
    }

    /// Where it starts, for a kernel to read from.
    pub(super) fn pointer(&self) -> *const u8 {
        self.0.start.as_ptr()
    }
}

/// A region that grows with what is asked of it.
#[derive(Debug, Default)]
pub(super) struct Reused(Option<Region>);

impl Reused {
    /// A region of at least so many bytes, with whatever was in it before.
    pub(super) fn at_least(&mut self, len: usize) -> io::Result<&mut Region> {
        if self.0.as_ref().is_some_and(|region| region.len < len) {
            self.0 = None;
        }
        match &mut self.0 {
            Some(region) => Ok(region),
            none => Ok(none.insert(Region::new(len)?)),
        }
    }

    /// Fills so many bytes of it, or all that there are.
    pub(super) fn fill(&mut self, len: usize, byte: u8) {
        let filled =
            |region: &mut Region| region.bytes_mut().iter_mut().take(len).for_each(|b| *b = byte);
        self.0.iter_mut().for_each(filled);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn regions_are_zero_aligned_and_grow() {
        for len in [0, 1, 4095, 4096, 4097, HUGE_PAGE, HUGE_PAGE + 1] {
            let mut region = Region::new(len).unwrap();
            assert_eq!(region.bytes().len(), len);
            assert!(region.bytes().iter().all(|byte| *byte == 0));
            region.bytes_mut().fill(7);
            assert_eq!(region.pointer().align_offset(HUGE_PAGE), 0);
            let frozen = region.freeze().unwrap();
            assert!(frozen.bytes().iter().all(|byte| *byte == 7));
        }
        let mut reused = Reused::default();
        reused.at_least(10).unwrap().bytes_mut().fill(1);
        assert_eq!(reused.at_least(5).unwrap().bytes(), [1; 10]);
        reused.fill(5, 2);
        assert_eq!(reused.at_least(5).unwrap().bytes(), [2, 2, 2, 2, 2, 1, 1, 1, 1, 1]);
        reused.fill(usize::MAX, 1);
        assert_eq!(reused.at_least(5).unwrap().bytes(), [1; 10]);
        assert_eq!(reused.at_least(20).unwrap().bytes(), [0; 20]);
        assert!(Region::new(usize::MAX).is_err());
        assert!(Region::new(1 << 60).is_err());
    }
}
