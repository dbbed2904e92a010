//! Requirements on the memory of a kernel's arguments.

use tensorwright::{DType, ir};

use crate::foreign::Foreign;

/// The tensor that a program expects.
#[derive(Debug)]
pub(crate) struct Expected {
    pub(crate) name: String,
    pub(crate) dtype: DType,
    pub(crate) shape: Vec<i64>,
    /// As [`Foreign::strides`].
    pub(crate) strides: Option<Vec<i64>>,
    pub(crate) bytes: usize,
}

impl Expected {
    pub(crate) fn new(tensor: &ir::Tensor) -> Self {
        Self {
            name: tensor.name.clone(),
            dtype: tensor.dtype,
            shape: tensor.shape.clone(),
            strides: None,
            bytes: usize::try_from(tensor.bytes()).unwrap_or(usize::MAX),
        }
    }

    /// Checks memory; the error says what is wrong and what to do.
    pub(crate) fn check(&self, foreign: &Foreign) -> Result<(), String> {
        same_type(self.dtype, foreign)?;
        if foreign.extents.as_slice() != self.shape {
            let (found, wanted) = (tuple(foreign.extents.as_slice()), tuple(&self.shape));
            return Err(format!("has the shape {found}, and the other arguments need {wanted}"));
        }
        if foreign.strides() != self.strides.as_deref() {
            return Err(
                "is not contiguous; pass numpy.ascontiguousarray(...) or .contiguous()".to_owned()
            );
        }
        if self.bytes > 0 && foreign.pointer.is_null() {
            return Err("has no memory: it was freed".to_owned());
        }
        if !(foreign.pointer as usize).is_multiple_of(self.dtype.bytes()) {
            return Err("is not aligned to its elements; pass a copy".to_owned());
        }
        Ok(())
    }
}

/// Checks the element type of memory; the error says what is wrong and what to do.
pub(crate) fn same_type(wanted: DType, foreign: &Foreign) -> Result<(), String> {
    let found = match &foreign.dtype {
        Ok(dtype) if *dtype == wanted => return Ok(()),
        Ok(dtype) => dtype.name(),
        Err(other) => other.as_str(),
    };
    let name = wanted.row().torch;
    Err(format!("has elements of {found}, and {wanted} is needed; convert it to {name}"))
}

fn tuple(extents: &[i64]) -> String {
    let list: Vec<String> = extents.iter().map(i64::to_string).collect();
    format!("({})", list.join(", "))
}
