//! Dense row-major tensors in memory.

mod error;

pub use error::BufferError;
pub(crate) use error::ShapeText;

use tensorwright_lang::dtype::DType;

use crate::element::{Element, Value, elements};

/// The largest buffer, in bytes. Larger ones are errors.
pub const MAX_BYTES: u64 = 1 << 33;

/// A dense, row-major tensor.
#[derive(Debug, Clone, PartialEq)]
pub struct Buffer {
    shape: Vec<i64>,
    data: Data,
}

/// The elements, by their types.
macro_rules! storage {
    ($($variant:ident $type:ty;)*) => {
        #[derive(Debug, Clone, PartialEq)]
        enum Data {
            $($variant(Vec<$type>),)*
        }

        /// Maps an element type to its variant of the storage.
        pub trait BufferElement: Element {
            #[doc(hidden)]
            fn into_buffer(shape: Vec<i64>, data: Vec<Self>) -> Buffer;
            #[doc(hidden)]
            fn slice(buffer: &Buffer) -> Option<&[Self]>;
            #[doc(hidden)]
            fn slice_mut(buffer: &mut Buffer) -> Option<&mut [Self]>;
        }

        $(impl BufferElement for $type {
            fn into_buffer(shape: Vec<i64>, data: Vec<Self>) -> Buffer {
                Buffer { shape, data: Data::$variant(data) }
            }

            fn slice(buffer: &Buffer) -> Option<&[Self]> {
                if let Data::$variant(data) = &buffer.data { Some(data) } else { None }
            }

            fn slice_mut(buffer: &mut Buffer) -> Option<&mut [Self]> {
                if let Data::$variant(data) = &mut buffer.data { Some(data) } else { None }
            }
        })*

        /// Runs an expression with `$data` bound to the vector of elements, whatever their type.
        macro_rules! with_data {
            ($buffer:expr, $data:ident => $run:expr) => {
                match $buffer { $(Data::$variant($data) => $run,)* }
            };
        }

        /// Runs an expression with `$element` standing for the Rust type of a [`DType`].
        macro_rules! with_type {
            ($dtype:expr, $element:ident => $run:expr) => {
                match $dtype {
                    $(DType::$variant => { type $element = $type; $run })*
                }
            };
        }
    };
}

elements!(storage);

/// The number of elements of a shape, if it is within the limits.
fn checked_elements(dtype: DType, shape: &[i64]) -> Result<usize, BufferError> {
    let too_large = || BufferError::TooLarge { dtype, shape: shape.to_vec() };
    if shape.iter().any(|extent| *extent < 0) {
        return Err(BufferError::NegativeExtent { shape: shape.to_vec() });
    }
    if shape.contains(&0) {
        return Ok(0);
    }
    let mut elements: u64 = 1;
    for extent in shape {
        elements = elements.checked_mul(extent.unsigned_abs()).ok_or_else(too_large)?;
    }
    let bytes = elements.checked_mul(dtype.bytes() as u64).ok_or_else(too_large)?;
    if bytes > MAX_BYTES {
        return Err(too_large());
    }
    usize::try_from(elements).map_err(|_| too_large())
}

/// An empty vector with capacity for the elements of a shape; out of memory is an error, where
/// `Vec::with_capacity` would abort.
fn reserve<T: Element>(shape: &[i64]) -> Result<(Vec<T>, usize), BufferError> {
    let elements = checked_elements(T::DTYPE, shape)?;
    let mut data = Vec::new();
    data.try_reserve_exact(elements)
        .map_err(|_| BufferError::TooLarge { dtype: T::DTYPE, shape: shape.to_vec() })?;
    Ok((data, elements))
}

impl Buffer {
    /// Creates a buffer from elements in row-major order.
    ///
    /// # Errors
    /// If the number of elements is not the product of the extents, or too large.
    pub fn new<T: BufferElement>(shape: &[i64], elements: Vec<T>) -> Result<Self, BufferError> {
        let expected = checked_elements(T::DTYPE, shape)?;
        let actual = elements.len();
        if actual != expected {
            return Err(BufferError::WrongLength { shape: shape.to_vec(), expected, actual });
        }
        Ok(T::into_buffer(shape.to_vec(), elements))
    }

