//! Device memory that detects out-of-bounds writes.
//!
//! If a device works on the memory of this process, tensors lie between inaccessible pages: an
//! access beyond them ends the process, and inputs are read-only. The rest of the last page, and 64
//! KiB after the tensor on other devices, holds a pattern that is checked afterwards.

use std::io;

use tensorwright_device::{Device, DeviceError, Memory};

use crate::worker::memory::{ReadOnlyRegion, Region, UNWRITTEN};

const PAGE: u64 = 4096;

/// The watched bytes after memory that is not between inaccessible pages.
const GUARD: u64 = 64 << 10;

/// The bytes uploaded at once.
const CHUNK: usize = 1 << 20;

/// Memory of `bytes` bytes and the rest of a page, all [`UNWRITTEN`]. No kernel may rely on zeros.
pub(super) fn guarded(device: &mut dyn Device, bytes: u64) -> Result<Memory, DeviceError> {
    let (starved, whole) = size(device, bytes)?;
    if device.describe().shares_memory {
        let mut region = Region::new(whole as usize).map_err(|_| starved)?;
        region.bytes_mut().fill(UNWRITTEN);
        return device.adopt(Box::new(region));
    }
    let memory = device.allocate(whole.checked_add(GUARD).ok_or(starved)?)?;
    fill(device, &memory, &[])?;
    Ok(memory)
}

/// Memory with these bytes, read-only where possible.
pub(super) fn constant(device: &mut dyn Device, bytes: &[u8]) -> Result<Memory, DeviceError> {
    let (starved, whole) = size(device, bytes.len() as u64)?;
    if device.describe().shares_memory {
        let region = ReadOnlyRegion::filled(whole as usize, |region| {
            let (start, rest) = region.split_at_mut(bytes.len());
            start.copy_from_slice(bytes);
            rest.fill(UNWRITTEN);
            io::Result::Ok(())
        });
        return device.adopt(Box::new(region.map_err(|_| starved)?));
    }
    let memory = device.allocate(whole)?;
    fill(device, &memory, bytes)?;
    Ok(memory)
}

/// Writes bytes, followed by [`UNWRITTEN`].
pub(super) fn fill(
    device: &mut dyn Device,
    memory: &Memory,
    bytes: &[u8],
) -> Result<(), DeviceError> {
    device.upload(memory, 0, bytes)?;
    let (mut offset, pattern) = (bytes.len() as u64, vec![UNWRITTEN; CHUNK]);
    while offset < memory.bytes() {
        let left = memory.bytes() - offset;
        let chunk = &pattern[..CHUNK.min(usize::try_from(left).unwrap_or(CHUNK))];
        device.upload(memory, offset, chunk)?;
        offset += chunk.len() as u64;
    }
    Ok(())
}

/// Whether the bytes that [`fill`] or [`guarded`] filled are unchanged.
pub(super) fn is_unwritten(bytes: &[u8]) -> bool {
    bytes.iter().all(|byte| *byte == UNWRITTEN)
}

/// The bytes rounded up to a page, and the error if there is not enough memory.
fn size(device: &dyn Device, bytes: u64) -> Result<(DeviceError, u64), DeviceError> {
    let device = device.describe().name().to_owned();
    let starved = DeviceError::OutOfMemory { device, bytes };
    match bytes.max(1).checked_next_multiple_of(PAGE) {
        Some(whole) => Ok((starved, whole)),
        None => Err(starved),
    }
}
