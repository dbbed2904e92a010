//! The devices of the machine, and the missing runtimes.

use std::io::{self, Write};

use serde_json::{Value, json};
use tensorwright::printable;
use tensorwright_device::{Description, DeviceError, Listing};

/// One line per device and per missing runtime; most machines lack some runtimes, which is fine.
pub(super) fn write(out: &mut impl Write, listings: &[Listing]) -> io::Result<()> {
    for listing in listings {
        match &listing.devices {
            Ok(devices) => devices.iter().try_for_each(|device| {
                writeln!(out, "{:<10} {}", device.name(), printable(&device.to_string()))
            })?,
            Err(error) => {
                let word = listing.api.to_string().to_lowercase();
                writeln!(out, "{word:<10} none: {}", printable(&reason(error)))?;
            }
        }
    }
    Ok(())
}

/// Why there are no devices, in one line.
fn reason(error: &DeviceError) -> String {
    match error {
        // The loader's message for each library name is in the JSON only.
        DeviceError::NoRuntime { .. } => error.help(),
        _ => format!("{error}; {}", error.help()),
    }
}

/// The devices as JSON.
pub(super) fn json(listings: &[Listing]) -> Value {
    let devices = listings.iter().filter_map(|listing| listing.devices.as_ref().ok()).flatten();
    devices.map(device).collect()
}

/// The runtimes that are missing or have no device, as JSON.
pub(super) fn missing(listings: &[Listing]) -> Value {
    let missing = listings.iter().filter_map(|listing| {
        let error = listing.devices.as_ref().err()?;
        let (reason, help) = (error.to_string(), error.help());
        Some(json!({ "api": listing.api.to_string(), "reason": reason, "help": help }))
    });
    missing.collect()
}

fn device(device: &Description) -> Value {
    let Description { platform, version, driver, kind, gpu, limits, .. } = device;
    json!({
        "name": gpu.name,
        "model": gpu.model,
        "platform": platform,
        "version": version,
        "driver": driver,
        "kind": kind.to_string(),
        "units": gpu.units,
        "warp": gpu.warp,
        "threads_per_block": gpu.threads_per_block,
        "shared_per_block": gpu.shared_per_block,
        "l2": gpu.l2,
        "bandwidth": gpu.bandwidth,
        "clock": gpu.clock,
        "memory_bytes": limits.memory,
        "largest_allocation_bytes": limits.allocation,
    })
}

#[cfg(test)]
mod tests {
    use tensorwright_device::devices;

    use super::*;

    #[test]
    fn every_device_and_every_missing_runtime_is_a_line() {
        let listings = devices();
        let mut text = Vec::new();
        write(&mut text, &listings).unwrap();
        let text = String::from_utf8(text).unwrap();
        let lines = listings.iter().map(|listing| listing.devices.as_ref().map_or(1, Vec::len));
        assert_eq!(text.lines().count(), lines.sum::<usize>(), "{text}");
        let (found, missing) = (json(&listings), missing(&listings));
        let count = |value: &Value| value.as_array().unwrap().len();
        assert_eq!(count(&found) + count(&missing), text.lines().count());
    }
}
