//! Recurrences: elements computed from earlier ones of the same tensor.

use super::builder::Builder;
use super::typed::{Tensor, Type};

/// `T(i,j) = T(i,j-1) + A(i,j) scan j from B(i)`, forwards or backwards.
pub(super) fn recurrence(b: &mut Builder) {
    b.uses("recurrence");
    let rank = 1 + b.rng.index(2);
    let (shape, variables) = (b.extents(rank), b.variables(rank));
    let dtype = Type::random_numeric(&mut b.rng);
    let target = Tensor { name: b.fresh("T"), dtype, shape: shape.clone() };
    let input = b.operand(&shape);
    let atom = b.read(&input, &variables);
    let value = b.combine(&[atom], dtype);
    let along = b.rng.index(rank);
    let sign = if b.rng.percent(40) { "+" } else { "-" };
    if sign == "+" {
        b.uses("recurrence backwards");
    }
    let mut own = || {
        let steps = 1 + b.rng.index(3);
        let place = |(number, variable): (usize, &String)| match number == along {
            true => format!("{variable} {sign} {steps}"),
            false => variable.clone(),
        };
        let subscripts: Vec<String> = variables.iter().enumerate().map(place).collect();
        format!("{}({})", target.name, subscripts.join(","))
    };
    let (one, other) = (own(), own());
    let right = match b.rng.index(4) {
        0 => format!("{one} + ({value})"),
        1 => format!("max({one}, {value})"),
        2 => format!("({value}) + ({one} < {other} ? {one} : {other})"),
        _ => format!("{one} - {other} + ({value})"),
    };
    let start = match (b.rng.index(3), rank) {
        (0, 2) => {
            let line = b.operand(&[shape[1 - along]]);
            let atom = b.read(&line, &[&variables[1 - along]]);
            b.convert(&atom, dtype)
        }
        (1, _) => dtype.literal(&mut b.rng),
        _ => dtype.zero().to_owned(),
    };
    let clause = format!("scan {} from {start}", variables[along]);
    b.define(&target, &variables, &format!("= {right} {clause}"));
}
