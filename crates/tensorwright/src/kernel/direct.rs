//! Zero-copy calls on caller memory, for foreign-language bindings.
#![allow(unsafe_code, reason = "hands the caller's pointers to compiled kernels")]

use std::ffi::c_void;
use std::sync::Arc;

use tensorwright_schedule::interface::{Function, Parameter};
use tensorwright_schedule::nest::BufferId;
use tensorwright_schedule::workspace::Workspace;

use super::constants::Constants;
use super::{Diagnose, Frozen, Kernel, memory};
use crate::ir::Tensor;
use crate::{Code, Diagnostic, Diagnostics, Inputs};

impl Kernel {
    /// Whether calls need [frozen](Kernel::freeze) constants.
    #[must_use]
    pub fn needs_constants(&self) -> bool {
        self.interface().parameters.iter().any(|parameter| parameter.is_const)
    }

    /// Computes on caller memory: a pointer per input and per output, in the order of the program.
    /// Pointers of `const` inputs are ignored; their values are in `frozen`.
    ///
    /// Can be called from several threads at once.
    ///
    /// # Errors
    /// Missing pointers or constants, constants frozen by another kernel, an out-of-bounds data
    /// subscript, no memory for a workspace, or a kernel for another machine.
    /// workspace, or a kernel for another machine.
    ///
    /// # Safety
    /// Every pointer points to the dense row-major elements of its tensor, aligned to them. During
    /// the call, no other code writes the inputs or uses the outputs; outputs overlap neither each
    /// other nor the inputs. Elements of `bool` are 0 or 1.
    pub unsafe fn call_on(
        &self,
        frozen: Option<&Frozen>,
        inputs: &[*const u8],
        outputs: &[*mut u8],
    ) -> Result<(), Diagnostics> {
        let constants = self.snapshot(frozen)?.map(Arc::as_ref);
        let pointers = self.pointers(constants, inputs, outputs)?;
        let workspace = self.interface().workspace;
        // SAFETY: the caller vouches for inputs and outputs; constants are ours, and only read.
        let status = unsafe { self.call_with(workspace, &pointers) }?;
        // SAFETY: as above.
        self.judge(status, || unsafe { self.inputs_at(constants, inputs) })
    }

    /// Calls the code, and returns its status.
    ///
    /// # Safety
    /// As for a call of a session with this workspace.
    pub(super) unsafe fn call_with(
        &self,
        workspace: Workspace,
        pointers: &[*mut c_void],
    ) -> Result<i32, Diagnostics> {
        let source = &self.program().ir().source;
        let session = self.engine()?.session(workspace);
        let mut session = session.map_err(|error| error.diagnose(source))?;
        // SAFETY: the caller says so.
        let status = unsafe { session.call(Function::Compute, pointers) };
        status.map_err(|error| error.diagnose(source))
    }

    /// The pointers of a call, in the order of the interface.
    pub(super) fn pointers(
        &self,
        constants: Option<&Constants>,
        inputs: &[*const u8],
        outputs: &[*mut u8],
    ) -> Result<Vec<*mut c_void>, Diagnostics> {
        let ir = self.program().ir();
        let pointer = |parameter: &Parameter| {
            let id = parameter.id;
            if let Some(constant) = constants.and_then(|constants| constants.pointer(id)) {
                return Some(constant.cast_mut().cast());
            }
            if let Some(output) = ir.outputs.iter().position(|output| *output == id) {
                return outputs.get(output).map(|pointer| pointer.cast());
            }
            inputs.get(id.0 as usize).map(|pointer| pointer.cast_mut().cast())
        };
        let is_whole = inputs.len() == ir.inputs
            && outputs.len() == ir.outputs.len()
            && (constants.is_some() || !self.needs_constants());
        let pointers: Option<Vec<*mut c_void>> =
            self.interface().parameters.iter().map(pointer).collect();
        pointers.filter(|_| is_whole).ok_or_else(|| {
            let message = "the memory given does not fit the kernel";
            let diagnostic = Diagnostic::without_place(Code::InputType, message);
            Diagnostics::new(ir.source.clone(), vec![diagnostic])
        })
    }

    /// Copies of the inputs of a call.
    ///
    /// # Safety
    /// As [`Kernel::call_on`].
    unsafe fn inputs_at(&self, constants: Option<&Constants>, at: &[*const u8]) -> Option<Inputs> {
        let ir = self.program().ir();
        let input = |(id, pointer): (BufferId, &*const u8)| {
            let tensor: &Tensor = ir.tensor(id);
            let length = usize::try_from(tensor.bytes()).ok()?;
            let bytes = match constants.and_then(|constants| constants.input(id)) {
                Some(constant) => constant.as_bytes().get(..length)?,
                // SAFETY: the caller vouches for the whole tensor.
                None if length > 0 => unsafe { std::slice::from_raw_parts(*pointer, length) },
                None => &[],
            };
            let buffer = memory::tensor(tensor.dtype, &tensor.shape, bytes).ok()?;
            Some((tensor.name.clone(), buffer))
        };
        ir.input_ids().zip(at).map(input).collect()
    }
}

#[cfg(test)]
mod tests {
    use crate::{Arguments, Buffer, Module};

    const TEXT: &str = "def f(float(N) A, const float(N,N) W, int32(N) I) -> (B) {
        B(i) +=! A(I(j)) * W(i,j)
    }";

    #[test]
    fn memory_of_the_caller_is_read_and_written_in_place() {
        let program =
            Module::parse("t.tc", TEXT).unwrap().def("f").unwrap().bind([("N", 2)]).unwrap();
        let kernel = program.compile().build().unwrap();
        assert!(kernel.needs_constants());
        let weights = Buffer::from_f32(&[2, 2], vec![1.0, 2.0, 3.0, 4.0]).unwrap();
        let frozen = kernel.freeze(Arguments::new().buffer("W", &weights)).unwrap();

        let (a, mut order, mut b) = ([10.0f32, 1.0], [1i32, 0], [0.0f32; 2]);
        let call = |order: &[i32; 2], b: &mut [f32; 2]| {
            let inputs = [a.as_ptr().cast(), std::ptr::null(), order.as_ptr().cast()];
            // SAFETY: the arrays have the sizes that the program names.
            unsafe { kernel.call_on(Some(&frozen), &inputs, &[b.as_mut_ptr().cast()]) }
        };
        call(&order, &mut b).unwrap();
        assert_eq!(b, [21.0, 43.0]);

        order[1] = 7;
        let problem = call(&order, &mut b).unwrap_err().to_string();
        assert!(problem.contains("A(I(j))") && problem.contains('7'), "{problem}");

        // SAFETY: refused before anything is read.
        let problem = unsafe { kernel.call_on(None, &[], &[]) }.unwrap_err().to_string();
        assert!(problem.contains("does not fit"), "{problem}");
    }
}
