//! Reads and writes NumPy's `.npy` files, versions 1 to 3.
//!
//! Reading is strict: the header must be exactly what NumPy writes (up to blanks and key order),
//! and the length of the data must match it. `bfloat16` has no `.npy` type; it is written as
//! `float32`, which holds it exactly.

use std::fmt;

use tensorwright_lang::dtype::DType;

use crate::buffer::{Buffer, BufferError};

/// The longest header accepted, in bytes. NumPy's own limit is 10000.
const MAX_HEADER: usize = 1 << 16;

/// The first bytes that contain any accepted header.
pub const MAX_BEGINNING: usize = MAGIC.len() + 2 + 4 + MAX_HEADER;

/// The most dimensions, as in NumPy.
const MAX_RANK: usize = 64;

const MAGIC: &[u8] = b"\x93NUMPY";

/// An invalid or unsupported `.npy` file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NpyError(String);

impl fmt::Display for NpyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for NpyError {}

impl From<BufferError> for NpyError {
    fn from(error: BufferError) -> Self {
        NpyError(error.to_string())
    }
}

/// The length of a `.npy` file according to its first bytes: all of them, or [`MAX_BEGINNING`].
///
/// # Errors
/// If they do not start a supported `.npy` file.
pub fn file_bytes(beginning: &[u8]) -> Result<u64, NpyError> {
    let (text, data) = split(beginning)?;
    let header = HeaderParser { rest: text }.header()?;
    let Element { dtype, .. } = element(&header.descr)?;
    let elements = header.shape.iter().try_fold(1_u64, |product, extent| {
        u64::try_from(*extent).ok().and_then(|extent| product.checked_mul(extent))
    });
    let bytes = elements.and_then(|elements| elements.checked_mul(dtype.bytes() as u64));
    let whole = bytes.and_then(|bytes| bytes.checked_add((beginning.len() - data.len()) as u64));
    whole.ok_or_else(|| {
        NpyError("the header says that more bytes follow than can be addressed".to_owned())
    })
}

/// Reads a `.npy` file.
///
/// # Errors
/// If the bytes are not a `.npy` file, have the wrong length, or have an unsupported element type.
pub fn decode(bytes: &[u8]) -> Result<Buffer, NpyError> {
    let (text, data) = split(bytes)?;
    let header = HeaderParser { rest: text }.header()?;
    let Element { dtype, big_endian } = element(&header.descr)?;
    let elements = header.shape.iter().try_fold(1_usize, |product, extent| {
        usize::try_from(*extent).ok().and_then(|extent| product.checked_mul(extent))
    });
    let expected = elements.and_then(|elements| elements.checked_mul(dtype.bytes()));
    if expected != Some(data.len()) {
        let needed = expected.map_or("more than can be addressed".to_owned(), |n| n.to_string());
        return Err(NpyError(format!(
            "the header says that {needed} bytes of data follow, and there are {}: the file is \
             cut short or damaged",
            data.len()
        )));
    }
    if !big_endian && !header.fortran_order {
        return Ok(Buffer::from_bytes(dtype, &header.shape, data)?);
    }
    let mut data = copy(data)?;
    if big_endian {
        data.chunks_exact_mut(dtype.bytes()).for_each(<[u8]>::reverse);
    }
    if !header.fortran_order {
        return Ok(Buffer::from_bytes(dtype, &header.shape, &data)?);
    }
    // Column-major data is row-major data of the transposed tensor.
    let transposed: Vec<i64> = header.shape.iter().rev().copied().collect();
    let source = Buffer::from_bytes(dtype, &transposed, &data)?;
    let target = Buffer::zeros(dtype, &header.shape)?;
    Ok(transpose(&source, target))
}

/// Copies bytes; out of memory is an error.
fn copy(bytes: &[u8]) -> Result<Vec<u8>, NpyError> {
    let mut copy = Vec::new();
    let reserved = copy.try_reserve_exact(bytes.len());
    reserved.map_err(|_| NpyError(format!("there is no memory for {} bytes", bytes.len())))?;
    copy.extend_from_slice(bytes);
    Ok(copy)
}

/// Copies a tensor into one with the dimensions in the opposite order.
fn transpose(source: &Buffer, mut target: Buffer) -> Buffer {
    let mut index = vec![0_i64; target.shape().len()];
    for position in 0..target.len() {
        let value = source.position(&index).and_then(|from| source.get(from));
        if let Some(value) = value {
            target.set(position, value);
        }
        // The source index varies fastest in its first dimension.
        for (i, extent) in index.iter_mut().zip(source.shape()) {
            *i += 1;
            if *i < *extent {
                break;
            }
            *i = 0;
        }
    }
    target
}

/// The NumPy type for a type: its own, or a wider one.
#[must_use]
pub fn stored_as(dtype: DType) -> DType {
    if dtype.row().numpy.is_some() { dtype } else { dtype.computed_in() }
}

