//! Kernel calls: single, or repeated on the same memory.

use std::collections::BTreeMap;
use std::time::Duration;

use tensorwright_runtime::{AlignedBuffer, Element};
use tensorwright_schedule::interface::{Function, Parameter};
use tensorwright_schedule::nest::{BufferId, Owner};

use super::invoke::{Bound, Memory};
use super::{Arguments, Diagnose, Error, Kernel, diagnose, memory};
use crate::ir::{Tensor, TensorId};
use crate::{Buffer, DType, Diagnostics, Inputs};

/// The reference is run to explain a failed call up to this many iterations.
const EXPLAIN_ITERATIONS: u128 = 10_000_000;

/// The results of a call, in the order of the signature.
#[derive(Debug, Clone, PartialEq)]
pub struct Outputs {
    list: Vec<(String, Buffer)>,
}

impl Outputs {
    pub(super) fn new(list: Vec<(String, Buffer)>) -> Self {
        Self { list }
    }

    /// The output with a name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Buffer> {
        self.list.iter().find(|(found, _)| found == name).map(|(_, buffer)| buffer)
    }

    /// The outputs with their names, in the order of the signature.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Buffer)> {
        self.list.iter().map(|(name, buffer)| (name.as_str(), buffer))
    }
}

impl IntoIterator for Outputs {
    type Item = (String, Buffer);
    type IntoIter = std::vec::IntoIter<(String, Buffer)>;

    fn into_iter(self) -> Self::IntoIter {
        self.list.into_iter()
    }
}

/// A kernel with memory for its inputs and outputs, for repeated calls without copies.
/// [`Kernel::bind`] makes it.
///
/// ```
/// use tensorwright::{Buffer, Inputs, Module};
///
/// let text = "def scale(float(N) A, float s) -> (B) { B(i) = s * A(i) }";
/// let program = Module::parse("scale.tc", text)?.def("scale")?.bind([("N", 3)])?;
/// let kernel = program.compile().build()?;
/// let inputs = Inputs::from([
///     ("A".to_owned(), Buffer::from(vec![1.0f32, 2.0, 3.0])),
///     ("s".to_owned(), Buffer::from(2.0f32)),
/// ]);
///
/// let mut call = kernel.bind(&inputs)?;
/// call.run()?;
/// assert_eq!(call.output::<f32>("B"), Some(&[2.0, 4.0, 6.0][..]));
///
/// // New values go where the old ones were.
/// call.input_mut::<f32>("A").ok_or("no input A")?.fill(10.0);
/// call.run()?;
/// assert_eq!(call.output::<f32>("B"), Some(&[20.0, 20.0, 20.0][..]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Call<'a> {
    kernel: &'a Kernel,
    bound: Bound<'a>,
}

