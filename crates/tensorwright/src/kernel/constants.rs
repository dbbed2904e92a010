//! `const` inputs in a kernel's layout.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError};

use tensorwright_runtime::AlignedBuffer;
use tensorwright_schedule::interface::{Function, Parameter};
use tensorwright_schedule::nest::{BufferId, Owner};

use super::code::Code;
use super::invoke::{Bound, Memory};
use super::{Arguments, Diagnose, Kernel};
use crate::{Code as DiagnosticCode, Diagnostic, Diagnostics};

/// The given `const` inputs and the buffers prepared from them.
#[derive(Debug)]
pub(super) struct Constants {
    inputs: BTreeMap<BufferId, Arc<AlignedBuffer>>,
    prepared: BTreeMap<BufferId, Arc<AlignedBuffer>>,
}

/// A snapshot of `const` inputs in a kernel's layout, made by [`Kernel::freeze`], for calls [with
/// it](Arguments::frozen) or [on the caller's memory](Kernel::call_on). Independent of the arrays
/// it was made from, and cheap to clone.
///
/// Layers that differ only in their weights need one kernel and a snapshot each:
///
/// ```
/// use tensorwright::{Arguments, Buffer, Module};
///
/// let text = "def scale(float(N) x, const float(N) w) -> (y) { y(i) = w(i) * x(i) }";
/// let kernel = Module::parse("scale.tc", text)?.def("scale")?.bind([("N", 2)])?.compile().build()?;
/// let weights = [Buffer::from(vec![1.0f32, 2.0]), Buffer::from(vec![3.0f32, 4.0])];
/// let mut layers = Vec::new();
/// for w in &weights {
///     layers.push(kernel.freeze(Arguments::new().buffer("w", w))?);
/// }
///
/// let mut x = Buffer::from(vec![1.0f32, 1.0]);
/// for layer in &layers {
///     let outputs = kernel.run(Arguments::new().buffer("x", &x).frozen(layer))?;
///     x = outputs.get("y").ok_or("no output y")?.clone();
/// }
/// assert_eq!(x.as_f32(), Some(&[3.0, 8.0][..]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct Frozen {
    /// The code that defines the layout.
    code: Arc<Code>,
    constants: Arc<Constants>,
}

impl Frozen {
    /// Whether both are the same snapshot. [`Kernel::freeze`] returns the same snapshot again if no
    /// value has changed.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.constants, &other.constants)
    }
}

impl Constants {
    /// The value of a `const` input.
    pub(super) fn input(&self, id: BufferId) -> Option<&AlignedBuffer> {
        self.inputs.get(&id).map(Arc::as_ref)
    }

    /// The address of a constant parameter.
    pub(super) fn pointer(&self, id: BufferId) -> Option<*const u8> {
        let buffer = self.inputs.get(&id).or_else(|| self.prepared.get(&id))?;
        Some(buffer.as_ptr())
    }

    /// The memory of a constant parameter.
    pub(super) fn memory(&self, id: BufferId) -> Option<Memory<'static>> {
        let buffer = self.inputs.get(&id).or_else(|| self.prepared.get(&id))?;
        Some(Memory::Shared(Arc::clone(buffer)))
    }
}

