//! Binary formats of floating-point types.

/// A sign, an exponent and a mantissa, with subnormal numbers, as in IEEE 754.
///
/// What converts numbers to and from a *narrow* format, one with less precision and no larger
/// range than `float`, follows from these fields: here, in C and in LLVM IR. Positions and
/// thresholds are `u32`s: bits of the format, or bits of a `float` where their name says so.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FloatFormat {
    /// Bits of the exponent.
    pub exponent_bits: u32,
    /// Bits of the mantissa that are stored, so one less than the precision.
    pub mantissa_bits: u32,
    /// Whether the largest exponent is for infinities and NaN, as IEEE 754 has it. Without
    /// infinities, only all ones are NaN, and what overflows becomes NaN.
    pub has_infinities: bool,
}

impl FloatFormat {
    /// IEEE binary16.
    pub const BINARY16: Self = Self::ieee(5, 10);
    /// IEEE binary32.
    pub const BINARY32: Self = Self::ieee(8, 23);
    /// IEEE binary64.
    pub const BINARY64: Self = Self::ieee(11, 52);

    /// A format with infinities.
    #[must_use]
    pub const fn ieee(exponent_bits: u32, mantissa_bits: u32) -> Self {
        Self { exponent_bits, mantissa_bits, has_infinities: true }
    }

    /// Bits of a number.
    #[must_use]
    pub const fn bits(self) -> u32 {
        1 + self.exponent_bits + self.mantissa_bits
    }

    /// The stored exponent of 1.
    #[must_use]
    pub const fn bias(self) -> u32 {
        (1 << (self.exponent_bits - 1)) - 1
    }

    /// The largest exponent of a finite number.
    const fn largest_exponent(self) -> i32 {
        self.bias() as i32 + !self.has_infinities as i32
    }

    /// The least number above 0.
    #[must_use]
    pub const fn least_subnormal(self) -> f64 {
        // That of binary64 is below the normal numbers, and has bits of its own.
        match 1 - self.bias() as i32 - self.mantissa_bits as i32 {
            exponent if exponent < -1022 => f64::from_bits(1 << (exponent + 1074)),
            exponent => power_of_two(exponent),
        }
    }

    /// The least normal number above 0.
    #[must_use]
    pub const fn least_normal(self) -> f64 {
        power_of_two(1 - self.bias() as i32)
    }

    /// The largest finite number.
    #[must_use]
    pub const fn largest(self) -> f64 {
        // Without infinities, the mantissa of all ones is NaN.
        let missing = if self.has_infinities { 1.0 } else { 2.0 };
        let mantissa = 2.0 - missing * power_of_two(-(self.mantissa_bits as i32));
        mantissa * power_of_two(self.largest_exponent())
    }

    /// Half the distance from 1 to the next number.
    #[must_use]
    pub const fn unit_roundoff(self) -> f64 {
        power_of_two(-1 - self.mantissa_bits as i32)
    }

    /// The bit of the sign.
    #[must_use]
    pub const fn sign(self) -> u32 {
        1 << (self.bits() - 1)
    }

    /// The first bits, without a sign, of what is not finite: infinity, or NaN if there is none.
    #[must_use]
    pub const fn first_special(self) -> u32 {
        if self.has_infinities { self.sign() - (1 << self.mantissa_bits) } else { self.sign() - 1 }
    }

    /// The bits of NaN.
    #[must_use]
    pub const fn nan(self) -> u32 {
        self.first_special() | (1 << (self.mantissa_bits - 1))
    }

    /// How far the mantissa is from that of a `float`.
    #[must_use]
    pub const fn shift(self) -> u32 {
        FloatFormat::BINARY32.mantissa_bits - self.mantissa_bits
    }

    /// Whether the format is a `float` without its last bits.
    #[must_use]
    pub const fn is_truncated_float(self) -> bool {
        self.exponent_bits == FloatFormat::BINARY32.exponent_bits && self.has_infinities
    }

    /// The difference of the exponents, in the bits of a `float`.
    #[must_use]
    pub const fn float_rebias(self) -> u32 {
        (FloatFormat::BINARY32.bias() - self.bias()) << FloatFormat::BINARY32.mantissa_bits
    }

