//! Lists CUDA devices and their properties.

use tensorwright_machine::{Gpu, GpuApi};

use super::calls::{DeviceId, Driver, Failure};
use super::{INSTALL, ffi};
use crate::description::{DeviceKind, Limits};
use crate::{Description, DeviceError};

/// The register limit of a thread on all architectures since 2012.
const REGISTERS_PER_THREAD: i64 = 255;

/// The devices, in the driver's order.
pub(super) fn found(driver: Driver) -> Result<Vec<(DeviceId, Description)>, DeviceError> {
    let list = || -> Result<Vec<_>, Failure> {
        let devices = driver.devices()?.into_iter().enumerate();
        let describe = |(number, device)| Ok((device, describe(driver, device, number)?));
        devices.map(describe).collect()
    };
    let devices = list().map_err(|failure| failure.on("CUDA"))?;
    match devices.is_empty() {
        true => Err(DeviceError::NoDevices { api: GpuApi::Cuda, install: INSTALL }),
        false => Ok(devices),
    }
}

/// The architecture to compile for: `sm_80`.
pub(super) fn architecture(device: DeviceId) -> Result<String, Failure> {
    let major = device.attribute(ffi::COMPUTE_CAPABILITY_MAJOR)?;
    let minor = device.attribute(ffi::COMPUTE_CAPABILITY_MINOR)?;
    Ok(format!("sm_{major}{minor}"))
}

fn describe(driver: Driver, device: DeviceId, number: usize) -> Result<Description, Failure> {
    let attribute = |attribute| device.attribute(attribute);
    let count = |attribute| device.attribute(attribute).map(i64::unsigned_abs);
    let extents = |attributes: [i32; 3]| -> Result<[u64; 3], Failure> {
        let [x, y, z] = attributes.map(count);
        Ok([x?, y?, z?])
    };
    let version = driver.version()?;
    let version = format!("{}.{}", version / 1000, version % 1000 / 10);
    // Memory transfers twice per cycle; the clock is in kHz, the bus width in bits.
    let bus = attribute(ffi::MEMORY_CLOCK_RATE)?.saturating_mul(1000) / 8;
    let bandwidth = bus.saturating_mul(2 * attribute(ffi::GLOBAL_MEMORY_BUS_WIDTH)?);
    let gpu = Gpu {
        name: format!("cuda:{number}"),
        model: format!("{} ({}, CUDA {version})", device.name()?, architecture(device)?),
        api: GpuApi::Cuda,
        units: attribute(ffi::MULTIPROCESSOR_COUNT)?,
        warp: attribute(ffi::WARP_SIZE)?,
        threads_per_block: attribute(ffi::MAX_THREADS_PER_BLOCK)?,
        // The static limit. More must be requested at every launch.
        shared_per_block: attribute(ffi::MAX_SHARED_MEMORY_PER_BLOCK)?,
        shared_per_unit: attribute(ffi::MAX_SHARED_MEMORY_PER_MULTIPROCESSOR)?,
        registers_per_unit: attribute(ffi::MAX_REGISTERS_PER_MULTIPROCESSOR)?,
        registers_per_thread: REGISTERS_PER_THREAD,
        l2: attribute(ffi::L2_CACHE_SIZE)?,
        bandwidth: Some(bandwidth).filter(|bandwidth| *bandwidth > 0),
        clock: attribute(ffi::CLOCK_RATE)?.saturating_mul(1000),
        tensor: attribute(ffi::COMPUTE_CAPABILITY_MAJOR)? >= 7,
        is_processor: false,
    };
    let memory = device.memory()?;
    Ok(Description {
        platform: "NVIDIA CUDA".to_owned(),
        driver: version.clone(),
        version: format!("CUDA {version}"),
        kind: DeviceKind::Gpu,
        gpu,
        limits: Limits {
            block: extents(ffi::MAX_BLOCK_DIM)?,
            grid: extents(ffi::MAX_GRID_DIM)?,
            memory,
            allocation: memory,
        },
        shares_memory: false,
    })
}
