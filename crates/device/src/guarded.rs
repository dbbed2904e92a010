//! [`GuardedMemory`]: device memory between guards that detect overruns.

use crate::{Device, DeviceError, Memory, Overrun};

/// The bytes on each side. Every device supports offsets that are multiples of it.
const GUARD: u64 = 64 << 10;

/// The guard pattern. Tensor values are unlikely to equal it.
const PATTERN: u8 = 0xa5;

/// Memory with a guard on each side that no kernel may write.
#[derive(Debug)]
pub struct GuardedMemory {
    whole: Memory,
    inside: Memory,
    bytes: u64,
}

impl GuardedMemory {
    /// Allocates uninitialized memory with guards.
    ///
    /// # Errors
    /// Those of [`Device::allocate`] and [`Device::part`].
    pub fn allocate(device: &mut dyn Device, bytes: u64) -> Result<Self, DeviceError> {
        let starved =
            DeviceError::OutOfMemory { device: device.describe().name().to_owned(), bytes };
        let total = bytes.checked_add(2 * GUARD).ok_or(starved)?;
        let whole = device.allocate(total)?;
        let inside = device.part(&whole, GUARD, bytes)?;
        let guarded = Self { whole, inside, bytes };
        guarded.restore(device)?;
        Ok(guarded)
    }

    /// The memory between the guards.
    #[must_use]
    pub fn memory(&self) -> &Memory {
        &self.inside
    }

    /// Writes both guards.
    fn restore(&self, device: &mut dyn Device) -> Result<(), DeviceError> {
        let pattern = [PATTERN; GUARD as usize];
        device.upload(&self.whole, 0, &pattern)?;
        device.upload(&self.whole, GUARD + self.bytes, &pattern)
    }

    /// The guard bytes that were overwritten since the last call, if any. The guards are restored.
    ///
    /// # Errors
    /// Those of [`Device::download`] and [`Device::upload`].
    pub fn overrun(&self, device: &mut dyn Device) -> Result<Option<Overrun>, DeviceError> {
        let mut written = |offset| {
            let mut guard = [0; GUARD as usize];
            device.download(&self.whole, offset, &mut guard)?;
            Ok(guard.iter().filter(|byte| **byte != PATTERN).count() as u64)
        };
        let (before, after) = (written(0)?, written(GUARD + self.bytes)?);
        if (before, after) == (0, 0) {
            return Ok(None);
        }
        self.restore(device)?;
        Ok(Some(Overrun { before, after }))
    }
}
