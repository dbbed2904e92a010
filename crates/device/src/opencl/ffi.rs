//! Bindings of OpenCL, in the order of the specification.
#![allow(unsafe_code, reason = "finds the functions of the library")]

use std::ffi::{c_char, c_void};

use crate::library::functions;

/// An opaque handle.
pub(super) type Handle = *mut c_void;
/// The callback for a command that has ended.
pub(super) type Ended = unsafe extern "C" fn(event: Handle, status: i32, data: *mut c_void);
pub(super) type Notify = Option<unsafe extern "C" fn()>;

functions! {
    /// The functions of OpenCL 1.2.
    pub(super) struct Functions {
        fn clGetPlatformIDs(room: u32, platforms: *mut Handle, count: *mut u32) -> i32;
        fn clGetPlatformInfo(platform: Handle, what: u32, room: usize, value: *mut c_void, size: *mut usize) -> i32;
        fn clGetDeviceIDs(platform: Handle, kind: u64, room: u32, devices: *mut Handle, count: *mut u32) -> i32;
        fn clGetDeviceInfo(device: Handle, what: u32, room: usize, value: *mut c_void, size: *mut usize) -> i32;
        fn clCreateContext(properties: *const isize, count: u32, devices: *const Handle, notify: Notify, data: *mut c_void, status: *mut i32) -> Handle;
        fn clReleaseContext(context: Handle) -> i32;
        fn clCreateCommandQueue(context: Handle, device: Handle, properties: u64, status: *mut i32) -> Handle;
        fn clReleaseCommandQueue(queue: Handle) -> i32;
        fn clCreateBuffer(context: Handle, flags: u64, size: usize, host: *mut c_void, status: *mut i32) -> Handle;
        fn clCreateSubBuffer(buffer: Handle, flags: u64, kind: u32, region: *const c_void, status: *mut i32) -> Handle;
        fn clReleaseMemObject(memory: Handle) -> i32;
        fn clEnqueueReadBuffer(queue: Handle, buffer: Handle, blocking: u32, offset: usize, size: usize, to: *mut c_void, waits: u32, wait: *const Handle, event: *mut Handle) -> i32;
        fn clEnqueueWriteBuffer(queue: Handle, buffer: Handle, blocking: u32, offset: usize, size: usize, from: *const c_void, waits: u32, wait: *const Handle, event: *mut Handle) -> i32;
        fn clCreateProgramWithSource(context: Handle, count: u32, texts: *const *const c_char, lengths: *const usize, status: *mut i32) -> Handle;
        fn clReleaseProgram(program: Handle) -> i32;
        fn clBuildProgram(program: Handle, count: u32, devices: *const Handle, options: *const c_char, notify: Notify, data: *mut c_void) -> i32;
        fn clGetProgramBuildInfo(program: Handle, device: Handle, what: u32, room: usize, value: *mut c_void, size: *mut usize) -> i32;
        fn clCreateKernel(program: Handle, name: *const c_char, status: *mut i32) -> Handle;
        fn clReleaseKernel(kernel: Handle) -> i32;
        fn clSetKernelArg(kernel: Handle, place: u32, size: usize, value: *const c_void) -> i32;
        fn clGetKernelInfo(kernel: Handle, what: u32, room: usize, value: *mut c_void, size: *mut usize) -> i32;
        fn clGetKernelWorkGroupInfo(kernel: Handle, device: Handle, what: u32, room: usize, value: *mut c_void, size: *mut usize) -> i32;
        fn clEnqueueNDRangeKernel(queue: Handle, kernel: Handle, dimensions: u32, offset: *const usize, global: *const usize, local: *const usize, waits: u32, wait: *const Handle, event: *mut Handle) -> i32;
        fn clGetEventInfo(event: Handle, what: u32, room: usize, value: *mut c_void, size: *mut usize) -> i32;
        fn clGetEventProfilingInfo(event: Handle, what: u32, room: usize, value: *mut c_void, size: *mut usize) -> i32;
        fn clSetEventCallback(event: Handle, status: i32, notify: Ended, data: *mut c_void) -> i32;
        fn clReleaseEvent(event: Handle) -> i32;
        fn clFlush(queue: Handle) -> i32;
        fn clFinish(queue: Handle) -> i32;
    }
}

pub(super) const PLATFORM_NAME: u32 = 0x0902;

pub(super) const DEVICE_TYPE_CPU: u64 = 1 << 1;
pub(super) const DEVICE_TYPE_GPU: u64 = 1 << 2;
pub(super) const DEVICE_TYPE_ALL: u64 = 0xffff_ffff;

pub(super) const DEVICE_TYPE: u32 = 0x1000;
pub(super) const DEVICE_MAX_COMPUTE_UNITS: u32 = 0x1002;
pub(super) const DEVICE_MAX_WORK_GROUP_SIZE: u32 = 0x1004;
pub(super) const DEVICE_MAX_WORK_ITEM_SIZES: u32 = 0x1005;
pub(super) const DEVICE_MAX_CLOCK_FREQUENCY: u32 = 0x100c;
pub(super) const DEVICE_ADDRESS_BITS: u32 = 0x100d;
pub(super) const DEVICE_MAX_MEM_ALLOC_SIZE: u32 = 0x1010;
pub(super) const DEVICE_GLOBAL_MEM_CACHE_SIZE: u32 = 0x101e;
pub(super) const DEVICE_GLOBAL_MEM_SIZE: u32 = 0x101f;
pub(super) const DEVICE_LOCAL_MEM_SIZE: u32 = 0x1023;
pub(super) const DEVICE_AVAILABLE: u32 = 0x1027;
pub(super) const DEVICE_COMPILER_AVAILABLE: u32 = 0x1028;
pub(super) const DEVICE_NAME: u32 = 0x102b;
pub(super) const DRIVER_VERSION: u32 = 0x102d;
pub(super) const DEVICE_VERSION: u32 = 0x102f;
pub(super) const DEVICE_HOST_UNIFIED_MEMORY: u32 = 0x1035;
pub(super) const DEVICE_NATIVE_VECTOR_WIDTH_FLOAT: u32 = 0x103a;
/// From `cl_nv_device_attribute_query`.
pub(super) const DEVICE_WARP_SIZE_NV: u32 = 0x4003;
/// From `cl_amd_device_attribute_query`.
pub(super) const DEVICE_WAVEFRONT_WIDTH_AMD: u32 = 0x4043;

