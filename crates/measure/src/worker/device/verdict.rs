//! Converts device errors to verdicts on candidates.

use tensorwright_device::DeviceError;

use crate::protocol::Verdict;

pub(super) fn verdict(error: &DeviceError) -> Verdict {
    let reason = error.to_string();
    match error {
        DeviceError::Build { log, .. } => Verdict::Unlinkable(format!("{reason}\n{log}")),
        DeviceError::Limit { .. } => Verdict::OverLimits(reason),
        DeviceError::OutOfMemory { .. } => Verdict::TooLarge(reason),
        DeviceError::FailedRead { .. } => Verdict::Wrong(reason),
        DeviceError::Launch { .. } | DeviceError::Late { .. } => Verdict::Failed(reason),
        DeviceError::Lost { .. }
        | DeviceError::NoRuntime { .. }
        | DeviceError::NoDevices { .. }
        | DeviceError::NoSuchDevice { .. } => Verdict::Lost(reason),
        _ => Verdict::Unlinkable(reason),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use tensorwright_device::{BuildLog, Status};

    #[test]
    fn errors_of_devices_become_verdicts() {
        let (device, kernel) = ("opencl:0".to_owned(), "gemm".to_owned());
        let status = Status { call: "clFinish", code: -36, name: String::new() };
        let lost = DeviceError::Lost { device: device.clone(), status: status.clone() };
        assert!(matches!(verdict(&lost), Verdict::Lost(_)));
        let failed = DeviceError::Launch { device: device.clone(), kernel, status };
        assert!(matches!(verdict(&failed), Verdict::Failed(_)));
        let late = DeviceError::Late {
            device: device.clone(),
            kernel: "gemm".to_owned(),
            deadline: Duration::from_secs(60),
        };
        assert!(matches!(verdict(&late), Verdict::Failed(_)));
        let starved = DeviceError::OutOfMemory { device: device.clone(), bytes: 1 };
        assert!(matches!(verdict(&starved), Verdict::TooLarge(_)));
        let read = DeviceError::FailedRead { status: 1 };
        assert!(matches!(verdict(&read), Verdict::Wrong(_)));
        let log = BuildLog::new("x.cl:1:2: error: no\nmore", "text");
        let Verdict::Unlinkable(reason) = verdict(&DeviceError::Build { device, log }) else {
            panic!("a text that does not compile");
        };
        assert!(reason.contains("line 1: no") && reason.ends_with("more"), "{reason}");
    }
}
