//! [`Device`]: the common interface of all device APIs.

use std::any::Any;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tensorwright_schedule::interface::Function;

use crate::{Description, DeviceError, DeviceProgram, LaunchPlan};

/// A device with one in-order command queue.
///
/// Memory and programs belong to the device that created them, and are released when dropped. All
/// calls are synchronous.
pub trait Device: Send {
    /// The properties.
    fn describe(&self) -> &Description;

    /// Compiles a program and prepares its kernels. The program's limits are checked before, and
    /// those of the compiled kernels after.
    ///
    /// # Errors
    /// If compilation fails, if text and launches are inconsistent, or if they exceed the device's
    /// limits.
    fn load(&mut self, program: &DeviceProgram) -> Result<Loaded, DeviceError>;

    /// Allocates uninitialized memory.
    ///
    /// # Errors
    /// There is not enough memory.
    fn allocate(&mut self, bytes: u64) -> Result<Memory, DeviceError>;

    /// A part of other memory, which it keeps alive.
    ///
    /// # Errors
    /// The part is out of bounds, or its offset is not supported.
    fn part(&mut self, of: &Memory, offset: u64, bytes: u64) -> Result<Memory, DeviceError>;

    /// Makes host memory available as device memory, which takes ownership. If
    /// [`Description::shares_memory`] holds, kernels access these very bytes, so inaccessible guard
    /// pages next to them crash a process whose kernel accesses memory out of bounds.
    ///
    /// # Errors
    /// The device does not support that.
    fn adopt(&mut self, memory: Box<dyn HostMemory>) -> Result<Memory, DeviceError>;

    /// Writes bytes at an offset.
    ///
    /// # Errors
    /// They do not fit, or the device reports an error.
    fn upload(&mut self, to: &Memory, offset: u64, bytes: &[u8]) -> Result<(), DeviceError>;

    /// Reads bytes at an offset.
    ///
    /// # Errors
    /// The range is out of bounds, or the device reports an error.
    fn download(&mut self, from: &Memory, offset: u64, into: &mut [u8]) -> Result<(), DeviceError>;

    /// Launches all kernels of a function, in order, and waits for the last one. The device's
    /// events measure the times.
    ///
    /// # Errors
    /// If an argument is missing or too small, if a launch fails, or if the device is lost. If the
    /// [deadline](crate::deadline()) passes first, this and every later call of the device is
    /// [late](DeviceError::Late).
    ///
    /// # Safety
    /// The kernels must respect the program's interface: they only access their arguments, and only
    /// read inputs. A device that shares memory with this process checks none of that.
    #[allow(unsafe_code, reason = "runs code that nothing is known of")]
    unsafe fn launch(
        &mut self,
        program: &Loaded,
        function: Function,
        arguments: &Arguments<'_>,
    ) -> Result<Elapsed, DeviceError>;

    /// Interoperability with memory and streams of other libraries; `None` if the API has no
    /// addresses for it.
    fn streams(&mut self) -> Option<&mut dyn Streams> {
        None
    }
}

/// A stream of another library, as the API's handle. Its commands run in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct StreamHandle(pub u64);

/// Interoperability of a [`Device`] with other libraries of this process. Calls do not wait unless
/// documented.
#[allow(unsafe_code, reason = "works on addresses that others name")]
pub trait Streams {
    /// Device memory of another library. Dropping it does not release the memory.
    ///
    /// # Safety
    /// The range at the address is valid until all commands that use it are done.
    unsafe fn borrow(&mut self, address: u64, bytes: u64) -> Memory;

    /// Writes bytes at the start, in stream order.
    ///
    /// # Errors
    /// They do not fit, or the device reports an error.
    fn upload_on(
        &mut self,
        stream: StreamHandle,
        to: &Memory,
        bytes: &[u8],
    ) -> Result<(), DeviceError>;