pub(super) const QUEUE_PROFILING_ENABLE: u64 = 1 << 1;

pub(super) const MEM_READ_WRITE: u64 = 1 << 0;
pub(super) const MEM_READ_ONLY: u64 = 1 << 2;
pub(super) const MEM_USE_HOST_PTR: u64 = 1 << 3;

pub(super) const BUFFER_CREATE_TYPE_REGION: u32 = 0x1220;

pub(super) const COMPLETE: i32 = 0;

pub(super) const PROGRAM_BUILD_LOG: u32 = 0x1183;
pub(super) const KERNEL_NUM_ARGS: u32 = 0x1191;
pub(super) const KERNEL_WORK_GROUP_SIZE: u32 = 0x11b0;
pub(super) const KERNEL_LOCAL_MEM_SIZE: u32 = 0x11b2;
pub(super) const EVENT_COMMAND_EXECUTION_STATUS: u32 = 0x11d3;
pub(super) const PROFILING_COMMAND_START: u32 = 0x1282;
pub(super) const PROFILING_COMMAND_END: u32 = 0x1283;

pub(super) const SUCCESS: i32 = 0;
pub(super) const DEVICE_NOT_FOUND: i32 = -1;
pub(super) const DEVICE_NOT_AVAILABLE: i32 = -2;
pub(super) const MEM_OBJECT_ALLOCATION_FAILURE: i32 = -4;
pub(super) const OUT_OF_RESOURCES: i32 = -5;
pub(super) const OUT_OF_HOST_MEMORY: i32 = -6;
pub(super) const BUILD_PROGRAM_FAILURE: i32 = -11;
pub(super) const INVALID_VALUE: i32 = -30;
pub(super) const INVALID_CONTEXT: i32 = -34;
pub(super) const INVALID_COMMAND_QUEUE: i32 = -36;
pub(super) const INVALID_KERNEL_NAME: i32 = -46;
pub(super) const INVALID_BUFFER_SIZE: i32 = -61;
/// From the loader: it knows no runtime.
pub(super) const PLATFORM_NOT_FOUND_KHR: i32 = -1001;

/// The name of a status code.
pub(super) fn name(code: i32) -> &'static str {
    match code {
        SUCCESS => "CL_SUCCESS",
        DEVICE_NOT_FOUND => "CL_DEVICE_NOT_FOUND",
        DEVICE_NOT_AVAILABLE => "CL_DEVICE_NOT_AVAILABLE",
        -3 => "CL_COMPILER_NOT_AVAILABLE",
        MEM_OBJECT_ALLOCATION_FAILURE => "CL_MEM_OBJECT_ALLOCATION_FAILURE",
        OUT_OF_RESOURCES => "CL_OUT_OF_RESOURCES",
        OUT_OF_HOST_MEMORY => "CL_OUT_OF_HOST_MEMORY",
        -7 => "CL_PROFILING_INFO_NOT_AVAILABLE",
        BUILD_PROGRAM_FAILURE => "CL_BUILD_PROGRAM_FAILURE",
        -13 => "CL_MISALIGNED_SUB_BUFFER_OFFSET",
        -14 => "CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST",
        INVALID_VALUE => "CL_INVALID_VALUE",
        -33 => "CL_INVALID_DEVICE",
        INVALID_CONTEXT => "CL_INVALID_CONTEXT",
        INVALID_COMMAND_QUEUE => "CL_INVALID_COMMAND_QUEUE",
        -37 => "CL_INVALID_HOST_PTR",
        -38 => "CL_INVALID_MEM_OBJECT",
        -43 => "CL_INVALID_BUILD_OPTIONS",
        -45 => "CL_INVALID_PROGRAM_EXECUTABLE",
        INVALID_KERNEL_NAME => "CL_INVALID_KERNEL_NAME",
        -48 => "CL_INVALID_KERNEL",
        -49 => "CL_INVALID_ARG_INDEX",
        -50 => "CL_INVALID_ARG_VALUE",
        -51 => "CL_INVALID_ARG_SIZE",
        -52 => "CL_INVALID_KERNEL_ARGS",
        -54 => "CL_INVALID_WORK_GROUP_SIZE",
        -55 => "CL_INVALID_WORK_ITEM_SIZE",
        -58 => "CL_INVALID_EVENT",
        -59 => "CL_INVALID_OPERATION",
        INVALID_BUFFER_SIZE => "CL_INVALID_BUFFER_SIZE",
        -63 => "CL_INVALID_GLOBAL_WORK_SIZE",
        PLATFORM_NOT_FOUND_KHR => "CL_PLATFORM_NOT_FOUND_KHR",
        -9999 => "an access out of bounds on a device of NVIDIA's",
        _ => "",
    }
}
