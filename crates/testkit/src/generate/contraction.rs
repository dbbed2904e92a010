//! Contractions: reductions over variables that are not on the left side.

use super::builder::Builder;
use super::typed::{Atom, Tensor, Type};

/// A reduction operator, without the `!` that initializes.
const REDUCTIONS: [&str; 4] = ["+=", "*=", "min=", "max="];

/// A random reduction operator that initializes its result, or updates an earlier value.
pub(super) fn reduction(b: &mut Builder, initializes: bool) -> &'static str {
    let plain = if b.rng.percent(50) { "+=" } else { *b.rng.pick(&REDUCTIONS) };
    let operator = match plain {
        _ if !initializes => plain,
        "+=" => "+=!",
        "*=" => "*=!",
        "min=" => "min=!",
        _ => "max=!",
    };
    b.uses(operator);
    operator
}

/// `C(i,j) +=! A(i,k) * B(k,j)` with any number of spatial variables and one to three others.
pub(super) fn contraction(b: &mut Builder) {
    let (spatial, reduced) = (b.rng.index(4), 1 + b.rng.index(3));
    let (extents, variables) = (b.extents(spatial + reduced), b.variables(spatial + reduced));
    b.uses("contraction");
    if reduced > 1 {
        b.uses("several reduce variables");
    }
    if spatial == 0 {
        b.uses("scalar result");
    }
    let atoms = vec![factor(b, &variables, &extents, true), factor(b, &variables, &extents, false)];
    // A third factor reads the variables that neither of the others has.
    let mut atoms: Vec<_> = atoms.into_iter().flatten().collect();
    let missing: Vec<usize> = (0..variables.len())
        .filter(|at| !atoms.iter().any(|(held, _)| held.contains(at)))
        .collect();
    if !missing.is_empty() {
        let atom = read_of(b, &missing, &variables, &extents);
        atoms.push((missing, atom));
    }
    let atoms: Vec<_> = atoms.into_iter().map(|(_, atom)| atom).collect();
    let dtype = Type::random_numeric(&mut b.rng);
    let value = b.combine(&atoms, dtype);
    let assign = reduction(b, true);
    let clause = offset(b, &variables[spatial..], &extents[spatial..]);
    let target = Tensor { name: b.fresh("T"), dtype, shape: extents[..spatial].to_vec() };
    b.define(&target, &variables[..spatial], &format!("{assign} {value}{clause}"));
}

type Factor = (Vec<usize>, Atom);

/// A read of a random choice of at most four variables.
fn factor(b: &mut Builder, names: &[String], extents: &[i64], must: bool) -> Option<Factor> {
    let mut held: Vec<usize> = (0..names.len()).collect();
    b.rng.shuffle(&mut held);
    held.truncate((b.rng.index(names.len() + 1)).clamp(usize::from(must), 4));
    if held.is_empty() {
        return None;
    }
    let atom = read_of(b, &held, names, extents);
    Some((held, atom))
}

fn read_of(b: &mut Builder, held: &[usize], names: &[String], extents: &[i64]) -> Atom {
    let shape: Vec<i64> = held.iter().map(|at| extents[*at]).collect();
    let subscripts: Vec<&String> = held.iter().map(|at| &names[*at]).collect();
    let tensor = b.operand(&shape);
    b.read(&tensor, &subscripts)
}

/// Sometimes a range that omits the ends of a reduce variable.
fn offset(b: &mut Builder, variables: &[String], extents: &[i64]) -> String {
    let at = b.rng.index(variables.len());
    if extents[at] < 3 || !b.rng.percent(40) {
        return String::new();
    }
    b.uses("offset range");
    let lo = b.rng.range(0, extents[at] - 2);
    let hi = b.rng.range(lo + 1, extents[at]);
    b.ranges(&[(&variables[at], lo, hi)])
}