    /// Launches all kernels of a function, in stream order.
    ///
    /// # Errors
    /// If an argument is missing or too small, or if a launch is rejected. Later failures are
    /// reported when waiting.
    ///
    /// # Safety
    /// As for [`Device::launch`]; and the stream belongs to the device.
    unsafe fn launch_on(
        &mut self,
        stream: StreamHandle,
        program: &Loaded,
        function: Function,
        arguments: &Arguments<'_>,
    ) -> Result<(), DeviceError>;

    /// Waits for all commands of a stream.
    ///
    /// # Errors
    /// A command failed.
    fn wait_for(&mut self, stream: StreamHandle) -> Result<(), DeviceError>;
}

/// Host memory that a device may own.
///
/// # Safety
/// [`start`](Self::start) must be the same on each call, and [`len`](Self::len) bytes from there
/// must stay valid for reads, and for writes unless it [is read-only](Self::is_read_only), until it
/// is dropped. No other code may access them.
#[allow(unsafe_code, reason = "what the implementor promises cannot be checked")]
pub unsafe trait HostMemory: Send {
    /// The address.
    fn start(&self) -> *mut u8;
    /// The number of bytes.
    fn len(&self) -> usize;
    /// Whether it is empty.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// Whether it is read-only.
    fn is_read_only(&self) -> bool;
}

/// The device that owns memory and programs, from opening to dropping it. Other devices cannot use
/// them, even with the same API.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Owner(u64);

impl Owner {
    /// A new, unique owner.
    pub(crate) fn new() -> Self {
        static OPENED: AtomicU64 = AtomicU64::new(0);
        Self(OPENED.fetch_add(1, Ordering::Relaxed))
    }
}

/// An object of one device, which other devices cannot use.
struct Owned {
    owner: Owner,
    inner: Box<dyn Any + Send>,
}

impl Owned {
    fn new(owner: Owner, inner: impl Any + Send) -> Self {
        Self { owner, inner: Box::new(inner) }
    }

    /// The object, if it belongs to the owner; `what` names it in errors.
    fn of<T: 'static>(
        &self,
        owner: Owner,
        of: &Description,
        what: &str,
    ) -> Result<&T, DeviceError> {
        let inner = self.inner.downcast_ref().filter(|_| self.owner == owner);
        inner.ok_or_else(|| of.mismatch(format!("the {what} is another device's")))
    }
}

/// Memory of a device.
pub struct Memory {
    bytes: u64,
    owned: Owned,
}

impl Memory {
    /// Memory that a device allocated.
    pub(crate) fn new(bytes: u64, owner: Owner, inner: impl Any + Send) -> Self {
        Self { bytes, owned: Owned::new(owner, inner) }
    }

    /// The number of bytes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The device's representation, if the memory belongs to the owner.
    pub(crate) fn inner<T: 'static>(
        &self,
        owner: Owner,
        of: &Description,
    ) -> Result<&T, DeviceError> {
        self.owned.of(owner, of, "memory")
    }

    /// Checks that a range is in bounds.
    pub(crate) fn check(
        &self,
        of: &Description,
        offset: u64,
        bytes: usize,
    ) -> Result<(), DeviceError> {
        match offset.checked_add(bytes as u64).is_some_and(|end| end <= self.bytes) {
            true => Ok(()),
            false => Err(of.mismatch(format!(
                "{bytes} bytes from {offset} on are not inside of memory of {} bytes",
                self.bytes
            ))),
        }
    }
}

impl fmt::Debug for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Memory").field("bytes", &self.bytes).finish_non_exhaustive()
    }
}

/// A program that a device has compiled.
pub struct Loaded {
    /// The program without its text.
    program: DeviceProgram,
    owned: Owned,
}

impl Loaded {
    /// A program that a device compiled.
    pub(crate) fn new(program: &DeviceProgram, owner: Owner, inner: impl Any + Send) -> Self {
        let mut program = program.clone();
        program.source = String::new();
        Self { program, owned: Owned::new(owner, inner) }
    }

    /// The program, without its text.
    #[must_use]
    pub fn program(&self) -> &DeviceProgram {
        &self.program
    }

