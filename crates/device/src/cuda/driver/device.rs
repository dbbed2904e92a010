//! [`Cuda`]: an NVIDIA device.
#![allow(unsafe_code, reason = "launches kernels that nothing is known of")]

use std::sync::Arc;

use tensorwright_schedule::interface::Function;

use super::calls::{self, Buffer, Context, Driver, Failure, Kernel, Module, Queue, Stream};
use super::{ffi, list};
use crate::cuda::nvrtc::{Compiled, Nvrtc};
use crate::deadline::Wait;
use crate::device::{Arguments, Elapsed, Loaded, Memory, Owner};
use crate::{
    Description, Device, DeviceError, DeviceProgram, HostMemory, LaunchPlan, StreamHandle, Streams,
};

/// An NVIDIA device with its own stream.
struct Cuda {
    owner: Owner,
    description: Description,
    /// The architecture to compile for.
    architecture: String,
    /// Located when the first program is loaded.
    compiler: Option<Nvrtc>,
    context: Arc<Context>,
    stream: Stream,
    /// The last kernel that was launched on a foreign stream.
    launched: String,
    /// The error that made the device unusable.
    stuck: Option<DeviceError>,
}

/// A part of device memory.
struct Own {
    buffer: Arc<Buffer>,
    offset: u64,
}

/// The kernels of a program, one per launch.
struct Kernels(Vec<Kernel>);

/// The address of foreign memory.
struct Borrowed(ffi::Address);

/// Opens a device by number.
pub(super) fn open(driver: Driver, number: usize) -> Result<Box<dyn Device>, DeviceError> {
    let found = list::found(driver)?;
    let known = || found.iter().map(|(_, known)| known.name().to_owned()).collect();
    let Some((device, description)) = found.get(number).cloned() else {
        let name = format!("cuda:{number}");
        return Err(DeviceError::NoSuchDevice { name, known: known() });
    };
    let failed = |failure: Failure| failure.on(description.name());
    let architecture = list::architecture(device).map_err(failed)?;
    let context = device.context().map_err(failed)?;
    let stream = Stream::new(&context).map_err(failed)?;
    let (owner, compiler) = (Owner::new(), None);
    Ok(Box::new(Cuda {
        owner,
        description,
        architecture,
        compiler,
        context,
        stream,
        launched: String::new(),
        stuck: None,
    }))
}

impl Cuda {
    fn failed(&self, failure: Failure) -> DeviceError {
        failure.on(self.description.name())
    }

    /// The error of a failed allocation.
    fn starved(&self, bytes: u64, failure: Failure) -> DeviceError {
        let device = self.description.name().to_owned();
        match failure.code() {
            ffi::OUT_OF_MEMORY => DeviceError::OutOfMemory { device, bytes },
            _ => self.failed(failure),
        }
    }

    /// The error of a failed launch. An illegal access is reported when the stream is synchronized,
    /// and then by every call: the context is unusable.
    fn fell(&self, kernel: &str, failure: Failure) -> DeviceError {
        self.failed(failure).in_launch(kernel)
    }

    /// The kernel of a launch, checked against its description.
    fn kernel(
        &self,
        compiled: &Compiled,
        module: &Arc<Module>,
        launch: &LaunchPlan,
    ) -> Result<Kernel, DeviceError> {
        let (name, description) = (&launch.kernel, &self.description);
        let kernel = Kernel::new(module, name).map_err(|failure| match failure.code() {
            ffi::NOT_FOUND => description.mismatch(format!("the text has no kernel `{name}`")),
            _ => self.failed(failure),
        })?;
        let asked = |what| kernel.attribute(what).map_err(|failure| self.failed(failure));
        let takes = compiled.arguments(name).map(|takes| takes as u64);
        let most_threads = asked(ffi::FUNCTION_MAX_THREADS_PER_BLOCK)?;
        let shared = asked(ffi::FUNCTION_SHARED_SIZE_BYTES)?;
        description.check_compiled(launch, takes, most_threads, shared)?;
        Ok(kernel)
    }

