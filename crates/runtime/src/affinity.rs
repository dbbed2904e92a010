//! CPU affinity: the allowed CPUs, and pinning threads to them.
//!
//! On systems without these calls (anything but Linux), the list is empty and pinning fails;
//! callers then leave placement to the scheduler.
#![allow(unsafe_code, reason = "calls into the C library")]

use std::io;
use std::marker::PhantomData;

/// The CPUs that the calling thread may run on, in order. Empty if unknown.
#[must_use]
pub fn allowed() -> Vec<usize> {
    system::mask().map(|mask| system::members(&mask)).unwrap_or_default()
}

/// The CPU that the calling thread runs on, which is only a hint unless it is pinned.
#[must_use]
pub fn current() -> Option<usize> {
    system::current()
}

/// The logical CPUs of the core of `processor`, including itself; only itself if the system does
/// not say.
#[must_use]
pub fn siblings(processor: usize) -> Vec<usize> {
    let path = format!("/sys/devices/system/cpu/cpu{processor}/topology/thread_siblings_list");
    let list = std::fs::read_to_string(path).unwrap_or_default();
    let siblings = processors(&list);
    if siblings.contains(&processor) { siblings } else { vec![processor] }
}

/// CPUs in Linux's list format: `0,4`, `0-1`.
fn processors(list: &str) -> Vec<usize> {
    let range = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (usize, usize) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
        (last.checked_sub(first)? < 1024).then_some(first..=last)
    };
    list.split(',').filter_map(range).flatten().collect()
}

/// Pins its thread to one CPU; dropping it restores the former mask.
#[derive(Debug)]
pub struct Pin {
    former: system::Mask,
    /// The mask belongs to the thread, so the guard must stay on it.
    _not_send: PhantomData<*const ()>,
}

/// Pins the calling thread to `processor` until the guard is dropped.
///
/// # Errors
/// The CPU does not exist or is not allowed, or the system has no such call.
pub fn pin(processor: usize) -> io::Result<Pin> {
    let former = system::mask()?;
    system::set_mask(&system::single(processor)?)?;
    Ok(Pin { former, _not_send: PhantomData })
}

impl Drop for Pin {
    fn drop(&mut self) {
        // The former mask was valid a moment ago. It can only be refused if CPUs were removed, and
        // then the system has already chosen others.
        let _ = system::set_mask(&self.former);
    }
}

#[cfg(target_os = "linux")]
mod system {
    use std::io;
    use std::mem::{MaybeUninit, size_of};

    pub(super) type Mask = libc::cpu_set_t;

    pub(super) fn mask() -> io::Result<Mask> {
        let mut mask = MaybeUninit::<Mask>::zeroed();
        // SAFETY: the call writes at most `size_of::<Mask>()` bytes to `mask`.
        let status = unsafe { libc::sched_getaffinity(0, size_of::<Mask>(), mask.as_mut_ptr()) };
        check(status)?;
        // SAFETY: a mask is an array of integers, for which zero bytes are a value.
        Ok(unsafe { mask.assume_init() })
    }

    pub(super) fn set_mask(mask: &Mask) -> io::Result<()> {
        // SAFETY: the call reads `size_of::<Mask>()` bytes of `mask`.
        check(unsafe { libc::sched_setaffinity(0, size_of::<Mask>(), mask) })
    }

    pub(super) fn single(processor: usize) -> io::Result<Mask> {
        if processor >= libc::CPU_SETSIZE as usize {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        // SAFETY: zero bytes are a mask, and `processor` is below the size of a mask.
        unsafe {
            let mut mask = MaybeUninit::<Mask>::zeroed().assume_init();
            libc::CPU_SET(processor, &mut mask);
            Ok(mask)
        }
    }

    pub(super) fn members(mask: &Mask) -> Vec<usize> {
        let all = 0..libc::CPU_SETSIZE as usize;
        // SAFETY: each processor is below the size of a mask.
        all.filter(|&processor| unsafe { libc::CPU_ISSET(processor, mask) }).collect()
    }

    pub(super) fn current() -> Option<usize> {
        // SAFETY: the call takes nothing and touches no memory of ours.
        usize::try_from(unsafe { libc::sched_getcpu() }).ok()
    }

    fn check(status: libc::c_int) -> io::Result<()> {
        if status == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }
}

#[cfg(not(target_os = "linux"))]
mod system {
    use std::io;

    #[derive(Debug)]
    pub(super) struct Mask;

    pub(super) fn mask() -> io::Result<Mask> {
        Err(io::ErrorKind::Unsupported.into())
    }

    pub(super) fn set_mask(_mask: &Mask) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    pub(super) fn single(_processor: usize) -> io::Result<Mask> {
        Err(io::ErrorKind::Unsupported.into())
    }

    pub(super) fn members(_mask: &Mask) -> Vec<usize> {
        Vec::new()
    }

    pub(super) fn current() -> Option<usize> {
        None
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::{allowed, current, pin, processors, siblings};

    #[test]
    fn siblings_are_read_as_linux_lists_them() {
        assert_eq!(processors("0,4\n"), [0, 4]);
        assert_eq!(processors("2-3"), [2, 3]);
        assert_eq!(processors("3-2,x,,0-99999999"), [] as [usize; 0]);
        assert!(siblings(0).contains(&0));
        assert_eq!(siblings(987_654), [987_654]);
    }

    #[test]
    fn a_pinned_thread_stays_and_is_set_free() {
        let before = allowed();
        let last = *before.last().unwrap();
        let guard = pin(last).unwrap();
        assert_eq!(allowed(), [last]);
        assert_eq!(current(), Some(last));
        drop(guard);
        assert_eq!(allowed(), before);
    }

    #[test]
    fn impossible_processors_are_errors() {
        assert!(pin(usize::MAX).is_err());
        assert!(pin(1023).is_err());
    }
}
