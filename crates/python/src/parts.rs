//! Calls in parts: kernels on slices or padded copies of tensors.
#![allow(unsafe_code, reason = "copies memory of other libraries, after checking it")]

use std::cell::RefCell;
use std::sync::Arc;

use tensorwright::runtime::{AlignedBuffer, AllocError};
use tensorwright::{Code, Diagnostic, Diagnostics, Frozen};

use crate::compiled::Compiled;

/// A kernel and the placement of its tensors.
#[derive(Debug)]
pub(crate) struct Part {
    pub(crate) compiled: Arc<Compiled>,
    /// In the order of the program's inputs.
    pub(crate) inputs: Vec<Placement>,
    pub(crate) outputs: Vec<Placement>,
    /// The ends of guarded reductions: inputs after the others.
    pub(crate) ends: Vec<i32>,
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

/// A slice of a dense tensor, and a larger dense tensor that begins with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Region {
    /// The offset of the slice in bytes.
    pub(crate) start: usize,
    /// The bytes of an element.
    pub(crate) element: usize,
    /// The extents of the caller's tensor, of its slice, and of the kernel's tensor.
    pub(crate) whole: Vec<usize>,
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
        let is_whole = |axis: &usize| {
            self.valid[*axis] == self.whole[*axis] && self.valid[*axis] == self.padded[*axis]
        };
        let inner = (0..rank).rev().take_while(is_whole).count();
        let outer = (rank - inner).saturating_sub(1);
        let row = self.valid[outer.min(rank)..].iter().product::<usize>() * self.element;
        let steps = |extents: &[usize]| -> Vec<usize> {
            (0..outer)
                .map(|axis| extents[axis + 1..].iter().product::<usize>() * self.element)
                .collect()
        };
        let (from, to) = (steps(&self.whole), steps(&self.padded));
        let mut at = vec![0; outer];
        loop {
            let place =
                |steps: &[usize]| -> usize { at.iter().zip(steps).map(|(n, step)| n * step).sum() };
            copy(self.start + place(&from), place(&to), row);
            let next = (0..outer).rev().find(|axis| at[*axis] + 1 < self.valid[*axis]);
            let Some(next) = next else { return };
            at[next] += 1;
            at[next + 1..].fill(0);
        }
    }

    /// Fills the kernel's tensor with the caller's slice, padded with zeros.
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

    /// Copies the slice from the kernel's tensor back into the caller's.
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
    /// Whether the kernel uses only the caller's tensors, from their start.
    fn is_whole(&self) -> bool {
        let all = || self.inputs.iter().chain(&self.outputs);
        self.ends.is_empty() && all().all(|placement| *placement == Placement::At(0))
    }

    /// Whether the kernel computes more than requested.
    pub(crate) fn is_larger(&self) -> bool {
        let is_copied = |placement: &Placement| matches!(placement, Placement::Copied(_));
        !self.ends.is_empty() || self.inputs.iter().chain(&self.outputs).any(is_copied)
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
        let kernel = &self.compiled.kernel;
        if self.is_whole() {
            // SAFETY: the caller says so.
            return unsafe { kernel.call_on(frozen, inputs, outputs) };
        }
        let no_memory = |error: AllocError| {
            let source = kernel.lowered().program().ir().source.clone();
            let diagnostic = Diagnostic::without_place(Code::TooLarge, error.to_string());
            Diagnostics::new(source, vec![diagnostic])
        };
        let mut scratch = Scratch::take();
        let mut at: Vec<*const u8> = Vec::with_capacity(inputs.len() + self.ends.len());
        for (number, (placement, pointer)) in self.inputs.iter().zip(inputs).enumerate() {
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
        at.extend(self.ends.iter().map(|end| std::ptr::from_ref(end).cast::<u8>()));
        let mut to: Vec<*mut u8> = Vec::with_capacity(outputs.len());
        for (number, (placement, pointer)) in self.outputs.iter().zip(outputs).enumerate() {
            to.push(match placement {
                Placement::At(bytes) => pointer.wrapping_offset(*bytes),
                Placement::Copied(region) => {
                    let number = inputs.len() + number;
                    scratch.get(number, region.padded_bytes()).map_err(no_memory)?
                }
            });
        }
        // SAFETY: pieces of the caller's tensors and copies of them have the shapes of the kernel.
        unsafe { kernel.call_on(frozen, &at, &to) }?;
        for (placement, (from, pointer)) in self.outputs.iter().zip(to.iter().zip(outputs)) {
            if let Placement::Copied(region) = placement {
                // SAFETY: the kernel has written the copy, and the caller has the tensor.
                unsafe { region.scatter(*from, *pointer) };
            }
        }
        Ok(())
    }
}
