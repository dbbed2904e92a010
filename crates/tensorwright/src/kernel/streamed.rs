//! Calls on foreign device memory and streams.
#![allow(unsafe_code, reason = "hands the caller's addresses to compiled kernels")]

use tensorwright_device::StreamHandle;
use tensorwright_schedule::nest::Owner;

use super::{Diagnose, Kernel, Place};
use crate::{Code, Diagnostic, Diagnostics};

impl Kernel {
    /// Computes on a device in another library's memory: a place per input and an address per
    /// output, in the order of the program. Everything runs in the order of a stream of that
    /// library. Without `wait`, the call returns early, unless the program has data subscripts,
    /// whose bounds are only known at the end.
    ///
    /// Can be called from several threads at once.
    ///
    /// # Errors
    /// Missing places, an out-of-bounds data subscript, a kernel for a processor or for a device
    /// API without addresses, a schedule that changes the layout of constants, or a device error.
    ///
    /// # Safety
    /// Every place has the dense row-major elements of its tensor, aligned to them, on the kernel's
    /// device if it is an address; the stream belongs to that device. In stream order, no other
    /// code writes the inputs or uses the outputs meanwhile; outputs overlap neither each other nor
    /// the inputs. Elements of `bool` are 0 or 1.
    pub unsafe fn call_on_stream(
        &self,
        stream: StreamHandle,
        inputs: &[Place],
        outputs: &[u64],
        wait: bool,
    ) -> Result<(), Diagnostics> {
        let engine = self.engine()?;
        let ir = self.program().ir();
        let refuse = |message: &str, help: &str| {
            let diagnostic = Diagnostic::without_place(Code::InputType, message).help(help);
            Err(Diagnostics::new(ir.source.clone(), vec![diagnostic]))
        };
        let parameters = &self.interface().parameters;
        if parameters.iter().any(|parameter| parameter.owner == Owner::Prepared) {
            let message =
                "the schedule brings constants into another layout, which calls on a stream do not";
            return refuse(message, "use a schedule without `layout` of constants");
        }
        let places = parameters.iter().map(|parameter| {
            match ir.outputs.iter().position(|output| *output == parameter.id) {
                Some(output) => outputs.get(output).map(|address| Place::Device(*address)),
                None => inputs.get(parameter.id.0 as usize).copied(),
            }
        });
        let places = places.collect::<Option<Vec<Place>>>();
        let is_whole = inputs.len() == ir.inputs && outputs.len() == ir.outputs.len();
        let Some(places) = places.filter(|_| is_whole) else {
            return refuse(
                "the memory given does not fit the kernel",
                "pass every input and output",
            );
        };
        // SAFETY: the caller vouches for places and stream.
        let Some(status) = (unsafe { engine.enqueue(stream, &places, wait) }) else {
            return refuse(
                "the kernel is for a processor, which has no streams",
                "compile it for a device, such as `cuda:0`",
            );
        };
        self.judge(status.map_err(|error| error.diagnose(&ir.source))?, || None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Module;

    #[test]
    fn processors_have_no_streams() {
        let text = "def f(float(N) A) -> (B) { B(i) = A(i) }";
        let program =
            Module::parse("t.tc", text).unwrap().def("f").unwrap().bind([("N", 2)]).unwrap();
        let kernel = program.compile().build().unwrap();
        // SAFETY: refused before anything is read.
        let call = |inputs: &[Place]| unsafe {
            kernel.call_on_stream(StreamHandle(0), inputs, &[0], true).unwrap_err().to_string()
        };
        let problem = call(&[Place::Device(0)]);
        assert!(problem.contains("for a processor, which has no streams"), "{problem}");
        let problem = call(&[]);
        assert!(problem.contains("does not fit the kernel"), "{problem}");
    }
}
