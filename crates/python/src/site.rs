//! Where a call computes: in host memory, or on its tensors' device.

use pyo3::prelude::*;
use tensorwright::StreamHandle;

use crate::arguments::{ArgumentValue, Arguments};
use crate::definition::Definition;
use crate::error::Class;
use crate::foreign::Device;
use crate::foreign::dlpack::DEFAULT_STREAM;

/// Where a call computes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Site {
    /// In host memory; kernels for a device get copies.
    Process,
    /// In device memory, in stream order.
    Stream {
        /// The device of the tensors.
        device: Device,
        /// The stream of the tensors' library.
        stream: StreamHandle,
        /// Whether to wait for results, because the stream of their users is unknown.
        wait: bool,
    },
}

impl Site {
    /// The site of a call's arguments. Values without axes may also be in host memory.
    pub(crate) fn of(
        py: Python<'_>,
        definition: &Definition,
        arguments: &Arguments,
    ) -> PyResult<Self> {
        let signature = &definition.signature;
        let tensors = signature.params.iter().zip(&arguments.given);
        let tensors = tensors.filter_map(|(param, given)| match given {
            Some(ArgumentValue::Tensor(foreign)) => Some((param, foreign)),
            _ => None,
        });
        let mut found = None;
        for (param, foreign) in tensors.clone() {
            if let Device::Cuda { stream, .. } = foreign.device {
                found = Some((param, foreign.device, stream));
                break;
            }
        }
        let Some((param, device, stream)) = found else { return Ok(Self::Process) };
        let refuse = |message: String| Err(Class::Argument.error(py, signature.says(&message)));
        let there = device.target().unwrap_or_default();
        let target = definition.choices.target.name();
        if target != there {
            return refuse(format!(
                "`{}` is on {there}, and the operator is compiled for {target}; define it with \
                 target=\"{there}\", or pass .cpu()",
                param.name
            ));
        }
        for (other, foreign) in tensors {
            let is_value = foreign.extents.as_slice().is_empty();
            let is_there = foreign.device.target().as_deref() == Some(there.as_str());
            if !(is_there || is_value && foreign.device == Device::Processor) {
                let elsewhere = foreign.device.target();
                let elsewhere = elsewhere.as_deref().unwrap_or("in the CPU's memory");
                return refuse(format!(
                    "`{}` is on {there}, and `{}` {elsewhere}; pass tensors of one device",
                    param.name, other.name
                ));
            }
        }
        Ok(match stream {
            Some(stream) => Self::Stream { device, stream: StreamHandle(stream), wait: false },
            None => Self::Stream { device, stream: StreamHandle(DEFAULT_STREAM), wait: true },
        })
    }

    /// Where to make results.
    pub(crate) fn device(self) -> Device {
        match self {
            Self::Process => Device::Processor,
            Self::Stream { device, .. } => device,
        }
    }
}
