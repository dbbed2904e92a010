//! Compound subscripts: windows, strides, reversals, quotients.

use super::builder::Builder;
use super::contraction::reduction;
use super::typed::{Tensor, Type};

/// `C(i) = A(i) + A(i+1) + A(i+2)`: the reads together leave fewer elements than each.
pub(super) fn stencil(b: &mut Builder) {
    b.uses("stencil");
    let rank = 1 + b.rng.index(2);
    let (shape, variables) = (b.extents(rank), b.variables(rank));
    let reach: Vec<i64> = (0..rank).map(|_| b.rng.range(1, 3)).collect();
    let extents: Vec<i64> = shape.iter().zip(&reach).map(|(extent, by)| extent + by).collect();
    let tensor = b.operand(&extents);
    let mut atoms = Vec::new();
    // The far corner limits the ranges; the other reads may be anywhere before it.
    for point in 0..2 + b.rng.index(3) {
        let subscripts: Vec<String> = variables
            .iter()
            .zip(&reach)
            .map(|(variable, far)| {
                let shift = if point == 0 { *far } else { b.rng.range(0, *far) };
                if shift == 0 { variable.clone() } else { format!("{variable}+{shift}") }
            })
            .collect();
        atoms.push(b.read(&tensor, &subscripts));
    }
    let dtype = Type::random(&mut b.rng);
    let value = b.combine(&atoms, dtype);
    let target = Tensor { name: b.fresh("T"), dtype, shape };
    b.define(&target, &variables, &format!("= {value}"));
}

/// `C(i) +=! A(2*i + 3*k) * W(k)`: strided and dilated windows.
pub(super) fn window(b: &mut Builder) {
    let (stride, dilation) = (b.rng.range(1, 3), b.rng.range(1, 3));
    let coefficient = |by: i64, name: &str| match by {
        1 => name.to_owned(),
        _ => format!("{by}*{name}"),
    };
    if stride > 1 {
        b.uses("strided");
    }
    if dilation > 1 {
        b.uses("dilated");
    }
    let names = b.variables(2);
    let subscript =
        format!("{} + {}", coefficient(stride, &names[0]), coefficient(dilation, &names[1]));
    slide(b, &names, &subscript, stride, dilation);
}

/// `C(i) +=! A(s*i + k) * W(k)` where `s` is a parameter.
pub(super) fn scalar_stride(b: &mut Builder) {
    b.uses("scalar stride");
    let stride = b.rng.range(1, 3);
    let scalar = b.shaping_scalar(stride);
    let names = b.variables(2);
    let subscript = format!("{scalar}*{} + {}", names[0], names[1]);
    slide(b, &names, &subscript, stride, 1);
}

/// The contraction of an input at `subscript` = stride * first + dilation * second with a window
/// that determines the second.
fn slide(b: &mut Builder, names: &[String], subscript: &str, stride: i64, dilation: i64) {
    let (least, kernel) = (b.length(1, 7), b.rng.range(1, 4));
    let needed = stride * (least - 1) + dilation * (kernel - 1) + 1;
    let extent = needed + b.rng.range(0, 2);
    let result = (extent - 1 - dilation * (kernel - 1)) / stride + 1;
    let (data, weights) = (b.operand(&[extent]), b.operand(&[kernel]));
    let atoms = [b.read(&data, &[subscript]), b.read(&weights, &[&names[1]])];
    let dtype = Type::random_numeric(&mut b.rng);
    let value = b.combine(&atoms, dtype);
    let assign = reduction(b, true);
    let target = Tensor { name: b.fresh("T"), dtype, shape: vec![result] };
    b.define(&target, &names[..1], &format!("{assign} {value}"));
}

/// `C(i,j) = A(N-1-i, j)`.
pub(super) fn reversed(b: &mut Builder) {
    b.uses("reversed");
    let rank = 1 + b.rng.index(3);
    let shape = b.extents(rank);
    let variables = b.variables(rank);
    let tensor = match b.earlier(rank..=rank) {
        Some(tensor) => tensor,
        None => b.operand(&shape),
    };
    let at = b.rng.index(rank);
    let mut subscripts = variables.clone();
    let extent = b.extent(tensor.shape[at]);
    subscripts[at] = format!("{extent}-1-{}", variables[at]);
    let dtype = Type::random(&mut b.rng);
    let atom = b.read(&tensor, &subscripts);
    let value = b.combine(&[atom], dtype);
    let target = Tensor { name: b.fresh("T"), dtype, shape: tensor.shape.clone() };
    b.define(&target, &variables, &format!("= {value}"));
}

/// `C(i) = A(i/2)`, `A(i%3)` and the two together: upsampling, tiling, pixel shuffles.
pub(super) fn quotients(b: &mut Builder) {
    let (outer, inner) = (b.length(1, 5), b.rng.range(2, 4));
    let variables = b.variables(1);
    let i = variables[0].clone();
    let (quotient, remainder) = (format!("{i}/{inner}"), format!("{i}%{inner}"));
    let extent = outer * inner;
    let (atom, needs_where) = match b.rng.index(3) {
        0 => {
            let tensor = b.operand(&[outer]);
            (b.read(&tensor, &[quotient]), false)
        }
        1 => {
            let tensor = b.operand(&[inner]);
            (b.read(&tensor, &[remainder]), true)
        }
        _ => {
            let tensor = b.operand(&[outer, inner]);
            (b.read(&tensor, &[quotient, remainder]), true)
        }
    };
    b.uses(if atom.text.contains('%') { "remainder" } else { "division" });
    let needs_where = needs_where || b.rng.percent(50);
    if !needs_where {
        b.uses("inferred division");
    }
    let dtype = Type::random(&mut b.rng);
    let value = b.combine(&[atom], dtype);
    let clause = if needs_where { b.ranges(&[(&i, 0, extent)]) } else { String::new() };
    let target = Tensor { name: b.fresh("T"), dtype, shape: vec![extent] };
    b.define(&target, &variables, &format!("= {value}{clause}"));
}
