//! Several statements that write one tensor.

use super::builder::Builder;
use super::contraction::reduction;
use super::pointwise::broadcast;
use super::typed::{Atom, Tensor, Type};

/// Initialize, accumulate, and often update in place: the shape of most layers.
pub(super) fn accumulate(b: &mut Builder) {
    b.uses("initialize and accumulate");
    let rank = 1 + b.rng.index(2);
    let extents = b.extents(rank + 1);
    let variables = b.variables(rank + 1);
    let (shape, spatial) = (extents[..rank].to_vec(), &variables[..rank]);
    let dtype = Type::random_numeric(&mut b.rng);
    let target = Tensor { name: b.fresh("T"), dtype, shape: shape.clone() };
    let first = b.operand(&shape);
    let atom = b.read(&first, spatial);
    let value = b.combine(&[atom], dtype);
    // Chosen before the target is known, so that it cannot be the target at other subscripts.
    let other = b.rng.percent(60).then(|| broadcast(b, spatial, &shape));
    b.define(&target, spatial, &format!("= {value}"));

    let factor = b.operand(&extents);
    let atoms = [b.read(&factor, &variables)];
    let value = b.combine(&atoms, dtype);
    let assign = reduction(b, false);
    b.define(&target, spatial, &format!("{assign} {value}"));

    if let Some(other) = other {
        b.uses("in place");
        let own = Atom::new(format!("{}({})", target.name, spatial.join(",")), dtype);
        let value = b.combine(&[own, other], dtype);
        b.define(&target, spatial, &format!("= {value}"));
    }
}

/// Assigns a whole tensor, then updates a part of it.
pub(super) fn partial(b: &mut Builder) {
    b.uses("partial update");
    let extent = b.length(2, 9);
    let variables = b.variables(1);
    let dtype = Type::random(&mut b.rng);
    let target = Tensor { name: b.fresh("T"), dtype, shape: vec![extent] };
    let first = b.operand(&[extent]);
    let atom = b.read(&first, &variables);
    let value = b.combine(&[atom], dtype);
    b.define(&target, &variables, &format!("= {value}"));

    let lo = b.rng.range(0, extent - 1);
    let hi = b.rng.range(lo + 1, extent);
    if lo > 0 {
        b.uses("offset range");
    }
    let mut atoms = vec![Atom::new(format!("{}({})", target.name, variables[0]), dtype)];
    if b.rng.percent(50) {
        let other = b.operand(&[extent]);
        atoms.push(b.read(&other, &variables).optional());
    }
    let value = b.combine(&atoms, dtype);
    let clause = b.ranges(&[(&variables[0], lo, hi)]);
    b.define(&target, &variables, &format!("= {value}{clause}"));
}

/// `O(b,n) = B(n)` and then `O(b,n) += I(b,m) * W(n,m)`: the second determines the shape of the
/// first.
pub(super) fn shape_from_later(b: &mut Builder) {
    b.uses("shape from later statement");
    let extents = b.extents(3);
    let variables = b.variables(3);
    let dtype = Type::random_numeric(&mut b.rng);
    let target = Tensor { name: b.fresh("T"), dtype, shape: extents[..2].to_vec() };
    let bias = b.operand(&extents[1..2]);
    let atom = b.read(&bias, &variables[1..2]);
    let value = b.convert(&atom, dtype);
    b.statement(format!("{}({}) = {value}", target.name, variables[..2].join(",")));

    let input = b.operand(&[extents[0], extents[2]]);
    let weight = b.operand(&[extents[1], extents[2]]);
    let atoms = [
        b.read(&input, &[&variables[0], &variables[2]]),
        b.read(&weight, &[&variables[1], &variables[2]]),
    ];
    let value = b.combine(&atoms, dtype);
    let assign = reduction(b, false);
    b.define(&target, &variables[..2], &format!("{assign} {value}"));
}

/// `C(i) += A(i,k)` onto the caller's values.
pub(super) fn in_out(b: &mut Builder) {
    if b.is_callee {
        return accumulate(b);
    }
    b.uses("in-out");
    let extents = b.extents(2);
    let variables = b.variables(2);
    let dtype = Type::random_numeric(&mut b.rng);
    let target = Tensor { name: b.fresh("T"), dtype, shape: extents[..1].to_vec() };
    let tensor = b.operand(&extents);
    let atom = b.read(&tensor, &variables);
    let value = b.combine(&[atom], dtype);
    let assign = reduction(b, false);
    b.statement(format!("{}({}) {assign} {value}", target.name, variables[0]));
    b.returns(&target);
}
