//! System calls: anonymous files, limits, signals to process groups.
#![allow(unsafe_code, reason = "calls into the C library")]

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::fs::FileExt;

/// A memory file of `bytes` zeros that no other process can open.
pub(crate) fn memory_file(bytes: u64) -> io::Result<File> {
    let flags = libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING;
    // SAFETY: the name is a C string.
    let fd = check(unsafe { libc::memfd_create(c"tensorwright".as_ptr(), flags) })?;
    // SAFETY: the descriptor is new, and ours.
    let file = File::from(unsafe { OwnedFd::from_raw_fd(fd) });
    file.set_len(bytes)?;
    Ok(file)
}

/// Seals a memory file: no process can ever change it.
pub(crate) fn seal(file: &File) -> io::Result<()> {
    let seals = libc::F_SEAL_WRITE | libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_SEAL;
    // SAFETY: the call takes numbers.
    check(unsafe { libc::fcntl(file.as_raw_fd(), libc::F_ADD_SEALS, seals) }).map(drop)
}

/// Kills a process group.
pub(crate) fn kill_group(leader: u32) {
    let Ok(group) = libc::pid_t::try_from(leader) else { return };
    // SAFETY: the call takes numbers. The leader is a child that was not waited for yet, so that
    // its number belongs to nobody else. If all are gone already there is nothing to do.
    unsafe { libc::kill(-group, libc::SIGKILL) };
}

/// Makes this process end with its parent, whose id is given: it may already be gone.
pub(crate) fn end_with_parent(parent: u32) -> io::Result<()> {
    // SAFETY: the call takes numbers.
    check(unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) })?;
    match std::os::unix::process::parent_id() == parent {
        true => Ok(()),
        false => Err(io::Error::other("the parent has gone")),
    }
}

/// Moves a descriptor away from the standard streams and closes the old one.
pub(crate) fn take_descriptor(fd: RawFd) -> io::Result<OwnedFd> {
    /// Above the standard streams.
    const LOWEST: libc::c_int = 10;
    // SAFETY: the calls take numbers. Nothing in this process owns `fd`: it is a standard stream.
    unsafe {
        let copy = check(libc::fcntl(fd, libc::F_DUPFD_CLOEXEC, LOWEST))?;
        Ok(OwnedFd::from_raw_fd(copy))
    }
}

/// Replaces a standard stream with a file.
pub(crate) fn replace_stream(stream: RawFd, file: &File) -> io::Result<()> {
    // SAFETY: the call takes numbers; nothing in this process owns a standard stream.
    check(unsafe { libc::dup2(file.as_raw_fd(), stream) }).map(drop)
}

/// Pins this thread and the threads it starts to some processors.
pub(crate) fn stay_on(processors: &[usize]) -> io::Result<()> {
    let mut mask = std::mem::MaybeUninit::<libc::cpu_set_t>::zeroed();
    let known = processors.iter().filter(|processor| **processor < libc::CPU_SETSIZE as usize);
    // SAFETY: zero bytes are a mask, each processor is below its size, and the call reads it.
    check(unsafe {
        let mask = mask.assume_init_mut();
        known.for_each(|processor| libc::CPU_SET(*processor, mask));
        libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), mask)
    })
    .map(drop)
}

/// A limited resource.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Resource {
    /// Bytes of address space.
    AddressSpace,
    /// Seconds of CPU time.
    ProcessorTime,
    /// Bytes of a core file.
    Core,
    /// Bytes of a file that is written.
    FileSize,
    /// Processes and threads of the user.
    Processes,
}

/// Limits a resource of this process for good.
pub(crate) fn limit(resource: Resource, most: u64) -> io::Result<()> {
    let resource = match resource {
        Resource::AddressSpace => libc::RLIMIT_AS,
        Resource::ProcessorTime => libc::RLIMIT_CPU,
        Resource::Core => libc::RLIMIT_CORE,
        Resource::FileSize => libc::RLIMIT_FSIZE,
        Resource::Processes => libc::RLIMIT_NPROC,
    };
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: both calls are given a limit that lives on our stack.
    unsafe {
        check(libc::getrlimit(resource, &raw mut limit))?;
        limit.rlim_max = limit.rlim_max.min(most);
        limit.rlim_cur = limit.rlim_max;
        check(libc::setrlimit(resource, &raw const limit)).map(drop)
    }
}

/// Reads the address space of this process; opened while files can be.
#[derive(Debug)]
pub(crate) struct AddressSpace(File);

impl AddressSpace {
    pub(crate) fn open() -> io::Result<Self> {
        File::open("/proc/self/statm").map(Self)
    }

    /// The current bytes.
    pub(crate) fn bytes(&self) -> io::Result<u64> {
        let mut text = [0; 64];
        let count = self.0.read_at(&mut text, 0)?;
        let pages = std::str::from_utf8(&text[..count])
            .ok()
            .and_then(|text| text.split(' ').next().and_then(|pages| pages.parse::<u64>().ok()));
        // SAFETY: the call takes a number.
        let size = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
        let bytes = pages.and_then(|pages| pages.checked_mul(u64::try_from(size).ok()?));
        bytes.ok_or_else(|| io::Error::other("/proc/self/statm cannot be understood"))
    }
}

fn check(status: libc::c_int) -> io::Result<libc::c_int> {
    if status < 0 { Err(io::Error::last_os_error()) } else { Ok(status) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sealed_file_can_be_read_and_not_written() {
        let file = memory_file(16).unwrap();
        file.write_all_at(b"before", 0).unwrap();
        seal(&file).unwrap();
        assert!(file.write_all_at(b"after", 0).is_err());
        assert!(file.set_len(32).is_err());
        let mut bytes = [0; 6];
        file.read_exact_at(&mut bytes, 0).unwrap();
        assert_eq!(&bytes, b"before");
    }

    #[test]
    fn the_address_space_is_known() {
        assert!(AddressSpace::open().unwrap().bytes().unwrap() > 1 << 20);
    }
}