impl Kernel {
    /// Converts the `const` inputs among the arguments to the kernel's layout before the first
    /// call. Later calls may omit these inputs.
    ///
    /// Calls that get values for them compare these with the prepared ones, and prepare changed
    /// values again. [`Kernel::freeze`] avoids the comparison.
    ///
    /// # Errors
    /// Missing, unknown or invalid inputs.
    pub fn prepare<'a>(&self, arguments: impl Into<Arguments<'a>>) -> Result<(), Diagnostics> {
        let arguments = arguments.into();
        let known = self.known(&arguments)?;
        arguments.check(self.program(), |tensor| !tensor.is_const || known.is_some())?;
        self.keep(&self.constants(known, &arguments)?);
        Ok(())
    }

    /// A snapshot of the `const` inputs among the arguments, in the kernel's layout. It is
    /// independent of other calls and their prepared constants.
    ///
    /// All `const` inputs are needed, except for those of an earlier snapshot among the
    /// [arguments](Arguments::frozen).
    ///
    /// # Errors
    /// Missing, unknown or invalid inputs.
    pub fn freeze<'a>(&self, arguments: impl Into<Arguments<'a>>) -> Result<Frozen, Diagnostics> {
        let arguments = arguments.into();
        let known = self.snapshot(arguments.constants())?;
        arguments.check(self.program(), |tensor| !tensor.is_const || known.is_some())?;
        let constants = self.constants(known.cloned(), &arguments)?;
        Ok(Frozen { code: Arc::clone(&self.code), constants })
    }

    /// The constants of a call with checked arguments.
    pub(super) fn constants_of_call(
        &self,
        arguments: &Arguments<'_>,
    ) -> Result<Arc<Constants>, Diagnostics> {
        let known = self.known(arguments)?;
        arguments.check(self.program(), |tensor| tensor.is_const && known.is_some())?;
        self.constants_of_checked(known, arguments)
    }

    /// As [`Kernel::constants_of_call`], given the constants that the call may omit.
    pub(super) fn constants_of_checked(
        &self,
        known: Option<Arc<Constants>>,
        arguments: &Arguments<'_>,
    ) -> Result<Arc<Constants>, Diagnostics> {
        let constants = self.constants(known, arguments)?;
        if arguments.constants().is_none() {
            self.keep(&constants);
        }
        Ok(constants)
    }

    /// The constants that a call may omit: the frozen ones among the arguments, or the last
    /// prepared ones.
    pub(super) fn known(
        &self,
        arguments: &Arguments<'_>,
    ) -> Result<Option<Arc<Constants>>, Diagnostics> {
        match self.snapshot(arguments.constants())? {
            Some(frozen) => Ok(Some(Arc::clone(frozen))),
            None => Ok(self.cache().clone()),
        }
    }

    /// The constants of a snapshot, if this kernel made it.
    pub(super) fn snapshot<'a>(
        &self,
        frozen: Option<&'a Frozen>,
    ) -> Result<Option<&'a Arc<Constants>>, Diagnostics> {
        match frozen {
            Some(frozen) if !Arc::ptr_eq(&frozen.code, &self.code) => {
                let message = "the constants were frozen by another kernel";
                let help = "freeze them with the kernel that is called";
                let error =
                    Diagnostic::without_place(DiagnosticCode::InputType, message).help(help);
                Err(Diagnostics::new(self.program().ir().source.clone(), vec![error]))
            }
            frozen => Ok(frozen.map(|frozen| &frozen.constants)),
        }
    }

    fn keep(&self, constants: &Arc<Constants>) {
        *self.cache() = Some(Arc::clone(constants));
    }

    fn cache(&self) -> std::sync::MutexGuard<'_, Option<Arc<Constants>>> {
        // The value is replaced as a whole, so a panic leaves it valid.
        self.constants.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The constants for the given arguments: `known` itself if no argument has another value.
    /// Compares only given arguments.
    fn constants(
        &self,
        known: Option<Arc<Constants>>,
        arguments: &Arguments<'_>,
    ) -> Result<Arc<Constants>, Diagnostics> {
        let source = &self.program().ir().source;
        let mut inputs = BTreeMap::new();
        let mut changed = known.is_none();
        let constants = self.interface().parameters.iter().filter(|parameter| parameter.is_const);
        for id in constants.map(|parameter| parameter.id) {
            let before = known.as_ref().and_then(|known| known.inputs.get(&id));
            let name = &self.program().ir().tensor(id).name;
            let given =
                arguments.memory(name).transpose().map_err(|error| error.diagnose(source))?;
            let buffer = match (given, before) {
                (Some(given), Some(before)) if given.bytes() == before.as_bytes() => before.clone(),
                (None, Some(before)) => before.clone(),
                (Some(given), _) => {
                    changed = true;
                    Arc::new(owned(given).map_err(|error| error.diagnose(source))?)
                }
                // `Arguments::check` has rejected the call.
                (None, None) => continue,
            };
            inputs.insert(id, buffer);
        }
        match known {
            Some(known) if !changed => Ok(known),
            _ => Ok(Arc::new(Constants { prepared: self.prepared(&inputs)?, inputs })),
        }
    }

    /// Runs the kernel's preparation of constant buffers.
    fn prepared(
        &self,
        inputs: &BTreeMap<BufferId, Arc<AlignedBuffer>>,
    ) -> Result<BTreeMap<BufferId, Arc<AlignedBuffer>>, Diagnostics> {
        let (parameters, source) = (&self.interface().parameters, &self.program().ir().source);
        let memory = |parameter: &Parameter| {
            Ok(match (parameter.owner, inputs.get(&parameter.id)) {
                (Owner::Prepared, _) => {
                    let bytes = usize::try_from(parameter.bytes()).unwrap_or(usize::MAX);
                    Memory::Owned(AlignedBuffer::new(bytes)?)
                }
                (_, Some(input)) => Memory::Shared(Arc::clone(input)),
                _ => Memory::Absent,
            })
        };
        let memory: Result<Vec<_>, _> = parameters.iter().map(memory).collect();
        let memory =
            memory.map_err(|error: tensorwright_runtime::AllocError| error.diagnose(source))?;
        let mut bound = self.bound(Function::Prepare, memory)?;
        // Happens once, so guards cost little.
        bound.guard().map_err(|error| error.diagnose(source))?;
        self.call_bound(&mut bound)?;
        let pairs = parameters.iter().map(|parameter| parameter.id).zip(bound.into_memory());
        let prepared = pairs.filter_map(|(id, memory)| match memory {
            Memory::Owned(buffer) => Some((id, Arc::new(buffer))),
            _ => None,
        });
        Ok(prepared.collect())
    }

    /// Memory bound to a function of the kernel.
    pub(super) fn bound<'a>(
        &'a self,
        function: Function,
        memory: Vec<Memory<'a>>,
    ) -> Result<Bound<'a>, Diagnostics> {
        use super::invoke::BindError;
        let source = &self.program().ir().source;
        Bound::new(self.engine()?, function, memory).map_err(|error| match error {
            BindError::Call(error) => error.diagnose(source),
            BindError::Unfit => {
                let message = "the buffers do not fit the kernel".to_owned();
                super::Error::Link(message).diagnose(source)
            }
        })
    }
}

/// Memory with a single owner.
fn owned(memory: Memory<'_>) -> Result<AlignedBuffer, tensorwright_runtime::AllocError> {
    match memory {
        Memory::Owned(buffer) => Ok(buffer),
        other => {
            let mut buffer = AlignedBuffer::new(other.bytes().len())?;
            buffer.as_bytes_mut().copy_from_slice(other.bytes());
            Ok(buffer)
        }
    }
}
