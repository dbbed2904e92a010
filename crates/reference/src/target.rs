//! The output tensor of a running stage, and iteration over its elements.

use std::borrow::Cow;

use tensorwright_lang::diagnostic::{Code, Diagnostic};
use tensorwright_lang::program::{Stage, Tensor};

use crate::buffer::Buffer;
use crate::eval::{Contents, Failure};
use crate::number::Number;

/// Advances some axes to their next point, the innermost first, like an odometer. After the last
/// point it wraps to the first and returns `false`.
pub(crate) fn advance(
    stage: &Stage,
    axes: impl DoubleEndedIterator<Item = usize>,
    point: &mut [i64],
) -> bool {
    for number in axes.rev() {
        let (Some(axis), Some(value)) = (stage.axes.get(number), point.get_mut(number)) else {
            return false;
        };
        *value += 1;
        if *value < axis.hi {
            return true;
        }
        *value = axis.lo;
    }
    false
}

/// The output tensor of a running stage.
pub(crate) struct Target<'t, 'a> {
    pub(crate) tensor: &'t Tensor,
    /// Error bounds are allocated when the first inexact element is stored.
    pub(crate) contents: Contents<'a>,
}

impl<'t> Target<'t, '_> {
    /// Creates a copy of the base, or zeros that will all be overwritten.
    pub(crate) fn new(tensor: &'t Tensor, base: Option<&Contents<'_>>) -> Result<Self, Failure> {
        let zeros = Buffer::zeros(tensor.dtype, &tensor.shape)
            .map_err(|error| too_large(tensor, &error.to_string()))?;
        let contents = Contents { buffer: Cow::Owned(zeros), errors: None };
        let mut target = Self { tensor, contents };
        if let Some(base) = base {
            for position in 0..target.contents.buffer.len() {
                if let Some(number) = base.number(position) {
                    target.store(position, number)?;
                }
            }
        }
        Ok(target)
    }

    pub(crate) fn store(&mut self, position: usize, number: Number) -> Result<(), Failure> {
        if number.error() > 0.0 && self.contents.errors.is_none() {
            let len = self.contents.buffer.len();
            self.contents.errors = Some(zero_errors(self.tensor, len)?);
        }
        self.contents.set(position, number);
        Ok(())
    }
}

/// One bound per element; out of memory is an error.
pub(crate) fn zero_errors(tensor: &Tensor, len: usize) -> Result<Vec<f64>, Failure> {
    let mut errors = Vec::new();
    errors
        .try_reserve_exact(len)
        .map_err(|_| too_large(tensor, "there is no memory for its error bounds"))?;
    errors.resize(len, 0.0);
    Ok(errors)
}

pub(crate) fn too_large(tensor: &Tensor, why: &str) -> Failure {
    let Tensor { name, span, .. } = tensor;
    let message = format!("`{name}`, a `{}`, is too large to run: {why}", tensor.type_text());
    Box::new(Diagnostic::new(Code::TooLarge, *span, message).help("bind smaller sizes"))
}