impl Kernel {
    /// Runs the kernel on inputs.
    ///
    /// # Errors
    /// Missing, unknown or invalid inputs, an out-of-bounds data subscript, or a kernel for another
    /// machine.
    pub fn run<'a>(&'a self, arguments: impl Into<Arguments<'a>>) -> Result<Outputs, Diagnostics> {
        let mut call = self.bind(arguments)?;
        call.run()?;
        call.into_outputs()
    }

    /// Like [`Kernel::run`], with [guards](Call::guard) around the memory of the call.
    ///
    /// # Errors
    /// As [`Kernel::run`], and a kernel that writes out of bounds.
    pub fn run_guarded<'a>(
        &'a self,
        arguments: impl Into<Arguments<'a>>,
    ) -> Result<Outputs, Diagnostics> {
        let mut call = self.bind(arguments)?;
        call.guard()?;
        call.run()?;
        call.outputs()
    }

    /// Binds inputs for repeated calls. Tensors are copied to aligned memory once; dense views are
    /// used in place.
    ///
    /// # Errors
    /// Missing, unknown or invalid inputs, or a kernel for another machine.
    pub fn bind<'a>(
        &'a self,
        arguments: impl Into<Arguments<'a>>,
    ) -> Result<Call<'a>, Diagnostics> {
        let arguments = arguments.into();
        self.engine()?;
        let constants = self.constants_of_call(&arguments)?;
        let memory = |parameter: &Parameter| match constants.memory(parameter.id) {
            Some(memory) => Ok(memory),
            None => self.memory(parameter, &arguments),
        };
        let memory: Result<Vec<_>, _> = self.interface().parameters.iter().map(memory).collect();
        let bound = self.bound(Function::Compute, memory?)?;
        Ok(Call { kernel: self, bound })
    }

    /// The memory of an input or output.
    fn memory<'a>(
        &self,
        parameter: &Parameter,
        arguments: &Arguments<'a>,
    ) -> Result<Memory<'a>, Diagnostics> {
        let given = match parameter.owner {
            Owner::Input => arguments.memory(&self.program().ir().tensor(parameter.id).name),
            _ => None,
        };
        let memory = given.unwrap_or_else(|| {
            let bytes = usize::try_from(parameter.bytes()).unwrap_or(usize::MAX);
            AlignedBuffer::new(bytes).map(Memory::Owned)
        });
        memory.map_err(|error| error.diagnose(&self.program().ir().source))
    }

    /// Calls a bound function; an out-of-bounds read is an error.
    pub(super) fn call_bound(&self, bound: &mut Bound<'_>) -> Result<(), Diagnostics> {
        let source = &self.program().ir().source;
        let status = bound.call().map_err(|error| error.diagnose(source))?;
        self.judge(status, || self.inputs_of(bound))
    }

    /// The meaning of a kernel's status. `inputs` returns the inputs of the call, if they are still
    /// known.
    pub(super) fn judge(
        &self,
        status: i32,
        inputs: impl FnOnce() -> Option<Inputs>,
    ) -> Result<(), Diagnostics> {
        if status == 0 {
            return Ok(());
        }
        let source = &self.program().ir().source;
        let Some(read) = self.interface().failed_read(status) else {
            return Err(Error::Link(format!("the kernel returned {status}")).diagnose(source));
        };
        // If the reference is fast enough, it names the element, the axes and the value.
        if self.program().iterations() <= EXPLAIN_ITERATIONS
            && let Some(inputs) = inputs()
            && let Err(diagnostics) = self.program().run_reference(&inputs)
        {
            return Err(diagnostics);
        }
        Err(diagnose::out_of_bounds(self.program(), read))
    }

    /// The diagnostics for a failed allocation.
    fn no_memory_for(&self, tensor: &Tensor) -> Diagnostics {
        let bytes = usize::try_from(tensor.bytes()).unwrap_or(usize::MAX);
        tensorwright_runtime::AllocError { bytes }.diagnose(&self.program().ir().source)
    }

    /// The bound inputs as tensors.
    fn inputs_of(&self, bound: &Bound<'_>) -> Option<Inputs> {
        let input = |id: TensorId| {
            let tensor = self.program().ir().tensor(id);
            Some((tensor.name.clone(), self.tensor(bound, id, tensor)?))
        };
        self.program().ir().input_ids().map(input).collect()
    }

    fn tensor(&self, bound: &Bound<'_>, id: BufferId, tensor: &Tensor) -> Option<Buffer> {
        held(bound.memory(self.interface().position(id)?)?, tensor)
    }
}

