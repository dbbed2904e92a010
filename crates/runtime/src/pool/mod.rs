//! [`Pool`]: a thread pool for the parallel loops of kernels.
//!
//! A kernel's parallel loop often lasts ten microseconds, so entering and leaving it must take less
//! than one. The caller works too, as worker 0. Helpers are pinned to their own CPUs, spin for a
//! short time when idle, and then park. `spin_policy.rs` handles oversubscribed machines, `job.rs`
//! distributes work, and `slot.rs` explains why there is no data race. Measurements are in
//! `docs/threads.md`.
//!
//! The caller never waits for a helper that has not begun: it takes over that helper's share, chunk
//! by chunk, and withdraws the offer. A late helper (parked, or descheduled) therefore only costs
//! its help.
#![allow(unsafe_code, reason = "implements the C interface of a pool")]

mod fork_generation;
mod job;
mod slot;
mod spin_policy;

use std::cell::Cell;
use std::collections::BTreeMap;
use std::ffi::c_void;
use std::fmt;
use std::io;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::thread::{self, JoinHandle};

use self::fork_generation::ForkGeneration;
use self::job::{Body, Job};
use self::slot::Slot;
use self::spin_policy::SpinPolicy;
use crate::{abi, affinity};

/// The largest number of threads of a pool.
pub const MAX_THREADS: usize = 1024;

/// Threads that run parallel loops together with the caller of [`Pool::run`].
///
/// ```
/// use std::sync::atomic::{AtomicI64, Ordering};
/// use tensorwright_runtime::Pool;
///
/// let pool = Pool::new(2)?;
/// let sum = AtomicI64::new(0);
/// pool.run(1000, &|range, _worker| {
///     sum.fetch_add(range.sum(), Ordering::Relaxed);
/// });
/// assert_eq!(sum.into_inner(), 499_500);
/// # Ok::<(), tensorwright_runtime::PoolError>(())
/// ```
pub struct Pool {
    shared: Arc<Shared>,
    helpers: Vec<JoinHandle<()>>,
    processors: Vec<Option<usize>>,
}

/// The reason why a pool cannot be created.
#[derive(Debug)]
#[non_exhaustive]
pub enum PoolError {
    /// The number of threads is zero or more than [`MAX_THREADS`].
    Threads(usize),
    /// The system failed to start a thread.
    Spawn(io::Error),
}

impl fmt::Display for PoolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Threads(threads) => {
                write!(f, "a pool has 1 to {MAX_THREADS} threads, not {threads}")
            }
            Self::Spawn(error) => write!(f, "cannot start a thread: {error}"),
        }
    }
}

impl std::error::Error for PoolError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Threads(_) => None,
            Self::Spawn(error) => Some(error),
        }
    }
}

/// The shared state of a pool. The C interface comes first: a pointer to it is also a pointer to
/// the whole.
#[repr(C)]
struct Shared {
    abi: abi::Pool,
    spin_policy: SpinPolicy,
    /// The process of the helper threads.
    generation: ForkGeneration,
    /// Whether some thread is in `run`.
    busy: AtomicBool,
    /// For each CPU, whether a helper is pinned to it.
    taken: Vec<bool>,
    /// One per worker; that of worker 0 is only a cursor.
    slots: Vec<Slot>,
    /// The helpers' threads, set once before the first run.
    threads: OnceLock<Vec<thread::Thread>>,
}

/// The pool and worker number of the current thread, while it runs a task. The pool is identified
/// by its address, which is never dereferenced.
#[derive(Clone, Copy)]
struct Role {
    pool: *const Shared,
    worker: usize,
}

thread_local! {
    static ROLE: Cell<Option<Role>> = const { Cell::new(None) };
}