/// Writes a version 1.0 `.npy` file, with elements of the type [`stored_as`].
///
/// # Errors
/// If the buffer has too many dimensions, or the bytes do not fit in memory.
pub fn encode(buffer: &Buffer) -> Result<Vec<u8>, NpyError> {
    let stored = stored_as(buffer.dtype());
    if stored != buffer.dtype() {
        return encode(&buffer.convert(stored)?);
    }
    if buffer.shape().len() > MAX_RANK {
        let rank = buffer.shape().len();
        return Err(NpyError(format!("{rank} dimensions are more than NumPy's {MAX_RANK}")));
    }
    let mut shape = String::new();
    for (dimension, extent) in buffer.shape().iter().enumerate() {
        let blank = if dimension == 0 { "" } else { " " };
        shape.push_str(&format!("{blank}{extent},"));
    }
    // A one-element tuple keeps its comma.
    if buffer.shape().len() > 1 {
        shape.pop();
    }
    let descr = descr(buffer.dtype());
    let mut header =
        format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': ({shape}), }}");
    // The data starts at a multiple of 64 bytes, after a newline.
    let before = MAGIC.len() + 4;
    while !(before + header.len() + 1).is_multiple_of(64) {
        header.push(' ');
    }
    header.push('\n');
    let size = before + header.len() + buffer.len() * buffer.dtype().bytes();
    let mut bytes = Vec::new();
    bytes
        .try_reserve_exact(size)
        .map_err(|_| NpyError(format!("there is no memory for a file of {size} bytes")))?;
    bytes.extend_from_slice(MAGIC);
    bytes.extend_from_slice(&[1, 0]);
    bytes.extend_from_slice(&(header.len() as u16).to_le_bytes());
    bytes.extend_from_slice(header.as_bytes());
    buffer.visit_bytes(|element| bytes.extend_from_slice(element));
    Ok(bytes)
}

/// The text of the header, and the data after it.
fn split(bytes: &[u8]) -> Result<(&str, &[u8]), NpyError> {
    let cut = || NpyError("the file ends inside its header: it is cut short".to_owned());
    let Some(rest) = bytes.strip_prefix(MAGIC) else {
        let message = "this is not a .npy file: it does not start with NumPy's magic bytes";
        let zip = bytes.starts_with(b"PK").then_some(
            "; it looks like an .npz archive: save a single array with `numpy.save` instead",
        );
        return Err(NpyError(format!("{message}{}", zip.unwrap_or_default())));
    };
    let (version, rest) = rest.split_at_checked(2).ok_or_else(cut)?;
    let (length, rest) = match version {
        [1, 0] => {
            let (length, rest) = rest.split_first_chunk::<2>().ok_or_else(cut)?;
            (usize::from(u16::from_le_bytes(*length)), rest)
        }
        [2 | 3, 0] => {
            let (length, rest) = rest.split_first_chunk::<4>().ok_or_else(cut)?;
            (u32::from_le_bytes(*length) as usize, rest)
        }
        other => {
            let version: Vec<String> = other.iter().map(u8::to_string).collect();
            let version = version.join(".");
            return Err(NpyError(format!(".npy version {version} is not known, only 1 to 3")));
        }
    };
    if length > MAX_HEADER {
        return Err(NpyError(format!("a header of {length} bytes is over {MAX_HEADER}")));
    }
    let (header, data) = rest.split_at_checked(length).ok_or_else(cut)?;
    let text = std::str::from_utf8(header)
        .map_err(|_| NpyError("the header is not text: the file is damaged".to_owned()))?;
    Ok((text, data))
}

struct Element {
    dtype: DType,
    big_endian: bool,
}

/// The type of a `descr` such as `<f4`.
fn element(descr: &str) -> Result<Element, NpyError> {
    let (order, code) = descr.split_at_checked(1).unwrap_or(("", ""));
    let coded = |dtype: &DType| dtype.npy_code().is_some_and(|known| known == code);
    let Some(dtype) = DType::ALL.into_iter().find(coded) else {
        return Err(NpyError(format!(
            "elements of NumPy type `{descr}` are not supported: save the array as bool, \
             int8 to int64, uint8 to uint64, float16, float32 or float64 (as with \
             `array.astype('float32')`)"
        )));
    };
    match order {
        "<" | "=" => Ok(Element { dtype, big_endian: false }),
        "|" if dtype.bytes() == 1 => Ok(Element { dtype, big_endian: false }),
        ">" => Ok(Element { dtype, big_endian: true }),
        _ => Err(NpyError(format!("`{descr}` does not say in which order its bytes are"))),
    }
}

/// NumPy's name of a type that [`stored_as`] made.
fn descr(dtype: DType) -> String {
    let order = if dtype.bytes() == 1 { '|' } else { '<' };
    format!("{order}{}", dtype.npy_code().unwrap_or_default())
}

