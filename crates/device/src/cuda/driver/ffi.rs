//! Bindings of the CUDA driver.
#![allow(unsafe_code, reason = "finds the functions of the library")]

use std::ffi::{c_char, c_int, c_uint, c_void};

use crate::library::functions;

/// An opaque handle.
pub(super) type Handle = *mut c_void;
/// An address in the memory of a device.
pub(super) type Address = u64;

functions! {
    /// The functions of the driver of CUDA 11.
    pub(super) struct Functions {
        fn cuInit(flags: c_uint) -> c_int;
        fn cuDriverGetVersion(version: *mut c_int) -> c_int;
        fn cuGetErrorName(code: c_int, name: *mut *const c_char) -> c_int;
        fn cuDeviceGetCount(count: *mut c_int) -> c_int;
        fn cuDeviceGet(device: *mut c_int, number: c_int) -> c_int;
        fn cuDeviceGetName(name: *mut c_char, room: c_int, device: c_int) -> c_int;
        fn cuDeviceTotalMem_v2(bytes: *mut usize, device: c_int) -> c_int;
        fn cuDeviceGetAttribute(value: *mut c_int, attribute: c_int, device: c_int) -> c_int;
        fn cuDevicePrimaryCtxRetain(context: *mut Handle, device: c_int) -> c_int;
        fn cuDevicePrimaryCtxRelease_v2(device: c_int) -> c_int;
        fn cuCtxSetCurrent(context: Handle) -> c_int;
        fn cuStreamCreate(stream: *mut Handle, flags: c_uint) -> c_int;
        fn cuStreamDestroy_v2(stream: Handle) -> c_int;
        fn cuStreamSynchronize(stream: Handle) -> c_int;
        fn cuStreamQuery(stream: Handle) -> c_int;
        fn cuModuleLoadData(module: *mut Handle, image: *const c_void) -> c_int;
        fn cuModuleUnload(module: Handle) -> c_int;
        fn cuModuleGetFunction(function: *mut Handle, module: Handle, name: *const c_char) -> c_int;
        fn cuFuncGetAttribute(value: *mut c_int, attribute: c_int, function: Handle) -> c_int;
        fn cuMemAlloc_v2(address: *mut Address, bytes: usize) -> c_int;
        fn cuMemFree_v2(address: Address) -> c_int;
        fn cuMemcpyHtoD_v2(to: Address, from: *const c_void, bytes: usize) -> c_int;
        fn cuMemcpyHtoDAsync_v2(to: Address, from: *const c_void, bytes: usize, stream: Handle) -> c_int;
        fn cuMemcpyDtoH_v2(to: *mut c_void, from: Address, bytes: usize) -> c_int;
        fn cuLaunchKernel(function: Handle, grid_x: c_uint, grid_y: c_uint, grid_z: c_uint, block_x: c_uint, block_y: c_uint, block_z: c_uint, shared: c_uint, stream: Handle, arguments: *mut *mut c_void, extra: *mut *mut c_void) -> c_int;
        fn cuEventCreate(event: *mut Handle, flags: c_uint) -> c_int;
        fn cuEventDestroy_v2(event: Handle) -> c_int;
        fn cuEventRecord(event: Handle, stream: Handle) -> c_int;
        fn cuEventElapsedTime(milliseconds: *mut f32, start: Handle, end: Handle) -> c_int;
    }
}

pub(super) const MAX_THREADS_PER_BLOCK: c_int = 1;
pub(super) const MAX_BLOCK_DIM: [c_int; 3] = [2, 3, 4];
pub(super) const MAX_GRID_DIM: [c_int; 3] = [5, 6, 7];
pub(super) const MAX_SHARED_MEMORY_PER_BLOCK: c_int = 8;
pub(super) const WARP_SIZE: c_int = 10;
pub(super) const CLOCK_RATE: c_int = 13;
pub(super) const MULTIPROCESSOR_COUNT: c_int = 16;
pub(super) const MEMORY_CLOCK_RATE: c_int = 36;
pub(super) const GLOBAL_MEMORY_BUS_WIDTH: c_int = 37;
pub(super) const L2_CACHE_SIZE: c_int = 38;
pub(super) const COMPUTE_CAPABILITY_MAJOR: c_int = 75;
pub(super) const COMPUTE_CAPABILITY_MINOR: c_int = 76;
pub(super) const MAX_SHARED_MEMORY_PER_MULTIPROCESSOR: c_int = 81;
pub(super) const MAX_REGISTERS_PER_MULTIPROCESSOR: c_int = 82;

pub(super) const FUNCTION_MAX_THREADS_PER_BLOCK: c_int = 0;
pub(super) const FUNCTION_SHARED_SIZE_BYTES: c_int = 1;

pub(super) const SUCCESS: c_int = 0;
pub(super) const OUT_OF_MEMORY: c_int = 2;
pub(super) const DEINITIALIZED: c_int = 4;
pub(super) const DEVICE_UNAVAILABLE: c_int = 46;
pub(super) const NO_DEVICE: c_int = 100;
pub(super) const ECC_UNCORRECTABLE: c_int = 214;
pub(super) const NOT_FOUND: c_int = 500;
pub(super) const NOT_READY: c_int = 600;
pub(super) const CONTEXT_IS_DESTROYED: c_int = 709;
pub(super) const UNKNOWN: c_int = 999;
