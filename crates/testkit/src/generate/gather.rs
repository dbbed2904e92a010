//! Subscripts that come from data.

use super::builder::Builder;
use super::typed::{Tensor, Type};

/// A number, or a multiple of it plus an offset.
fn multiple(b: &mut Builder, number: String) -> String {
    let (factor, offset) = (b.rng.range(2, 5), b.rng.range(0, 4));
    match b.rng.index(4) {
        0 => format!("({factor} * {number} + {offset})"),
        1 => format!("({offset} - {factor} * {number})"),
        _ => number,
    }
}

/// `C(i,j) = A(I(i), j)`: the index itself, or a multiple of it, brought into range by `%` or
/// guarded by comparisons.
pub(super) fn gather(b: &mut Builder) {
    let rank = 1 + b.rng.index(2);
    let rows = b.length(1, 9);
    let rest = b.extents(rank - 1);
    let index_rank = 1 + b.rng.index(2);
    let index_shape = b.extents(index_rank);
    let variables = b.variables(index_rank + rest.len());
    let (index_variables, rest_variables) = variables.split_at(index_rank);
    let table_shape: Vec<i64> = [rows].iter().chain(&rest).copied().collect();
    let table = b.operand(&table_shape);
    let index_type = Type::random_index(&mut b.rng);
    let dtype = Type::random(&mut b.rng);
    let style = b.rng.index(3);
    let index = match style {
        0 => b.index_input(index_type, &index_shape, rows),
        _ => b.input(index_type, &index_shape),
    };
    let position = b.read(&index, index_variables).text;
    let position = if style == 0 { position } else { multiple(b, position) };
    let size = b.extent(rows);
    let row = if style == 1 { format!("{position} % {size}") } else { position.clone() };
    let mut subscripts = vec![row];
    subscripts.extend(rest_variables.iter().cloned());
    let read = b.read(&table, &subscripts);
    let value = match style {
        2 => {
            b.uses("guarded gather");
            let inside = b.convert(&read, dtype);
            let zero = dtype.zero();
            format!("{position} >= 0 && {position} < {size} ? {inside} : {zero}")
        }
        _ => {
            b.uses(if style == 0 { "gather" } else { "reduced gather" });
            b.combine(&[read], dtype)
        }
    };
    // Under a data-dependent condition a read determines only variables that it always reads;
    // explicit ranges remove the doubt.
    let ranges: Vec<(&str, i64, i64)> = rest_variables
        .iter()
        .zip(&rest)
        .map(|(name, extent)| (name.as_str(), 0, *extent))
        .collect();
    let clause = if style == 2 { b.ranges(&ranges) } else { String::new() };
    let shape: Vec<i64> = index_shape.iter().chain(&rest).copied().collect();
    let target = Tensor { name: b.fresh("T"), dtype, shape };
    b.define(&target, &variables, &format!("= {value}{clause}"));
}