impl Pool {
    /// A pool of `threads` threads, one of which is the caller of [`Pool::run`].
    ///
    /// Helpers are pinned to distinct CPUs of the calling thread's affinity mask, except the one it
    /// runs on. If there are fewer CPUs than threads, no thread is pinned and none spins.
    ///
    /// # Errors
    /// The number of threads is out of range, or the system fails to start one.
    pub fn new(threads: usize) -> Result<Self, PoolError> {
        if !(1..=MAX_THREADS).contains(&threads) {
            return Err(PoolError::Threads(threads));
        }
        let processors = place(threads);
        // A container's quota can be smaller than its affinity mask.
        let available = thread::available_parallelism().map_or(1, usize::from);
        let shared = Arc::new(Shared {
            abi: abi::Pool { run: run_abi, workers: threads as i32 },
            spin_policy: SpinPolicy::new(threads <= available),
            generation: ForkGeneration::here(),
            busy: AtomicBool::new(false),
            taken: taken(&processors),
            slots: (0..threads).map(|_| Slot::new()).collect(),
            threads: OnceLock::new(),
        });
        let mut pool = Self { shared, helpers: Vec::new(), processors };
        for worker in 1..threads {
            // If this fails, dropping the unfinished pool ends the existing helpers.
            pool.helpers.push(pool.spawn(worker).map_err(PoolError::Spawn)?);
        }
        let threads = pool.helpers.iter().map(|helper| helper.thread().clone()).collect();
        pool.shared.threads.get_or_init(|| threads);
        Ok(pool)
    }

    /// A process-wide shared pool of `threads` threads. It ends with its last user.
    ///
    /// # Errors
    /// As [`Pool::new`].
    pub fn shared(threads: usize) -> Result<Arc<Self>, PoolError> {
        static POOLS: Mutex<BTreeMap<usize, Weak<Pool>>> = Mutex::new(BTreeMap::new());
        let mut pools = POOLS.lock().unwrap_or_else(PoisonError::into_inner);
        let found = pools.get(&threads).and_then(Weak::upgrade);
        if let Some(pool) = found.filter(|pool| pool.shared.generation.is_here()) {
            return Ok(pool);
        }
        let pool = Arc::new(Self::new(threads)?);
        pools.insert(threads, Arc::downgrade(&pool));
        Ok(pool)
    }

    /// The number of workers, including the caller.
    #[must_use]
    pub fn workers(&self) -> usize {
        self.shared.slots.len()
    }

    /// The CPU of each worker, if threads can be pinned and there are enough CPUs. Worker 0 is the
    /// caller, which only [`Pool::pin_caller`] pins.
    #[must_use]
    pub fn processors(&self) -> &[Option<usize>] {
        &self.processors
    }

    /// Whether threads currently park at once, because the machine has fewer CPUs than the pool has
    /// threads, or because spinning threads were descheduled recently.
    #[must_use]
    pub fn is_crowded(&self) -> bool {
        self.shared.spin_policy.is_crowded()
    }

    /// Pins the calling thread to the CPU of worker 0 until the guard is dropped: for measurements.
    ///
    /// # Errors
    /// There is no such CPU, or the system refuses.
    pub fn pin_caller(&self) -> io::Result<affinity::Pin> {
        let processor = self.processors.first().copied().flatten();
        affinity::pin(processor.ok_or(io::ErrorKind::Unsupported)?)
    }

    /// Calls `body` with ranges that cover `0..count` once, on all workers concurrently, and
    /// returns when all are done. The second argument is the worker, below [`Pool::workers`]; no
    /// two calls with the same worker overlap.
    ///
    /// A nested run, a run while another thread uses the pool, and a run in a forked process use
    /// the calling thread only: inside a task of this pool with that task's worker number,
    /// otherwise as worker 0.
    ///
    /// # Panics
    /// If `body` panics, with the first panic. Iterations that had not begun may then be skipped.
    pub fn run(&self, count: i64, body: &(dyn Fn(Range<i64>, usize) + Sync)) {
        self.shared.run(count, body);
    }

    /// The C interface of this pool, for kernels. The pointer is valid while the pool lives, and
    /// several threads may use it.
    #[must_use]
    pub fn as_abi(&self) -> *mut abi::Pool {
        Arc::as_ptr(&self.shared).cast_mut().cast()
    }

