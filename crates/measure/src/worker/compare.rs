//! Compares every output element with the expected values at memory speed.

use std::fs::File;
use std::io;

use tensorwright::{Buffer, DType};

use super::memory::ReadOnlyRegion;
use crate::shared::{Layout, Part};

/// Elements compared together: if one is suspicious, all are examined closely.
const BLOCK: usize = 1024;

/// The expected values of an output.
#[derive(Debug)]
pub(super) struct Tensor {
    pub(super) dtype: DType,
    pub(super) values: ReadOnlyRegion,
    pub(super) tolerances: ReadOnlyRegion,
}

impl Tensor {
    /// All outputs of a program, from the shared file.
    pub(super) fn outputs(layout: &Layout, shared: &File) -> io::Result<Vec<Self>> {
        let read =
            |part: &Part| ReadOnlyRegion::filled(part.bytes, |bytes| part.read(shared, bytes));
        let outputs = layout.outputs.iter().map(|(values, tolerances)| {
            Ok(Self { dtype: values.dtype, values: read(values)?, tolerances: read(tolerances)? })
        });
        outputs.collect()
    }
}

/// How a tensor differs from the expected values by more than the tolerance times a factor; `None`
/// if it does not.
pub(super) fn difference(expected: &Tensor, actual: &[u8], factor: f64) -> Option<String> {
    let Tensor { dtype, values, tolerances } = expected;
    find_difference(*dtype, values.bytes(), tolerances.bytes(), actual, factor as f32)
}

fn find_difference(
    dtype: DType,
    values: &[u8],
    tolerances: &[u8],
    actual: &[u8],
    factor: f32,
) -> Option<String> {
    let size = dtype.bytes();
    let blocks = values.chunks(BLOCK * size).zip(actual.chunks(BLOCK * size));
    let blocks = blocks.zip(tolerances.chunks(BLOCK * size_of::<f32>())).enumerate();
    let (mut count, mut first) = (0, None);
    for (number, ((values, actual), tolerances)) in blocks {
        if is_clearly_right(dtype, values, actual, tolerances, factor) {
            continue;
        }
        let (wrong, position) = examine(dtype, values, actual, tolerances, factor);
        count += wrong;
        first = first.or(position.map(|(at, text)| (number * BLOCK + at, text)));
    }
    let (position, text) = first?;
    let total = values.len() / size;
    Some(format!("{count} of {total} elements differ; the first is number {position}: {text}"))
}

/// The quick check, one loop that vectorises: `true` is certain, `false` is not.
fn is_clearly_right(
    dtype: DType,
    values: &[u8],
    actual: &[u8],
    tolerances: &[u8],
    factor: f32,
) -> bool {
    let (tolerances, _) = tolerances.as_chunks::<4>();
    macro_rules! within {
        ($type:ty, $size:literal) => {{
            let (values, actual) = (values.as_chunks::<$size>().0, actual.as_chunks::<$size>().0);
            let triples = values.iter().zip(actual).zip(tolerances);
            triples.fold(true, |right, ((value, actual), tolerance)| {
                let distance = <$type>::from_le_bytes(*value) - <$type>::from_le_bytes(*actual);
                // NaN is never within the tolerance.
                right & (distance.abs() <= <$type>::from(factor * f32::from_le_bytes(*tolerance)))
            })
        }};
    }
    match (dtype, dtype.narrow_format()) {
        (DType::Float, _) => within!(f32, 4),
        (DType::Double, _) => within!(f64, 8),
        (_, Some(format)) if dtype.bytes() == 1 => {
            let number = |[byte]: [u8; 1]| format.decode(u32::from(byte));
            narrow_is_clearly_right(values, actual, tolerances, factor, number)
        }
        (_, Some(format)) => {
            let number = |bytes| format.decode(u32::from(u16::from_le_bytes(bytes)));
            narrow_is_clearly_right(values, actual, tolerances, factor, number)
        }
        _ => values == actual,
    }
}

/// The quick check of a storage-only type of `N` bytes.
fn narrow_is_clearly_right<const N: usize>(
    values: &[u8],
    actual: &[u8],
    tolerances: &[[u8; 4]],
    factor: f32,
    number: impl Fn([u8; N]) -> f32,
) -> bool {
    let (values, actual) = (values.as_chunks::<N>().0, actual.as_chunks::<N>().0);
    let triples = values.iter().zip(actual).zip(tolerances);
    triples.fold(true, |right, ((value, actual), tolerance)| {
        let distance = number(*value) - number(*actual);
        right & (distance.abs() <= factor * f32::from_le_bytes(*tolerance))
    })
}

/// The exact check: how many are wrong, and the first of them.
fn examine(
    dtype: DType,
    values: &[u8],
    actual: &[u8],
    tolerances: &[u8],
    factor: f32,
) -> (usize, Option<(usize, String)>) {
    let length = [(values.len() / dtype.bytes()) as i64];
    let tensor = |bytes| Buffer::from_bytes(dtype, &length, bytes);
    let (Ok(values), Ok(actual)) = (tensor(values), tensor(actual)) else {
        return (1, Some((0, format!("not a value of type {dtype}"))));
    };
    let (tolerances, _) = tolerances.as_chunks::<4>();
    let (mut count, mut first) = (0, None);
    let triples = values.values().zip(actual.values()).zip(tolerances).enumerate();
    for (position, ((value, actual), tolerance)) in triples {
        let allowed = f64::from(factor * f32::from_le_bytes(*tolerance));
        if value.distance(actual) <= allowed {
            continue;
        }
        count += 1;
        if first.is_none() {
            let text = format!("{actual}, expected {value}, within {allowed:.3e}");
            first = Some((position, text));
        }
    }
    (count, first)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(dtype: DType, values: &[f64], actual: &[f64], tolerance: f32) -> Option<String> {
        let shape = [values.len() as i64];
        let bytes = |values| Buffer::from_f64s(dtype, &shape, values).unwrap().to_bytes();
        let tolerances: Vec<u8> = values.iter().flat_map(|_| tolerance.to_le_bytes()).collect();
        find_difference(dtype, &bytes(values), &tolerances, &bytes(actual), 1.0)
    }

    #[test]
    fn equal_tensors_of_every_type_do_not_differ_and_others_do() {
        for dtype in &DType::ALL {
            let values: Vec<f64> = (0..3000).map(|i| f64::from(i % 2)).collect();
            assert_eq!(check(*dtype, &values, &values, 0.0), None, "{dtype}");
            let mut wrong = values.clone();
            wrong[2047] = 1.0 - wrong[2047];
            let text = check(*dtype, &values, &wrong, 0.0).unwrap();
            assert!(text.starts_with("1 of 3000 elements differ; the first is number 2047"));
        }
    }

    #[test]
    fn tolerances_and_special_values() {
        for dtype in [DType::Float, DType::Double, DType::Half] {
            assert_eq!(check(dtype, &[1.0, 2.0], &[1.25, 1.75], 0.5), None);
            assert!(check(dtype, &[1.0, 2.0], &[1.25, 1.25], 0.5).is_some());
            let special = [f64::NAN, f64::INFINITY, 0.0];
            assert_eq!(check(dtype, &special, &special, 0.0), None);
            assert_eq!(check(dtype, &special, &[1.0, f64::NAN, 5.0], f32::INFINITY), None);
            assert!(check(dtype, &[1.0], &[f64::NAN], 10.0).is_some());
            assert!(check(dtype, &[f64::NAN], &[1.0], 10.0).is_some());
        }
        assert!(find_difference(DType::Bool, &[1], &[0; 4], &[254], 1.0).is_some());
    }
}
