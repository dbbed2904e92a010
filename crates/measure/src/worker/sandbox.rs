//! The sandbox of candidates.
//!
//! It denies files, sockets, new processes and access to other processes, and limits memory and
//! time. There are three independent layers. *Landlock* takes away the file system and TCP where
//! the system has it. A *seccomp* filter answers `EPERM` to every system call except those for
//! computing, allocating, linking an object and writing to open descriptors; it comes last, when
//! the threads of the pool exist, so that no new ones can start. *Resource limits* hold for memory,
//! CPU time, files and core dumps.

use std::collections::BTreeMap;
use std::io;

use landlock::{ABI, Access, AccessFs, AccessNet, CompatLevel, Compatible, Ruleset, RulesetAttr};
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, apply_filter_all_threads,
};

use crate::system::{self, AddressSpace, Resource};

/// The CPU seconds after which a runner ends whatever it does; the parent replaces it before that.
pub(crate) const PROCESSOR_SECONDS: u64 = 3600;

/// The system calls that are allowed with any arguments.
const ALLOWED: &[libc::c_long] = &[
    // Messages, and output of candidates.
    libc::SYS_read,
    libc::SYS_write,
    libc::SYS_readv,
    libc::SYS_writev,
    libc::SYS_close,
    libc::SYS_recvfrom,
    libc::SYS_sendto,
    // Memory.
    libc::SYS_mmap,
    libc::SYS_munmap,
    libc::SYS_mprotect,
    libc::SYS_mremap,
    libc::SYS_madvise,
    libc::SYS_brk,
    libc::SYS_membarrier,
    // Threads that exist already, and the clock.
    libc::SYS_futex,
    libc::SYS_sched_yield,
    libc::SYS_sched_getaffinity,
    libc::SYS_getcpu,
    libc::SYS_clock_gettime,
    libc::SYS_clock_nanosleep,
    libc::SYS_nanosleep,
    libc::SYS_getrusage,
    libc::SYS_sysinfo,
    libc::SYS_getrandom,
    // Exits and aborts.
    libc::SYS_exit,
    libc::SYS_exit_group,
    libc::SYS_rt_sigreturn,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigaction,
    libc::SYS_sigaltstack,
    libc::SYS_restart_syscall,
    libc::SYS_getpid,
    libc::SYS_gettid,
];

/// Takes away the file system where the system supports it: the first layer, for all threads
/// started from now on.
pub(super) fn leave_files() -> Result<(), String> {
    let abi = ABI::V4;
    Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(abi))
        .and_then(|ruleset| ruleset.handle_access(AccessNet::from_all(abi)))
        .and_then(Ruleset::create)
        .and_then(|ruleset| ruleset.restrict_self())
        .map(drop)
        .map_err(|error| format!("cannot restrict files: {error}"))
}

/// Takes away the rest, for all threads: limits with `memory` bytes beyond current use, and the
/// filter.
pub(super) fn enter(used: &AddressSpace, memory: u64) -> Result<(), String> {
    let limits = || -> io::Result<()> {
        system::limit(Resource::AddressSpace, used.bytes()?.saturating_add(memory))?;
        system::limit(Resource::ProcessorTime, PROCESSOR_SECONDS)?;
        system::limit(Resource::Core, 0)?;
        system::limit(Resource::FileSize, 0)?;
        system::limit(Resource::Processes, 0)
    };
    limits().map_err(|error| format!("cannot limit the process: {error}"))?;
    let filter = filter().map_err(|error| format!("cannot make a filter: {error}"))?;
    apply_filter_all_threads(&filter)
        .map_err(|error| format!("cannot filter system calls: {error}"))
}

/// Limits a process that runs kernels on a device: core files, and memory beyond current use if the
/// device shares this machine's memory. Runtimes compile, keep caches and talk to drivers through
/// files, and kernels make no system calls: the parent watches their time and the process.
pub(super) fn limit_device(shares_memory: bool, memory: u64) -> Result<(), String> {
    let limits = || -> io::Result<()> {
        if shares_memory {
            let used = AddressSpace::open()?.bytes()?;
            system::limit(Resource::AddressSpace, used.saturating_add(memory))?;
        }
        system::limit(Resource::Core, 0)
    };
    limits().map_err(|error| format!("cannot limit the process: {error}"))
}

fn filter() -> Result<BpfProgram, seccompiler::BackendError> {
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> =
        ALLOWED.iter().map(|call| (*call, Vec::new())).collect();
    // `abort` signals its own thread; no other target is allowed.
    let ours = SeccompCondition::new(
        0,
        SeccompCmpArgLen::Dword,
        SeccompCmpOp::Eq,
        u64::from(std::process::id()),
    )?;
    rules.insert(libc::SYS_tgkill, vec![SeccompRule::new(vec![ours])?]);
    let denied = SeccompAction::Errno(libc::EPERM as u32);
    let arch = std::env::consts::ARCH.try_into()?;
    SeccompFilter::new(rules, denied, SeccompAction::Allow, arch)?.try_into()
}