    /// A buffer of `float`s; [`Buffer::new`] makes those of the other types.
    ///
    /// # Errors
    /// As [`Buffer::new`].
    pub fn from_f32(shape: &[i64], elements: Vec<f32>) -> Result<Self, BufferError> {
        Self::new(shape, elements)
    }

    /// A buffer of `double`s; [`Buffer::from_f64s`] converts to any type.
    ///
    /// # Errors
    /// As [`Buffer::new`].
    pub fn from_f64(shape: &[i64], elements: Vec<f64>) -> Result<Self, BufferError> {
        Self::new(shape, elements)
    }

    /// A buffer of `int32`s.
    ///
    /// # Errors
    /// As [`Buffer::new`].
    pub fn from_i32(shape: &[i64], elements: Vec<i32>) -> Result<Self, BufferError> {
        Self::new(shape, elements)
    }

    /// A buffer of zeros (`false` for `bool`).
    ///
    /// # Errors
    /// If it would be too large.
    pub fn zeros(dtype: DType, shape: &[i64]) -> Result<Self, BufferError> {
        with_type!(dtype, T => {
            let (mut data, elements) = reserve::<T>(shape)?;
            data.resize(elements, T::default());
            Ok(T::into_buffer(shape.to_vec(), data))
        })
    }

    /// Creates a buffer by calling a function for each row-major position; values are converted as
    /// by [`Value::convert`].
    ///
    /// # Errors
    /// If it would be too large.
    pub fn from_fn(
        dtype: DType,
        shape: &[i64],
        mut value: impl FnMut(usize) -> Value,
    ) -> Result<Self, BufferError> {
        with_type!(dtype, T => {
            let (mut data, elements) = reserve::<T>(shape)?;
            data.extend((0..elements).map(|position| T::from_value(value(position))));
            Ok(T::into_buffer(shape.to_vec(), data))
        })
    }

    /// Creates a buffer of any type from numbers, converted as by [`Value::convert`].
    ///
    /// # Errors
    /// As [`Buffer::new`].
    pub fn from_f64s(dtype: DType, shape: &[i64], values: &[f64]) -> Result<Self, BufferError> {
        let expected = checked_elements(dtype, shape)?;
        if values.len() != expected {
            let (shape, actual) = (shape.to_vec(), values.len());
            return Err(BufferError::WrongLength { shape, expected, actual });
        }
        Self::from_fn(dtype, shape, |position| {
            Value::Float(values.get(position).copied().unwrap_or_default())
        })
    }

    /// Creates a buffer from little-endian bytes.
    ///
    /// # Errors
    /// If the number of bytes is wrong, a `bool` is neither 0 nor 1, or the size is too large.
    pub fn from_bytes(dtype: DType, shape: &[i64], bytes: &[u8]) -> Result<Self, BufferError> {
        let expected = checked_elements(dtype, shape)? * dtype.bytes();
        if bytes.len() != expected {
            let (shape, actual) = (shape.to_vec(), bytes.len());
            return Err(BufferError::WrongLength { shape, expected, actual });
        }
        with_type!(dtype, T => {
            let (mut data, _) = reserve::<T>(shape)?;
            for (position, element) in bytes.chunks_exact(dtype.bytes()).enumerate() {
                let invalid = BufferError::InvalidElement { position };
                data.push(T::read_le(element).ok_or(invalid)?);
            }
            Ok(T::into_buffer(shape.to_vec(), data))
        })
    }

