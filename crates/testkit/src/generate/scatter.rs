//! Scatters.

use super::builder::Builder;
use super::contraction::reduction;
use super::typed::{Tensor, Type};

/// `T(b,j) +=! A(i,j) scatter b = I(i) where b in 0:5`: a position read from data, one that is
/// clamped to the range, or one computed from index variables.
pub(super) fn scatter(b: &mut Builder) {
    b.uses("scatter");
    let (plain, terms) = (b.rng.index(2), 1 + b.rng.index(2));
    let rows = b.length(1, 9);
    let extents = b.extents(plain + terms);
    let mut variables = b.variables(1 + plain + terms);
    let row = variables.remove(0);
    let input = b.operand(&extents);
    let atom = b.read(&input, &variables);
    let dtype = Type::random_numeric(&mut b.rng);
    let value = b.combine(&[atom], dtype);
    let assign = reduction(b, true);
    // Of all variables, or of those over terms alone.
    let first = if b.rng.percent(30) { 0 } else { plain };
    let position = position(b, &variables[first..], &extents[first..], rows);
    let (mut left, mut shape) = (variables[..plain].to_vec(), extents[..plain].to_vec());
    let place = b.rng.index(plain + 1);
    left.insert(place, row.clone());
    shape.insert(place, rows);
    let clause = b.ranges(&[(&row, 0, rows)]);
    let target = Tensor { name: b.fresh("T"), dtype, shape };
    b.define(&target, &left, &format!("{assign} {value} scatter {row} = {position}{clause}"));
}

fn position(b: &mut Builder, variables: &[String], extents: &[i64], rows: i64) -> String {
    let style = b.rng.index(4);
    let index_type = Type::random_index(&mut b.rng);
    let size = b.extent(rows);
    if style == 0 {
        b.uses("checked scatter");
        let index = b.index_input(index_type, extents, rows);
        return b.read(&index, variables).text;
    }
    let number = match style {
        1 => variables.join(" + "),
        _ => {
            let index = b.input(index_type, extents);
            b.read(&index, variables).text
        }
    };
    let (factor, offset) = (b.rng.range(1, 5), b.rng.range(0, 4));
    match style {
        3 => format!("clamp({factor} * {number} - {offset}, 0, {size} - 1)"),
        _ => format!("({factor} * ({number}) + {offset}) % {size}"),
    }
}
