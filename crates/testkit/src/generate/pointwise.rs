//! Elementwise maps.

use super::builder::Builder;
use super::typed::{Atom, Tensor, Type};

/// `C(i,j) = f(A(i,j), B(j), a)`: broadcasts, transpositions, scalars.
pub(super) fn map(b: &mut Builder) {
    let first = if b.rng.percent(60) { b.earlier(0..=4) } else { None };
    let rank = first.as_ref().map_or_else(|| b.rng.index(5), |tensor| tensor.shape.len());
    let first = match first {
        Some(tensor) => tensor,
        None => {
            let shape = b.extents(rank);
            b.operand(&shape)
        }
    };
    let variables = b.variables(rank);
    b.uses("pointwise");
    let mut atoms = vec![b.read(&first, &variables)];
    for _ in 0..b.rng.index(3) {
        let atom = broadcast(b, &variables, &first.shape);
        atoms.push(atom.optional());
    }
    if b.rng.percent(25) {
        let dtype = Type::random(&mut b.rng);
        let scalar = b.scalar(dtype);
        atoms.push(scalar.optional());
    }
    let dtype = Type::random(&mut b.rng);
    let value = b.combine(&atoms, dtype);
    let value = with_index(b, value, dtype, &variables);
    // Permuted variables: a transposition.
    let mut order: Vec<usize> = (0..rank).collect();
    if b.rng.percent(30) {
        b.rng.shuffle(&mut order);
    }
    if order.windows(2).any(|pair| pair[0] > pair[1]) {
        b.uses("transpose");
    }
    if rank == 0 {
        b.uses("scalar result");
    }
    let shape: Vec<i64> = order.iter().map(|at| first.shape[*at]).collect();
    let left: Vec<&String> = order.iter().map(|at| &variables[*at]).collect();
    let target = Tensor { name: b.fresh("T"), dtype, shape };
    b.define(&target, &left, &format!("= {value}"));
}

/// A read of some of the variables, in a random order.
pub(super) fn broadcast(b: &mut Builder, variables: &[String], shape: &[i64]) -> Atom {
    let mut order: Vec<usize> = (0..variables.len()).collect();
    if b.rng.percent(50) {
        b.rng.shuffle(&mut order);
        order.truncate(b.rng.index(variables.len() + 1));
    }
    if order.is_empty() {
        let dtype = Type::random(&mut b.rng);
        return b.scalar(dtype);
    }
    if order.len() < variables.len() {
        b.uses("broadcast");
    }
    let extents: Vec<i64> = order.iter().map(|at| shape[*at]).collect();
    let names: Vec<&String> = order.iter().map(|at| &variables[*at]).collect();
    let tensor = b.operand(&extents);
    b.read(&tensor, &names)
}

/// The value, or the value and an index variable: untyped integers meet every numeric type.
fn with_index(b: &mut Builder, value: String, dtype: Type, variables: &[String]) -> String {
    if variables.is_empty() || !b.rng.percent(15) {
        return value;
    }
    b.uses("index as value");
    let variable = b.rng.pick(variables).clone();
    match dtype {
        Type::Bool => format!("{value} == ({variable} % 2 == 0)"),
        _ => format!("{value} + {variable}"),
    }
}

/// `T(i,j) = 2*i + j where i in 0:N, j in 0:M`: nothing but index variables.
pub(super) fn indices(b: &mut Builder) {
    let rank = 1 + b.rng.index(3);
    let shape = b.extents(rank);
    let variables = b.variables(rank);
    let terms: Vec<String> =
        variables.iter().map(|variable| format!("{}*{variable}", 1 + b.rng.index(4))).collect();
    let sum = terms.join(" + ");
    let (dtype, value) = match b.rng.index(4) {
        // All untyped: an integer is an `int32`, a fraction a `float`.
        0 => (Type::Integer("int32"), format!("({sum}) % 7")),
        1 => (Type::Float("float"), format!("0.5 * ({sum})")),
        2 => (Type::Bool, format!("{sum} > 3")),
        _ => {
            let dtype = Type::random_numeric(&mut b.rng);
            b.uses("cast");
            (dtype, format!("{}({sum})", dtype.name()))
        }
    };
    b.uses("untyped result");
    b.uses("index as value");
    let ranges: Vec<(&str, i64, i64)> =
        variables.iter().zip(&shape).map(|(name, extent)| (name.as_str(), 0, *extent)).collect();
    let clause = b.ranges(&ranges);
    let target = Tensor { name: b.fresh("T"), dtype, shape };
    b.define(&target, &variables, &format!("= {value}{clause}"));
}
