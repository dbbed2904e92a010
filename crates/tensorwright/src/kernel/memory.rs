//! Conversion between tensors and kernel memory.

use tensorwright_runtime::element::bytes_of;
use tensorwright_runtime::{AlignedBuffer, AllocError};

use crate::{Buffer, BufferError, DType};

/// Runs an expression with `$element` as the Rust type of a [`DType`], for types that memory can be
/// read as; `$other` for `bool` and storage-only floats.
macro_rules! with_element {
    ($dtype:expr, $element:ident => $run:expr, _ => $other:expr) => {
        match $dtype {
            DType::Int8 => {
                type $element = i8;
                $run
            }
            DType::Int16 => {
                type $element = i16;
                $run
            }
            DType::Int32 => {
                type $element = i32;
                $run
            }
            DType::Int64 => {
                type $element = i64;
                $run
            }
            DType::UInt8 => {
                type $element = u8;
                $run
            }
            DType::UInt16 => {
                type $element = u16;
                $run
            }
            DType::UInt32 => {
                type $element = u32;
                $run
            }
            DType::UInt64 => {
                type $element = u64;
                $run
            }
            DType::Float => {
                type $element = f32;
                $run
            }
            DType::Double => {
                type $element = f64;
                $run
            }
            _ => $other,
        }
    };
}

/// The elements of a tensor in aligned memory.
pub(super) fn aligned(buffer: &Buffer) -> Result<AlignedBuffer, AllocError> {
    let mut memory = AlignedBuffer::new(buffer.len() * buffer.dtype().bytes())?;
    let target = memory.as_bytes_mut();
    let copied = with_element!(buffer.dtype(), T => {
        buffer.as_slice::<T>().map(|elements| target.copy_from_slice(bytes_of(elements)))
    }, _ => None);
    if copied.is_none() {
        let mut elements = target.chunks_exact_mut(buffer.dtype().bytes());
        buffer.visit_bytes(|bytes| {
            if let Some(element) = elements.next() {
                element.copy_from_slice(bytes);
            }
        });
    }
    Ok(memory)
}

/// The strides of dense memory, in elements.
pub(super) fn dense_strides(shape: &[i64]) -> Vec<i64> {
    let mut strides = vec![1i64; shape.len()];
    for dimension in (1..shape.len()).rev() {
        strides[dimension - 1] = strides[dimension].saturating_mul(shape[dimension].max(1));
    }
    strides
}

/// The tensor in dense memory; an error if it cannot be allocated.
pub(super) fn tensor(dtype: DType, shape: &[i64], bytes: &[u8]) -> Result<Buffer, BufferError> {
    with_element!(dtype, T => {
        let (chunks, _) = bytes.as_chunks::<{ size_of::<T>() }>();
        let mut elements: Vec<T> = Vec::new();
        let reserved = elements.try_reserve_exact(chunks.len());
        reserved.map_err(|_| BufferError::TooLarge { dtype, shape: shape.to_vec() })?;
        elements.extend(chunks.iter().map(|bytes| T::from_ne_bytes(*bytes)));
        Buffer::new(shape, elements)
    }, _ => Buffer::from_bytes(dtype, shape, bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tensors_of_all_types_come_back_as_they_were() {
        for dtype in &DType::ALL {
            let values = [1.0, 0.0, 1.0];
            let buffer = Buffer::from_f64s(*dtype, &[3], &values).unwrap();
            let memory = aligned(&buffer).unwrap();
            assert_eq!(memory.len(), 3 * dtype.bytes());
            assert_eq!(tensor(*dtype, &[3], memory.as_bytes()).unwrap(), buffer, "{dtype}");
        }
    }
}