    /// The `float` bits of the least normal number.
    #[must_use]
    pub const fn float_least_normal(self) -> u32 {
        self.float_rebias() + (1 << FloatFormat::BINARY32.mantissa_bits)
    }

    /// The `float` bits from which on numbers are rounded to what is not finite, if not before by
    /// a carry into the exponent.
    #[must_use]
    pub const fn float_overflow(self) -> u32 {
        let largest = (self.largest() as f32).to_bits();
        let last = 1 << self.shift();
        // There is no carry to NaN: numbers above the middle to the next one, halves to even.
        if self.has_infinities { largest + last } else { largest + last / 2 + 1 }
    }

    /// The power of two that leaves subnormal numbers, if added, in the last bits of a `float`.
    #[must_use]
    pub const fn float_magic(self) -> f32 {
        f32::from_bits(self.float_least_normal() + (self.shift() << 23))
    }

    /// The number of bits, which is exact. Only for narrow formats.
    #[inline]
    #[must_use]
    pub const fn decode(self, bits: u32) -> f32 {
        let magnitude = bits & (self.sign() - 1);
        // As a `float` with the wrong exponent, which a product corrects, also if it is subnormal.
        let shifted = magnitude << self.shift();
        let scale = 2 * FloatFormat::BINARY32.bias() - self.bias();
        let scaled = f32::from_bits(shifted) * f32::from_bits(scale << 23);
        let special = magnitude >= self.first_special();
        let value = if special { shifted | 0x7f80_0000 } else { scaled.to_bits() };
        f32::from_bits(value | ((bits & self.sign()) << (32 - self.bits())))
    }

    /// The bits of the nearest number, with one rounding. Only for narrow formats.
    #[must_use]
    pub fn encode_f64(self, value: f64) -> u32 {
        self.encode(round_to_odd(value))
    }

    /// The bits of the nearest number, halves to even. Only for narrow formats.
    #[must_use]
    pub const fn encode(self, value: f32) -> u32 {
        let magnitude = value.abs().to_bits();
        let sign = (value.to_bits() >> 31) << (self.bits() - 1);
        let bits = if value.is_nan() {
            self.nan()
        } else if magnitude >= self.float_overflow() {
            self.first_special()
        } else if magnitude >= self.float_least_normal() {
            let is_odd = (magnitude >> self.shift()) & 1;
            let rounded = magnitude - self.float_rebias() + (1 << (self.shift() - 1)) - 1 + is_odd;
            rounded >> self.shift()
        } else {
            (value.abs() + self.float_magic()).to_bits() - self.float_magic().to_bits()
        };
        sign | bits
    }
}

/// Rounds to a neighbouring `f32`, to the one with an odd significand if the value lies between
/// two. A second rounding to 22 bits or less then equals a single rounding (Boldo and Melquiond,
/// "Emulation of FMA and correctly rounded sums: proved algorithms using rounding to odd");
/// rounding to nearest twice would not.
#[must_use]
pub fn round_to_odd(value: f64) -> f32 {
    let nearest = value as f32;
    let widened = f64::from(nearest);
    if widened == value || value.is_nan() {
        return nearest;
    }
    let towards_zero = nearest.to_bits() - u32::from(widened.abs() > value.abs());
    f32::from_bits(towards_zero | 1)
}

/// A normal power of two.
const fn power_of_two(exponent: i32) -> f64 {
    f64::from_bits(((exponent + 1023) as u64) << 52)
}

#[cfg(test)]
mod tests {
    use super::*;

    const BFLOAT16: FloatFormat = FloatFormat::ieee(8, 7);
    const E5M2: FloatFormat = FloatFormat::ieee(5, 2);
    const E4M3: FloatFormat =
        FloatFormat { exponent_bits: 4, mantissa_bits: 3, has_infinities: false };

