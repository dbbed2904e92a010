//! Outputs of a run, their tolerances, and comparison with other results.

use std::fmt;

use tensorwright_lang::dtype::DType;

use crate::buffer::{Buffer, ShapeText};
use crate::element::Value;

/// The results of a run.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Run {
    /// The outputs, in the order of the signature.
    pub outputs: Vec<Output>,
}

impl Run {
    /// Wraps results that were computed elsewhere.
    #[must_use]
    pub fn new(outputs: Vec<Output>) -> Self {
        Self { outputs }
    }

    /// The output of a name.
    #[must_use]
    pub fn output(&self, name: &str) -> Option<&Output> {
        self.outputs.iter().find(|output| output.name == name)
    }
}

/// One result.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Output {
    /// Its name in the signature.
    pub name: String,
    /// Its elements.
    pub buffer: Buffer,
    /// The tolerance of each element; see [`tolerance`](crate::tolerance). Infinite where no bound
    /// is known.
    pub tolerance: Vec<f64>,
}

/// How a buffer differs from the expected output.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Mismatch {
    /// The element types differ.
    Type {
        /// The type of the output.
        expected: DType,
        /// The type of the other buffer.
        actual: DType,
    },
    /// The shapes differ.
    Shape {
        /// The shape of the output.
        expected: Vec<i64>,
        /// The shape of the other buffer.
        actual: Vec<i64>,
    },
    /// Some elements differ by more than their tolerance.
    Elements {
        /// The number of such elements.
        count: usize,
        /// The number of all elements.
        total: usize,
        /// The index of the worst one, which exceeds its tolerance by the largest factor.
        index: Vec<i64>,
        /// The expected value.
        expected: Value,
        /// The actual value.
        actual: Value,
        /// The tolerance.
        allowed: f64,
    },
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Mismatch::Type { expected, actual } => {
                write!(f, "the elements are {actual}, expected {expected}")
            }
            Mismatch::Shape { expected, actual } => {
                let (actual, expected) = (ShapeText(actual), ShapeText(expected));
                write!(f, "the shape is {actual}, expected {expected}")
            }
            Mismatch::Elements { count, total, index, expected, actual, allowed } => {
                let index = ShapeText(index);
                write!(f, "{count} of {total} elements differ; the worst is at {index}: ")?;
                write!(f, "{actual}, expected {expected}, within {allowed:.3e}")
            }
        }
    }
}

/// A one-line summary of an output.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct Summary {
    /// The 64-bit FNV-1a hash of the little-endian bytes.
    pub checksum: u64,
    /// The least non-NaN element, if there is one.
    pub min: Option<Value>,
    /// The greatest non-NaN element, if there is one.
    pub max: Option<Value>,
    /// The sum of the elements.
    pub sum: f64,
}

impl Output {
    /// Creates an output that was computed elsewhere, with one tolerance per element.
    #[must_use]
    pub fn new(name: String, buffer: Buffer, tolerance: Vec<f64>) -> Self {
        Self { name, buffer, tolerance }
    }

    /// Compares another evaluation of the same output within the tolerance; `None` if they agree.
    /// NaN equals NaN, and an infinity equals itself.
    #[must_use]
    pub fn mismatch(&self, other: &Buffer) -> Option<Mismatch> {
        self.mismatch_within(other, 1.0)
    }

    /// Like [`Output::mismatch`], for an evaluation whose rounding errors may exceed the bounds by
    /// a factor. For a rewrite that computes other intermediate values the factor is an estimate;
    /// [`Output::allow_for`] bounds its errors.
    #[must_use]
    pub fn mismatch_within(&self, other: &Buffer, growth: f64) -> Option<Mismatch> {
        let (expected, actual) = (self.buffer.dtype(), other.dtype());
        if expected != actual {
            return Some(Mismatch::Type { expected, actual });
        }
        if self.buffer.shape() != other.shape() {
            let (expected, actual) = (self.buffer.shape().to_vec(), other.shape().to_vec());
            return Some(Mismatch::Shape { expected, actual });
        }
        let mut count = 0;
        let mut worst: Option<(f64, usize, Value, Value, f64)> = None;
        let pairs = self.buffer.values().zip(other.values()).zip(&self.tolerance);
        for (position, ((expected, actual), allowed)) in pairs.enumerate() {
            let distance = expected.distance(actual);
            let allowed = growth * allowed;
            if distance <= allowed {
                continue;
            }
            count += 1;
            let factor = distance / allowed;
            if worst.is_none_or(|(most, ..)| factor > most) {
                worst = Some((factor, position, expected, actual, allowed));
            }
        }
        let (_, position, expected, actual, allowed) = worst?;
        let (index, total) = (self.buffer.index(position), self.buffer.len());
        Some(Mismatch::Elements { count, total, index, expected, actual, allowed })
    }

