//! Random buffers, determined by a name and a seed.
//!
//! Element `i` of a buffer is number `i` of its seed ([`SplitMix::nth`]): it does not depend on
//! earlier elements or on other buffers.

use std::collections::BTreeMap;
use std::ops::Range;

use tensorwright_lang::dtype::DType;
use tensorwright_lang::program::{
    Atom, AxisId, Expr, Index, Interval, Program, Read, Stage, TensorId, Term,
};
use tensorwright_random::SplitMix;

use crate::buffer::{Buffer, BufferError};
use crate::element::Value;
use crate::output::{FNV_START, fnv1a};

/// The range of integers in [`random`].
pub const DEFAULT_RANGE: Range<i128> = 0..16;

/// A buffer of random elements: floats uniform in [-1, 1), integers in [`DEFAULT_RANGE`], fair
/// `bool`s. Floats are multiples of the spacing of their type below one, so all are exact in the
/// type and none is subnormal. A scalar float is in (0, 1]: scalars are divisors or keep sums from
/// zero, and a negative `eps` makes results NaN, which match anything.
///
/// # Errors
/// If the buffer would be too large.
pub fn random(dtype: DType, shape: &[i64], name: &str, seed: u64) -> Result<Buffer, BufferError> {
    random_in(dtype, shape, name, seed, DEFAULT_RANGE)
}

/// As [`random`], with integers from a range (wrapped around to the type; an empty range gives its
/// start).
///
/// # Errors
/// If the buffer would be too large.
pub fn random_in(
    dtype: DType,
    shape: &[i64],
    name: &str,
    seed: u64,
    range: Range<i128>,
) -> Result<Buffer, BufferError> {
    let stream = SplitMix::nth(seed ^ fnv1a(FNV_START, name.as_bytes()), 0);
    let digits = dtype.unit_roundoff().map(|unit| unit.log2().abs().min(52.0) as u32);
    Buffer::from_fn(dtype, shape, |position| {
        let bits = SplitMix::nth(stream, position as u64);
        match digits {
            Some(digits) if shape.is_empty() => {
                let steps = (bits >> (64 - digits)) as f64;
                Value::Float(1.0 - steps * 2_f64.powi(-(digits as i32)))
            }
            Some(digits) => {
                // `digits + 1` random bits, which `f64` holds exactly: multiples of 2^-digits
                // from -1 to just below 1.
                let steps = (bits >> (63 - digits)) as f64;
                let scale = 2_f64.powi(-(digits as i32));
                Value::Float(steps * scale - 1.0)
            }
            None if dtype == DType::Bool => Value::Integer(i128::from(bits >> 63)),
            None => {
                let count = range.end.saturating_sub(range.start).clamp(1, 1 << 62) as u128;
                // The high part of the product: uniform up to one part in 2^64 / count.
                let offset = (u128::from(bits) * count) >> 64;
                Value::Integer(range.start + offset as i128)
            }
        }
    })
}

/// Random values for all inputs of a program. An integer input that is used as a subscript, as `I`
/// in `A(I(i))`, or as a scatter position gets values that keep these accesses in bounds.
///
/// # Errors
/// If an input would be too large.
pub fn random_inputs(
    program: &Program,
    seed: u64,
) -> Result<BTreeMap<String, Buffer>, BufferError> {
    let ranges = subscript_ranges(program);
    let mut inputs = BTreeMap::new();
    for (id, tensor) in program.input_ids().zip(&program.tensors) {
        let range = ranges.get(&id).cloned().unwrap_or(DEFAULT_RANGE);
        let buffer = random_in(tensor.dtype, &tensor.shape, &tensor.name, seed, range)?;
        inputs.insert(tensor.name.clone(), buffer);
    }
    Ok(inputs)
}

