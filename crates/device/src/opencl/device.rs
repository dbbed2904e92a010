//! [`OpenCl`]: an OpenCL device.
#![allow(unsafe_code, reason = "launches kernels that nothing is known of")]

use std::convert::Infallible;
use std::sync::{Mutex, PoisonError};

use tensorwright_schedule::interface::Function;

use super::calls::{self, Adopted, Buffer, Context, DeviceId, Event, Failure, Kernel, Queue};
use super::{ffi, list};
use crate::deadline::wait;
use crate::device::{Arguments, Elapsed, Loaded, Memory, Owner};
use crate::{BuildLog, Description, Device, DeviceError, DeviceProgram, HostMemory, LaunchPlan};

/// Results are compared with a reference that rounds as C does, so no relaxed math.
const OPTIONS: &std::ffi::CStr = c"-cl-std=CL1.2";

/// An OpenCL device with its own context and queue.
struct OpenCl {
    owner: Owner,
    device: DeviceId,
    context: Context,
    queue: Queue,
    description: Description,
    /// The error that made the device unusable.
    stuck: Option<DeviceError>,
}

/// Memory of an OpenCL device.
enum Storage {
    Own(Buffer),
    Adopted(Adopted),
}

/// The kernels of a program, one per launch. They store their arguments, so only one call at a time
/// may use them.
struct Kernels(Mutex<Vec<Kernel>>);

/// Opens a device by number.
pub(super) fn open(number: usize) -> Result<Box<dyn Device>, DeviceError> {
    let found = list::found()?;
    let known = || found.iter().map(|(_, known)| known.name().to_owned()).collect();
    let Some((device, description)) = found.get(number).cloned() else {
        let name = format!("opencl:{number}");
        return Err(DeviceError::NoSuchDevice { name, known: known() });
    };
    let failed = |failure: Failure| failure.on(description.name());
    let context = device.context().map_err(failed)?;
    let queue = context.queue(device).map_err(failed)?;
    Ok(Box::new(OpenCl { owner: Owner::new(), device, context, queue, description, stuck: None }))
}

impl OpenCl {
    fn failed(&self, failure: Failure) -> DeviceError {
        failure.on(self.description.name())
    }

    /// Returns the error if an earlier kernel did not end.
    fn check_free(&self) -> Result<(), DeviceError> {
        self.stuck.clone().map_or(Ok(()), Err)
    }

    /// Waits for launches, until the deadline.
    fn wait(&mut self, events: &[(&str, Event)]) -> Result<(), DeviceError> {
        let Some((kernel, last)) = events.last() else { return Ok(()) };
        let fell = |failure: Failure| failure.on(self.description.name()).in_launch(kernel);
        let ended = last.ended().map_err(fell)?;
        self.queue.flush().map_err(fell)?;
        let Ok(waited) = wait(|time| Ok::<_, Infallible>(ended.within(time)));
        // The first unfinished kernel, if some have ended.
        let runs = events.iter().find(|(_, event)| event.outcome().is_ok_and(|ended| !ended));
        let kernel = runs.map_or(*kernel, |(kernel, _)| kernel);
        let ended = waited.ended(self.description.name(), kernel);
        if let Err(stuck) = &ended {
            calls::abandon();
            self.stuck = Some(stuck.clone());
        }
        ended
    }

    /// The error of a failed allocation.
    fn starved(&self, bytes: u64, failure: Failure) -> DeviceError {
        match failure.code {
            ffi::MEM_OBJECT_ALLOCATION_FAILURE
            | ffi::OUT_OF_RESOURCES
            | ffi::OUT_OF_HOST_MEMORY
            | ffi::INVALID_BUFFER_SIZE => {
                DeviceError::OutOfMemory { device: self.description.name().to_owned(), bytes }
            }
            _ => self.failed(failure),
        }
    }

    /// The error of a failed launch.
    fn fell(&self, kernel: &str, failure: Failure) -> DeviceError {
        self.failed(failure).in_launch(kernel)
    }

    /// The kernel of a launch, checked against its description.
    fn kernel(
        &self,
        program: &super::calls::Program,
        launch: &LaunchPlan,
    ) -> Result<Kernel, DeviceError> {
        let (name, description) = (&launch.kernel, &self.description);
        let kernel = program.kernel(name).map_err(|failure| match failure.code {
            ffi::INVALID_KERNEL_NAME => {
                description.mismatch(format!("the text has no kernel `{name}`"))
            }
            _ => self.failed(failure),
        })?;
        let takes = kernel.arguments().map_err(|failure| self.failed(failure))?;
        let asked = |what| kernel.number(self.device, what).map_err(|failure| self.failed(failure));
        let most_threads = asked(ffi::KERNEL_WORK_GROUP_SIZE)?;
        let shared = asked(ffi::KERNEL_LOCAL_MEM_SIZE)?;
        description.check_compiled(launch, Some(takes), most_threads, shared)?;
        Ok(kernel)
    }

    /// The buffer of some memory.
    fn buffer<'m>(&self, memory: &'m Memory) -> Result<&'m Buffer, DeviceError> {
        Ok(match memory.inner::<Storage>(self.owner, &self.description)? {
            Storage::Own(buffer) => buffer,
            Storage::Adopted(adopted) => &adopted.buffer,
        })
    }
}