    /// The device's representation, if the program belongs to the owner.
    pub(crate) fn inner<T: 'static>(
        &self,
        owner: Owner,
        of: &Description,
    ) -> Result<&T, DeviceError> {
        self.owned.of(owner, of, "program")
    }

    /// The launches of a function, with their positions among all.
    pub(crate) fn launches(
        &self,
        function: Function,
    ) -> impl Iterator<Item = (usize, &LaunchPlan)> {
        let all = self.program.launches.iter().enumerate();
        all.filter(move |(_, launch)| launch.function == function)
    }
}

impl fmt::Debug for Loaded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Loaded").field("program", &self.program).finish_non_exhaustive()
    }
}

/// The arguments of a program's kernels.
#[derive(Debug, Clone, Copy)]
pub struct Arguments<'a> {
    /// Memory for each parameter of the interface, in order.
    pub parameters: &'a [&'a Memory],
    /// The workspace.
    pub workspace: &'a Memory,
    /// The status: four bytes.
    pub status: &'a Memory,
}

/// The bytes of a status.
pub const STATUS_BYTES: u64 = 4;

impl Arguments<'_> {
    /// Checks that the sizes match the interface.
    pub(crate) fn check(&self, of: &Description, loaded: &Loaded) -> Result<(), DeviceError> {
        let program = loaded.program();
        let parameters = &program.interface.parameters;
        if parameters.len() != self.parameters.len() {
            let (given, wanted) = (self.parameters.len(), parameters.len());
            return Err(
                of.mismatch(format!("{given} tensors were passed, but {wanted} are expected"))
            );
        }
        let tensors = parameters.iter().zip(self.parameters);
        let tensors = tensors.map(|(parameter, memory)| {
            let wanted = parameter.bytes().unsigned_abs();
            (format!("tensor `{}`", parameter.name), wanted, memory.bytes)
        });
        let workspace = ("the workspace".to_owned(), program.workspace_bytes, self.workspace.bytes);
        let status = ("the status".to_owned(), STATUS_BYTES, self.status.bytes);
        for (what, wanted, given) in tensors.chain([workspace, status]) {
            if given < wanted {
                let reason = format!("{what} has {wanted} bytes, and memory of {given} is given");
                return Err(of.mismatch(reason));
            }
        }
        Ok(())
    }

    /// The arguments of a launch, in order.
    pub(crate) fn of<'s>(&'s self, launch: &'s LaunchPlan) -> impl Iterator<Item = &'s Memory> {
        let parameters = launch.parameters.iter().filter_map(|place| self.parameters.get(*place));
        parameters.copied().chain([self.workspace, self.status])
    }
}

/// The times of launches, by the device's clock.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Elapsed {
    /// The duration of each launch.
    pub launches: Vec<Duration>,
    /// The time from the beginning of the first to the end of the last.
    pub total: Duration,
}

impl Elapsed {
    /// Computes the times from the beginnings and ends of launches, in nanoseconds of one clock.
    pub(crate) fn from_nanoseconds(launches: &[(u64, u64)]) -> Self {
        let between = |start: u64, end: u64| Duration::from_nanos(end.saturating_sub(start));
        let first = launches.iter().map(|(start, _)| *start).min().unwrap_or_default();
        let last = launches.iter().map(|(_, end)| *end).max().unwrap_or_default();
        Self {
            launches: launches.iter().map(|(start, end)| between(*start, *end)).collect(),
            total: between(first, last),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_launches_make_a_total() {
        let elapsed = Elapsed::from_nanoseconds(&[(100, 150), (160, 200)]);
        assert_eq!(elapsed.launches, [50, 40].map(Duration::from_nanos));
        assert_eq!(elapsed.total, Duration::from_nanos(100));
        // Clocks that go backwards never yield negative times.
        assert_eq!(Elapsed::from_nanoseconds(&[(5, 3)]).total, Duration::ZERO);
        assert_eq!(Elapsed::from_nanoseconds(&[]), Elapsed::default());
    }
}
