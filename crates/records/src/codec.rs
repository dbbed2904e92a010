//! Lists of small numbers as bytes: seven bits each, the low ones first, the eighth says that more
//! follow (LEB128). A point of twelve parameters takes twelve to fifteen bytes.

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

/// The numbers of a point as records keep them.
///
/// ```
/// assert_eq!(tensorwright_records::encode_point(&[1, 300]), [1, 0xac, 2]);
/// ```
#[must_use]
pub fn encode_point(point: &[u32]) -> Vec<u8> {
    encode(point.iter().map(|value| u64::from(*value)))
}

/// The point of bytes that [`encode_point`] made; `None` if they are something else.
#[must_use]
pub fn decode_point(bytes: &[u8]) -> Option<Vec<u32>> {
    decode(bytes)?.into_iter().map(|value| u32::try_from(value).ok()).collect()
}

/// Numbers from bytes; `None` if they are not what [`encode`] makes.
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