impl Device for OpenCl {
    fn describe(&self) -> &Description {
        &self.description
    }

    fn load(&mut self, program: &DeviceProgram) -> Result<Loaded, DeviceError> {
        self.check_free()?;
        self.description.check(program)?;
        let text = self.context.program(&program.source).map_err(|failure| self.failed(failure))?;
        text.build(self.device, OPTIONS).map_err(|failure| match failure.code {
            ffi::BUILD_PROGRAM_FAILURE => DeviceError::Build {
                device: self.description.name().to_owned(),
                log: BuildLog::new(text.log(self.device), &program.source),
            },
            _ => self.failed(failure),
        })?;
        let kernels = program.launches.iter().map(|launch| self.kernel(&text, launch));
        let kernels = kernels.collect::<Result<Vec<_>, _>>()?;
        Ok(Loaded::new(program, self.owner, Kernels(Mutex::new(kernels))))
    }

    fn allocate(&mut self, bytes: u64) -> Result<Memory, DeviceError> {
        self.check_free()?;
        let starved =
            DeviceError::OutOfMemory { device: self.description.name().to_owned(), bytes };
        // Some runtimes do not reject allocations above the size that they report.
        if bytes > self.description.limits.allocation {
            return Err(starved);
        }
        // A buffer has at least one byte.
        let size = usize::try_from(bytes.max(1)).map_err(|_| starved)?;
        let buffer = self.context.buffer(size).map_err(|failure| self.starved(bytes, failure))?;
        Ok(Memory::new(bytes, self.owner, Storage::Own(buffer)))
    }

    fn part(&mut self, of: &Memory, offset: u64, bytes: u64) -> Result<Memory, DeviceError> {
        self.check_free()?;
        of.check(&self.description, offset, bytes as usize)?;
        // A buffer has at least one byte, which may be the last one of the memory.
        let (start, size) = (offset as usize, bytes.max(1) as usize);
        let part = self.buffer(of)?.part(start, size).map_err(|failure| self.failed(failure))?;
        Ok(Memory::new(bytes, self.owner, Storage::Own(part)))
    }

    fn adopt(&mut self, memory: Box<dyn HostMemory>) -> Result<Memory, DeviceError> {
        self.check_free()?;
        let bytes = memory.len() as u64;
        let adopted = self.context.adopt(memory).map_err(|failure| self.starved(bytes, failure))?;
        Ok(Memory::new(bytes, self.owner, Storage::Adopted(adopted)))
    }

    fn upload(&mut self, to: &Memory, offset: u64, bytes: &[u8]) -> Result<(), DeviceError> {
        self.check_free()?;
        to.check(&self.description, offset, bytes.len())?;
        let buffer = self.buffer(to)?;
        if bytes.is_empty() {
            return Ok(());
        }
        let written = self.queue.write(buffer, offset as usize, bytes);
        written.map_err(|failure| self.starved(bytes.len() as u64, failure))
    }

    fn download(&mut self, from: &Memory, offset: u64, into: &mut [u8]) -> Result<(), DeviceError> {
        self.check_free()?;
        from.check(&self.description, offset, into.len())?;
        let buffer = self.buffer(from)?;
        if into.is_empty() {
            return Ok(());
        }
        let read = self.queue.read(buffer, offset as usize, into);
        read.map_err(|failure| self.starved(into.len() as u64, failure))
    }

    unsafe fn launch(
        &mut self,
        program: &Loaded,
        function: Function,
        arguments: &Arguments<'_>,
    ) -> Result<Elapsed, DeviceError> {
        self.check_free()?;
        arguments.check(&self.description, program)?;
        let kernels = program.inner::<Kernels>(self.owner, &self.description)?;
        let mut kernels = kernels.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut events: Vec<(&str, Event)> = Vec::new();
        for (place, launch) in program.launches(function) {
            let kernel = kernels.get_mut(place);
            let kernel = kernel.ok_or_else(|| self.description.mismatch("a kernel is missing"))?;
            for (place, memory) in (0..).zip(arguments.of(launch)) {
                let passed = kernel.pass(place, self.buffer(memory)?);
                passed.map_err(|failure| self.fell(&launch.kernel, failure))?;
            }
            let local = launch.block.map(|threads| threads as usize);
            let global = std::array::from_fn(|axis| {
                // Checked when the program was loaded.
                (launch.grid[axis] as usize).saturating_mul(local[axis])
            });
            // SAFETY: the caller vouches for the kernels; memory of the sizes of the interface was passed
            // to each.
            let event = unsafe { self.queue.launch(kernel, global, local) };
            let event = event.map_err(|failure| self.fell(&launch.kernel, failure))?;
            events.push((&launch.kernel, event));
        }
        self.wait(&events)?;
        let last = events.last().map_or("", |(kernel, _)| kernel);
        self.queue.finish().map_err(|failure| self.fell(last, failure))?;
        let times = events.iter().map(|(kernel, event)| {
            let ended = event.outcome().and_then(|_| event.times());
            ended.map_err(|failure| self.fell(kernel, failure))
        });
        Ok(Elapsed::from_nanoseconds(&times.collect::<Result<Vec<_>, _>>()?))
    }
}