/// For each input that is used as a subscript, the values that are in bounds in all its uses.
fn subscript_ranges(program: &Program) -> BTreeMap<TensorId, Range<i128>> {
    let mut ranges: BTreeMap<TensorId, Range<i128>> = BTreeMap::new();
    for stage in &program.stages {
        let mut keep_inside = |read: &Read| {
            let extents = program.tensors.get(read.tensor.0 as usize).map(|t| t.shape.as_slice());
            for (subscript, extent) in read.subscripts.iter().zip(extents.unwrap_or_default()) {
                let Some((tensor, range)) = value_range(stage, subscript, *extent) else {
                    continue;
                };
                let seen = ranges.get(&tensor).cloned().unwrap_or_else(|| range.clone());
                let both = seen.start.max(range.start)..seen.end.min(range.end);
                // If no value suits all uses, the first use wins.
                ranges.insert(tensor, if both.is_empty() { seen } else { both });
            }
        };
        stage.body.walk_reads(&mut |read| keep_inside(read));
        keep_inside(&stage.element());
    }
    ranges
}

/// The tensor whose element is added to the subscript, and the element values that keep it in
/// `0..extent` at every point of the axes.
fn value_range(stage: &Stage, subscript: &Index, extent: i64) -> Option<(TensorId, Range<i128>)> {
    let data = subscript.terms().iter().find_map(|term| match term {
        Term { atom: Atom::Value(expr), coefficient: 1 } => direct_read(expr),
        _ => None,
    })?;
    let axis = |id: AxisId| {
        let axis = stage.axes.get(id.0 as usize);
        let (lo, hi) = axis.map_or((0, 1), |axis| (axis.lo, axis.hi));
        Interval { lo: i128::from(lo), hi: i128::from(hi) - 1 }
    };
    let unbounded = Interval { lo: i128::MIN / 4, hi: i128::MAX / 4 };
    let value = |expr: &Expr| {
        if direct_read(expr) == Some(data) { Interval::point(0) } else { unbounded }
    };
    let rest = subscript.interval(&axis, &value);
    let range = rest.lo.saturating_neg()..i128::from(extent).saturating_sub(rest.hi);
    (!range.is_empty()).then_some((data.tensor, range))
}

/// The read, if the value is a possibly converted tensor element.
fn direct_read(expr: &Expr) -> Option<&Read> {
    match expr {
        Expr::Read(read) => Some(read),
        Expr::Cast(_, operand) => direct_read(operand),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_are_exact_and_spread_over_the_interval() {
        for dtype in DType::ALL.into_iter().filter(|dtype| dtype.is_float()) {
            let buffer = random(dtype, &[50, 100], "A", 7).unwrap();
            let values: Vec<f64> = buffer.values().map(Value::as_f64).collect();
            assert!(values.iter().all(|x| (-1.0..1.0).contains(x)), "{dtype}");
            let unit = dtype.unit_roundoff().unwrap();
            assert!(values.iter().all(|x| *x == 0.0 || x.abs() >= unit));
            // Multiples of the unit from -1 to just below 1: their mean is not quite zero.
            let mean = values.iter().sum::<f64>() / values.len() as f64 + unit / 2.0;
            assert!(mean.abs() < 0.05, "{dtype}: {mean}");
            assert!(values.iter().any(|x| *x < -0.98) && values.iter().any(|x| *x > 0.98 - unit));
        }
    }

    #[test]
    fn integers_stay_in_their_range_and_bools_are_fair() {
        let values =
            |buffer: Buffer| buffer.values().map(|v| v.as_f64() as i64).collect::<Vec<_>>();
        let default = values(random(DType::Int32, &[1000], "I", 1).unwrap());
        assert!((0..16).all(|x| default.contains(&x)));
        assert!(default.iter().all(|x| (0..16).contains(x)));
        let given = values(random_in(DType::Int8, &[1000], "I", 1, -3..2).unwrap());
        assert!(given.iter().all(|x| (-3..2).contains(x)) && given.contains(&-3));
        let empty = values(random_in(DType::Int8, &[5], "I", 1, 3..3).unwrap());
        assert_eq!(empty, [3; 5]);
        let ones: i64 = values(random(DType::Bool, &[1000], "B", 1).unwrap()).iter().sum();
        assert!((400..600).contains(&ones), "{ones}");
    }

    #[test]
    fn name_and_seed_decide() {
        let buffer = |name, seed| random(DType::Float, &[8], name, seed).unwrap();
        assert_eq!(buffer("A", 1), buffer("A", 1));
        assert_ne!(buffer("A", 1), buffer("B", 1));
        assert_ne!(buffer("A", 1), buffer("A", 2));
    }
}
