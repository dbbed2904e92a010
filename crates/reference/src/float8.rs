//! Floats of one byte.

use tensorwright_lang::dtype::FloatFormat;

/// A float of one byte, with the exponent and the mantissa of a [`FloatFormat`].
///
/// `Float8<5, 2>` is `float8e5m2`, and `Float8<4, 3, false>`, without infinities, `float8e4m3fn`.
#[derive(Debug, Clone, Copy, Default)]
pub struct Float8<const EXPONENT: u32, const MANTISSA: u32, const INFINITIES: bool = true>(u8);

impl<const E: u32, const M: u32, const I: bool> Float8<E, M, I> {
    /// The format.
    pub const FORMAT: FloatFormat = {
        assert!(E + M == 7, "a byte has seven bits beside the sign");
        FloatFormat { exponent_bits: E, mantissa_bits: M, has_infinities: I }
    };

    /// The number of bits.
    #[must_use]
    pub const fn from_bits(bits: u8) -> Self {
        Self(bits)
    }

    /// The bits.
    #[must_use]
    pub const fn to_bits(self) -> u8 {
        self.0
    }

    /// The nearest number, halves to even.
    #[must_use]
    pub const fn from_f32(value: f32) -> Self {
        Self(Self::FORMAT.encode(value) as u8)
    }

    /// The number, which is exact.
    #[must_use]
    pub const fn to_f64(self) -> f64 {
        Self::FORMAT.decode(self.0 as u32) as f64
    }

    /// The number in a byte.
    #[must_use]
    pub const fn from_le_bytes(bytes: [u8; 1]) -> Self {
        Self(bytes[0])
    }

    /// The byte of the number.
    #[must_use]
    pub const fn to_le_bytes(self) -> [u8; 1] {
        [self.0]
    }
}

impl<const E: u32, const M: u32, const I: bool> PartialEq for Float8<E, M, I> {
    fn eq(&self, other: &Self) -> bool {
        self.to_f64() == other.to_f64()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_numbers() {
        type E5M2 = Float8<5, 2>;
        for bits in 0..=u8::MAX {
            let number = E5M2::from_bits(bits);
            let again = E5M2::from_f32(number.to_f64() as f32);
            assert!(number.to_f64().is_nan() || again.to_bits() == bits);
            assert_eq!(number == again, !number.to_f64().is_nan());
            assert_eq!(E5M2::from_le_bytes(number.to_le_bytes()).to_bits(), bits);
        }
        assert_eq!(E5M2::from_f32(-0.0), E5M2::default());
        assert_eq!(E5M2::from_f32(1.2).to_f64(), 1.25);
        assert_eq!(Float8::<4, 3, false>::from_f32(1e9).to_bits(), 0x7f);
    }
}
