//! [`Arguments`]: the inputs of a kernel call.

use std::collections::BTreeMap;

use tensorwright_runtime::{AlignedBuffer, AllocError, View};

use super::invoke::Memory;
use super::{Frozen, memory};
use crate::ir::Tensor;
use crate::{Buffer, Code, DType, Diagnostic, Diagnostics, Inputs, Program};

/// The inputs of a call, by name: tensors, or strided views of the caller's memory.
///
/// ```
/// use tensorwright::{Arguments, Module, View};
///
/// let text = "def twice(float(M,N) A) -> (B) { B(i,j) = 2 * A(i,j) }";
/// let program = Module::parse("twice.tc", text)?.def("twice")?.bind([("M", 3), ("N", 2)])?;
/// let kernel = program.compile().build()?;
///
/// // The transpose of a 2x3 matrix.
/// let matrix = [1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0];
/// let transpose = View::new(&matrix, 0, &[3, 2], &[1, 3])?;
/// let outputs = kernel.run(Arguments::new().view("A", transpose))?;
/// let b = outputs.get("B").and_then(|b| b.as_f32());
/// assert_eq!(b, Some(&[2.0, 8.0, 4.0, 10.0, 6.0, 12.0][..]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct Arguments<'a> {
    map: BTreeMap<String, Argument<'a>>,
    frozen: Option<&'a Frozen>,
}

#[derive(Debug, Clone)]
enum Argument<'a> {
    Buffer(&'a Buffer),
    View(View<'a>),
}

impl<'a> Arguments<'a> {
    /// No arguments.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a tensor as an input.
    #[must_use]
    pub fn buffer(mut self, name: impl Into<String>, buffer: &'a Buffer) -> Self {
        self.map.insert(name.into(), Argument::Buffer(buffer));
        self
    }

    /// Adds a view as an input. Dense views are used in place; others are copied. Elements of
    /// storage-only inputs, such as `half`, are viewed as their bits, such as `u16`, those of `bool`
    /// as `u8` (0 or 1).
    #[must_use]
    pub fn view(mut self, name: impl Into<String>, view: View<'a>) -> Self {
        self.map.insert(name.into(), Argument::View(view));
        self
    }

    /// Adds the `const` inputs that this kernel [froze](crate::Kernel::freeze). They are not
    /// copied, prepared or compared. A `const` input given in addition overrides the frozen one.
    #[must_use]
    pub fn frozen(mut self, frozen: &'a Frozen) -> Self {
        self.frozen = Some(frozen);
        self
    }

    /// The frozen constants.
    pub(super) fn constants(&self) -> Option<&'a Frozen> {
        self.frozen
    }

    /// The memory of an input; `None` if it is missing.
    pub(super) fn memory(&self, name: &str) -> Option<Result<Memory<'a>, AllocError>> {
        Some(match self.map.get(name)? {
            Argument::Buffer(buffer) => memory::aligned(buffer).map(Memory::Owned),
            Argument::View(view) => Memory::of_view(view),
        })
    }

    /// Checks that all arguments are inputs of the program and fit them, and that no input is
    /// missing except `optional` ones.
    pub(super) fn check(
        &self,
        program: &Program,
        optional: impl Fn(&Tensor) -> bool,
    ) -> Result<(), Diagnostics> {
        let inputs = program.inputs();
        let known = |name: &String| inputs.iter().any(|tensor| tensor.name == *name);
        let fits = |tensor: &Tensor| match self.map.get(&tensor.name) {
            Some(argument) => argument.fits(tensor),
            None => optional(tensor),
        };
        if self.map.keys().all(known) && inputs.iter().all(fits) {
            return Ok(());
        }
        Err(self.complaint(program))
    }

    /// The diagnostics for invalid arguments: the reference interpreter rejects them with a reason
    /// before it computes.
    fn complaint(&self, program: &Program) -> Diagnostics {
        let mut inputs = Inputs::new();
        for (name, argument) in &self.map {
            let tensor = program.inputs().iter().find(|tensor| tensor.name == *name);
            match argument.to_buffer(tensor.map(|tensor| tensor.dtype)) {
                Ok(buffer) => inputs.insert(name.clone(), buffer),
                Err(problem) => {
                    let message = format!("input `{name}` {problem}");
                    let diagnostic = Diagnostic::without_place(Code::InputType, message);
                    return Diagnostics::new(program.ir().source.clone(), vec![diagnostic]);
                }
            };
        }
        match program.run_reference(&inputs) {
            Err(diagnostics) => diagnostics,
            Ok(_) => {
                let message = "the arguments do not fit the program";
                let diagnostic = Diagnostic::without_place(Code::InputType, message);
                Diagnostics::new(program.ir().source.clone(), vec![diagnostic])
            }
        }
    }
}