    fn spawn(&self, worker: usize) -> io::Result<JoinHandle<()>> {
        let shared = Arc::clone(&self.shared);
        let processor = self.processors.get(worker).copied().flatten();
        thread::Builder::new().name(format!("tensorwright-{worker}")).spawn(move || {
            // Without pinning, the thread works as well, but its timing varies more.
            let _pin = processor.map(affinity::pin);
            ROLE.set(Some(Role { pool: Arc::as_ptr(&shared), worker }));
            let slot = &shared.slots[worker];
            while slot.serve(&shared.spin_policy, |job| shared.work(job, worker)) {}
        })
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        if !self.shared.generation.is_here() {
            return;
        }
        for (slot, helper) in self.shared.slots[1..].iter().zip(&self.helpers) {
            slot.quit(helper.thread());
        }
        for helper in self.helpers.drain(..) {
            // A helper catches the panics of its tasks; if it ended for another reason, it is gone.
            let _ = helper.join();
        }
    }
}

impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let processors = &self.processors;
        f.debug_struct("Pool").field("processors", processors).finish_non_exhaustive()
    }
}

impl Shared {
    fn run(&self, count: i64, body: &Body<'_>) {
        if count <= 0 {
            return;
        }
        if let Some(role) = ROLE.get() {
            let worker = if std::ptr::eq(role.pool, self) { role.worker } else { 0 };
            return body(0..count, worker);
        }
        let alone = count == 1 || self.slots.len() == 1 || !self.generation.is_here();
        if alone || self.busy.swap(true, Ordering::Acquire) {
            return body(0..count, 0);
        }
        ROLE.set(Some(Role { pool: self, worker: 0 }));
        let job = Job::new(body, count, self.slots.len());
        self.fork_join(&job);
        ROLE.set(None);
        self.busy.store(false, Ordering::Release);
        job.finish();
    }

    /// Never unwinds: the job keeps the panics of tasks. Afterwards no worker borrows the job.
    fn fork_join(&self, job: &Job<'_>) {
        let threads = self.threads.get().map_or(&[][..], Vec::as_slice);
        let here = affinity::current().and_then(|processor| self.taken.get(processor));
        if here == Some(&true) {
            self.spin_policy.report_collision();
        }
        // Resets all cursors before the first offer, because a running helper may look at any
        // share.
        for slot in &self.slots {
            slot.reset();
        }
        for (slot, helper) in self.slots[1..].iter().zip(threads) {
            slot.offer(job, helper);
        }
        self.work(job, 0);
        for slot in &self.slots[1..] {
            slot.join(&self.spin_policy);
        }
    }

    fn work(&self, job: &Job<'_>, worker: usize) {
        job.work(worker, |share| self.slots[share].claim());
    }
}

/// A CPU for each worker, if there are enough, starting with the caller's.
fn place(threads: usize) -> Vec<Option<usize>> {
    let mut allowed = affinity::allowed();
    if allowed.len() < threads {
        return vec![None; threads];
    }
    let here = affinity::current();
    if let Some(here) = allowed.iter().position(|&processor| Some(processor) == here) {
        allowed[..=here].rotate_right(1);
    }
    allowed.into_iter().take(threads).map(Some).collect()
}

/// For each CPU, whether a helper uses it.
fn taken(processors: &[Option<usize>]) -> Vec<bool> {
    let helpers = || processors.iter().skip(1).flatten().copied();
    let mut taken = vec![false; helpers().max().map_or(0, |last| last + 1)];
    helpers().for_each(|processor| taken[processor] = true);
    taken
}

/// A C context, which all workers may use, as the kernel's author guarantees.
struct Context(*mut c_void);

// SAFETY: callers of `abi::Pool::run` guarantee that the task may be called with this context from
// several threads at once; the pointer itself is only passed on.
unsafe impl Sync for Context {}

impl Context {
    fn get(&self) -> *mut c_void {
        self.0
    }
}

/// [`Pool::run`] for kernels.
///
/// # Safety
/// `pool` comes from [`Pool::as_abi`] of a pool that lives, and `task` may be called with `context`
/// from several threads at once.
unsafe extern "C" fn run_abi(
    pool: *mut abi::Pool,
    task: abi::Task,
    context: *mut c_void,
    count: i64,
) {
    // SAFETY: `as_abi` made the pointer from one to `Shared`, of which the interface is the first
    // field, and the pool lives. Only shared references to it exist.
    let shared = unsafe { &*pool.cast_const().cast::<Shared>() };
    let context = Context(context);
    shared.run(count, &|range, worker| {
        // SAFETY: the caller promises that the task may be called so.
        unsafe { task(context.get(), range.start, range.end, worker as i32) }
    });
}