    /// The elements in row-major order as little-endian bytes.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.len() * self.dtype().bytes());
        self.visit_bytes(|element| bytes.extend_from_slice(element));
        bytes
    }

    /// Calls `visit` with the little-endian bytes of each element in row-major order:
    /// [`Buffer::to_bytes`] without the vector.
    pub fn visit_bytes(&self, mut visit: impl FnMut(&[u8])) {
        let mut bytes = Vec::with_capacity(self.dtype().bytes());
        with_data!(&self.data, data => for element in data {
            bytes.clear();
            element.append_le(&mut bytes);
            visit(&bytes);
        });
    }

    /// Converts the elements as by [`Value::convert`].
    ///
    /// # Errors
    /// If the result would be too large.
    pub fn convert(&self, dtype: DType) -> Result<Self, BufferError> {
        Self::from_fn(dtype, &self.shape, |position| {
            self.get(position).unwrap_or(Value::Integer(0))
        })
    }

    /// Changes the shape, keeping the elements.
    ///
    /// # Errors
    /// If the number of elements differs.
    pub fn reshape(mut self, shape: &[i64]) -> Result<Self, BufferError> {
        let expected = checked_elements(self.dtype(), shape)?;
        if self.len() != expected {
            let (shape, actual) = (shape.to_vec(), self.len());
            return Err(BufferError::WrongLength { shape, expected, actual });
        }
        self.shape = shape.to_vec();
        Ok(self)
    }

    /// The element type.
    #[must_use]
    pub fn dtype(&self) -> DType {
        fn of<T: Element>(_: &[T]) -> DType {
            T::DTYPE
        }
        with_data!(&self.data, data => of(data))
    }

    /// The extents, outermost first; empty for a scalar.
    #[must_use]
    pub fn shape(&self) -> &[i64] {
        &self.shape
    }

    /// The number of elements.
    #[must_use]
    pub fn len(&self) -> usize {
        with_data!(&self.data, data => data.len())
    }

    /// Whether it is empty: an extent is zero.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The element at a position in row-major order; `None` past the end.
    #[must_use]
    pub fn get(&self, position: usize) -> Option<Value> {
        with_data!(&self.data, data => data.get(position).map(|x| x.to_value()))
    }

    /// The element at a position in row-major order as a number; integers beyond 2^53 are rounded.
    #[must_use]
    pub fn get_f64(&self, position: usize) -> Option<f64> {
        self.get(position).map(Value::as_f64)
    }

    /// The element at an index; `None` if the index is out of bounds or of another rank.
    #[must_use]
    pub fn at(&self, index: &[i64]) -> Option<Value> {
        self.get(self.position(index)?)
    }

    /// The position of an index in row-major order.
    #[must_use]
    pub fn position(&self, index: &[i64]) -> Option<usize> {
        position_in(&self.shape, index)
    }

    /// The index of a position in row-major order.
    #[must_use]
    pub fn index(&self, position: usize) -> Vec<i64> {
        index_in(&self.shape, position)
    }

    /// Stores a value, converted as by [`Value::convert`], and returns the stored value; `None`
    /// past the end.
    pub fn set(&mut self, position: usize, value: Value) -> Option<Value> {
        fn store<T: Element>(slot: &mut T, value: Value) -> Value {
            *slot = T::from_value(value);
            slot.to_value()
        }
        with_data!(&mut self.data, data => {
            data.get_mut(position).map(|slot| store(slot, value))
        })
    }

    /// All elements as values.
    pub fn values(&self) -> impl Iterator<Item = Value> + '_ {
        (0..self.len()).filter_map(|position| self.get(position))
    }

    /// The elements, if this is their type.
    #[must_use]
    pub fn as_slice<T: BufferElement>(&self) -> Option<&[T]> {
        T::slice(self)
    }

    /// The mutable elements, if this is their type.
    #[must_use]
    pub fn as_mut_slice<T: BufferElement>(&mut self) -> Option<&mut [T]> {
        T::slice_mut(self)
    }

    /// The elements of a `float` buffer.
    #[must_use]
    pub fn as_f32(&self) -> Option<&[f32]> {
        self.as_slice()
    }

    /// The elements of a `double` buffer.
    #[must_use]
    pub fn as_f64(&self) -> Option<&[f64]> {
        self.as_slice()
    }

    /// The elements of an `int32` buffer.
    #[must_use]
    pub fn as_i32(&self) -> Option<&[i32]> {
        self.as_slice()
    }

    /// The type as source text writes it, such as `float(16, 3)`.
    #[must_use]
    pub fn type_text(&self) -> String {
        type_text(self.dtype(), &self.shape)
    }
}

/// The position of an index in a shape, in row-major order.
pub(crate) fn position_in(shape: &[i64], index: &[i64]) -> Option<usize> {
    if index.len() != shape.len() {
        return None;
    }
    let position = index.iter().zip(shape).try_fold(0_i64, |position, (i, extent)| {
        (0..*extent).contains(i).then(|| position * extent + i)
    })?;
    usize::try_from(position).ok()
}

