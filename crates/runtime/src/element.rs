//! [`Element`]: the number types of buffers.
#![allow(unsafe_code, reason = "numbers and bytes are two readings of the same memory")]

mod sealed {
    /// Keeps [`Element`](super::Element) to types without padding for which every bit pattern is a
    /// value: the soundness of every cast in this crate rests on that.
    pub trait Sealed: Copy + Send + Sync + 'static {}
}

/// A number type that a buffer can hold.
///
/// `f16` and `bf16` have no type in the standard library; their bits are read as `u16`.
pub trait Element: sealed::Sealed {}

macro_rules! elements {
    ($($type:ty),*) => { $(
        impl sealed::Sealed for $type {}
        impl Element for $type {}
    )* };
}

elements!(f32, f64, i8, i16, i32, i64, u8, u16, u32, u64);

/// The bytes of a slice of numbers.
#[must_use]
pub fn bytes_of<T: Element>(elements: &[T]) -> &[u8] {
    // SAFETY: the slice covers `size_of_val` initialised bytes (an `Element` has no padding), `u8`
    // needs no alignment, and the result borrows what `elements` borrows.
    unsafe { std::slice::from_raw_parts(elements.as_ptr().cast(), size_of_val(elements)) }
}

#[cfg(test)]
mod tests {
    use super::bytes_of;

    #[test]
    fn bytes_are_those_of_the_numbers() {
        assert_eq!(
            bytes_of(&[1.5f32, -2.0]),
            [1.5f32.to_ne_bytes(), (-2f32).to_ne_bytes()].concat()
        );
        assert_eq!(bytes_of::<u64>(&[]), []);
    }
}