impl Call<'_> {
    /// Runs the kernel.
    ///
    /// # Errors
    /// If a data subscript is out of bounds.
    pub fn run(&mut self) -> Result<(), Diagnostics> {
        self.kernel.call_bound(&mut self.bound)
    }

    /// Puts guards around the call's device memory: later runs fail if the kernel writes beyond a
    /// tensor or its workspace. No effect for kernels of this processor.
    ///
    /// # Errors
    /// If the device lacks the memory.
    pub fn guard(&mut self) -> Result<(), Diagnostics> {
        let source = &self.kernel.program().ir().source;
        self.bound.guard().map_err(|error| error.diagnose(source))
    }

    /// The time of the last run by the device's clock, without transfers; `None` for kernels of
    /// this processor.
    #[must_use]
    pub fn device_time(&self) -> Option<Duration> {
        self.bound.elapsed()
    }

    /// The elements of an output, if they have this type; 16-bit floats are read as `u16`.
    #[must_use]
    pub fn output<T: Element + 'static>(&self, name: &str) -> Option<&[T]> {
        let ir = self.kernel.program().ir();
        let id = *ir.outputs.iter().find(|id| ir.tensor(**id).name == name)?;
        let number = self.kernel.interface().position(id);
        let number = number.filter(|_| holds::<T>(ir.tensor(id).dtype))?;
        match self.bound.memory(number)? {
            Memory::Owned(buffer) => Some(buffer.as_slice()),
            Memory::Shared(buffer) => Some(buffer.as_slice()),
            _ => None,
        }
    }

    /// The elements of an input for modification, if they have this type; `None` for dense views of
    /// the caller's memory and for `const` inputs.
    #[must_use]
    pub fn input_mut<T: Element + 'static>(&mut self, name: &str) -> Option<&mut [T]> {
        let ir = self.kernel.program().ir();
        let id = ir.input_ids().find(|id| ir.tensor(*id).name == name)?;
        let number = self.kernel.interface().position(id);
        let number = number.filter(|_| holds::<T>(ir.tensor(id).dtype))?;
        self.bound.owned_mut(number)
    }

    /// Copies of the outputs.
    ///
    /// # Errors
    /// If they are too large to be copied.
    pub fn outputs(&self) -> Result<Outputs, Diagnostics> {
        let ir = self.kernel.program().ir();
        let output = |id: &TensorId| {
            let tensor = ir.tensor(*id);
            let copy = self.kernel.tensor(&self.bound, *id, tensor);
            Ok((tensor.name.clone(), copy.ok_or_else(|| self.kernel.no_memory_for(tensor))?))
        };
        Ok(Outputs { list: ir.outputs.iter().map(output).collect::<Result<_, Diagnostics>>()? })
    }

    /// Converts the call into its outputs. Frees inputs and kernel memory first, and each output's
    /// memory after copying it.
    ///
    /// # Errors
    /// If there is no memory for the copies.
    pub fn into_outputs(self) -> Result<Outputs, Diagnostics> {
        let Self { kernel, bound } = self;
        let ir = kernel.program().ir();
        let places = kernel.interface().parameters.iter().enumerate();
        let places: BTreeMap<BufferId, usize> = places.map(|(at, p)| (p.id, at)).collect();
        let place = |id: &TensorId| places.get(id).copied();
        let mut left: BTreeMap<usize, usize> = BTreeMap::new();
        ir.outputs.iter().filter_map(place).for_each(|at| *left.entry(at).or_default() += 1);
        let memory = bound.into_memory().into_iter().enumerate();
        let mut memory: BTreeMap<usize, Memory<'_>> =
            memory.filter(|(at, _)| left.contains_key(at)).collect();
        let mut list = Vec::new();
        for id in &ir.outputs {
            let tensor = ir.tensor(*id);
            let at = place(id).filter(|at| memory.contains_key(at));
            let copy = at.and_then(|at| held(memory.get(&at)?, tensor));
            list.push((tensor.name.clone(), copy.ok_or_else(|| kernel.no_memory_for(tensor))?));
            // A tensor may be returned under several names.
            if let Some(at) = at
                && let Some(times) = left.get_mut(&at)
            {
                *times -= 1;
                if *times == 0 {
                    memory.remove(&at);
                }
            }
        }
        Ok(Outputs { list })
    }
}

/// The tensor in memory; `None` if a copy cannot be allocated.
fn held(memory: &Memory<'_>, tensor: &Tensor) -> Option<Buffer> {
    let bytes = memory.bytes().get(..usize::try_from(tensor.bytes()).ok()?)?;
    memory::tensor(tensor.dtype, &tensor.shape, bytes).ok()
}

/// Whether memory of a type can be read as `T` for all bit patterns.
fn holds<T: Element>(dtype: DType) -> bool {
    use std::any::TypeId;
    // Without `bool`: not every byte is a valid one.
    let types = [
        ("i8", TypeId::of::<i8>()),
        ("i16", TypeId::of::<i16>()),
        ("i32", TypeId::of::<i32>()),
        ("i64", TypeId::of::<i64>()),
        ("u8", TypeId::of::<u8>()),
        ("u16", TypeId::of::<u16>()),
        ("u32", TypeId::of::<u32>()),
        ("u64", TypeId::of::<u64>()),
        ("f32", TypeId::of::<f32>()),
        ("f64", TypeId::of::<f64>()),
    ];
    types.contains(&(dtype.row().rust, TypeId::of::<T>()))
}
