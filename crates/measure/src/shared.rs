//! The memory file that children share: inputs, expected results and tolerances.
//!
//! One child fills the anonymous file, then it is sealed: a restarted runner reads it instead of
//! computing anything, and no candidate can change it.
//!
//! ```text
//! | input 0 | input 1 | ... | expected 0 | tolerances 0 | expected 1 | tolerances 1 | ... |
//! ```
//!
//! Tensors are dense and little-endian, tolerances are one `f32` per element, rounded up. Each part
//! starts at a multiple of 64.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use tensorwright::{Buffer, DType, Program};

/// The alignment of every part.
const ALIGNMENT: u64 = 64;

/// The bytes written at once.
const CHUNK: usize = 1 << 20;

/// The layout of the shared file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Layout {
    /// The inputs of the program, in order.
    pub(crate) inputs: Vec<Part>,
    /// The outputs of the program, in order: expected values and tolerances.
    pub(crate) outputs: Vec<(Part, Part)>,
    /// The size of the file.
    pub(crate) bytes: u64,
}

/// A part of the shared file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Part {
    /// Where it starts.
    pub(crate) offset: u64,
    /// How long it is.
    pub(crate) bytes: usize,
    /// Its element type.
    pub(crate) dtype: DType,
}

impl Layout {
    /// The layout for a program, the same in every process; `None` if the sizes exceed 63 bits.
    pub(crate) fn of(program: &Program) -> Option<Self> {
        let mut end: u64 = 0;
        let mut part = |dtype: DType, elements: usize| {
            let bytes = elements.checked_mul(dtype.bytes())?;
            let offset = end;
            end = offset.checked_add(bytes as u64)?.checked_next_multiple_of(ALIGNMENT)?;
            i64::try_from(end).ok()?;
            Some(Part { offset, bytes, dtype })
        };
        let elements = |bytes: i64, dtype: DType| {
            usize::try_from(bytes).ok().map(|bytes| bytes / dtype.bytes())
        };
        let inputs = program.inputs().iter();
        let inputs =
            inputs.map(|tensor| part(tensor.dtype, elements(tensor.bytes(), tensor.dtype)?));
        let inputs = inputs.collect::<Option<_>>()?;
        let mut outputs = Vec::new();
        for tensor in program.outputs() {
            let elements = elements(tensor.bytes(), tensor.dtype)?;
            outputs.push((part(tensor.dtype, elements)?, part(DType::Float, elements)?));
        }
        Some(Self { inputs, outputs, bytes: end })
    }
}

impl Part {
    /// Writes a tensor in pieces.
    pub(crate) fn write_tensor(&self, file: &File, tensor: &Buffer) -> io::Result<()> {
        if tensor.len() * tensor.dtype().bytes() != self.bytes {
            return Err(io::Error::other("a tensor does not have the size of the program's"));
        }
        let (mut offset, mut chunk) = (self.offset, Vec::with_capacity(CHUNK));
        let mut written = Ok(());
        tensor.visit_bytes(|element| {
            chunk.extend_from_slice(element);
            if chunk.len() >= CHUNK {
                if written.is_ok() {
                    written = file.write_all_at(&chunk, offset);
                }
                offset += chunk.len() as u64;
                chunk.clear();
            }
        });
        written.and_then(|()| file.write_all_at(&chunk, offset))
    }

    /// Writes tolerances.
    pub(crate) fn write_tolerances(
        &self,
        file: &File,
        tolerances: impl Iterator<Item = f64>,
    ) -> io::Result<()> {
        let (mut offset, mut chunk) = (self.offset, Vec::with_capacity(CHUNK));
        for tolerance in tolerances.take(self.bytes / size_of::<f32>()) {
            chunk.extend_from_slice(&round_up(tolerance).to_le_bytes());
            if chunk.len() >= CHUNK {
                file.write_all_at(&chunk, offset)?;
                offset += chunk.len() as u64;
                chunk.clear();
            }
        }
        file.write_all_at(&chunk, offset)
    }

    /// Reads the part.
    pub(crate) fn read(&self, file: &File, into: &mut [u8]) -> io::Result<()> {
        let into = into.get_mut(..self.bytes);
        let into = into.ok_or_else(|| io::Error::other("the memory for a tensor is too small"))?;
        file.read_exact_at(into, self.offset)
    }
}

/// The least `f32` not below `tolerance`; zero stays zero.
fn round_up(tolerance: f64) -> f32 {
    let rounded = tolerance as f32;
    if f64::from(rounded) < tolerance { rounded.next_up() } else { rounded }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tensorwright::Module;

    #[test]
    fn parts_do_not_overlap() {
        let text = "def f(float(N) A, uint8 s) -> (B, C) { B(i) = 2 * A(i) C(i) = int64(i) + 0 * int64(A(i)) }";
        let program = Module::parse("f", text).unwrap().def("f").unwrap().bind([("N", 5)]).unwrap();
        let layout = Layout::of(&program).unwrap();
        assert_eq!(layout.inputs[0], Part { offset: 0, bytes: 20, dtype: DType::Float });
        assert_eq!(layout.inputs[1], Part { offset: 64, bytes: 1, dtype: DType::UInt8 });
        assert_eq!(layout.outputs[1].0, Part { offset: 256, bytes: 40, dtype: DType::Int64 });
        assert_eq!(layout.outputs[1].1.offset, 320);
        assert_eq!(layout.bytes, 384);
    }

    #[test]
    fn tolerances_never_shrink() {
        for tolerance in [0.0, 1e-300, 1e-9, 0.1, 1e30, 1e300, f64::INFINITY] {
            assert!(f64::from(round_up(tolerance)) >= tolerance, "{tolerance}");
        }
        assert_eq!(round_up(0.0), 0.0);
    }
}
