//! Lists OpenCL devices and their properties.

use tensorwright_machine::{Gpu, GpuApi};

use super::calls::{self, DeviceId, Failure, Platform};
use super::{INSTALL, ffi, functions};
use crate::description::{DeviceKind, Limits};
use crate::{Description, DeviceError};

/// OpenCL does not report registers. These are the registers of most GPUs: a schedule that needs
/// more spills on all of them.
const REGISTERS_PER_UNIT: i64 = 64 << 10;
const REGISTERS_PER_THREAD: i64 = 255;

/// The registers of a CPU thread, which is a vector lane: the vectors of AVX-512.
const VECTOR_REGISTERS: i64 = 32;

/// The devices of all platforms. GPUs come first and CPUs last; otherwise in the loader's order.
pub(super) fn list() -> Result<Vec<Description>, DeviceError> {
    Ok(found()?.into_iter().map(|(_, description)| description).collect())
}

/// The usable devices, with their properties.
pub(super) fn found() -> Result<Vec<(DeviceId, Description)>, DeviceError> {
    let platforms = calls::platforms(functions()?).map_err(|failure| failure.on("OpenCL"))?;
    // A platform or device whose query fails is skipped: others may work.
    let devices = platforms.into_iter().filter_map(|platform| {
        let devices = platform.devices().ok()?;
        Some(
            devices
                .into_iter()
                .filter_map(move |device| Some((device, describe(platform, device).ok()??))),
        )
    });
    let mut devices: Vec<(DeviceId, Description)> = devices.flatten().collect();
    devices.sort_by_key(|(_, description)| description.kind);
    for (number, (_, description)) in devices.iter_mut().enumerate() {
        description.gpu.name = format!("opencl:{number}");
    }
    match devices.is_empty() {
        true => Err(DeviceError::NoDevices { api: GpuApi::OpenCl, install: INSTALL }),
        false => Ok(devices),
    }
}

/// The properties of a device; `None` if it cannot be used.
fn describe(platform: Platform, device: DeviceId) -> Result<Option<Description>, Failure> {
    let is_usable = device.number(ffi::DEVICE_AVAILABLE)? != 0
        && device.number(ffi::DEVICE_COMPILER_AVAILABLE)? != 0
        && device.number(ffi::DEVICE_ADDRESS_BITS)? == u64::from(usize::BITS);
    if !is_usable {
        return Ok(None);
    }
    let kind = match device.number(ffi::DEVICE_TYPE)? {
        kind if kind & ffi::DEVICE_TYPE_GPU != 0 => DeviceKind::Gpu,
        kind if kind & ffi::DEVICE_TYPE_CPU != 0 => DeviceKind::Cpu,
        _ => DeviceKind::Accelerator,
    };
    let driver = device.text(ffi::DRIVER_VERSION)?;
    let limits = Limits {
        block: block(&device.sizes(ffi::DEVICE_MAX_WORK_ITEM_SIZES)?),
        // OpenCL limits the number of blocks only by integer sizes.
        grid: [i64::MAX as u64; 3],
        memory: device.number(ffi::DEVICE_GLOBAL_MEM_SIZE)?,
        allocation: device.number(ffi::DEVICE_MAX_MEM_ALLOC_SIZE)?,
    };
    let shared = signed(device.number(ffi::DEVICE_LOCAL_MEM_SIZE)?);
    let gpu = Gpu {
        name: String::new(),
        model: format!("{} ({driver})", device.text(ffi::DEVICE_NAME)?),
        api: GpuApi::OpenCl,
        units: signed(device.number(ffi::DEVICE_MAX_COMPUTE_UNITS)?),
        warp: warp(device),
        threads_per_block: signed(device.number(ffi::DEVICE_MAX_WORK_GROUP_SIZE)?),
        shared_per_block: shared,
        shared_per_unit: shared,
        registers_per_unit: REGISTERS_PER_UNIT,
        registers_per_thread: match kind {
            DeviceKind::Cpu => VECTOR_REGISTERS,
            DeviceKind::Gpu | DeviceKind::Accelerator => REGISTERS_PER_THREAD,
        },
        l2: signed(device.number(ffi::DEVICE_GLOBAL_MEM_CACHE_SIZE)?),
        bandwidth: None,
        clock: signed(device.number(ffi::DEVICE_MAX_CLOCK_FREQUENCY)?).saturating_mul(1_000_000),
        tensor: false,
        is_processor: kind == DeviceKind::Cpu,
    };
    Ok(Some(Description {
        platform: platform.name()?,
        version: device.text(ffi::DEVICE_VERSION)?,
        driver,
        kind,
        gpu,
        limits,
        shares_memory: kind == DeviceKind::Cpu
            && device.number(ffi::DEVICE_HOST_UNIFIED_MEMORY)? != 0,
    }))
}

/// The largest block in x, y and z; one for missing dimensions.
fn block(sizes: &[u64]) -> [u64; 3] {
    std::array::from_fn(|axis| sizes.get(axis).copied().unwrap_or(1))
}

/// The threads that run in lockstep: from vendor extensions, or the lanes of a CPU's vectors.
fn warp(device: DeviceId) -> i64 {
    let words = [
        ffi::DEVICE_WARP_SIZE_NV,
        ffi::DEVICE_WAVEFRONT_WIDTH_AMD,
        ffi::DEVICE_NATIVE_VECTOR_WIDTH_FLOAT,
    ];
    let told = words.into_iter().filter_map(|word| device.number(word).ok());
    told.map(signed).find(|warp| *warp > 0).unwrap_or(1)
}

fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