    /// Returns the error if an earlier kernel did not end.
    fn check_free(&self) -> Result<(), DeviceError> {
        self.stuck.clone().map_or(Ok(()), Err)
    }

    /// Handles the result of waiting for a kernel.
    fn waited(&mut self, waited: Wait, kernel: &str) -> Result<(), DeviceError> {
        let ended = waited.ended(self.description.name(), kernel);
        if let Err(stuck) = &ended {
            calls::abandon();
            self.stuck = Some(stuck.clone());
        }
        ended
    }

    fn own<'m>(&self, memory: &'m Memory) -> Result<&'m Own, DeviceError> {
        memory.inner(self.owner, &self.description)
    }

    /// The address of own or foreign memory.
    fn address(&self, memory: &Memory) -> Result<ffi::Address, DeviceError> {
        match memory.inner(self.owner, &self.description) {
            Ok(Borrowed(address)) => Ok(*address),
            Err(_) => self.own(memory).map(|own| own.buffer.address().wrapping_add(own.offset)),
        }
    }

    /// Launches all kernels of a function on a stream; calls `launched` for each. Returns the last
    /// one.
    ///
    /// # Safety
    /// As for [`Device::launch`].
    unsafe fn launch_each<'p>(
        &self,
        queue: Queue<'_>,
        program: &'p Loaded,
        function: Function,
        arguments: &Arguments<'_>,
        mut launched: impl FnMut() -> Result<(), Failure>,
    ) -> Result<&'p str, DeviceError> {
        arguments.check(&self.description, program)?;
        let Kernels(kernels) = program.inner(self.owner, &self.description)?;
        let mut last = "";
        for (place, launch) in program.launches(function) {
            last = &launch.kernel;
            let kernel = kernels.get(place);
            let kernel = kernel.ok_or_else(|| self.description.mismatch("a kernel is missing"))?;
            let addresses = arguments.of(launch).map(|memory| self.address(memory));
            let addresses = addresses.collect::<Result<Vec<_>, _>>()?;
            // Checked when the program was loaded.
            let grid = launch.grid.map(|blocks| u32::try_from(blocks).unwrap_or(u32::MAX));
            // SAFETY: the caller vouches for the kernels; memory of the sizes of the interface is passed to
            // each.
            let result = unsafe { queue.launch(kernel, grid, launch.block, &addresses) };
            result.and_then(|()| launched()).map_err(|failure| self.fell(last, failure))?;
        }
        Ok(last)
    }
}

impl Device for Cuda {
    fn describe(&self) -> &Description {
        &self.description
    }

    fn load(&mut self, program: &DeviceProgram) -> Result<Loaded, DeviceError> {
        self.check_free()?;
        self.description.check(program)?;
        let compiler = match self.compiler.take() {
            Some(compiler) => compiler,
            None => Nvrtc::find()?,
        };
        let compiled =
            self.compiler.insert(compiler).compile(&program.source, &self.architecture)?;
        let module = Module::new(&self.context, &compiled.cubin);
        let module = module.map_err(|failure| self.failed(failure))?;
        let kernels = program.launches.iter().map(|launch| self.kernel(&compiled, &module, launch));
        let kernels = kernels.collect::<Result<Vec<_>, _>>()?;
        Ok(Loaded::new(program, self.owner, Kernels(kernels)))
    }

    fn allocate(&mut self, bytes: u64) -> Result<Memory, DeviceError> {
        self.check_free()?;
        let device = self.description.name().to_owned();
        // An allocation has at least one byte.
        let size = usize::try_from(bytes.max(1));
        let size = size.map_err(|_| DeviceError::OutOfMemory { device, bytes })?;
        let buffer = Buffer::new(&self.context, size);
        let buffer = buffer.map_err(|failure| self.starved(bytes, failure))?;
        Ok(Memory::new(bytes, self.owner, Own { buffer: Arc::new(buffer), offset: 0 }))
    }

