//! Safe wrappers of OpenCL calls.
//!
//! Only this file passes pointers to OpenCL. Handles are released when dropped; the runtime counts
//! references and keeps their dependencies alive. All functions are thread-safe, except those that
//! change a kernel: a [`Kernel`] needs an exclusive borrow.
#![allow(unsafe_code, reason = "calls into a C library")]

use std::ffi::{CStr, CString, c_int, c_void};
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use super::ffi::{self, Functions, Handle};
use crate::error::Status;
use crate::{DeviceError, HostMemory};

/// A call that failed, and its status.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Failure {
    pub(super) call: &'static str,
    pub(super) code: i32,
}

impl Failure {
    pub(super) fn status(self) -> Status {
        Status { call: self.call, code: self.code, name: ffi::name(self.code).to_owned() }
    }

    /// The failure as a device error, without further context.
    pub(super) fn on(self, device: &str) -> DeviceError {
        let (device, status) = (device.to_owned(), self.status());
        match self.code {
            ffi::DEVICE_NOT_AVAILABLE
            | ffi::DEVICE_NOT_FOUND
            | ffi::INVALID_CONTEXT
            | ffi::INVALID_COMMAND_QUEUE => DeviceError::Lost { device, status },
            _ => DeviceError::Runtime { device, status },
        }
    }
}

type Result<T> = std::result::Result<T, Failure>;

fn check(call: &'static str, code: i32) -> Result<()> {
    if code == ffi::SUCCESS { Ok(()) } else { Err(Failure { call, code }) }
}

