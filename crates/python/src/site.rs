//! Where a call computes: in the memory of the process, or in that of a device that its tensors are on.

use pyo3::prelude::*;
use tensorwright::StreamHandle;

use crate::arguments::{Arguments, Given};
use crate::definition::Definition;
use crate::error::Class;
use crate::foreign::Device;
use crate::foreign::dlpack::DEFAULT_STREAM;

/// Where a call computes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Site {
    /// On memory of the process; kernels for a device get copies.
    Process,
    /// On memory of a device, in the order of a stream.
    Stream {
        /// The device that the tensors are on.
        device: Device,
        /// The stream of the library that has them.
        stream: StreamHandle,
        /// Whether results have to be there when the call returns: nobody says on which stream they are used.
        wait: bool,
    },
}

impl Site {
    /// Where the arguments of a call are. Values without axes may also be in the memory of the process.
    pub(crate) fn of(
        py: Python<'_>,
        definition: &Definition,
        arguments: &Arguments,
    ) -> PyResult<Self> {
        let signature = &definition.signature;
        let tensors = signature.params.iter().zip(&arguments.given);
        let tensors = tensors.filter_map(|(param, given)| match given {
            Some(Given::Tensor(foreign)) => Some((param, foreign)),
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

    /// Where results are made.
    pub(crate) fn device(self) -> Device {
        match self {
            Self::Process => Device::Processor,
            Self::Stream { device, .. } => device,
        }
    }
}
