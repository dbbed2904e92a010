//! Safe wrappers of CUDA driver calls.
//!
//! Only this file passes pointers to the driver. The driver uses the context of the calling thread;
//! [`Context::enter`] sets it.
#![allow(unsafe_code, reason = "calls into a C library")]

use std::ffi::{CStr, CString, c_int, c_void};
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::ffi::{self, Address, Functions, Handle};
use crate::DeviceError;
use crate::deadline::{Wait, wait};
use crate::error::Status;

/// A call that failed, and its status.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Failure {
    pub(super) status: Status,
}

impl Failure {
    pub(super) fn code(&self) -> i32 {
        self.status.code
    }

    /// The failure as a device error, without further context.
    pub(super) fn on(self, device: &str) -> DeviceError {
        let (device, status) = (device.to_owned(), self.status);
        match status.code {
            ffi::DEINITIALIZED
            | ffi::DEVICE_UNAVAILABLE
            | ffi::NO_DEVICE
            | ffi::ECC_UNCORRECTABLE
            | ffi::CONTEXT_IS_DESTROYED
            | ffi::UNKNOWN => DeviceError::Lost { device, status },
            _ => DeviceError::Runtime { device, status },
        }
    }
}

type Result<T> = std::result::Result<T, Failure>;

/// An initialized driver.
#[derive(Debug, Clone, Copy)]
pub(super) struct Driver(&'static Functions);

/// A device, by its driver number.
#[derive(Debug, Clone, Copy)]
pub(super) struct DeviceId(Driver, c_int);

impl Driver {
    /// Initializes a driver.
    pub(super) fn start(functions: &'static Functions) -> Result<Self> {
        let driver = Self(functions);
        // SAFETY: the call takes a number, which has to be zero.
        driver.check("cuInit", unsafe { (functions.cuInit)(0) })?;
        Ok(driver)
    }

    fn check(self, call: &'static str, code: c_int) -> Result<()> {
        if code == ffi::SUCCESS {
            return Ok(());
        }
        let mut name = ptr::null();
        // SAFETY: the call takes any number, and writes a C string that is never freed, or null.
        let name = unsafe {
            (self.0.cuGetErrorName)(code, &raw mut name);
            if name.is_null() { c"" } else { CStr::from_ptr(name) }
        };
        let name = name.to_string_lossy().into_owned();
        Err(Failure { status: Status { call, code, name } })
    }

    /// The supported version of CUDA, in the encoding of its header: 12040 is 12.4.
    pub(super) fn version(self) -> Result<c_int> {
        let mut version = 0;
        // SAFETY: the number lives on our stack.
        let code = unsafe { (self.0.cuDriverGetVersion)(&raw mut version) };
        self.check("cuDriverGetVersion", code).map(|()| version)
    }

    pub(super) fn devices(self) -> Result<Vec<DeviceId>> {
        let mut count = 0;
        // SAFETY: the number lives on our stack.
        let code = unsafe { (self.0.cuDeviceGetCount)(&raw mut count) };
        self.check("cuDeviceGetCount", code)?;
        let device = |number: c_int| {
            let mut device = 0;
            // SAFETY: the number lives on our stack.
            let code = unsafe { (self.0.cuDeviceGet)(&raw mut device, number) };
            self.check("cuDeviceGet", code).map(|()| DeviceId(self, device))
        };
        (0..count).map(device).collect()
    }
}

impl DeviceId {
    pub(super) fn name(self) -> Result<String> {
        let mut name = [0u8; 256];
        // SAFETY: there is room for as many bytes as is said.
        let code = unsafe {
            let room = name.len() as c_int;
            (self.0.0.cuDeviceGetName)(name.as_mut_ptr().cast(), room, self.1)
        };
        self.0.check("cuDeviceGetName", code)?;
        let name = name.split(|byte| *byte == 0).next().unwrap_or_default();
        Ok(String::from_utf8_lossy(name).into_owned())
    }

    pub(super) fn memory(self) -> Result<u64> {
        let mut bytes = 0;
        // SAFETY: the number lives on our stack.
        let code = unsafe { (self.0.0.cuDeviceTotalMem_v2)(&raw mut bytes, self.1) };
        self.0.check("cuDeviceTotalMem_v2", code).map(|()| bytes as u64)
    }

    pub(super) fn attribute(self, attribute: c_int) -> Result<i64> {
        let mut value = 0;
        // SAFETY: the number lives on our stack.
        let code = unsafe { (self.0.0.cuDeviceGetAttribute)(&raw mut value, attribute, self.1) };
        self.0.check("cuDeviceGetAttribute", code).map(|()| i64::from(value))
    }

    /// The primary context, which all users in a process share.
    pub(super) fn context(self) -> Result<Arc<Context>> {
        let mut context = ptr::null_mut();
        // SAFETY: the handle lives on our stack.
        let code = unsafe { (self.0.0.cuDevicePrimaryCtxRetain)(&raw mut context, self.1) };
        self.0.check("cuDevicePrimaryCtxRetain", code)?;
        Ok(Arc::new(Context { device: self, handle: context }))
    }
}

/// The owner of streams, memory and modules of a device.
#[derive(Debug)]
pub(super) struct Context {
    device: DeviceId,
    handle: Handle,
}

// SAFETY: a context may be made current by any thread, and by several at a time.
unsafe impl Send for Context {}
// SAFETY: as above.
unsafe impl Sync for Context {}

impl Context {
    /// Makes this context current in the calling thread.
    fn enter(&self) -> Result<Driver> {
        let driver = self.device.0;
        // SAFETY: the context exists as long as `self` does.
        let code = unsafe { (driver.0.cuCtxSetCurrent)(self.handle) };
        driver.check("cuCtxSetCurrent", code).map(|()| driver)
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        if ABANDONED.load(Ordering::Relaxed) {
            return;
        }
        // SAFETY: it was retained once, and is released once.
        unsafe { (self.device.0.0.cuDevicePrimaryCtxRelease_v2)(self.device.1) };
    }
}

/// Whether an abandoned kernel is running. The driver waits for kernels when a resource is
/// released, so nothing is released then.
static ABANDONED: AtomicBool = AtomicBool::new(false);

/// Leaks all resources until the process ends.
pub(super) fn abandon() {
    ABANDONED.store(true, Ordering::Relaxed);
}

macro_rules! handles {
    ($($(#[$doc:meta])* $name:ident($handle:ty) by $release:ident;)*) => { $(
        $(#[$doc])*
        #[derive(Debug)]
        pub(super) struct $name { context: Arc<Context>, handle: $handle }

        // SAFETY: the handle is owned, and used in whatever thread has entered its context.
        unsafe impl Send for $name {}

        impl Drop for $name {
            fn drop(&mut self) {
                if ABANDONED.load(Ordering::Relaxed) {
                    return;
                }
                if let Ok(driver) = self.context.enter() {
                    // SAFETY: the handle is ours, and is released once. A failure cannot be
                    // reported.
                    unsafe { (driver.0.$release)(self.handle) };
                }
            }
        }
    )* };
}

handles! {
    /// A stream: an in-order command queue.
    Stream(Handle) by cuStreamDestroy_v2;
    /// Memory of the device.
    Buffer(Address) by cuMemFree_v2;
    /// Machine code on the device.
    Module(Handle) by cuModuleUnload;
    /// A marker in a stream.
    Event(Handle) by cuEventDestroy_v2;
}

// SAFETY: nothing changes a module, and the driver may be called by several threads at a time.
unsafe impl Sync for Module {}

/// A kernel, which keeps its module alive.
#[derive(Debug)]
pub(super) struct Kernel {
    module: Arc<Module>,
    handle: Handle,
}

// SAFETY: the handle belongs to the module that is kept, and is used in whatever thread has entered its context.
unsafe impl Send for Kernel {}

impl Stream {
    pub(super) fn new(context: &Arc<Context>) -> Result<Self> {
        let driver = context.enter()?;
        let mut stream = ptr::null_mut();
        // SAFETY: the handle lives on our stack.
        let code = unsafe { (driver.0.cuStreamCreate)(&raw mut stream, 0) };
        driver.check("cuStreamCreate", code)?;
        Ok(Self { context: Arc::clone(context), handle: stream })
    }

    /// Records an event after all earlier commands.
    pub(super) fn mark(&self) -> Result<Event> {
        let driver = self.context.enter()?;
        let mut event = ptr::null_mut();
        // SAFETY: the handle lives on our stack.
        let code = unsafe { (driver.0.cuEventCreate)(&raw mut event, 0) };
        driver.check("cuEventCreate", code)?;
        let event = Event { context: Arc::clone(&self.context), handle: event };
        // SAFETY: event and stream exist, and belong to the same context.
        let code = unsafe { (driver.0.cuEventRecord)(event.handle, self.handle) };
        driver.check("cuEventRecord", code)?;
        Ok(event)
    }

    /// The stream, for commands.
    pub(super) fn queue(&self) -> Queue<'_> {
        Queue { context: &self.context, handle: self.handle }
    }
}

/// A stream of this or another library.
#[derive(Debug, Clone, Copy)]
pub(super) struct Queue<'a> {
    context: &'a Context,
    handle: Handle,
}

impl<'a> Queue<'a> {
    /// A stream of another library. The driver rejects unknown handles if it can detect them.
    pub(super) fn foreign(context: &'a Context, handle: u64) -> Self {
        Self { context, handle: handle as usize as Handle }
    }

    /// Launches a kernel.
    ///
    /// # Safety
    /// With these arguments and thread counts, the kernel must only access its arguments. The
    /// stream exists.
    pub(super) unsafe fn launch(
        self,
        kernel: &Kernel,
        grid: [u32; 3],
        block: [u32; 3],
        arguments: &[Address],
    ) -> Result<()> {
        let driver = self.context.enter()?;
        let mut addresses: Vec<Address> = arguments.to_vec();
        let mut places: Vec<*mut c_void> =
            addresses.iter_mut().map(|address| ptr::from_mut(address).cast()).collect();
        let ([grid_x, grid_y, grid_z], [x, y, z]) = (grid, block);
        // SAFETY: stream and kernel exist. For each argument there is a pointer to an address, which the driver copies.
        // The caller vouches for the kernel and its number of arguments.
        let code = unsafe {
            let (arguments, extra) = (places.as_mut_ptr(), ptr::null_mut());
            (driver.0.cuLaunchKernel)(
                kernel.handle,
                grid_x,
                grid_y,
                grid_z,
                x,
                y,
                z,
                0,
                self.handle,
                arguments,
                extra,
            )
        };
        driver.check("cuLaunchKernel", code)
    }

    /// Writes bytes to an address with enough memory.
    pub(super) fn write(self, to: Address, bytes: &[u8]) -> Result<()> {
        let driver = self.context.enter()?;
        // SAFETY: the driver has taken bytes of pageable memory when it returns; addresses of devices are checked by it.
        let code = unsafe {
            let from = bytes.as_ptr().cast();
            (driver.0.cuMemcpyHtoDAsync_v2)(to, from, bytes.len(), self.handle)
        };
        driver.check("cuMemcpyHtoDAsync_v2", code)
    }

    /// Whether all commands of the stream are done; [`Queue::finish`] reports failures.
    fn is_done(self) -> Result<bool> {
        let driver = self.context.enter()?;
        // SAFETY: the stream exists.
        Ok(unsafe { (driver.0.cuStreamQuery)(self.handle) } != ffi::NOT_READY)
    }

    /// Waits for all commands of the stream, until the deadline.
    pub(super) fn wait(self) -> Result<Wait> {
        /// The time of busy polling before this thread sleeps between polls.
        const SPIN: Duration = Duration::from_millis(1);
        let start = Instant::now();
        let waited = wait(|time| {
            let slice = Instant::now();
            loop {
                if self.is_done()? {
                    return Ok(true);
                }
                if slice.elapsed() >= time {
                    return Ok(false);
                }
                if start.elapsed() > SPIN {
                    thread::sleep(Duration::from_micros(100));
                }
            }
        })?;
        if waited == Wait::Over {
            self.finish()?;
        }
        Ok(waited)
    }

    /// Waits for all commands of the stream.
    fn finish(self) -> Result<()> {
        let driver = self.context.enter()?;
        // SAFETY: the stream exists.
        driver.check("cuStreamSynchronize", unsafe { (driver.0.cuStreamSynchronize)(self.handle) })
    }
}

impl Event {
    /// The nanoseconds from one event to another, both of which have occurred.
    pub(super) fn until(&self, end: &Self) -> Result<u64> {
        let driver = self.context.enter()?;
        let mut milliseconds = 0.0;
        // SAFETY: both events exist, and the number lives on our stack.
        let code = unsafe {
            (driver.0.cuEventElapsedTime)(&raw mut milliseconds, self.handle, end.handle)
        };
        driver.check("cuEventElapsedTime", code)?;
        Ok((f64::from(milliseconds.max(0.0)) * 1e6) as u64)
    }
}

impl Buffer {
    pub(super) fn new(context: &Arc<Context>, bytes: usize) -> Result<Self> {
        let driver = context.enter()?;
        let mut address = 0;
        // SAFETY: the address lives on our stack.
        let code = unsafe { (driver.0.cuMemAlloc_v2)(&raw mut address, bytes) };
        driver.check("cuMemAlloc_v2", code)?;
        Ok(Self { context: Arc::clone(context), handle: address })
    }

    /// The address.
    pub(super) fn address(&self) -> Address {
        self.handle
    }

    /// Writes bytes; the caller has checked the range.
    pub(super) fn write(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        let driver = self.context.enter()?;
        // SAFETY: the call returns when the bytes were read; addresses of devices are checked by the driver.
        let code = unsafe {
            let from = bytes.as_ptr().cast();
            (driver.0.cuMemcpyHtoD_v2)(self.handle.wrapping_add(offset), from, bytes.len())
        };
        driver.check("cuMemcpyHtoD_v2", code)
    }

    /// Reads bytes; the caller has checked the range.
    pub(super) fn read(&self, offset: u64, into: &mut [u8]) -> Result<()> {
        let driver = self.context.enter()?;
        // SAFETY: the call returns when the bytes were written; addresses of devices are checked by the driver.
        let code = unsafe {
            let to = into.as_mut_ptr().cast();
            (driver.0.cuMemcpyDtoH_v2)(to, self.handle.wrapping_add(offset), into.len())
        };
        driver.check("cuMemcpyDtoH_v2", code)
    }
}

impl Module {
    /// Loads machine code.
    pub(super) fn new(context: &Arc<Context>, cubin: &[u8]) -> Result<Arc<Self>> {
        let driver = context.enter()?;
        let mut module = ptr::null_mut();
        // SAFETY: the image is a whole file of machine code, which says itself how long it is, and which NVIDIA's compiler
        // has made.
        let code = unsafe { (driver.0.cuModuleLoadData)(&raw mut module, cubin.as_ptr().cast()) };
        driver.check("cuModuleLoadData", code)?;
        Ok(Arc::new(Self { context: Arc::clone(context), handle: module }))
    }
}

impl Kernel {
    pub(super) fn new(module: &Arc<Module>, name: &str) -> Result<Self> {
        let driver = module.context.enter()?;
        let call = "cuModuleGetFunction";
        let not_found = |_| Failure {
            status: Status { call, code: ffi::NOT_FOUND, name: "CUDA_ERROR_NOT_FOUND".to_owned() },
        };
        let name = CString::new(name).map_err(not_found)?;
        let mut function = ptr::null_mut();
        // SAFETY: the module exists, and the name is a C string.
        let code = unsafe {
            (driver.0.cuModuleGetFunction)(&raw mut function, module.handle, name.as_ptr())
        };
        driver.check(call, code)?;
        Ok(Self { module: Arc::clone(module), handle: function })
    }

    pub(super) fn attribute(&self, attribute: c_int) -> Result<u64> {
        let driver = self.module.context.enter()?;
        let mut value = 0;
        // SAFETY: the function exists, and the number lives on our stack.
        let code = unsafe { (driver.0.cuFuncGetAttribute)(&raw mut value, attribute, self.handle) };
        driver.check("cuFuncGetAttribute", code)?;
        Ok(u64::try_from(value).unwrap_or_default())
    }
}
