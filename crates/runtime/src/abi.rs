//! The C types of the interface between a kernel and its caller.
//!
//! ```c
//! typedef void (*tw_task)(void *context, int64_t begin, int64_t end, int32_t worker);
//! typedef struct tw_pool {
//!     void (*run)(struct tw_pool *self, tw_task task, void *context, int64_t count);
//!     int32_t workers;
//! } tw_pool;
//!
//! int32_t NAME(void *const *buffers, void *workspace, tw_pool *pool);
//! ```
//!
//! [`Pool::as_abi`](crate::Pool::as_abi) is this crate's implementation. C callers may use another
//! one, or none: with a null pool, a kernel runs in the calling thread.

use std::ffi::c_void;

/// Part of a parallel loop: iterations `begin..end`, run by `worker`.
///
/// A task must not unwind.
pub type Task = unsafe extern "C" fn(context: *mut c_void, begin: i64, end: i64, worker: i32);

/// Calls `task` so that every iteration of `0..count` runs once, and returns when all are done.
/// Workers are numbered from 0 to below [`Pool::workers`]; no two ranges run with the same number
/// at the same time.
pub type Run = unsafe extern "C" fn(pool: *mut Pool, task: Task, context: *mut c_void, count: i64);

/// The interface of a thread pool; `tw_pool` in C.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Pool {
    /// Runs a parallel loop.
    pub run: Run,
    /// An upper bound on worker numbers.
    pub workers: i32,
}

/// A compiled kernel, or the function that prepares its constant inputs.
///
/// `buffers` holds the parameters in order, `workspace` is scratch memory (64-byte aligned, of the
/// size the kernel asks for), and `pool` may be null. Returns 0, or 1 + n where n is the number of a
/// read whose data-dependent subscript was out of bounds.
pub type KernelFn = unsafe extern "C" fn(
    buffers: *const *mut c_void,
    workspace: *mut c_void,
    pool: *mut Pool,
) -> i32;
