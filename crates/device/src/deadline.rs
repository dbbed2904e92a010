//! Deadlines and interrupts of launches.
//!
//! No API can stop a kernel. Waiting for a kernel that does not end fails with an error, and the
//! process cannot use the device any more: the kernel still occupies its queue and memory.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::DeviceError;

/// The default deadline of a launch.
pub const DEFAULT_DEADLINE: Duration = Duration::from_secs(60);

/// The time before the first interrupt poll.
const SLICE: Duration = Duration::from_millis(100);

static MILLISECONDS: AtomicU64 = AtomicU64::new(DEFAULT_DEADLINE.as_millis() as u64);
static INTERRUPT: OnceLock<fn() -> bool> = OnceLock::new();

/// Sets the deadline for the launches of a call, for all devices of this process.
pub fn set_deadline(deadline: Duration) {
    let milliseconds = u64::try_from(deadline.as_millis()).unwrap_or(u64::MAX);
    MILLISECONDS.store(milliseconds, Ordering::Relaxed);
}

/// The deadline for the launches of a call.
#[must_use]
pub fn deadline() -> Duration {
    Duration::from_millis(MILLISECONDS.load(Ordering::Relaxed))
}

/// Sets the callback that is polled ten times a second while this process waits for a launch; it
/// returns whether to give up. Only the first call has an effect.
pub fn set_interrupt(interrupt: fn() -> bool) {
    let _ = INTERRUPT.set(interrupt);
}

/// The reason why a wait ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wait {
    Over,
    Late(Duration),
    Interrupted,
}

impl Wait {
    /// The error for a kernel that did not end in time.
    pub(crate) fn ended(self, device: &str, kernel: &str) -> Result<(), DeviceError> {
        let (device, kernel) = (device.to_owned(), kernel.to_owned());
        match self {
            Self::Over => Ok(()),
            Self::Late(deadline) => Err(DeviceError::Late { device, kernel, deadline }),
            Self::Interrupted => Err(DeviceError::Interrupted { device, kernel }),
        }
    }
}

/// Waits until `is_over` returns true; its argument is the time that it may block.
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
