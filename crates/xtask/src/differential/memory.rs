#![allow(unsafe_code, reason = "maps memory with pages that trap, and lends it to generated code")]
//! Buffers that end at a trap page.
//!
//! ```text
//! | trap page | canaries ... | the buffer | trap page |
//! ```

use std::ffi::c_void;
use std::ptr;

/// The canary byte before a buffer.
const CANARY: u8 = 0x5c;

/// A buffer between pages that trap.
pub(crate) struct Guarded {
    base: *mut u8,
    mapped: usize,
    start: usize,
    bytes: usize,
}

impl Guarded {
    /// A buffer filled with a byte, whose address is a multiple of `alignment`, a power of two. It
    /// ends at a page that traps if its size is a multiple of the alignment.
    pub(crate) fn new(bytes: usize, alignment: usize, fill: u8) -> Result<Self, String> {
        let page = page_bytes();
        let padded = bytes.next_multiple_of(alignment.max(1));
        let inner = padded.next_multiple_of(page).max(page);
        let mapped = inner + 2 * page;
        // SAFETY: a new private mapping touches no existing memory.
        let base = unsafe {
            let (protection, flags) = (libc::PROT_NONE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
            libc::mmap(ptr::null_mut(), mapped, protection, flags, -1, 0)
        };
        if base == libc::MAP_FAILED {
            return Err("no memory".to_owned());
        }
        let memory = Self { base: base.cast(), mapped, start: page + inner - padded, bytes };
        memory.protect(libc::PROT_READ | libc::PROT_WRITE)?;
        // SAFETY: the pages between the first and the last are ours and writable.
        unsafe {
            memory.base.add(page).write_bytes(CANARY, inner);
            memory.base.add(memory.start).write_bytes(fill, bytes);
        }
        Ok(memory)
    }

    /// A buffer with contents that traps on writes.
    pub(crate) fn read_only(contents: &[u8]) -> Result<Self, String> {
        let memory = Self::new(contents.len(), 1, 0)?;
        // SAFETY: the buffer is as long as the contents, and new.
        unsafe { memory.base.add(memory.start).copy_from(contents.as_ptr(), contents.len()) };
        memory.protect(libc::PROT_READ)?;
        Ok(memory)
    }

    /// Where it starts.
    pub(crate) fn address(&self) -> *mut c_void {
        // SAFETY: `start` is inside of the mapping.
        unsafe { self.base.add(self.start).cast() }
    }

    /// The contents.
    pub(crate) fn contents(&self) -> Vec<u8> {
        self.read(self.start, self.bytes)
    }

    /// Whether the bytes around it are unchanged.
    pub(crate) fn is_intact(&self) -> bool {
        let page = page_bytes();
        let (end, last) = (self.start + self.bytes, self.mapped - page);
        let before = self.read(page, self.start - page);
        let after = self.read(end, last - end);
        before.iter().chain(&after).all(|byte| *byte == CANARY)
    }

    fn read(&self, from: usize, bytes: usize) -> Vec<u8> {
        // SAFETY: callers stay between the pages that trap; what is there is initialised, and
        // nobody writes while we read.
        unsafe { std::slice::from_raw_parts(self.base.add(from), bytes) }.to_vec()
    }

    /// Sets the protection of everything between the trap pages.
    fn protect(&self, protection: i32) -> Result<(), String> {
        let page = page_bytes();
        // SAFETY: the pages are ours.
        let status = unsafe {
            libc::mprotect(self.base.add(page).cast(), self.mapped - 2 * page, protection)
        };
        if status == 0 { Ok(()) } else { Err("memory cannot be protected".to_owned()) }
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, and nothing borrows it.
        unsafe { libc::munmap(self.base.cast(), self.mapped) };
    }
}

fn page_bytes() -> usize {
    // SAFETY: a query without arguments in memory.
    let bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    usize::try_from(bytes).unwrap_or(4096)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_end_at_a_page_and_hold_their_contents() {
        let memory = Guarded::read_only(&[1, 2, 3]).unwrap();
        assert_eq!(memory.contents(), [1, 2, 3]);
        assert_eq!((memory.address() as usize + 3) % page_bytes(), 0);
        assert!(memory.is_intact());
    }

    #[test]
    fn a_write_before_a_buffer_is_noticed() {
        let memory = Guarded::new(100, 64, 0xff).unwrap();
        assert_eq!(memory.address() as usize % 64, 0);
        assert_eq!(memory.contents(), [0xff; 100]);
        assert!(memory.is_intact());
        // SAFETY: the byte before the buffer is in the same page.
        unsafe { memory.address().cast::<u8>().sub(1).write(0) };
        assert!(!memory.is_intact());
    }
}