    fn part(&mut self, of: &Memory, offset: u64, bytes: u64) -> Result<Memory, DeviceError> {
        of.check(&self.description, offset, usize::try_from(bytes).unwrap_or(usize::MAX))?;
        let own = self.own(of)?;
        let part = Own { buffer: Arc::clone(&own.buffer), offset: own.offset + offset };
        Ok(Memory::new(bytes, self.owner, part))
    }

    fn adopt(&mut self, _: Box<dyn HostMemory>) -> Result<Memory, DeviceError> {
        Err(self.description.mismatch("the device does not work on the memory of this process"))
    }

    fn upload(&mut self, to: &Memory, offset: u64, bytes: &[u8]) -> Result<(), DeviceError> {
        self.check_free()?;
        to.check(&self.description, offset, bytes.len())?;
        let own = self.own(to)?;
        match bytes.is_empty() {
            true => Ok(()),
            false => {
                own.buffer.write(own.offset + offset, bytes).map_err(|failure| self.failed(failure))
            }
        }
    }

    fn download(&mut self, from: &Memory, offset: u64, into: &mut [u8]) -> Result<(), DeviceError> {
        self.check_free()?;
        from.check(&self.description, offset, into.len())?;
        let own = self.own(from)?;
        match into.is_empty() {
            true => Ok(()),
            false => {
                own.buffer.read(own.offset + offset, into).map_err(|failure| self.failed(failure))
            }
        }
    }

    unsafe fn launch(
        &mut self,
        program: &Loaded,
        function: Function,
        arguments: &Arguments<'_>,
    ) -> Result<Elapsed, DeviceError> {
        self.check_free()?;
        let queue = self.stream.queue();
        let mut marks = vec![self.stream.mark().map_err(|failure| self.failed(failure))?];
        let mut mark = || self.stream.mark().map(|mark| marks.push(mark));
        // SAFETY: the caller vouches for the kernels.
        let last = unsafe { self.launch_each(queue, program, function, arguments, &mut mark) }?;
        let waited = queue.wait().map_err(|failure| self.fell(last, failure))?;
        self.waited(waited, last)?;
        let (mut now, mut times) = (0, Vec::new());
        for pair in marks.windows(2) {
            let taken = pair[0].until(&pair[1]).map_err(|failure| self.failed(failure))?;
            times.push((now, now + taken));
            now += taken;
        }
        Ok(Elapsed::from_nanoseconds(&times))
    }

    fn streams(&mut self) -> Option<&mut dyn Streams> {
        Some(self)
    }
}

impl Streams for Cuda {
    unsafe fn borrow(&mut self, address: u64, bytes: u64) -> Memory {
        Memory::new(bytes, self.owner, Borrowed(address))
    }

    fn upload_on(
        &mut self,
        stream: StreamHandle,
        to: &Memory,
        bytes: &[u8],
    ) -> Result<(), DeviceError> {
        to.check(&self.description, 0, bytes.len())?;
        let queue = Queue::foreign(&self.context, stream.0);
        match bytes.is_empty() {
            true => Ok(()),
            false => queue.write(self.address(to)?, bytes).map_err(|failure| self.failed(failure)),
        }
    }

    unsafe fn launch_on(
        &mut self,
        stream: StreamHandle,
        program: &Loaded,
        function: Function,
        arguments: &Arguments<'_>,
    ) -> Result<(), DeviceError> {
        let queue = Queue::foreign(&self.context, stream.0);
        // SAFETY: the caller vouches for the kernels and the stream.
        let last = unsafe { self.launch_each(queue, program, function, arguments, || Ok(())) }?;
        last.clone_into(&mut self.launched);
        Ok(())
    }

    fn wait_for(&mut self, stream: StreamHandle) -> Result<(), DeviceError> {
        let queue = Queue::foreign(&self.context, stream.0);
        let waited = queue.wait().map_err(|failure| self.failed(failure))?;
        let kernel = self.launched.clone();
        self.waited(waited, &kernel)
    }
}
