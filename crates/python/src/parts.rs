//! Calls of kernels on tensors, or on padded copies of tensors without elements.
#![allow(unsafe_code, reason = "copies memory of other libraries, after checking it")]

use std::cell::RefCell;
use std::sync::Arc;

use tensorwright::runtime::{AlignedBuffer, AllocError};
use tensorwright::{Code, Diagnostic, Diagnostics, Frozen, Kernel, Program, SizedCall};

use crate::compiled::{Compiled, CompiledKernel};

/// A kernel and how it is called.
#[derive(Debug)]
pub(crate) struct Part {
    pub(crate) compiled: Arc<Compiled>,
    pub(crate) way: Way,
    /// Whether calls release the interpreter lock.
    pub(crate) is_long: bool,
}

/// How a kernel is called.
#[derive(Debug)]
pub(crate) enum Way {
    /// With tensors of its sizes.
    Placed {
        /// In the order of the program's inputs.
        inputs: Vec<Placement>,
        outputs: Vec<Placement>,
        /// The ends of guarded reductions: inputs after the others.
        ends: Vec<i32>,
    },
    /// With these sizes and strides.
    Sized(SizedCall),
}

/// Where a kernel finds a tensor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Placement {
    /// At this byte offset from the start of the caller's tensor; negative where non-dense memory
    /// has a gap there.
    At(isize),
    /// In a copy.
    Copied(Region),
}

/// A dense tensor, and a larger dense tensor that begins with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Region {
    /// The bytes of an element.
    pub(crate) element: usize,
    /// The extents of the caller's tensor, and of the kernel's.
    pub(crate) valid: Vec<usize>,
    pub(crate) padded: Vec<usize>,
}

impl Region {
    fn padded_bytes(&self) -> usize {
        self.padded.iter().product::<usize>() * self.element
    }

    /// Calls `copy` for each common row, with its offsets in the caller's and the kernel's tensor,
    /// and its bytes.
    fn rows(&self, mut copy: impl FnMut(usize, usize, usize)) {
        if self.valid.contains(&0) {
            return;
        }
        let rank = self.valid.len();
        // Axes that are whole in both are contiguous.
        let is_whole = |axis: &usize| self.valid[*axis] == self.padded[*axis];
        let inner = (0..rank).rev().take_while(is_whole).count();
        let outer = (rank - inner).saturating_sub(1);
        let row = self.valid[outer.min(rank)..].iter().product::<usize>() * self.element;
        let steps = |extents: &[usize]| -> Vec<usize> {
            (0..outer)
                .map(|axis| extents[axis + 1..].iter().product::<usize>() * self.element)
                .collect()
        };
        let (from, to) = (steps(&self.valid), steps(&self.padded));
        let mut at = vec![0; outer];
        loop {
            let place =
                |steps: &[usize]| -> usize { at.iter().zip(steps).map(|(n, step)| n * step).sum() };
            copy(place(&from), place(&to), row);
            let next = (0..outer).rev().find(|axis| at[*axis] + 1 < self.valid[*axis]);
            let Some(next) = next else { return };
            at[next] += 1;
            at[next + 1..].fill(0);
        }
    }

    /// Fills the kernel's tensor with the caller's, padded with zeros.
    ///
    /// # Safety
    /// `from` has the caller's tensor; `to` has room for the kernel's.
    unsafe fn gather(&self, from: *const u8, to: *mut u8) {
        if self.valid != self.padded {
            // SAFETY: the caller says that there is room.
            unsafe { to.write_bytes(0, self.padded_bytes()) };
        }
        // SAFETY: rows are inside of both tensors, which are different memory.
        self.rows(|at, place, bytes| unsafe {
            std::ptr::copy_nonoverlapping(from.add(at), to.add(place), bytes);
        });
    }

    /// Copies the kernel's tensor back into the caller's.
    ///
    /// # Safety
    /// `from` has the kernel's tensor, `to` the caller's.
    unsafe fn scatter(&self, from: *const u8, to: *mut u8) {
        // SAFETY: rows are inside of both tensors, which are different memory.
        self.rows(|at, place, bytes| unsafe {
            std::ptr::copy_nonoverlapping(from.add(place), to.add(at), bytes);
        });
    }
}

thread_local! {
    /// Memory for copies. It grows to the thread's largest call; up to [`MOST_SCRATCH`] is kept.
    static SCRATCH: RefCell<Vec<AlignedBuffer>> = const { RefCell::new(Vec::new()) };
}

/// The most bytes of a copy that are kept for the next call.
const MOST_SCRATCH: usize = 64 << 20;

/// The copies of a call.
#[derive(Default)]
struct Scratch(Vec<AlignedBuffer>);

impl Scratch {
    fn take() -> Self {
        Self(SCRATCH.with(|kept| std::mem::take(&mut *kept.borrow_mut())))
    }