    #[test]
    fn limits_are_those_of_the_types() {
        let single = FloatFormat::BINARY32;
        assert_eq!(single.largest(), f64::from(f32::MAX));
        assert_eq!(single.least_normal(), f64::from(f32::MIN_POSITIVE));
        assert_eq!(single.least_subnormal(), f64::from(f32::from_bits(1)));
        let double = FloatFormat::BINARY64;
        assert_eq!(double.largest(), f64::MAX);
        assert_eq!(double.least_normal(), f64::MIN_POSITIVE);
        assert_eq!(double.least_subnormal(), f64::from_bits(1));
        assert_eq!(double.unit_roundoff(), f64::EPSILON / 2.0);
        assert_eq!(FloatFormat::BINARY16.largest(), 65504.0);
        assert_eq!(BFLOAT16.largest(), half::bf16::MAX.to_f64());
        assert_eq!((E5M2.largest(), E5M2.least_subnormal()), (57344.0, 2f64.powi(-16)));
        assert_eq!((E4M3.largest(), E4M3.least_subnormal()), (448.0, 2f64.powi(-9)));
    }

    #[test]
    fn halves_are_those_of_another_library() {
        for bits in 0..=u16::MAX {
            let (half, brain) = (half::f16::from_bits(bits), half::bf16::from_bits(bits));
            for (format, other) in
                [(FloatFormat::BINARY16, half.to_f32()), (BFLOAT16, brain.to_f32())]
            {
                let value = format.decode(u32::from(bits));
                assert!(value.is_nan() && other.is_nan() || value.to_bits() == other.to_bits());
                for near in [value.next_down(), value, value.next_up()] {
                    assert_rounded(format, near);
                }
            }
        }
        for bits in (0..u32::MAX).step_by(7919) {
            assert_rounded(FloatFormat::BINARY16, f32::from_bits(bits));
            assert_rounded(BFLOAT16, f32::from_bits(bits));
        }
    }

    fn assert_rounded(format: FloatFormat, value: f32) {
        let other = match format {
            BFLOAT16 => half::bf16::from_f32(value).to_bits(),
            _ => half::f16::from_f32(value).to_bits(),
        };
        let bits = format.encode(value);
        assert!(value.is_nan() && bits & format.nan() == format.nan() || bits == u32::from(other));
    }

    /// All numbers of a format in order, from the definition.
    fn numbers(format: FloatFormat) -> Vec<f64> {
        let (one, bias) = (1 << format.mantissa_bits, format.bias() as i32);
        let finite = 0..format.first_special();
        let number = |bits: u32| {
            let (exponent, mantissa) = ((bits / one) as i32, f64::from(bits % one));
            let (leading, exponent) =
                if exponent == 0 { (0.0, 1) } else { (f64::from(one), exponent) };
            (leading + mantissa) / f64::from(one) * 2f64.powi(exponent - bias)
        };
        finite.map(number).collect()
    }

    #[test]
    fn bytes_are_the_numbers_of_the_definition() {
        for format in [E5M2, E4M3] {
            let numbers = numbers(format);
            assert_eq!(numbers.last(), Some(&format.largest()));
            for (bits, number) in (0..).zip(&numbers) {
                assert_eq!(f64::from(format.decode(bits)), *number);
                assert_eq!(format.encode(*number as f32), bits);
                assert_eq!(format.encode(-*number as f32), bits | 0x80);
            }
            for (bits, pair) in (0..).zip(numbers.windows(2)) {
                let middle = ((pair[0] + pair[1]) / 2.0) as f32;
                assert_eq!(format.encode(middle), bits + bits % 2, "halves to even");
                assert_eq!(format.encode(middle.next_down()), bits);
                assert_eq!(format.encode(middle.next_up()), bits + 1);
            }
            assert_eq!(format.encode(f32::NAN), format.nan());
            assert!(format.decode(format.nan()).is_nan());
            assert_eq!(format.encode(f32::INFINITY), format.first_special());
            assert_eq!(format.encode(f32::MAX), format.first_special());
        }
        assert_eq!(E5M2.decode(0xfc), f32::NEG_INFINITY);
        assert_eq!((E5M2.encode(61439.9), E5M2.encode(61440.0)), (0x7b, 0x7c));
        assert_eq!(
            (E4M3.encode(464.0), E4M3.encode(464.1), E4M3.encode(500.0)),
            (0x7e, 0x7f, 0x7f)
        );
    }
}
