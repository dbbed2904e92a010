//! Calls on foreign streams and memory, asynchronous where possible.
#![allow(unsafe_code, reason = "launches compiled kernels on addresses that the caller names")]

use std::collections::HashMap;

use tensorwright_device::{
    Arguments, Device, DeviceError, Loaded, Memory, STATUS_BYTES, StreamHandle, Streams,
};
use tensorwright_schedule::Interface;
use tensorwright_schedule::interface::Function;

use super::super::Place;

/// The most streams whose memory is kept. Freeing the memory of another one waits for the device.
const KEPT: usize = 16;

/// Memory for the calls of one stream, which run in order.
#[derive(Debug)]
pub(super) struct OfStream {
    /// Memory for parameters whose values are in host memory.
    values: Vec<Option<Memory>>,
    workspace: Memory,
    status: Memory,
}

/// The memory of all streams.
pub(super) type OfStreams = HashMap<StreamHandle, OfStream>;

/// Device kernels under an exclusive lock.
pub(super) struct Locked<'a> {
    pub(super) interface: &'a Interface,
    pub(super) workspace_bytes: u64,
    pub(super) device: &'a mut dyn Device,
    pub(super) loaded: &'a Loaded,
    pub(super) of_streams: &'a mut OfStreams,
}

impl Locked<'_> {
    /// Memory for the calls of a stream.
    fn of_stream(&mut self) -> Result<OfStream, DeviceError> {
        let workspace = self.device.allocate(self.workspace_bytes.max(1))?;
        let status = self.device.allocate(STATUS_BYTES)?;
        self.device.upload(&status, 0, &[0; STATUS_BYTES as usize])?;
        let values = self.interface.parameters.iter().map(|_| None).collect();
        Ok(OfStream { values, workspace, status })
    }

    /// Computes on a stream, with a place per parameter, and returns the status. Waits for the end
    /// if requested, or if bounds can only be checked at the end.
    ///
    /// # Safety
    /// As [`Kernel::call_on_stream`](crate::Kernel::call_on_stream).
    pub(super) unsafe fn enqueue(
        mut self,
        stream: StreamHandle,
        places: &[Place],
        wait: bool,
    ) -> Result<i32, DeviceError> {
        if !self.of_streams.contains_key(&stream) {
            if self.of_streams.len() >= KEPT {
                self.of_streams.clear();
            }
            let made = self.of_stream()?;
            self.of_streams.insert(stream, made);
        }
        let Self { interface, device, loaded, of_streams, .. } = self;
        let Some(OfStream { values, workspace, status }) = of_streams.get_mut(&stream) else {
            return Ok(0);
        };
        let parameters = || interface.parameters.iter().zip(places);
        for ((parameter, place), value) in parameters().zip(values.iter_mut()) {
            if let (Place::Host(_), None) = (place, &value) {
                *value = Some(device.allocate(parameter.bytes().unsigned_abs().max(1))?);
            }
        }
        {
            let streams = streams_of(device)?;
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
            unsafe { streams.launch_on(stream, loaded, Function::Compute, &arguments) }?;
            let is_checked = !interface.checked.is_empty();
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

/// The stream interface of a device.
fn streams_of(device: &mut dyn Device) -> Result<&mut dyn Streams, DeviceError> {
    let no_streams = DeviceError::Mismatch {
        device: device.describe().name().to_owned(),
        reason: "memory of other libraries cannot be used on it".to_owned(),
    };
    device.streams().ok_or(no_streams)
}
