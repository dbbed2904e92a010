//! [`Device`]: the one interface to devices of all APIs.

use std::any::Any;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tensorwright_schedule::interface::Function;

use crate::{Description, DeviceError, DeviceProgram, LaunchPlan};

/// A device that programs run on, with one queue: what it is asked for happens in order.
///
/// Memory and programs belong to the device that made them, and are given back when they are dropped. All
/// calls return when what they ask for is done.
pub trait Device: Send {
    /// What it is.
    fn describe(&self) -> &Description;

    /// Compiles a program and makes its kernels ready to be launched. Its limits are checked before, and
    /// those of its compiled kernels after.
    ///
    /// # Errors
    /// If the compiler refuses the text, if text and launches contradict each other, or if the device has not what
    /// they ask for.
    fn load(&mut self, program: &DeviceProgram) -> Result<Loaded, DeviceError>;

    /// Memory of so many bytes, with anything in it.
    ///
    /// # Errors
    /// If there is not so much.
    fn allocate(&mut self, bytes: u64) -> Result<Memory, DeviceError>;

    /// Memory that is a part of other memory, which stays as long as the part does.
    ///
    /// # Errors
    /// If the part is not inside, or the device cannot begin memory at the offset.
    fn part(&mut self, of: &Memory, offset: u64, bytes: u64) -> Result<Memory, DeviceError>;

    /// Memory of this process as memory of the device, which keeps it. Where
    /// [`Description::shares_memory`] holds, kernels work on these very bytes, so that pages beside them that
    /// cannot be accessed end a process in which a kernel leaves them.
    ///
    /// # Errors
    /// If the device cannot do that.
    fn adopt(&mut self, memory: Box<dyn HostMemory>) -> Result<Memory, DeviceError>;

    /// Writes bytes from an offset on.
    ///
    /// # Errors
    /// If they do not fit, or the device refuses.
    fn upload(&mut self, to: &Memory, offset: u64, bytes: &[u8]) -> Result<(), DeviceError>;

    /// Reads bytes from an offset on.
    ///
    /// # Errors
    /// If there are not so many, or the device refuses.
    fn download(&mut self, from: &Memory, offset: u64, into: &mut [u8]) -> Result<(), DeviceError>;

    /// Launches all kernels of a function, in order, and waits for the last one. What they take is measured by the
    /// events of the device.
    ///
    /// # Errors
    /// If an argument is missing or too small, if a launch fails, or if the device goes away. If the
    /// [deadline](crate::deadline()) is over first, this and every later call of the device is
    /// [late](DeviceError::Late).
    ///
    /// # Safety
    /// The kernels must keep to the program's interface: whatever they access lies in their arguments, and
    /// inputs are only read. A device that shares memory with this process checks nothing of that.
    #[allow(unsafe_code, reason = "runs code that nothing is known of")]
    unsafe fn launch(
        &mut self,
        program: &Loaded,
        function: Function,
        arguments: &Arguments<'_>,
    ) -> Result<Elapsed, DeviceError>;

    /// What it can do with memory and streams of other libraries; `None` if its API has no addresses that they could
    /// name.
    fn streams(&mut self) -> Option<&mut dyn Streams> {
        None
    }
}

/// A stream of another library, by the handle that the API of the device has for it. What it is asked for happens in
/// order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct StreamHandle(pub u64);

/// What a [`Device`] can do for other libraries of this process that use it too. Nothing is waited for
/// unless it is said.
#[allow(unsafe_code, reason = "works on addresses that others name")]
pub trait Streams {
    /// Memory on the device that another library owns. It is not given back when it is dropped.
    ///
    /// # Safety
    /// There are so many bytes at the address, and they stay valid while anything that was asked for uses them.
    unsafe fn borrow(&mut self, address: u64, bytes: u64) -> Memory;

    /// Writes bytes from the beginning on, in the order of a stream.
    ///
    /// # Errors
    /// If they do not fit, or the device refuses.
    fn upload_on(
        &mut self,
        stream: StreamHandle,
        to: &Memory,
        bytes: &[u8],
    ) -> Result<(), DeviceError>;

