//! LEB128: encodes lists of small numbers as bytes.
//!
//! Each byte has seven bits, the low ones first; the eighth bit says that more follow. A point of
//! twelve parameters takes twelve to fifteen bytes.

/// Numbers as bytes.
pub(crate) fn encode(numbers: impl IntoIterator<Item = u64>) -> Vec<u8> {
    let mut bytes = Vec::new();
    for mut number in numbers {
        while number >= 0x80 {
            bytes.push((number & 0x7f) as u8 | 0x80);
            number >>= 7;
        }
        bytes.push(number as u8);
    }
    bytes
}

/// Encodes a point as in the records.
///
/// ```
/// assert_eq!(tensorwright_records::encode_point(&[1, 300]), [1, 0xac, 2]);
/// ```
#[must_use]
pub fn encode_point(point: &[u32]) -> Vec<u8> {
    encode(point.iter().map(|value| u64::from(*value)))
}

/// Decodes a point from [`encode_point`]; `None` if the bytes are malformed.
#[must_use]
pub fn decode_point(bytes: &[u8]) -> Option<Vec<u32>> {
    decode(bytes)?.into_iter().map(|value| u32::try_from(value).ok()).collect()
}

/// Decodes numbers from [`encode`]; `None` if the bytes are malformed.
pub(crate) fn decode(bytes: &[u8]) -> Option<Vec<u64>> {
    let mut numbers = Vec::new();
    let (mut number, mut shift) = (0_u64, 0);
    for byte in bytes {
        let bits = u64::from(byte & 0x7f);
        if shift > 63 || (shift == 63 && bits > 1) {
            return None;
        }
        number |= bits << shift;
        shift += 7;
        if byte & 0x80 == 0 {
            numbers.push(number);
            (number, shift) = (0, 0);
        }
    }
    (shift == 0).then_some(numbers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_back() {
        let numbers = vec![0, 1, 127, 128, 300, u64::from(u32::MAX), u64::MAX];
        assert_eq!(decode(&encode(numbers.clone())), Some(numbers));
        assert_eq!(decode(&[]), Some(vec![]));
    }

    #[test]
    fn other_bytes_are_refused() {
        assert_eq!(decode(&[0x80]), None, "ends in the middle");
        assert_eq!(decode(&[0xff; 11]), None, "too large");
        assert_eq!(decode(&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2]), None);
    }
}
