//! Number literals, as in C: `42`, `0x1F`, `10u`, `1.0`, `.5`, `2.`, `1e-3`, `1.5f`.

/// The value of a literal.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Number {
    /// An integer.
    Int(u64),
    /// A finite floating-point number.
    Float(f64),
}

/// The errors of literals.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NumberError {
    /// It is malformed.
    Malformed,
    /// An integer of more than 64 bits.
    IntTooLarge,
    /// A number that rounds to infinity.
    FloatTooLarge,
    /// `010`, which is eight in C.
    LeadingZero,
    /// `1f`
    FloatSuffixOnInt,
    /// `1_000`
    Grouped,
}

/// Whether a word (letters, digits and `_`) that starts with a digit is a number, possibly a
/// malformed one. Other words are names: `2LUT`, `1e`.
pub(super) fn is_number(word: &str) -> bool {
    if !word.starts_with(|c: char| c.is_ascii_digit()) {
        return false;
    }
    let suffix = word.trim_start_matches(|c: char| c.is_ascii_digit());
    is_hexadecimal(word)
        || is_int_suffix(suffix)
        || matches!(suffix, "f" | "F")
        || suffix.bytes().all(|byte| byte.is_ascii_digit() || byte == b'_')
        || decode_float(word) != Ok(None)
}

/// Whether the word is digits and an `e`: the start of `1e-3` if a sign and a digit follow.
pub(super) fn awaits_exponent(word: &str) -> bool {
    word.strip_suffix(['e', 'E']).is_some_and(|mantissa| {
        mantissa.bytes().any(|byte| byte.is_ascii_digit())
            && mantissa.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.')
    })
}

/// The value of a literal.
pub(super) fn decode(literal: &str) -> Result<Number, NumberError> {
    if is_hexadecimal(literal) {
        return decode_hexadecimal(&literal[2..]).map(Number::Int);
    }
    let suffix = literal.trim_start_matches(|c: char| c.is_ascii_digit());
    let digits = &literal[..literal.len() - suffix.len()];
    if !digits.is_empty() && is_int_suffix(suffix) {
        return match digits.parse() {
            Ok(_) if digits.len() > 1 && digits.starts_with('0') => Err(NumberError::LeadingZero),
            Ok(value) => Ok(Number::Int(value)),
            Err(_) => Err(NumberError::IntTooLarge),
        };
    }
    if !digits.is_empty() && matches!(suffix, "f" | "F") {
        return Err(NumberError::FloatSuffixOnInt);
    }
    if literal.bytes().all(|byte| byte.is_ascii_digit() || byte == b'_') {
        return Err(NumberError::Grouped);
    }
    decode_float(literal)?.map(Number::Float).ok_or(NumberError::Malformed)
}

fn is_hexadecimal(word: &str) -> bool {
    word.starts_with("0x") || word.starts_with("0X")
}

fn decode_hexadecimal(rest: &str) -> Result<u64, NumberError> {
    let suffix = rest.trim_start_matches(|c: char| c.is_ascii_hexdigit());
    let digits = &rest[..rest.len() - suffix.len()];
    if digits.is_empty() || !is_int_suffix(suffix) {
        return Err(NumberError::Malformed);
    }
    u64::from_str_radix(digits, 16).map_err(|_| NumberError::IntTooLarge)
}

fn is_int_suffix(suffix: &str) -> bool {
    const SUFFIXES: [&str; 8] = ["", "u", "l", "ul", "lu", "ll", "ull", "llu"];
    SUFFIXES.iter().any(|known| known.eq_ignore_ascii_case(suffix))
}

/// The value of a floating-point literal, or nothing if it does not have the form of one.
fn decode_float(literal: &str) -> Result<Option<f64>, NumberError> {
    let body = literal.strip_suffix(['f', 'F', 'l', 'L']).unwrap_or(literal);
    // Rust's `parse` also takes signs and words such as `inf`.
    let numeric = |byte: u8| byte.is_ascii_digit() || matches!(byte, b'.' | b'e' | b'E');
    let plain = body.starts_with(|c: char| c.is_ascii_digit() || c == '.')
        && body.bytes().all(|byte| numeric(byte) || matches!(byte, b'+' | b'-'));
    match body.parse::<f64>() {
        Ok(value) if plain && value.is_finite() => Ok(Some(value)),
        Ok(_) if plain => Err(NumberError::FloatTooLarge),
        _ => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literals_have_the_values_of_c() {
        let int = |text| assert_eq!(decode(text), Ok(Number::Int(31)), "{text}");
        ["31", "31u", "31UL", "31ll", "31LLU", "0x1F", "0X1fu"].into_iter().for_each(int);
        let half = |text| assert_eq!(decode(text), Ok(Number::Float(0.5)), "{text}");
        ["0.5", ".5", "5e-1", "0.5f", "0.05e+1", ".5E0F", "00.5", "0.5L"]
            .into_iter()
            .for_each(half);
        assert_eq!(decode("2."), Ok(Number::Float(2.0)));
        assert_eq!(decode("2.e3"), Ok(Number::Float(2000.0)));
        assert_eq!(decode("0"), Ok(Number::Int(0)));
        assert_eq!(decode("18446744073709551615"), Ok(Number::Int(u64::MAX)));
    }

    #[test]
    fn bad_literals_are_told_apart() {
        let error = |text| decode(text).unwrap_err();
        assert_eq!(error("18446744073709551616"), NumberError::IntTooLarge);
        assert_eq!(error("0x10000000000000000"), NumberError::IntTooLarge);
        assert_eq!(error("1e999"), NumberError::FloatTooLarge);
        assert_eq!(error("010"), NumberError::LeadingZero);
        assert_eq!(error("1f"), NumberError::FloatSuffixOnInt);
        assert_eq!(error("1_000"), NumberError::Grouped);
        for malformed in ["0x", "0xg", "1.5x", "1.2.3", "1.0ff", "1e-5u", "1.e"] {
            assert_eq!(error(malformed), NumberError::Malformed, "{malformed}");
        }
    }

    #[test]
    fn words_are_numbers_or_names() {
        for number in ["1", "1e5", "10u", "3L", "0x1F", "1f", "1_000", "1e5f", "1e999", "0xz"] {
            assert!(is_number(number), "{number}");
        }
        for name in ["2LUT", "1e", "e1", "inf", "nan", "1e5x", "10uu", "_1", "2d"] {
            assert!(!is_number(name), "{name}");
        }
        assert!(awaits_exponent("1e") && awaits_exponent("1.5E") && awaits_exponent(".5e"));
        assert!(!awaits_exponent("e") && !awaits_exponent("ae") && !awaits_exponent(".e"));
    }
}