    /// Launches all kernels of a function, in the order of a stream.
    ///
    /// # Errors
    /// If an argument is missing or too small, or if a launch is refused. What happens later is reported by who
    /// waits.
    ///
    /// # Safety
    /// As that of [`Device::launch`]; and the stream is one of the device.
    unsafe fn launch_on(
        &mut self,
        stream: StreamHandle,
        program: &Loaded,
        function: Function,
        arguments: &Arguments<'_>,
    ) -> Result<(), DeviceError>;

    /// Waits for all that was asked of a stream.
    ///
    /// # Errors
    /// If something that was asked for failed.
    fn wait_for(&mut self, stream: StreamHandle) -> Result<(), DeviceError>;
}

/// Memory of this process that a device may take over.
///
/// # Safety
/// [`start`](Self::start) must be the same on each call, and [`len`](Self::len) bytes from there on must stay
/// valid for reads, and for writes unless it [is read-only](Self::is_read_only), until it is dropped; nobody else may
/// access them.
#[allow(unsafe_code, reason = "what the implementor promises cannot be checked")]
pub unsafe trait HostMemory: Send {
    /// Where it starts.
    fn start(&self) -> *mut u8;
    /// How many bytes it has.
    fn len(&self) -> usize;
    /// Whether it has no bytes.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// Whether it cannot be written.
    fn is_read_only(&self) -> bool;
}

/// Whose memory and programs are: a device, from when it is opened to when it is dropped. What one device has made
/// means nothing to another, even of the same API.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Owner(u64);

impl Owner {
    /// One that is no other.
    pub(crate) fn new() -> Self {
        static OPENED: AtomicU64 = AtomicU64::new(0);
        Self(OPENED.fetch_add(1, Ordering::Relaxed))
    }
}

/// What a device made, which no other can use.
struct Owned {
    owner: Owner,
    inner: Box<dyn Any + Send>,
}

impl Owned {
    fn new(owner: Owner, inner: impl Any + Send) -> Self {
        Self { owner, inner: Box::new(inner) }
    }

    /// It, if a device made it; `what` is said of another's.
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
    /// Memory that a device made.
    pub(crate) fn new(bytes: u64, owner: Owner, inner: impl Any + Send) -> Self {
        Self { bytes, owned: Owned::new(owner, inner) }
    }

    /// How many bytes it has.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// What a device made, if it was this one.
    pub(crate) fn inner<T: 'static>(
        &self,
        owner: Owner,
        of: &Description,
    ) -> Result<&T, DeviceError> {
        self.owned.of(owner, of, "memory")
    }

    /// Checks that some bytes from an offset on are inside.
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

    /// What a device made, if it was this one.
    pub(crate) fn inner<T: 'static>(
        &self,
        owner: Owner,
        of: &Description,
    ) -> Result<&T, DeviceError> {
        self.owned.of(owner, of, "program")
    }

    /// The launches of a function, with their places among all.
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

/// What the kernels of a program are passed.
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
    /// Checks that there is as much memory as the interface says.
    pub(crate) fn check(&self, of: &Description, loaded: &Loaded) -> Result<(), DeviceError> {
        let program = loaded.program();
        let parameters = &program.interface.parameters;
        if parameters.len() != self.parameters.len() {
            let (given, wanted) = (self.parameters.len(), parameters.len());
            return Err(of.mismatch(format!("{given} tensors are given and {wanted} are taken")));
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

    /// What a launch is passed, in order.
    pub(crate) fn of<'s>(&'s self, launch: &'s LaunchPlan) -> impl Iterator<Item = &'s Memory> {
        let parameters = launch.parameters.iter().filter_map(|place| self.parameters.get(*place));
        parameters.copied().chain([self.workspace, self.status])
    }
}

/// How long launches took, by the clock of the device.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Elapsed {
    /// Each launch, from when it began to when it had ended.
    pub launches: Vec<Duration>,
    /// From the beginning of the first to the end of the last.
    pub total: Duration,
}

impl Elapsed {
    /// From the beginnings and ends of launches, in nanoseconds of one clock.
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
        // Clocks that go backwards make nothing negative.
        assert_eq!(Elapsed::from_nanoseconds(&[(5, 3)]).total, Duration::ZERO);
        assert_eq!(Elapsed::from_nanoseconds(&[]), Elapsed::default());
    }
}
