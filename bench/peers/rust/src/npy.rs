//! The `.npy` files that the driver writes and reads: `float32`, row-major, version 1.

use std::fs;
use std::path::Path;

use crate::Result;

/// The elements of a file.
pub(crate) fn read(path: &Path) -> Result<Vec<f32>> {
    let bytes = fs::read(path)?;
    let length = bytes.get(8..10).ok_or("the file is too short")?;
    let start = 10 + usize::from(u16::from_le_bytes([length[0], length[1]]));
    let data = bytes.get(start..).ok_or("the file is too short")?;
    Ok(data.chunks_exact(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect())
}

/// Writes elements as a vector; the driver knows the shape.
pub(crate) fn write(path: &Path, elements: &[f32]) -> Result<()> {
    let mut header =
        format!("{{'descr': '<f4', 'fortran_order': False, 'shape': ({},), }}", elements.len());
    while !(10 + header.len() + 1).is_multiple_of(64) {
        header.push(' ');
    }
    header.push('\n');
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend(u16::try_from(header.len())?.to_le_bytes());
    bytes.extend(header.as_bytes());
    bytes.extend(elements.iter().flat_map(|element| element.to_le_bytes()));
    Ok(fs::write(path, bytes)?)
}
