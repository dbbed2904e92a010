//! Helper functions that convert storage-only floats to and from `float`.
//!
//! All constants follow from the [`FloatFormat`]. A format that is a `float` without its last bits
//! has shorter functions.

use tensorwright_lang::dtype::{DType, FloatFormat};

use crate::types::memory_type;

/// What the texts of a type contain.
struct Narrow {
    format: FloatFormat,
    /// The type of the bits.
    bits: &'static str,
    /// What people call the type.
    format_name: &'static str,
    /// Hexadecimal digits of a number.
    digits: usize,
}

impl Narrow {
    fn of(dtype: DType) -> Option<Self> {
        let format = dtype.narrow_format()?;
        let format_name = dtype.row().format_name;
        Some(Self { format, bits: memory_type(dtype), format_name, digits: 2 * dtype.bytes() })
    }

    /// A number of as many digits as the bits of the type have.
    fn mask(&self, number: u32) -> String {
        format!("0x{number:0width$x}u", width = self.digits)
    }
}

/// The function from the bits to their value.
pub(crate) fn load(name: &str, dtype: DType) -> String {
    let Some(narrow) = Narrow::of(dtype) else { return String::new() };
    let Narrow { format, bits, format_name, .. } = &narrow;
    let parameter = format_name.rsplit(' ').next().unwrap_or(format_name);
    let to_sign = 32 - format.bits();
    let first = format!("FUNCTION float {name}({bits} {parameter}) {{");
    if format.is_truncated_float() {
        return format!(
            "\
/* The number that the bits of a {format_name} stand for: they are the upper half of a float. */
{first}
    const uint32_t bits = (uint32_t){parameter} << {to_sign};
    float value;
    TO_FLOAT(value, bits);
    return value;
}}
"
        );
    }
    let [sign, magnitude] = [format.sign(), format.sign() - 1].map(|n| narrow.mask(n));
    let [normal, special] =
        [1 << format.mantissa_bits, format.first_special()].map(|n| narrow.mask(n));
    let (shift, rebias) = (format.shift(), format.float_rebias());
    let to_special = 0x7f80_0000 - (((1 << format.exponent_bits) - 1) << 23);
    let least = format.least_subnormal().log2();
    let article = if format_name.starts_with('I') { "an" } else { "a" };
    format!(
        "\
/* The number that the bits of {article} {format_name} stand for. */
{first}
    const uint32_t sign = ({parameter} & {sign}) << {to_sign};
    const uint32_t magnitude = {parameter} & {magnitude};
    float value = (float)magnitude * 0x1p{least}f; /* right below the normal numbers */
    uint32_t bits;
    TO_BITS(bits, value);
    if (magnitude >= {normal}) {{ /* normal: another bias; infinite or NaN: the largest exponent */
        bits = (magnitude << {shift}) + (magnitude < {special} ? 0x{rebias:08x}u : 0x{to_special:08x}u);
    }}
    bits |= sign;
    TO_FLOAT(value, bits);
    return value;
}}
"
    )
}

/// The function to the bits of the nearest value.
pub(crate) fn pack(name: &str, dtype: DType) -> String {
    let Some(narrow) = Narrow::of(dtype) else { return String::new() };
    let Narrow { format, bits, format_name, .. } = &narrow;
    let (to_sign, shift) = (32 - format.bits(), format.shift());
    // Rounds down to even what lies in the middle, if it is added with the last bit.
    let below_middle = narrow.mask((1 << (shift - 1)) - 1);
    if format.is_truncated_float() {
        let quiet = 1 << (format.mantissa_bits - 1);
        return format!(
            "\
/* The bits of the nearest {format_name}, halves to even. */
FUNCTION {bits} {name}(float value) {{
    uint32_t bits;
    TO_BITS(bits, value);
    if (isnan(value)) {{
        return ({bits})((bits >> {shift}) | 0x{quiet:x}u);
    }}
    return ({bits})((bits + {below_middle} + ((bits >> {shift}) & 1u)) >> {shift});
}}
"
        );
    }
    let [sign, nan, special] =
        [format.sign(), format.nan(), format.first_special()].map(|n| narrow.mask(n));
    let (normal, rebias) = (format.float_least_normal(), format.float_rebias());
    let (overflow, magic) = (format.float_overflow(), format.float_magic());
    let (most, magic_bits) = (f32::from_bits(overflow), magic.to_bits());
    let least = format.least_subnormal().log2();
    format!(
        "\
/* The bits of the nearest {format_name}, halves to even. */
FUNCTION {bits} {name}(float value) {{
    uint32_t bits;
    TO_BITS(bits, value);
    const uint32_t sign = (bits >> {to_sign}) & {sign};
    const uint32_t magnitude = bits & 0x7fffffffu;
    if (magnitude > 0x7f800000u) {{ /* NaN */
        return ({bits})(sign | {nan});
    }}
    if (magnitude >= 0x{overflow:08x}u) {{ /* {most} and more */
        return ({bits})(sign | {special});
    }}
    if (magnitude >= 0x{normal:08x}u) {{ /* normal: another bias, and a carry may reach infinity */
        const uint32_t rounded = magnitude - 0x{rebias:08x}u + {below_middle} + ((magnitude >> {shift}) & 1u);
        return ({bits})(sign | (rounded >> {shift}));
    }}
    /* Adding {magic} leaves the multiple of 2^{least}, the least number, in the last bits. */
    float shifted = FABSF(value) + {magic:?}f;
    TO_BITS(bits, shifted);
    return ({bits})(sign | (bits - 0x{magic_bits:08x}u));
}}
"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constants_follow_from_the_format() {
        let half = pack("tw_pack_half", DType::Half);
        assert!(half.contains("magnitude >= 0x47800000u) { /* 65536 and more */"), "{half}");
        assert!(half.contains("magnitude - 0x38000000u + 0x0fffu"), "{half}");
        assert!(half.contains("FABSF(value) + 0.5f") && half.contains("bits - 0x3f000000u"));
        let half = load("tw_load_half", DType::Half);
        assert!(half.contains("(float)magnitude * 0x1p-24f"), "{half}");
        assert!(half.contains("magnitude < 0x7c00u ? 0x38000000u : 0x70000000u"), "{half}");
        assert!(pack("tw_pack_bfloat16", DType::BFloat16).contains("bits + 0x7fffu"));
        assert_eq!(load("", DType::Float) + &pack("", DType::Int8), "");
    }
}