    /// Widens the tolerance for a rewritten program that computes the same result via other
    /// intermediate values, given the reference output of that program on the same inputs.
    ///
    /// Without rounding both have the same result `x`; our result is within `e` of it and the
    /// rewritten one's within `e'`, and any evaluation of the rewritten program is within `e'` of
    /// the latter. So it is within `e + 2 e'` of ours. Where the rewritten program has or may have
    /// an infinity or a NaN, there is no bound.
    pub fn allow_for(&mut self, rewritten: &Output) {
        let mut others = rewritten.buffer.values().zip(&rewritten.tolerance);
        for tolerance in &mut self.tolerance {
            *tolerance = match others.next() {
                Some((value, error)) if value.as_f64().is_finite() => *tolerance + 2.0 * error,
                _ => f64::INFINITY,
            };
        }
    }

    /// Summarizes the output in a line.
    #[must_use]
    pub fn summary(&self) -> Summary {
        summarize(&self.buffer)
    }
}

/// Summarizes a buffer in a line.
#[must_use]
pub fn summarize(buffer: &Buffer) -> Summary {
    let numbers = || buffer.values().filter(|value| !value.as_f64().is_nan());
    let order = |a: &Value, b: &Value| match (a, b) {
        (Value::Integer(a), Value::Integer(b)) => a.cmp(b),
        (a, b) => a.as_f64().total_cmp(&b.as_f64()),
    };
    let mut checksum = FNV_START;
    buffer.visit_bytes(|element| checksum = fnv1a(checksum, element));
    Summary {
        checksum,
        min: numbers().min_by(order),
        max: numbers().max_by(order),
        sum: buffer.values().map(Value::as_f64).sum(),
    }
}

/// The initial value of the 64-bit FNV-1a hash.
pub(crate) const FNV_START: u64 = 0xcbf2_9ce4_8422_2325;

/// The 64-bit FNV-1a hash, continued with more bytes.
pub(crate) fn fnv1a(hash: u64, bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(hash, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn output(values: &[f64], tolerance: &[f64]) -> Output {
        let shape = [1, values.len() as i64];
        let buffer = Buffer::from_f64s(DType::Float, &shape, values).unwrap();
        Output { name: "C".into(), buffer, tolerance: tolerance.to_vec() }
    }

    fn floats(values: &[f64]) -> Buffer {
        output(values, &[]).buffer
    }

    #[test]
    fn the_worst_element_is_reported() {
        let expected = output(&[1.0, 2.0, 3.0], &[0.5, 0.25, 0.0]);
        assert_eq!(expected.mismatch(&floats(&[1.5, 1.75, 3.0])), None);
        let mismatch = expected.mismatch(&floats(&[2.0, 4.0, 3.0])).unwrap();
        assert_eq!(
            mismatch.to_string(),
            "2 of 3 elements differ; the worst is at (0, 1): 4.0, expected 2.0, \
             within 2.500e-1"
        );
        assert!(expected.mismatch(&floats(&[1.0, 2.0, 3.0000002])).is_some(), "zero tolerance");
        assert!(matches!(expected.mismatch(&floats(&[1.0])), Some(Mismatch::Shape { .. })));
        let doubles = Buffer::from(vec![1.0_f64]);
        assert!(matches!(expected.mismatch(&doubles), Some(Mismatch::Type { .. })));
    }

    #[test]
    fn special_values_equal_themselves_only() {
        let special = [f64::NAN, f64::INFINITY, 0.0];
        let expected = output(&special, &[0.0, 0.0, 0.0]);
        assert_eq!(expected.mismatch(&floats(&special)), None);
        assert_eq!(expected.mismatch(&floats(&[f64::NAN, f64::INFINITY, -0.0])), None);
        assert!(expected.mismatch(&floats(&[1.0, f64::INFINITY, 0.0])).is_some());
        assert!(expected.mismatch(&floats(&[f64::NAN, f64::NEG_INFINITY, 0.0])).is_some());
        let unknown = output(&[1.0], &[f64::INFINITY]);
        assert_eq!(unknown.mismatch(&floats(&[f64::NAN])), None);
        let number = output(&[1.0], &[10.0]);
        assert!(number.mismatch(&floats(&[f64::NAN])).is_some());
    }

    #[test]
    fn summaries() {
        let summary = output(&[3.0, f64::NAN, -1.0], &[]).summary();
        assert_eq!(summary.min, Some(Value::Float(-1.0)));
        assert_eq!(summary.max, Some(Value::Float(3.0)));
        assert!(summary.sum.is_nan());
        assert_eq!(fnv1a(FNV_START, b"a"), 0xaf63_dc4c_8601_ec8c);
        assert_eq!(fnv1a(fnv1a(FNV_START, b"foo"), b"bar"), 0x8594_4171_f739_67e8);
    }
}
