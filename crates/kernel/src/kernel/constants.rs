//! Inputs that do not change between calls, in the layout that a kernel wants.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError};

use tensorwright_runtime::AlignedBuffer;
use tensorwright_schedule::nest::{BufferId, Scope};

use super::invoke::{Bound, Function, Memory};
use super::{Arguments, Diagnose, Kernel};
use crate::Diagnostics;
use crate::ir::Tensor;

/// The `const` inputs as they were given, and the buffers that were prepared from them.
#[derive(Debug)]
pub(super) struct Constants {
    inputs: BTreeMap<BufferId, Arc<AlignedBuffer>>,
    prepared: BTreeMap<BufferId, Arc<AlignedBuffer>>,
}

/// `const` inputs in the layout that a kernel wants. [`Kernel::freeze`] makes it, for calls
/// [on the caller's memory](Kernel::call_on).
#[derive(Debug, Clone)]
pub struct Frozen {
    pub(super) constants: Arc<Constants>,
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
    /// Calls that are given other values for them prepare them anew.
    ///
    /// # Errors
    /// Inputs that are missing, unknown or unfit.
    pub fn prepare<'a>(&self, arguments: impl Into<Arguments<'a>>) -> Result<(), Diagnostics> {
        self.freeze(arguments).map(|_| ())
    }

    /// Like [`Kernel::prepare`], and hands out what was prepared: later calls with other values do not
    /// change it.
    ///
    /// # Errors
    /// As [`Kernel::prepare`].
    pub fn freeze<'a>(&self, arguments: impl Into<Arguments<'a>>) -> Result<Frozen, Diagnostics> {
        let arguments = arguments.into();
        arguments.check(self.program(), |tensor| !tensor.is_const || self.has_constants())?;
        Ok(Frozen { constants: self.constants(&arguments)? })
    }

    /// Whether an input may be left out of a call.
    pub(super) fn may_omit(&self, tensor: &Tensor) -> bool {
        tensor.is_const && self.has_constants()
    }

    fn has_constants(&self) -> bool {
        self.cache().is_some()
    }

    fn cache(&self) -> std::sync::MutexGuard<'_, Option<Arc<Constants>>> {
        // What the lock guards is replaced as a whole, so it is whole even after a panic.
        self.constants.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The constants of a call: those of the last one if the values are the same.
    pub(super) fn constants(
        &self,
        arguments: &Arguments<'_>,
    ) -> Result<Arc<Constants>, Diagnostics> {
        let source = &self.program().ir().source;
        let known = self.cache().clone();
        let mut inputs = BTreeMap::new();
        let mut changed = known.is_none();
        for id in &self.nest().constants {
            let before = known.as_ref().and_then(|known| known.inputs.get(id));
            let name = &self.program().ir().tensor(*id).name;
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
            inputs.insert(*id, buffer);
        }
        match known {
            Some(known) if !changed => Ok(known),
            _ => {
                let prepared = self.prepared(&inputs)?;
                let constants = Arc::new(Constants { inputs, prepared });
                *self.cache() = Some(Arc::clone(&constants));
                Ok(constants)
            }
        }
    }

    /// Runs the part of the kernel that fills the prepared buffers.
    fn prepared(
        &self,
        inputs: &BTreeMap<BufferId, Arc<AlignedBuffer>>,
    ) -> Result<BTreeMap<BufferId, Arc<AlignedBuffer>>, Diagnostics> {
        let (nest, source) = (self.nest(), &self.program().ir().source);
        let memory = |id: &BufferId| {
            let buffer = nest.buffer(*id);
            Ok(match (buffer.scope, inputs.get(id)) {
                (Scope::Prepared, _) => {
                    let bytes = usize::try_from(buffer.bytes()).unwrap_or(usize::MAX);
                    Memory::Owned(AlignedBuffer::new(bytes)?)
                }
                (_, Some(input)) => Memory::Shared(Arc::clone(input)),
                _ => Memory::Absent,
            })
        };
        let memory: Result<Vec<_>, _> = nest.parameters.iter().map(memory).collect();
        let memory =
            memory.map_err(|error: tensorwright_runtime::AllocError| error.diagnose(source))?;
        let mut bound = self.bound(Function::Prepare, memory)?;
        self.call_bound(&mut bound)?;
        let pairs = nest.parameters.iter().copied().zip(bound.into_memory());
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
        Bound::new(self.loaded()?, function, memory).map_err(|error| match error {
            BindError::Alloc(error) => error.diagnose(source),
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
