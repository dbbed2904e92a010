//! Deadlines of launches, and who may end the wait for one.
//!
//! No API can stop a kernel. Whoever waits for one that does not end gets an error instead, and the device is of no use
//! to the process from then on: the kernel still has its queue and its memory.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::DeviceError;

/// How long a launch may take unless somebody says otherwise.
pub const DEFAULT_DEADLINE: Duration = Duration::from_secs(60);

/// How long nobody asks whether to go on waiting.
const SLICE: Duration = Duration::from_millis(100);

static MILLISECONDS: AtomicU64 = AtomicU64::new(DEFAULT_DEADLINE.as_millis() as u64);
static INTERRUPT: OnceLock<fn() -> bool> = OnceLock::new();

/// Sets how long the launches of a call may take, for all devices of this process.
pub fn set_deadline(deadline: Duration) {
    let milliseconds = u64::try_from(deadline.as_millis()).unwrap_or(u64::MAX);
    MILLISECONDS.store(milliseconds, Ordering::Relaxed);
}

/// How long the launches of a call may take.
#[must_use]
pub fn deadline() -> Duration {
    Duration::from_millis(MILLISECONDS.load(Ordering::Relaxed))
}

/// Sets what is asked ten times a second while this process waits for a launch: whether to give up. The first one
/// counts.
pub fn set_interrupt(interrupt: fn() -> bool) {
    let _ = INTERRUPT.set(interrupt);
}

/// Why a wait ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wait {
    Over,
    Late(Duration),
    Interrupted,
}

impl Wait {
    /// The error of a kernel on a device that was not waited for to the end.
    pub(crate) fn ended(self, device: &str, kernel: &str) -> Result<(), DeviceError> {
        let (device, kernel) = (device.to_owned(), kernel.to_owned());
        match self {
            Self::Over => Ok(()),
            Self::Late(deadline) => Err(DeviceError::Late { device, kernel, deadline }),
            Self::Interrupted => Err(DeviceError::Interrupted { device, kernel }),
        }
    }
}

/// Waits until something is over, which is asked with how long it may take to answer.
pub(crate) fn wait<E>(mut is_over: impl FnMut(Duration) -> Result<bool, E>) -> Result<Wait, E> {
    let (start, deadline) = (Instant::now(), deadline());
    loop {
        let left = deadline.saturating_sub(start.elapsed());
        if is_over(left.min(SLICE))? {
            return Ok(Wait::Over);
        }
        if start.elapsed() >= deadline {
            return Ok(Wait::Late(deadline));
        }
        if INTERRUPT.get().is_some_and(|interrupt| interrupt()) {
            return Ok(Wait::Interrupted);
        }
    }
}
