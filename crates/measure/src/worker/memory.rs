//! [`Region`]: memory for a candidate between inaccessible pages.
#![allow(unsafe_code, reason = "maps memory")]

use std::io;
use std::ptr::{self, NonNull};

use tensorwright_device::HostMemory;

/// The size of a huge page; regions of at least this size are aligned to it, as with
/// [`AlignedBuffer`](tensorwright_runtime::AlignedBuffer).
const HUGE_PAGE: usize = 2 << 20;

/// The byte in watched and in unwritten memory: NaN in every float type.
pub(super) const UNWRITTEN: u8 = 0xff;

/// The watched bytes after the used part of a region.
const WATCHED: usize = 4096;

/// Memory with inaccessible pages before and after it. Accesses not far beyond it end the process
/// instead of changing something else. The rest of its last page is filled with [`UNWRITTEN`], so
/// that a write there is detected ([`Region::is_intact`]).
///
/// It is mapped once and reused by all candidates: mapping and clearing 12 MB takes longer than
/// many kernels.
#[derive(Debug)]
pub(super) struct Region {
    /// The whole mapping, with the inaccessible pages.
    mapping: NonNull<u8>,
    mapped: usize,
    start: NonNull<u8>,
    len: usize,
    /// `len` rounded up to a page.
    accessible: usize,
}

// SAFETY: the region owns its memory, which is not tied to a thread.
unsafe impl Send for Region {}

impl Region {
    /// A region of zeros with all pages present.
    pub(super) fn new(len: usize) -> io::Result<Self> {
        let too_large = || io::Error::from(io::ErrorKind::OutOfMemory);
        let inner = len.max(1).checked_next_multiple_of(4096).ok_or_else(too_large)?;
        // Room to align the start to a huge page, and for an inaccessible page at either end.
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
        let mut region = Self { mapping, mapped, start, len, accessible: inner };
        region.protect(inner, libc::PROT_READ | libc::PROT_WRITE)?;
        // SAFETY: the range is inside the mapping; the advice changes no contents.
        unsafe { libc::madvise(start.as_ptr().cast(), inner, libc::MADV_HUGEPAGE) };
        region.bytes_mut().fill(0);
        // SAFETY: the range from the end of the bytes to the end of the accessible pages is ours
        // alone.
        unsafe { start.add(len).write_bytes(UNWRITTEN, inner - len) };
        Ok(region)
    }

    /// Whether the rest of the last page is unchanged.
    pub(super) fn is_intact(&self) -> bool {
        // SAFETY: the range is accessible, was initialised by `new`, and is borrowed like the region.
        let rest = unsafe {
            std::slice::from_raw_parts(
                self.start.as_ptr().add(self.len),
                self.accessible - self.len,
            )
        };
        rest.iter().all(|byte| *byte == UNWRITTEN)
    }

    /// Makes the memory read-only.
    pub(super) fn freeze(self) -> io::Result<ReadOnlyRegion> {
        self.protect(self.len.max(1), libc::PROT_READ)?;
        Ok(ReadOnlyRegion(self))
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

    /// The start, for a kernel to write to.
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
        // SAFETY: the mapping is ours, and no reference into it can exist any more.
        unsafe { libc::munmap(self.mapping.as_ptr().cast(), self.mapped) };
    }
}

/// A read-only region.
#[derive(Debug)]
pub(super) struct ReadOnlyRegion(Region);

impl ReadOnlyRegion {
    /// A region of `len` bytes that are written once.
    pub(super) fn filled(
        len: usize,
        fill: impl FnOnce(&mut [u8]) -> io::Result<()>,
    ) -> io::Result<Self> {
        let mut region = Region::new(len)?;
        fill(region.bytes_mut())?;
        region.freeze()
    }

    pub(super) fn bytes(&self) -> &[u8] {
        self.0.bytes()
    }

    /// The start, for a kernel to read from.
    pub(super) fn pointer(&self) -> *const u8 {
        self.0.start.as_ptr()
    }
}

// SAFETY: the mapping stays in place until the region is dropped. It is mapped for reading and
// writing, and only its owner can reach it.
unsafe impl HostMemory for Region {
    fn start(&self) -> *mut u8 {
        self.start.as_ptr()
    }

    fn len(&self) -> usize {
        self.len
    }

    fn is_read_only(&self) -> bool {
        false
    }
}

// SAFETY: as for `Region`, but mapped for reading only.
unsafe impl HostMemory for ReadOnlyRegion {
    fn start(&self) -> *mut u8 {
        self.0.start.as_ptr()
    }

    fn len(&self) -> usize {
        self.0.len
    }

    fn is_read_only(&self) -> bool {
        true
    }
}

/// A region that grows on demand.
#[derive(Debug, Default)]
pub(super) struct Reused(Option<Region>);

impl Reused {
    /// A region of at least `len` bytes, with its old contents or zeros.
    pub(super) fn at_least(&mut self, len: usize) -> io::Result<&mut Region> {
        if self.0.as_ref().is_some_and(|region| region.len < len) {
            self.0 = None;
        }
        match &mut self.0 {
            Some(region) => Ok(region),
            none => Ok(none.insert(Region::new(len)?)),
        }
    }

    /// Overwrites the first `len` bytes and the watched bytes after them.
    pub(super) fn poison(&mut self, len: usize) {
        let end = len.saturating_add(WATCHED);
        if let Some(region) = &mut self.0 {
            region.bytes_mut().iter_mut().take(end).for_each(|byte| *byte = UNWRITTEN);
        }
    }

    /// Whether the bytes after the first `len` are unchanged since they were
    /// [poisoned](Self::poison).
    pub(super) fn is_intact_behind(&self, len: usize) -> bool {
        self.0.as_ref().is_none_or(|region| {
            let mut watched = region.bytes().iter().skip(len).take(WATCHED);
            watched.all(|byte| *byte == UNWRITTEN) && region.is_intact()
        })
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
        assert_eq!(reused.at_least(20).unwrap().bytes(), [0; 20]);
        assert!(Region::new(usize::MAX).is_err());
        assert!(Region::new(1 << 60).is_err());
    }

    #[test]
    fn a_write_behind_the_end_is_noticed() {
        for len in [0, 1, 100, 4095] {
            let mut region = Region::new(len).unwrap();
            region.bytes_mut().fill(7);
            assert!(region.is_intact());
            // SAFETY: the rest of the page is accessible.
            unsafe { region.pointer().add(len).write(0) };
            assert!(!region.is_intact(), "{len}");
        }
        let mut reused = Reused::default();
        reused.at_least(9000).unwrap();
        reused.poison(100);
        assert!(reused.is_intact_behind(100));
        reused.at_least(100).unwrap().bytes_mut()[99] = 1;
        assert!(reused.is_intact_behind(100));
        reused.at_least(100).unwrap().bytes_mut()[115] = 1;
        assert!(!reused.is_intact_behind(100));
        reused.poison(9000);
        assert!(reused.is_intact_behind(9000));
    }
}