/// A platform: one vendor's runtime.
#[derive(Debug, Clone, Copy)]
pub(super) struct Platform(&'static Functions, Handle);

/// A device of a platform.
#[derive(Debug, Clone, Copy)]
pub(super) struct DeviceId(&'static Functions, Handle);

// SAFETY: both are names of objects that exist as long as the process, and that any thread may use.
unsafe impl Send for Platform {}
// SAFETY: as above.
unsafe impl Send for DeviceId {}

/// Whether an abandoned kernel is running. Runtimes wait for kernels when a resource that they use
/// is released, so nothing is released then.
static ABANDONED: AtomicBool = AtomicBool::new(false);

/// Leaks all resources until the process ends.
pub(super) fn abandon() {
    if !ABANDONED.swap(true, Ordering::Relaxed) {
        leave_at_once();
    }
}

/// Ends the process without the runtimes' exit handlers: PoCL unloads the code of kernels that
/// still run.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
fn leave_at_once() {
    unsafe extern "C" {
        fn on_exit(leave: extern "C" fn(c_int, *mut c_void), data: *mut c_void) -> c_int;
        fn fflush(stream: *mut c_void) -> c_int;
        fn _exit(status: c_int) -> !;
    }
    extern "C" fn leave(status: c_int, _: *mut c_void) {
        // SAFETY: null stands for all streams, and the status is the one that the process was to end with.
        unsafe {
            fflush(ptr::null_mut());
            _exit(status)
        }
    }
    // SAFETY: the function exists as long as the process, and takes no data. If it cannot be registered, nothing is lost.
    unsafe { on_exit(leave, ptr::null_mut()) };
}

/// On other systems, exit handlers run.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
fn leave_at_once() {}

macro_rules! handles {
    ($($(#[$doc:meta])* $name:ident by $release:ident;)*) => { $(
        $(#[$doc])*
        #[derive(Debug)]
        pub(super) struct $name(&'static Functions, Handle);

        // SAFETY: the handle is owned, and objects of OpenCL are not tied to threads.
        unsafe impl Send for $name {}

        impl $name {
            /// Takes ownership of a created handle, or returns the error.
            fn take(
                functions: &'static Functions,
                call: &'static str,
                code: i32,
                handle: Handle,
            ) -> Result<Self> {
                check(call, code)?;
                match handle.is_null() {
                    true => Err(Failure { call, code: ffi::INVALID_VALUE }),
                    false => Ok(Self(functions, handle)),
                }
            }
        }

        impl Drop for $name {
            fn drop(&mut self) {
                if ABANDONED.load(Ordering::Relaxed) {
                    return;
                }
                // SAFETY: the handle is ours, and is released once. A failure cannot be reported.
                unsafe { (self.0.$release)(self.1) };
            }
        }
    )* };
}

handles! {
    /// The owner of queues, memory and programs of a device.
    Context by clReleaseContext;
    /// An in-order queue with profiling.
    Queue by clReleaseCommandQueue;
    /// Memory of the runtime.
    Buffer by clReleaseMemObject;
    /// A program, compiled or not.
    Program by clReleaseProgram;
    /// A function of a program with its arguments.
    Kernel by clReleaseKernel;
    /// A command on a queue.
    Event by clReleaseEvent;
}

/// Queries a value of unknown size: the size, then the value.
fn value(
    call: &'static str,
    query: impl Fn(usize, *mut c_void, *mut usize) -> i32,
) -> Result<Vec<u8>> {
    let mut size = 0;
    check(call, query(0, ptr::null_mut(), &raw mut size))?;
    let mut bytes = vec![0; size];
    check(call, query(size, bytes.as_mut_ptr().cast(), &raw mut size))?;
    bytes.truncate(size);
    Ok(bytes)
}

/// Bytes as text, up to the first zero.
fn text(bytes: &[u8]) -> String {
    let text = bytes.split(|byte| *byte == 0).next().unwrap_or_default();
    String::from_utf8_lossy(text).trim().to_owned()
}

/// Bytes as an integer of their size.
fn number(bytes: &[u8]) -> u64 {
    let mut word = [0; 8];
    let count = bytes.len().min(word.len());
    word[..count].copy_from_slice(&bytes[..count]);
    u64::from_le_bytes(word)
}

/// The platforms, possibly none.
pub(super) fn platforms(functions: &'static Functions) -> Result<Vec<Platform>> {
    let call = "clGetPlatformIDs";
    let list = |room: u32, to: *mut Handle, count: &mut u32| {
        // SAFETY: there is room for as many handles as is said, and for the count.
        unsafe { (functions.clGetPlatformIDs)(room, to, &raw mut *count) }
    };
    match handles_of(call, list) {
        Err(Failure { code: ffi::PLATFORM_NOT_FOUND_KHR, .. }) => Ok(Vec::new()),
        other => Ok(other?.into_iter().map(|handle| Platform(functions, handle)).collect()),
    }
}

/// Queries a list of handles: the number, then the handles.
fn handles_of(
    call: &'static str,
    list: impl Fn(u32, *mut Handle, &mut u32) -> i32,
) -> Result<Vec<Handle>> {
    let mut count = 0;
    check(call, list(0, ptr::null_mut(), &mut count))?;
    let mut handles = vec![ptr::null_mut(); count as usize];
    if count > 0 {
        check(call, list(count, handles.as_mut_ptr(), &mut count))?;
    }
    handles.truncate(count as usize);
    Ok(handles)
}

impl Platform {
    pub(super) fn name(self) -> Result<String> {
        let Self(functions, platform) = self;
        let name = value("clGetPlatformInfo", |room, to, size| {
            // SAFETY: the platform exists, and there is room for as many bytes as is said.
            unsafe { (functions.clGetPlatformInfo)(platform, ffi::PLATFORM_NAME, room, to, size) }
        });
        name.map(|bytes| text(&bytes))
    }

    /// Its devices, possibly none.
    pub(super) fn devices(self) -> Result<Vec<DeviceId>> {
        let Self(functions, platform) = self;
        let list = |room: u32, to: *mut Handle, count: &mut u32| {
            let all = ffi::DEVICE_TYPE_ALL;
            // SAFETY: the platform exists, and there is room for as many handles as is said.
            unsafe { (functions.clGetDeviceIDs)(platform, all, room, to, &raw mut *count) }
        };
        match handles_of("clGetDeviceIDs", list) {
            Err(Failure { code: ffi::DEVICE_NOT_FOUND, .. }) => Ok(Vec::new()),
            other => Ok(other?.into_iter().map(|handle| DeviceId(functions, handle)).collect()),
        }
    }
}

impl DeviceId {
    fn info(self, what: u32) -> Result<Vec<u8>> {
        let Self(functions, device) = self;
        value("clGetDeviceInfo", |room, to, size| {
            // SAFETY: the device exists, and there is room for as many bytes as is said.
            unsafe { (functions.clGetDeviceInfo)(device, what, room, to, size) }
        })
    }

    pub(super) fn text(self, what: u32) -> Result<String> {
        self.info(what).map(|bytes| text(&bytes))
    }

    pub(super) fn number(self, what: u32) -> Result<u64> {
        self.info(what).map(|bytes| number(&bytes))
    }

    /// A list of `size_t` numbers.
    pub(super) fn sizes(self, what: u32) -> Result<Vec<u64>> {
        let bytes = self.info(what)?;
        Ok(bytes.chunks_exact(size_of::<usize>()).map(number).collect())
    }

    pub(super) fn context(self) -> Result<Context> {
        let Self(functions, device) = self;
        let mut code = 0;
        // SAFETY: one device that exists, no properties, and nobody to notify.
        let context = unsafe {
            let nobody = ptr::null_mut();
            (functions.clCreateContext)(
                ptr::null(),
                1,
                &raw const device,
                None,
                nobody,
                &raw mut code,
            )
        };
        Context::take(functions, "clCreateContext", code, context)
    }
}

impl Context {
    /// A queue of the device with profiling.
    pub(super) fn queue(&self, device: DeviceId) -> Result<Queue> {
        let (mut code, properties) = (0, ffi::QUEUE_PROFILING_ENABLE);
        // SAFETY: context and device exist.
        let queue =
            unsafe { (self.0.clCreateCommandQueue)(self.1, device.1, properties, &raw mut code) };
        Queue::take(self.0, "clCreateCommandQueue", code, queue)
    }

    /// Allocates memory.
    pub(super) fn buffer(&self, bytes: usize) -> Result<Buffer> {
        let mut code = 0;
        // SAFETY: the context exists, and no memory is passed.
        let buffer = unsafe {
            let nothing = ptr::null_mut();
            (self.0.clCreateBuffer)(self.1, ffi::MEM_READ_WRITE, bytes, nothing, &raw mut code)
        };
        Buffer::take(self.0, "clCreateBuffer", code, buffer)
    }

    /// Wraps host memory, which must live as long as the buffer.
    pub(super) fn adopt(&self, memory: Box<dyn HostMemory>) -> Result<Adopted> {
        let access = if memory.is_read_only() { ffi::MEM_READ_ONLY } else { ffi::MEM_READ_WRITE };
        let (flags, mut code) = (access | ffi::MEM_USE_HOST_PTR, 0);
        // SAFETY: the memory is valid for what the flags say, nobody else accesses it, and it is dropped
        // after the buffer.
        let buffer = unsafe {
            let (start, bytes) = (memory.start().cast(), memory.len());
            (self.0.clCreateBuffer)(self.1, flags, bytes, start, &raw mut code)
        };
        let buffer = Buffer::take(self.0, "clCreateBuffer", code, buffer)?;
        Ok(Adopted { buffer, _memory: memory })
    }

    /// An uncompiled program.
    pub(super) fn program(&self, source: &str) -> Result<Program> {
        let (start, length, mut code) = (source.as_ptr().cast(), source.len(), 0);
        // SAFETY: one text with its length, which the runtime copies.
        let program = unsafe {
            let (start, length) = (&raw const start, &raw const length);
            (self.0.clCreateProgramWithSource)(self.1, 1, start, length, &raw mut code)
        };
        Program::take(self.0, "clCreateProgramWithSource", code, program)
    }
}

impl Buffer {
    /// A part of it, which keeps the whole alive.
    pub(super) fn part(&self, offset: usize, bytes: usize) -> Result<Self> {
        let (region, mut code) = ([offset, bytes], 0);
        // SAFETY: the buffer exists, and a region is two sizes.
        let part = unsafe {
            let (kind, region) = (ffi::BUFFER_CREATE_TYPE_REGION, region.as_ptr().cast());
            (self.0.clCreateSubBuffer)(self.1, ffi::MEM_READ_WRITE, kind, region, &raw mut code)
        };
        Self::take(self.0, "clCreateSubBuffer", code, part)
    }
}

/// A buffer in host memory. Fields are dropped in order: the memory last.
pub(super) struct Adopted {
    pub(super) buffer: Buffer,
    _memory: Box<dyn HostMemory>,
}

impl Program {
    /// Compiles it.
    pub(super) fn build(&self, device: DeviceId, options: &CStr) -> Result<()> {
        // SAFETY: program and device exist, the options are a C string, and nobody is notified, so that the
        // call returns when it is done.
        let code = unsafe {
            let (device, nobody) = (&raw const device.1, ptr::null_mut());
            (self.0.clBuildProgram)(self.1, 1, device, options.as_ptr(), None, nobody)
        };
        check("clBuildProgram", code)
    }

    /// The compiler's messages; empty if unavailable.
    pub(super) fn log(&self, device: DeviceId) -> String {
        let log = value("clGetProgramBuildInfo", |room, to, size| {
            let what = ffi::PROGRAM_BUILD_LOG;
            // SAFETY: program and device exist, and there is room for as many bytes as is said.
            unsafe { (self.0.clGetProgramBuildInfo)(self.1, device.1, what, room, to, size) }
        });
        log.map(|bytes| text(&bytes)).unwrap_or_default()
    }

    /// A kernel of the program.
    pub(super) fn kernel(&self, name: &str) -> Result<Kernel> {
        let call = "clCreateKernel";
        let unknown = Failure { call, code: ffi::INVALID_KERNEL_NAME };
        let (name, mut code) = (CString::new(name).map_err(|_| unknown)?, 0);
        // SAFETY: the program exists, and the name is a C string.
        let kernel = unsafe { (self.0.clCreateKernel)(self.1, name.as_ptr(), &raw mut code) };
        Kernel::take(self.0, call, code, kernel)
    }
}

impl Kernel {
    /// The number of arguments.
    pub(super) fn arguments(&self) -> Result<u64> {
        let count = value("clGetKernelInfo", |room, to, size| {
            // SAFETY: the kernel exists, and there is room for as many bytes as is said.
            unsafe { (self.0.clGetKernelInfo)(self.1, ffi::KERNEL_NUM_ARGS, room, to, size) }
        });
        count.map(|bytes| number(&bytes))
    }

    /// A device-specific property.
    pub(super) fn number(&self, device: DeviceId, what: u32) -> Result<u64> {
        let value = value("clGetKernelWorkGroupInfo", |room, to, size| {
            // SAFETY: kernel and device exist, and there is room for as many bytes as is said.
            unsafe { (self.0.clGetKernelWorkGroupInfo)(self.1, device.1, what, room, to, size) }
        });
        value.map(|bytes| number(&bytes))
    }

    /// Sets a memory argument.
    pub(super) fn pass(&mut self, place: u32, buffer: &Buffer) -> Result<()> {
        let handle = &raw const buffer.1;
        // SAFETY: kernel and buffer exist; the value of a memory argument is its handle.
        let code =
            unsafe { (self.0.clSetKernelArg)(self.1, place, size_of::<Handle>(), handle.cast()) };
        check("clSetKernelArg", code)
    }
}

impl Queue {
    /// Writes bytes, synchronously.
    pub(super) fn write(&self, to: &Buffer, offset: usize, bytes: &[u8]) -> Result<()> {
        // SAFETY: the call returns when the bytes were read, waits for nothing else, and makes no event.
        let code = unsafe {
            let (from, event) = (bytes.as_ptr().cast(), ptr::null_mut());
            (self.0.clEnqueueWriteBuffer)(
                self.1,
                to.1,
                1,
                offset,
                bytes.len(),
                from,
                0,
                ptr::null(),
                event,
            )
        };
        check("clEnqueueWriteBuffer", code)
    }

    /// Reads bytes, synchronously.
    pub(super) fn read(&self, from: &Buffer, offset: usize, into: &mut [u8]) -> Result<()> {
        // SAFETY: the call returns when the bytes were written, waits for nothing else, and makes no event.
        let code = unsafe {
            let (to, event) = (into.as_mut_ptr().cast(), ptr::null_mut());
            (self.0.clEnqueueReadBuffer)(
                self.1,
                from.1,
                1,
                offset,
                into.len(),
                to,
                0,
                ptr::null(),
                event,
            )
        };
        check("clEnqueueReadBuffer", code)
    }

    /// Launches a kernel.
    ///
    /// # Safety
    /// With its arguments and as many threads, the kernel must only access its arguments.
    pub(super) unsafe fn launch(
        &self,
        kernel: &Kernel,
        global: [usize; 3],
        local: [usize; 3],
    ) -> Result<Event> {
        let mut event = ptr::null_mut();
        // SAFETY: queue and kernel exist, both sizes have as many numbers as dimensions, and the caller
        // vouches for the kernel.
        let code = unsafe {
            let (global, local) = (global.as_ptr(), local.as_ptr());
            (self.0.clEnqueueNDRangeKernel)(
                self.1,
                kernel.1,
                3,
                ptr::null(),
                global,
                local,
                0,
                ptr::null(),
                &raw mut event,
            )
        };
        Event::take(self.0, "clEnqueueNDRangeKernel", code, event)
    }

    /// Submits all commands of the queue.
    pub(super) fn flush(&self) -> Result<()> {
        // SAFETY: the queue exists.
        check("clFlush", unsafe { (self.0.clFlush)(self.1) })
    }

    /// Waits for all commands of the queue.
    pub(super) fn finish(&self) -> Result<()> {
        // SAFETY: the queue exists.
        check("clFinish", unsafe { (self.0.clFinish)(self.1) })
    }
}

/// A callback's notification that a command has ended.
#[derive(Debug, Default)]
pub(super) struct Ended(Arc<(Mutex<bool>, Condvar)>);

impl Ended {
    /// Waits with a timeout; returns whether the command has ended.
    pub(super) fn within(&self, time: Duration) -> bool {
        let (has_ended, changed) = &*self.0;
        let waiting = has_ended.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = changed.wait_timeout_while(waiting, time, |has_ended| !*has_ended);
        *waited.unwrap_or_else(PoisonError::into_inner).0
    }

    /// Called by the runtime, once.
    unsafe extern "C" fn notify(_: Handle, _: i32, data: *mut c_void) {
        // SAFETY: `Event::ended` left one count of the pair to this call.
        let pair = unsafe { Arc::from_raw(data.cast::<(Mutex<bool>, Condvar)>()) };
        *pair.0.lock().unwrap_or_else(PoisonError::into_inner) = true;
        pair.1.notify_all();
    }
}

impl Event {
    /// Requests a notification when the command has ended or failed.
    pub(super) fn ended(&self) -> Result<Ended> {
        let ended = Ended::default();
        let data = Arc::into_raw(Arc::clone(&ended.0));
        // SAFETY: the event exists, and the function takes the count of the pair that it is passed.
        let code = unsafe {
            let data = data.cast_mut().cast();
            (self.0.clSetEventCallback)(self.1, ffi::COMPLETE, Ended::notify, data)
        };
        if code != ffi::SUCCESS {
            // SAFETY: nobody will call the function, so that the count is ours again.
            drop(unsafe { Arc::from_raw(data) });
        }
        check("clSetEventCallback", code).map(|()| ended)
    }

    /// Whether the command has ended successfully.
    pub(super) fn outcome(&self) -> Result<bool> {
        let status = value("clGetEventInfo", |room, to, size| {
            let what = ffi::EVENT_COMMAND_EXECUTION_STATUS;
            // SAFETY: the event exists, and there is room for as many bytes as is said.
            unsafe { (self.0.clGetEventInfo)(self.1, what, room, to, size) }
        })?;
        // Negative numbers are failures; zero is complete.
        let code = number(&status) as u32 as i32;
        check("clEnqueueNDRangeKernel", code.min(ffi::SUCCESS))?;
        Ok(code == ffi::COMPLETE)
    }

    /// The times when the command began and ended, in nanoseconds.
    pub(super) fn times(&self) -> Result<(u64, u64)> {
        let time = |what: u32| {
            let bytes = value("clGetEventProfilingInfo", |room, to, size| {
                // SAFETY: the event exists, and there is room for as many bytes as is said.
                unsafe { (self.0.clGetEventProfilingInfo)(self.1, what, room, to, size) }
            });
            bytes.map(|bytes| number(&bytes))
        };
        Ok((time(ffi::PROFILING_COMMAND_START)?, time(ffi::PROFILING_COMMAND_END)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read_whatever_their_size() {
        assert_eq!(number(&[]), 0);
        assert_eq!(number(&[1, 0, 0, 0]), 1);
        assert_eq!(number(&[0, 1, 0, 0, 0, 0, 0, 0, 9]), 256);
        assert_eq!(text(b" OpenCL 3.0 \0garbage"), "OpenCL 3.0");
        assert_eq!(text(&[0xff, 0]), "\u{fffd}");
        let grows = value("x", |room, _, size| {
            // SAFETY: `value` passes a size that lives on its stack.
            unsafe { *size = 4 - room };
            0
        });
        assert_eq!(grows.unwrap().len(), 0, "a value that shrinks is cut");
        let refused = value("x", |_, _, _| -30).unwrap_err();
        assert_eq!(refused.status().to_string(), "`x` returned CL_INVALID_VALUE (-30)");
    }
}