/// An input with its strides.
#[derive(Debug)]
pub(super) struct Strided<'a> {
    pub(super) shape: Vec<i64>,
    /// In elements.
    pub(super) strides: Vec<i64>,
    memory: StridedMemory<'a>,
}

#[derive(Debug)]
enum StridedMemory<'a> {
    InPlace(View<'a>),
    Copied(AlignedBuffer),
}

impl Strided<'_> {
    /// The address of the element whose subscripts are zero.
    pub(super) fn pointer(&self) -> *const u8 {
        match &self.memory {
            StridedMemory::InPlace(view) => view.as_ptr(),
            StridedMemory::Copied(memory) => memory.as_bytes().as_ptr(),
        }
    }
}

impl<'a> Arguments<'a> {
    /// The names of the arguments.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.map.keys().map(String::as_str)
    }

    /// An input whose last axis is contiguous: a view in place, or a copy; `None` if it is missing.
    pub(super) fn strided(&self, name: &str, dtype: DType) -> Option<Result<Strided<'a>, String>> {
        let argument = self.map.get(name)?;
        if let Argument::View(view) = argument
            && view.element_size() == dtype.bytes()
            && dtype != DType::Bool
            && view
                .shape()
                .last()
                .zip(view.strides().last())
                .is_none_or(|(n, s)| *n == 1 || *s == 1)
        {
            let strides = view.strides().iter().map(|stride| *stride as i64).collect();
            let memory = StridedMemory::InPlace(view.clone());
            return Some(Ok(Strided { shape: shape(view), strides, memory }));
        }
        Some(argument.to_buffer(Some(dtype)).and_then(|buffer| {
            if buffer.dtype() != dtype {
                return Err(format!("is a `{}`, not a `{dtype}`", buffer.dtype()));
            }
            let memory = memory::aligned(&buffer).map_err(|error| error.to_string())?;
            let (shape, strides) = (buffer.shape().to_vec(), memory::dense_strides(buffer.shape()));
            Ok(Strided { shape, strides, memory: StridedMemory::Copied(memory) })
        }))
    }
}

impl Argument<'_> {
    fn fits(&self, tensor: &Tensor) -> bool {
        match self {
            Argument::Buffer(buffer) => {
                buffer.dtype() == tensor.dtype && buffer.shape() == tensor.shape
            }
            Argument::View(view) => {
                view.element_size() == tensor.dtype.bytes()
                    && shape(view) == tensor.shape
                    && (tensor.dtype != DType::Bool || self.to_buffer(Some(DType::Bool)).is_ok())
            }
        }
    }

    /// A tensor of the argument's elements, as the given type.
    fn to_buffer(&self, dtype: Option<DType>) -> Result<Buffer, String> {
        let view = match self {
            Argument::Buffer(buffer) => return Ok((*buffer).clone()),
            Argument::View(view) => view,
        };
        let dtype = dtype.unwrap_or(DType::UInt8);
        if view.element_size() != dtype.bytes() {
            let size = view.element_size();
            return Err(format!("is a `{dtype}`, and the view has elements of {size} bytes"));
        }
        let memory = Memory::of_view(view).map_err(|error| format!("is too large: {error}"))?;
        memory::tensor(dtype, &shape(view), memory.bytes())
            .map_err(|error| format!("cannot be used: {error}"))
    }
}

fn shape(view: &View<'_>) -> Vec<i64> {
    view.shape().iter().map(|extent| *extent as i64).collect()
}

impl<'a> From<&'a Inputs> for Arguments<'a> {
    fn from(inputs: &'a Inputs) -> Self {
        let argument =
            |(name, buffer): (&String, &'a Buffer)| (name.clone(), Argument::Buffer(buffer));
        Self { map: inputs.iter().map(argument).collect(), frozen: None }
    }
}
