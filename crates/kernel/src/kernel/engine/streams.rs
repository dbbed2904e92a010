//! Calls on the streams of other libraries: on their memory, without copies, and without waiting where nothing has to be
//! known at the end.
#![allow(unsafe_code, reason = "launches compiled kernels on addresses that the caller names")]

use std::collections::HashMap;

use tensorwright_device::{
    Arguments, Device, DeviceError, Memory, STATUS_BYTES, StreamHandle, Streams,
};
use tensorwright_schedule::interface::Function;

use super::super::Place;
use super::device::{OnDevice, lock};

/// So many streams keep the memory of their calls. That of one more is given back, for which the device waits.
const KEPT: usize = 16;

/// Memory for the calls of a stream, which follow each other.
#[derive(Debug)]
pub(super) struct OfStream {
    /// For parameters whose values are in the memory of the process.
    values: Vec<Option<Memory>>,
    workspace: Memory,
    status: Memory,
}

/// The memory of all streams.
pub(super) type OfStreams = HashMap<StreamHandle, OfStream>;

impl OnDevice {
    /// Memory for the calls of a stream.
    fn of_stream(&self, device: &mut dyn Device) -> Result<OfStream, DeviceError> {
        let workspace = device.allocate(self.workspace_bytes.max(1))?;
        let status = device.allocate(STATUS_BYTES)?;
        device.upload(&status, 0, &[0; STATUS_BYTES as usize])?;
        let values = self.interface.parameters.iter().map(|_| None).collect();
        Ok(OfStream { values, workspace, status })
    }

    /// Computes on a stream, with a place for each parameter, and returns the status. Waits for the end if it is asked
    /// to, or if only the end tells whether all was in bounds.
    ///
    /// # Safety
    /// As [`Kernel::call_on_stream`](crate::Kernel::call_on_stream).
    pub(super) unsafe fn enqueue(
        &self,
        stream: StreamHandle,
        places: &[Place],
        wait: bool,
    ) -> Result<i32, DeviceError> {
        let mut device = lock(&self.inner.device);
        let mut kept = lock(&self.inner.of_streams);
        if kept.len() >= KEPT && !kept.contains_key(&stream) {
            kept.clear();
        }
        let OfStream { values, workspace, status } = match kept.entry(stream) {
            std::collections::hash_map::Entry::Occupied(entry) => entry.into_mut(),
            std::collections::hash_map::Entry::Vacant(entry) => {
                entry.insert(self.of_stream(device.as_mut())?)
            }
        };
        let parameters = || self.interface.parameters.iter().zip(places);
        for ((parameter, place), value) in parameters().zip(values.iter_mut()) {
            if let (Place::Host(_), None) = (place, &value) {
                *value = Some(device.allocate(parameter.bytes().unsigned_abs().max(1))?);
            }
        }
        {
            let streams = streams_of(device.as_mut())?;
            let mut borrowed = Vec::new();
            for ((parameter, place), value) in parameters().zip(values.iter()) {
                let bytes = parameter.bytes().unsigned_abs();
                match (place, value) {
                    (Place::Host(pointer), Some(value)) if bytes > 0 => {
                        // SAFETY: the caller vouches for as many bytes as the parameter has.
                        let bytes = unsafe { std::slice::from_raw_parts(*pointer, bytes as usize) };
                        streams.upload_on(stream, value, bytes)?;
                    }
                    (Place::Host(_), _) => {}
                    // SAFETY: the caller vouches for the memory.
                    (Place::Device(address), _) => {
                        borrowed.push(unsafe { streams.borrow(*address, bytes) });
                    }
                }
            }
            let mut borrowed = borrowed.iter();
            let tensors = places.iter().zip(values.iter()).map(|(place, value)| match place {
                Place::Host(_) => value.as_ref(),
                Place::Device(_) => borrowed.next(),
            });
            let Some(tensors) = tensors.collect::<Option<Vec<&Memory>>>() else { return Ok(0) };
            let arguments = Arguments { parameters: &tensors, workspace, status };
            // SAFETY: the kernels were emitted for the interface. They access their tensors alone: subscripts that are not
            // proven to be inside are checked, and set the status. The caller vouches for the stream.
            unsafe {
                streams.launch_on(stream, &lock(&self.inner.loaded), Function::Compute, &arguments)
            }?;
            let is_checked = !self.interface.checked.is_empty();
            if wait || is_checked {
                streams.wait_for(stream)?;
            }
            if !is_checked {
                return Ok(0);
            }
        }
        let mut failed = [0; STATUS_BYTES as usize];
        device.download(status, 0, &mut failed)?;
        if failed != [0; STATUS_BYTES as usize] {
            device.upload(status, 0, &[0; STATUS_BYTES as usize])?;
        }
        Ok(i32::from_le_bytes(failed))
    }
}

/// What a device can do with streams of other libraries.
fn streams_of(device: &mut dyn Device) -> Result<&mut dyn Streams, DeviceError> {
    let no_streams = DeviceError::Mismatch {
        device: device.describe().name().to_owned(),
        reason: "memory of other libraries cannot be used on it".to_owned(),
    };
    device.streams().ok_or(no_streams)
}