/// The index of a position in a shape, in row-major order.
pub(crate) fn index_in(shape: &[i64], position: usize) -> Vec<i64> {
    let mut rest = position as i64;
    let mut index = vec![0; shape.len()];
    for (i, extent) in index.iter_mut().zip(shape).rev() {
        *i = rest % (*extent).max(1);
        rest /= (*extent).max(1);
    }
    index
}

/// A type as source text writes it, such as `float(16, 3)`, or `float` for a scalar.
fn type_text(dtype: DType, shape: &[i64]) -> String {
    if shape.is_empty() { dtype.to_string() } else { format!("{dtype}{}", ShapeText(shape)) }
}

/// A one-dimensional buffer.
impl<T: BufferElement> From<Vec<T>> for Buffer {
    fn from(elements: Vec<T>) -> Self {
        T::into_buffer(vec![elements.len() as i64], elements)
    }
}

/// A scalar buffer.
impl<T: BufferElement> From<T> for Buffer {
    fn from(element: T) -> Self {
        T::into_buffer(Vec::new(), vec![element])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_type_round_trips_through_values_and_bytes() {
        for dtype in DType::ALL {
            let buffer = Buffer::from_f64s(dtype, &[2, 2], &[0.0, 1.0, 2.0, 100.0]).unwrap();
            assert_eq!(buffer.dtype(), dtype);
            let bytes = buffer.to_bytes();
            assert_eq!(bytes.len(), 4 * dtype.bytes());
            assert_eq!(Buffer::from_bytes(dtype, &[2, 2], &bytes).unwrap(), buffer);
            assert_eq!(buffer.convert(DType::Double).unwrap().convert(dtype).unwrap(), buffer);
            assert_eq!(Buffer::zeros(dtype, &[3]).unwrap().get_f64(2), Some(0.0));
            assert_eq!(Buffer::zeros(dtype, &[3]).unwrap().get(3), None);
        }
    }

    #[test]
    fn wrong_lengths_and_sizes_are_errors() {
        assert!(Buffer::from_f32(&[2, 3], vec![0.0; 6]).is_ok());
        let error = Buffer::from_f32(&[2, 3], vec![0.0; 5]).unwrap_err();
        assert_eq!(error.to_string(), "the shape (2, 3) needs a length of 6, and there are 5");
        let huge = [i64::MAX, i64::MAX];
        assert!(matches!(Buffer::zeros(DType::Int8, &huge), Err(BufferError::TooLarge { .. })));
        let limit = [(MAX_BYTES / 8 + 1) as i64];
        assert!(matches!(Buffer::zeros(DType::Double, &limit), Err(BufferError::TooLarge { .. })));
        let negative = Buffer::zeros(DType::Int8, &[-1, 0]);
        assert!(matches!(negative, Err(BufferError::NegativeExtent { .. })));
        assert_eq!(Buffer::zeros(DType::Int8, &[i64::MAX, 0]).unwrap().len(), 0);
        let not_bool = Buffer::from_bytes(DType::Bool, &[2], &[1, 2]);
        assert_eq!(not_bool, Err(BufferError::InvalidElement { position: 1 }));
    }

    #[test]
    fn positions_and_indices_are_row_major() {
        let buffer = Buffer::from_i32(&[2, 3], (0..6).collect()).unwrap();
        assert_eq!(buffer.at(&[1, 2]), Some(Value::Integer(5)));
        assert_eq!(buffer.at(&[1, 3]), None);
        assert_eq!(buffer.at(&[-1, 0]), None);
        assert_eq!(buffer.at(&[1]), None);
        for position in 0..6 {
            assert_eq!(buffer.position(&buffer.index(position)), Some(position));
        }
        assert_eq!(buffer.type_text(), "int32(2, 3)");
    }

    #[test]
    fn slices_know_their_type() {
        let mut buffer = Buffer::from(vec![1.0_f32, 2.0]);
        assert_eq!(buffer.as_f32(), Some([1.0_f32, 2.0].as_slice()));
        assert_eq!(buffer.as_f64(), None);
        assert_eq!(buffer.set(0, Value::Float(0.1)), Some(Value::Float(f64::from(0.1_f32))));
        assert_eq!(buffer.set(2, Value::Float(0.1)), None);
        assert_eq!(Buffer::from(true).shape(), [0_i64; 0]);
        assert_eq!(Buffer::from(7_u16).reshape(&[1, 1]).unwrap().type_text(), "uint16(1, 1)");
    }
}