#[derive(Debug, PartialEq)]
struct Header {
    descr: String,
    fortran_order: bool,
    shape: Vec<i64>,
}

/// Reads the header, a Python dictionary such as
/// `{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }`.
struct HeaderParser<'a> {
    rest: &'a str,
}

impl HeaderParser<'_> {
    fn header(mut self) -> Result<Header, NpyError> {
        let (mut descr, mut fortran_order, mut shape) = (None, None, None);
        self.expect("{")?;
        while !self.accept("}") {
            let key = self.string()?;
            self.expect(":")?;
            let repeated = match key.as_str() {
                "descr" => descr.replace(self.descr()?).is_some(),
                "fortran_order" => fortran_order.replace(self.boolean()?).is_some(),
                "shape" => shape.replace(self.tuple()?).is_some(),
                _ => return Err(self.error(&format!("`{key}` is not a key of such headers"))),
            };
            if repeated {
                return Err(self.error(&format!("`{key}` is there twice")));
            }
            if !self.accept(",") {
                self.expect("}")?;
                break;
            }
        }
        if !self.rest.trim().is_empty() {
            return Err(self.error("something follows the dictionary"));
        }
        match (descr, fortran_order, shape) {
            (Some(descr), Some(fortran_order), Some(shape)) => {
                Ok(Header { descr, fortran_order, shape })
            }
            _ => Err(self.error("`descr`, `fortran_order` or `shape` is missing")),
        }
    }

    fn error(&self, what: &str) -> NpyError {
        NpyError(format!("the header of the .npy file is malformed: {what}"))
    }

    fn accept(&mut self, token: &str) -> bool {
        let trimmed = self.rest.trim_start();
        let Some(rest) = trimmed.strip_prefix(token) else {
            return false;
        };
        self.rest = rest;
        true
    }

    fn expect(&mut self, token: &str) -> Result<(), NpyError> {
        if self.accept(token) {
            return Ok(());
        }
        let found: String = self.rest.trim_start().chars().take(12).collect();
        Err(self.error(&format!("expected `{token}`, found `{found}`")))
    }

    fn string(&mut self) -> Result<String, NpyError> {
        let quote = if self.accept("\"") { '"' } else { '\'' };
        if quote == '\'' {
            self.expect("'")?;
        }
        let Some((text, rest)) = self.rest.split_once(quote) else {
            return Err(self.error("a string is not closed"));
        };
        if text.contains('\\') || text.len() > 64 {
            return Err(self.error("a string is not one that NumPy writes"));
        }
        let text = text.to_owned();
        self.rest = rest;
        Ok(text)
    }

    fn descr(&mut self) -> Result<String, NpyError> {
        if self.rest.trim_start().starts_with('[') {
            let message = "arrays of records are not supported: save one field as a plain array";
            return Err(NpyError(message.to_owned()));
        }
        self.string()
    }

    fn boolean(&mut self) -> Result<bool, NpyError> {
        if self.accept("True") {
            return Ok(true);
        }
        self.expect("False")?;
        Ok(false)
    }

    fn tuple(&mut self) -> Result<Vec<i64>, NpyError> {
        let mut shape = Vec::new();
        self.expect("(")?;
        while !self.accept(")") {
            if shape.len() == MAX_RANK {
                return Err(self.error(&format!("there are more than {MAX_RANK} dimensions")));
            }
            shape.push(self.extent()?);
            if !self.accept(",") {
                self.expect(")")?;
                // `(3)` is a number in Python, not a tuple.
                if shape.len() == 1 {
                    return Err(self.error("the shape is not a tuple"));
                }
                break;
            }
        }
        Ok(shape)
    }

    fn extent(&mut self) -> Result<i64, NpyError> {
        let trimmed = self.rest.trim_start();
        let end = trimmed.find(|c: char| !c.is_ascii_digit()).unwrap_or(trimmed.len());
        let (digits, rest) = trimmed.split_at(end);
        let extent = digits.parse().map_err(|_| {
            self.error(&format!("an extent of the shape is not a number: `{digits}`"))
        })?;
        // Python 2 wrote long integers as `3L`.
        self.rest = rest.strip_prefix('L').unwrap_or(rest);
        Ok(extent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::random;

    /// A version 1 file with a given header.
    fn file(header: &str, data: &[u8]) -> Vec<u8> {
        let mut bytes = [MAGIC, &[1, 0], &(header.len() as u16).to_le_bytes()].concat();
        bytes.extend_from_slice(header.as_bytes());
        bytes.extend_from_slice(data);
        bytes
    }

    fn message(bytes: &[u8]) -> String {
        decode(bytes).unwrap_err().to_string()
    }

    #[test]
    fn every_type_and_rank_round_trips() {
        for dtype in DType::ALL {
            for shape in [&[][..], &[5], &[2, 3], &[2, 1, 4], &[0, 3]] {
                let buffer = random(dtype, shape, "A", 1).unwrap();
                let decoded = decode(&encode(&buffer).unwrap()).unwrap();
                let expected = stored_as(dtype);
                assert_eq!(decoded.dtype(), expected);
                assert_eq!(decoded.convert(dtype).unwrap(), buffer);
            }
        }
    }

    #[test]
    fn files_are_the_ones_that_numpy_writes() {
        let bytes = encode(&Buffer::from(vec![1_i16, -2])).unwrap();
        let header = "{'descr': '<i2', 'fortran_order': False, 'shape': (2,), }";
        assert!(bytes.starts_with(b"\x93NUMPY\x01\x00\x76\x00"));
        assert_eq!(std::str::from_utf8(&bytes[10..127]).unwrap().trim_end(), header);
        assert_eq!(&bytes[127..], b"\n\x01\x00\xfe\xff");
        let scalar = encode(&Buffer::from(1_u8)).unwrap();
        assert!(String::from_utf8_lossy(&scalar).contains("'shape': (), }"));
        let matrix = encode(&Buffer::zeros(DType::Float, &[2, 3]).unwrap()).unwrap();
        assert!(String::from_utf8_lossy(&matrix).contains("'shape': (2, 3), }"));
    }

    #[test]
    fn byte_order_fortran_order_and_versions() {
        let header = "{'descr': '>i2', 'fortran_order': True, 'shape': (2, 3)}\n";
        let data = [0, 1, 0, 2, 0, 3, 0, 4, 0, 5, 0, 6];
        let decoded = decode(&file(header, &data)).unwrap();
        assert_eq!(decoded.as_slice::<i16>(), Some([1, 3, 5, 2, 4, 6].as_slice()));
        assert_eq!(decoded.shape(), [2, 3]);
        for version in [2, 3] {
            let mut bytes = [MAGIC, &[version, 0]].concat();
            bytes.extend_from_slice(&(header.len() as u32).to_le_bytes());
            bytes.extend_from_slice(header.as_bytes());
            bytes.extend_from_slice(&data);
            assert_eq!(decode(&bytes).unwrap(), decoded);
        }
        let cube = "{\"shape\": (2, 2, 3), 'fortran_order': True, 'descr': '|u1'}";
        let data: Vec<u8> = (0..12).collect();
        let decoded = decode(&file(cube, &data)).unwrap();
        for (i, j, k) in [(0, 0, 0), (1, 0, 0), (0, 1, 0), (1, 1, 2), (0, 1, 2)] {
            let expected = i128::from(i + 2 * j + 4 * k);
            assert_eq!(decoded.at(&[i, j, k]), Some(crate::Value::Integer(expected)));
        }
    }

    #[test]
    fn what_is_wrong_is_said() {
        assert!(message(b"hello").contains("does not start with"));
        assert!(message(b"PK\x03\x04").contains("numpy.save"));
        assert!(message(b"\x93NUMPY\x04\x00").contains("version 4.0"));
        let of = |descr: &str, shape: &str| {
            format!("{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}\n")
        };
        assert!(message(&file(&of("'<c8'", "()"), &[0; 8])).contains("astype"));
        assert!(message(&file(&of("[('x', '<f4')]", "()"), &[0; 4])).contains("records"));
        assert!(message(&file(&of("'<f4'", "(2,)"), &[0; 7])).contains("8 bytes"));
        assert!(message(&file(&of("'<f4'", "(2,)"), &[0; 9])).contains("8 bytes"));
        assert!(message(&file(&of("'<f4'", "(2)"), &[0; 8])).contains("tuple"));
        assert!(message(&file(&of("'<f4'", "(-2,)"), &[0; 8])).contains("not a number"));
        assert!(message(&file(&of("'|f4'", "(2,)"), &[0; 8])).contains("order"));
        assert!(message(&file(&of("'|b1'", "(2,)"), &[0, 2])).contains("neither 0 nor 1"));
        let huge = of("'<f4'", "(9223372036854775807, 9223372036854775807)");
        assert!(message(&file(&huge, &[])).contains("more than can be addressed"));
    }

    #[test]
    fn damaged_files_are_errors_and_never_panics() {
        let good = encode(&random(DType::Int32, &[3, 2], "A", 1).unwrap()).unwrap();
        for length in 0..good.len() {
            assert!(decode(&good[..length]).is_err(), "cut at {length}");
        }
        for position in 0..good.len() {
            for byte in [0, 1, b'\'', b'(', b')', b'9', b'{', b',', 0x80, 0xff] {
                let mut bytes = good.clone();
                bytes[position] = byte;
                // Some changes are harmless; none may panic.
                let _ = decode(&bytes);
            }
        }
    }
}
