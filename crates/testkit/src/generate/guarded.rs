//! Guarded reads: padding, joining, clamping.

use super::builder::Builder;
use super::contraction::reduction;
use super::typed::{Atom, Tensor, Type};

/// `C(i) +=! i+k-1 >= 0 && i+k-1 < N ? A(i+k-1) * W(k) : 0 where i in 0:N` in one or two
/// dimensions, with the condition in any equivalent spelling.
pub(super) fn padded(b: &mut Builder) {
    b.uses("padding");
    let rank = 1 + b.rng.index(2);
    let names = b.variables(2 * rank);
    let (spatial, window) = names.split_at(rank);
    let extents: Vec<i64> = (0..rank).map(|_| b.length(1, 7)).collect();
    let kernel: Vec<i64> = (0..rank).map(|_| b.rng.range(1, 4)).collect();
    let subscripts: Vec<String> = (0..rank)
        .map(|dim| format!("{}+{}-{}", spatial[dim], window[dim], shift(b, kernel[dim])))
        .collect();
    let (data, weights) = (b.operand(&extents), b.operand(&kernel));
    let dtype = Type::random_numeric(&mut b.rng);
    let read = b.read(&data, &subscripts);
    // The window is read outside of the condition, so that it determines its variables.
    let weight = b.read(&weights, window);
    let mut chosen = b.convert(&read, dtype);
    for dim in 0..rank {
        let size = b.extent(extents[dim]);
        chosen = choose(b, &subscripts[dim], &size, &chosen, dtype);
    }
    let value = b.combine(&[Atom::new(chosen, dtype), weight], dtype);
    let assign = reduction(b, true);
    let shape: Vec<i64> = extents.iter().map(|extent| extent + b.rng.range(0, 2)).collect();
    let ranges: Vec<(&str, i64, i64)> =
        spatial.iter().zip(&shape).map(|(name, extent)| (name.as_str(), 0, *extent)).collect();
    let clause = b.ranges(&ranges);
    let target = Tensor { name: b.fresh("T"), dtype, shape };
    b.define(&target, spatial, &format!("{assign} {value}{clause}"));
}

/// The padding of a window: a literal, or a parameter.
fn shift(b: &mut Builder, kernel: i64) -> String {
    let padding = b.rng.range(0, kernel);
    if b.rng.percent(20) { b.shaping_scalar(padding.max(1)) } else { padding.to_string() }
}

/// `inside` where the subscript is in bounds, zero elsewhere.
fn choose(b: &mut Builder, at: &str, size: &str, inside: &str, dtype: Type) -> String {
    let zero = dtype.zero();
    match b.rng.index(6) {
        0 => {
            b.uses("padding by ||");
            format!("({at} < 0 || {at} >= {size} ? {zero} : {inside})")
        }
        1 => {
            b.uses("padding by !");
            format!("(!({at} < 0 || {at} >= {size}) ? {inside} : {zero})")
        }
        2 => {
            b.uses("padding by !");
            format!("(!({at} >= 0 && {at} < {size}) ? {zero} : {inside})")
        }
        3 => {
            b.uses("nested ternary");
            format!("({at} < 0 ? {zero} : {at} > {size} - 1 ? {zero} : {inside})")
        }
        4 => {
            b.uses("padding by &&");
            format!("(0 <= {at} && {size} > {at} ? {inside} : {zero})")
        }
        _ => {
            b.uses("padding by &&");
            format!("({at} >= 0 && {at} < {size} ? {inside} : {zero})")
        }
    }
}

/// `C(i) = i < N ? A(i) : i < N+M ? B(i-N) : D(i-N-M) where i in 0:N+M+L`, and
/// `i >= 1 && A(i-1) > 0.5` as a condition of its own.
pub(super) fn joined(b: &mut Builder) {
    let variables = b.variables(1);
    let i = variables[0].clone();
    let parts: Vec<i64> = (0..2 + b.rng.index(2)).map(|_| b.length(1, 5)).collect();
    let total: i64 = parts.iter().sum();
    let dtype = Type::random(&mut b.rng);
    if b.rng.percent(30) {
        b.uses("guard of &&");
        let tensor = b.operand(&[total]);
        let read = b.read(&tensor, &[format!("{i}-1")]);
        let test = b.convert(&read, Type::Bool);
        let condition = match b.rng.index(2) {
            0 => format!("{i} >= 1 && {test}"),
            _ => format!("{i} < 1 || {test}"),
        };
        let clause = b.ranges(&[(&i, 0, total)]);
        let target = Tensor { name: b.fresh("T"), dtype: Type::Bool, shape: vec![total] };
        b.define(&target, &variables, &format!("= {condition}{clause}"));
        return;
    }
    b.uses("nested ternary");
    let mut value = String::new();
    let mut start = 0;
    for (at, part) in parts.iter().enumerate() {
        let tensor = b.operand(&[*part]);
        let subscript = if start == 0 { i.clone() } else { format!("{i}-{start}") };
        let read = b.read(&tensor, &[subscript]);
        let read = b.convert(&read, dtype);
        start += part;
        if at + 1 < parts.len() {
            value.push_str(&format!("{i} < {start} ? {read} : "));
        } else {
            value.push_str(&read);
        }
    }
    let clause = b.ranges(&[(&i, 0, total)]);
    let target = Tensor { name: b.fresh("T"), dtype, shape: vec![total] };
    b.define(&target, &variables, &format!("= {value}{clause}"));
}

/// `C(i) +=! A(clamp(i+k-1, 0, N-1)) where i in 0:N, k in 0:3`: borders that repeat the edge.
pub(super) fn clamped(b: &mut Builder) {
    let (extent, kernel) = (b.rng.range(1, 8), b.rng.range(1, 4));
    let names = b.variables(2);
    let (i, k) = (&names[0], &names[1]);
    let tensor = b.operand(&[extent]);
    let size = b.extent(extent);
    let subscript = match b.rng.index(4) {
        0 => {
            b.uses("min and max subscripts");
            format!("min({i}+{k}, {size}-1)")
        }
        1 => {
            b.uses("min and max subscripts");
            format!("max(min({i}-{k}, {size}-1), 0)")
        }
        _ => {
            b.uses("clamp");
            format!("clamp({i}+{k}-1, 0, {size}-1)")
        }
    };
    let dtype = Type::random_numeric(&mut b.rng);
    let read = b.read(&tensor, &[subscript]);
    let value = b.combine(&[read], dtype);
    let assign = reduction(b, true);
    let clause = b.ranges(&[(i, 0, extent), (k, 0, kernel)]);
    let target = Tensor { name: b.fresh("T"), dtype, shape: vec![extent] };
    b.define(&target, &names[..1], &format!("{assign} {value}{clause}"));
}
