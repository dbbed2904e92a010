//! The overhead of an empty call.

use tensorwright::Module;

use crate::problem::Result;
use crate::sample::samples;

const TEXT: &str = "def nothing(float(N) A) -> (B) { B(i) = A(i) }";

/// Nanoseconds per call of a kernel that copies one number.
pub(crate) fn overhead() -> Result<Vec<f64>> {
    let program = Module::parse("nothing.tc", TEXT)?.def("nothing")?.bind([("N", 1)])?;
    let kernel = program.compile().build()?;
    let inputs = program.random_inputs(0)?;
    let mut call = kernel.bind(&inputs)?;
    call.run()?;
    Ok(samples(0.005, || call.run().ok().and_then(|()| call.device_time())))
}
