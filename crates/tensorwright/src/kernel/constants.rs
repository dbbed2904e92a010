//! Inputs that do not change between calls, in the layout that a kernel wants.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError};

use tensorwright_runtime::AlignedBuffer;
use tensorwright_schedule::interface::{Function, Parameter};
use tensorwright_schedule::nest::{BufferId, Owner};

use super::code::Code;
use super::invoke::{Bound, Memory};
use super::{Arguments, Diagnose, Kernel};
use crate::{Code as DiagnosticCode, Diagnostic, Diagnostics};

/// The `const` inputs as they were given, and the buffers that were prepared from them.
#[derive(Debug)]
pub(super) struct Constants {
    inputs: BTreeMap<BufferId, Arc<AlignedBuffer>>,
    prepared: BTreeMap<BufferId, Arc<AlignedBuffer>>,
}

/// A snapshot of `const` inputs in the layout that a kernel wants. [`Kernel::freeze`] makes it, for calls
/// [with it](Arguments::frozen) or [on the caller's memory](Kernel::call_on). What it was made of may
/// change or go: the snapshot stays as it is. Cheap to clone.
///
/// Layers that differ in their weights alone need one kernel and a snapshot each:
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
    /// What the layout is for.
    code: Arc<Code>,
    constants: Arc<Constants>,
}

impl Frozen {
    /// Whether both are the same snapshot. Of a kernel's snapshots, [`Kernel::freeze`] gives the same one again if no value has
    /// changed since.
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

    /// Where a constant parameter is.
    pub(super) fn pointer(&self, id: BufferId) -> Option<*const u8> {
        let buffer = self.inputs.get(&id).or_else(|| self.prepared.get(&id))?;
        Some(buffer.as_ptr())
    }

    /// The memory of a parameter, if it is constant.
    pub(super) fn memory(&self, id: BufferId) -> Option<Memory<'static>> {
        let buffer = self.inputs.get(&id).or_else(|| self.prepared.get(&id))?;
        Some(Memory::Shared(Arc::clone(buffer)))
    }
}

impl Kernel {
    /// Brings the `const` inputs among the arguments into the layout that the kernel wants, ahead
    /// of the first call. Later calls need not be given these inputs again.
    ///
    /// Calls that are given values for them compare these with what was prepared, and prepare other
    /// ones anew. [`Kernel::freeze`] is for calls that compare nothing.
    ///
    /// # Errors
    /// Inputs that are missing, unknown or unfit.
    pub fn prepare<'a>(&self, arguments: impl Into<Arguments<'a>>) -> Result<(), Diagnostics> {
        let arguments = arguments.into();
        let known = self.known(&arguments)?;
        arguments.check(self.program(), |tensor| !tensor.is_const || known.is_some())?;
        self.keep(&self.constants(known, &arguments)?);
        Ok(())
    }

    /// A snapshot of the `const` inputs among the arguments, in the layout that the kernel wants. Other
    /// calls do not change it, nor does it change what they find prepared.
    ///
    /// All `const` inputs are needed, except for those of an earlier snapshot among the
    /// [arguments](Arguments::frozen).
    ///
    /// # Errors
    /// Inputs that are missing, unknown or unfit.
    pub fn freeze<'a>(&self, arguments: impl Into<Arguments<'a>>) -> Result<Frozen, Diagnostics> {
        let arguments = arguments.into();
        let known = self.snapshot(arguments.constants())?;
        arguments.check(self.program(), |tensor| !tensor.is_const || known.is_some())?;
        let constants = self.constants(known.cloned(), &arguments)?;
        Ok(Frozen { code: Arc::clone(&self.code), constants })
    }

    /// The constants of a call, whose arguments are checked.
    pub(super) fn constants_of_call(
        &self,
        arguments: &Arguments<'_>,
    ) -> Result<Arc<Constants>, Diagnostics> {
        let known = self.known(arguments)?;
        arguments.check(self.program(), |tensor| tensor.is_const && known.is_some())?;
        let constants = self.constants(known, arguments)?;
        if arguments.constants().is_none() {
            self.keep(&constants);
        }
        Ok(constants)
    }

    /// What calls may leave out: what is frozen among the arguments, or else what was prepared last.
    fn known(&self, arguments: &Arguments<'_>) -> Result<Option<Arc<Constants>>, Diagnostics> {
        match self.snapshot(arguments.constants())? {
            Some(frozen) => Ok(Some(Arc::clone(frozen))),
            None => Ok(self.cache().clone()),
        }
    }

    /// The constants of a snapshot, if it is of this kernel's.
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
        // What the lock guards is replaced as a whole, so it is whole even after a panic.
        self.constants.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The constants among arguments, in the place of known ones: these themselves if no argument has
    /// another value. Only what is given is compared.
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
                // `Arguments::check` has refused the call.
                (None, None) => continue,
            };
            inputs.insert(id, buffer);
        }
        match known {
            Some(known) if !changed => Ok(known),
            _ => Ok(Arc::new(Constants { prepared: self.prepared(&inputs)?, inputs })),
        }
    }

    /// Runs the part of the kernel that fills the prepared buffers.
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
        // It happens once, so that guards cost little.
        bound.guard().map_err(|error| error.diagnose(source))?;
        self.call_bound(&mut bound)?;
        let pairs = parameters.iter().map(|parameter| parameter.id).zip(bound.into_memory());
        let prepared = pairs.filter_map(|(id, memory)| match memory {
            Memory::Owned(buffer) => Some((id, Arc::new(buffer))),
            _ => None,
        });
        Ok(prepared.collect())
    }

    /// Memory, bound to a function of the kernel.
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

/// Memory that belongs to nobody else.
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