    /// Memory for a copy.
    fn get(&mut self, number: usize, bytes: usize) -> Result<*mut u8, AllocError> {
        while self.0.len() <= number {
            self.0.push(AlignedBuffer::new(0)?);
        }
        if self.0[number].len() < bytes {
            self.0[number] = AlignedBuffer::new(bytes)?;
        }
        Ok(self.0[number].as_mut_ptr())
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        self.0.retain(|buffer| buffer.len() <= MOST_SCRATCH);
        SCRATCH.with(|kept| *kept.borrow_mut() = std::mem::take(&mut self.0));
    }
}

impl Part {
    /// A kernel for calls that compute a program.
    pub(crate) fn new(compiled: Arc<Compiled>, way: Way, program: &Program) -> Self {
        let is_long = compiled.is_long(program);
        Self { compiled, way, is_long }
    }

    /// Whether errors of the kernel may be about other sizes than the caller's.
    pub(crate) fn is_for_others(&self) -> bool {
        match &self.way {
            Way::Placed { inputs, outputs, ends } => {
                let is_copied = |placement: &Placement| matches!(placement, Placement::Copied(_));
                !ends.is_empty() || inputs.iter().chain(outputs).any(is_copied)
            }
            Way::Sized(_) => true,
        }
    }

    /// Calls the kernel.
    ///
    /// # Safety
    /// Inputs and outputs have the tensors that the part was made for; otherwise as `Kernel::call_on`.
    pub(crate) unsafe fn call(
        &self,
        frozen: Option<&Frozen>,
        inputs: &[*const u8],
        outputs: &[*mut u8],
    ) -> Result<(), Diagnostics> {
        match (&self.compiled.kernel, &self.way) {
            (CompiledKernel::Sized(kernel), Way::Sized(plan)) => {
                // SAFETY: the caller says so; the plan is for the sizes and strides of the tensors.
                unsafe { kernel.call_on(plan, frozen, inputs, outputs) }
            }
            (CompiledKernel::Fixed(kernel), Way::Placed { inputs: at, outputs: to, ends }) => {
                let mut all = at.iter().chain(to);
                if ends.is_empty() && all.all(|placement| *placement == Placement::At(0)) {
                    // SAFETY: the caller says so.
                    return unsafe { kernel.call_on(frozen, inputs, outputs) };
                }
                // SAFETY: the caller says so.
                unsafe { placed(kernel, frozen, (at, inputs), (to, outputs), ends) }
            }
            _ => Err(unfit(&self.compiled)),
        }
    }
}

/// The error for a kernel that is called as another kind of kernel.
pub(crate) fn unfit(compiled: &Compiled) -> Diagnostics {
    let source = compiled.kernel.lowered().program().ir().source.clone();
    let message = "the memory given does not fit the kernel";
    Diagnostics::new(source, vec![Diagnostic::without_place(Code::InputType, message)])
}

/// Calls a kernel on tensors, each at its place.
///
/// # Safety
/// As [`Part::call`].
unsafe fn placed(
    kernel: &Kernel,
    frozen: Option<&Frozen>,
    (places, inputs): (&[Placement], &[*const u8]),
    (targets, outputs): (&[Placement], &[*mut u8]),
    ends: &[i32],
) -> Result<(), Diagnostics> {
    let no_memory = |error: AllocError| {
        let source = kernel.lowered().program().ir().source.clone();
        let diagnostic = Diagnostic::without_place(Code::TooLarge, error.to_string());
        Diagnostics::new(source, vec![diagnostic])
    };
    let mut scratch = Scratch::take();
    let mut at: Vec<*const u8> = Vec::with_capacity(inputs.len() + ends.len());
    for (number, (placement, pointer)) in places.iter().zip(inputs).enumerate() {
        at.push(match placement {
            Placement::At(bytes) => pointer.wrapping_offset(*bytes),
            Placement::Copied(region) => {
                let copy = scratch.get(number, region.padded_bytes()).map_err(no_memory)?;
                // SAFETY: the caller has the tensor, and the copy was made for the region.
                unsafe { region.gather(*pointer, copy) };
                copy
            }
        });
    }
    at.extend(ends.iter().map(|end| std::ptr::from_ref(end).cast::<u8>()));
    let mut to: Vec<*mut u8> = Vec::with_capacity(outputs.len());
    for (number, (placement, pointer)) in targets.iter().zip(outputs).enumerate() {
        to.push(match placement {
            Placement::At(bytes) => pointer.wrapping_offset(*bytes),
            Placement::Copied(region) => {
                let number = inputs.len() + number;
                scratch.get(number, region.padded_bytes()).map_err(no_memory)?
            }
        });
    }
    // SAFETY: the caller's tensors and copies of them have the shapes of the kernel.
    unsafe { kernel.call_on(frozen, &at, &to) }?;
    for (placement, (from, pointer)) in targets.iter().zip(to.iter().zip(outputs)) {
        if let Placement::Copied(region) = placement {
            // SAFETY: the kernel has written the copy, and the caller has the tensor.
            unsafe { region.scatter(*from, *pointer) };
        }
    }
    Ok(())
}
