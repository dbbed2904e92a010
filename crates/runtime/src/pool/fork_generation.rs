//! Detects whether the process was forked since the pool was created.
//!
//! A forked child has a copy of the pool but none of its helper threads: waiting for them would
//! hang. Interpreters fork (Python's `multiprocessing` does), so children must detect this.
#![allow(unsafe_code, reason = "asks the C library to tell of forks")]

use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The number of forks between the first process and this one.
static GENERATION: AtomicUsize = AtomicUsize::new(0);

/// The process that created this value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ForkGeneration {
    generation: usize,
}

impl ForkGeneration {
    /// The current process.
    pub(super) fn here() -> Self {
        static TOLD: OnceLock<()> = OnceLock::new();
        TOLD.get_or_init(|| {
            // SAFETY: the handler only counts, which is allowed in a child that was forked from any
            // state. If it cannot be registered, forks are not noticed, as without it.
            unsafe { libc::pthread_atfork(None, None, Some(forked)) };
        });
        Self { generation: GENERATION.load(Ordering::Relaxed) }
    }

    /// Whether the current process is the same.
    pub(super) fn is_here(self) -> bool {
        self.generation == GENERATION.load(Ordering::Relaxed)
    }
}

unsafe extern "C" fn forked() {
    GENERATION.fetch_add(1, Ordering::Relaxed);
}
