//! Compares a sized program with the concrete one at many sizes.

use tensorwright_random::Rng;

use crate::Module;
use crate::bind::{lower, simplify};
use crate::dtype::DType;
use crate::ops::UnaryOp;
use crate::program::{
    Atom, AxisId, Expr, Index, Program, Rewrite, SizeRange, SizeValue, SizedProgram,
};

/// How often a program was checked, and how often binding succeeds although it is refused.
#[derive(Debug, Default)]
pub(super) struct Tally {
    pub(super) accepted: usize,
    pub(super) refused: usize,
    pub(super) needlessly: usize,
}

pub(super) fn varies(least: i64, most: i64, likely: i64) -> SizeValue {
    SizeValue::Varies(SizeRange { least, most, likely, multiple: 1 })
}

/// Compares at the corners of the ranges, at all values near the least, and at random.
pub(super) fn compare(
    module: &Module,
    def: &str,
    given: &[(String, SizeValue)],
) -> Result<Tally, String> {
    let sized = module.bind_sized(def, given.iter().cloned()).map_err(|error| error.to_string())?;
    let likely: Vec<i64> = sized.sizes.iter().map(|size| size.range.likely).collect();
    sized.check(&likely).unwrap();
    // Sizes have no axes.
    let general = &sized.general;
    assert_ne!(general.to_string(), "");
    assert_eq!(general.hash(), general.clone().hash());
    assert_eq!(general.analysis().nodes, general.stages.len());
    let mut tally = Tally::default();
    let mut rng = Rng::new(7);
    let mut points = vec![likely];
    for number in 0..48 {
        let one = |size: &crate::program::Size, rng: &mut Rng| {
            let range = size.range;
            let steps = (range.most - range.least) / range.multiple;
            let step = match rng.below(4) {
                0 => 0,
                1 => steps,
                2 => (rng.below(4) as i64).min(steps),
                _ if number % 3 == 0 => (range.likely - range.least) / range.multiple,
                _ => rng.below(steps as u64 + 1) as i64,
            };
            range.least + step * range.multiple
        };
        points.push(sized.sizes.iter().map(|size| one(size, &mut rng)).collect());
    }
    points.sort();
    points.dedup();
    for values in points {
        compare_at(module, def, given, &sized, &values, &mut tally);
    }
    Ok(tally)
}

fn compare_at(
    module: &Module,
    def: &str,
    given: &[(String, SizeValue)],
    sized: &SizedProgram,
    values: &[i64],
    tally: &mut Tally,
) {
    let value = |name: &str| sized.sizes.iter().position(|size| size.name == name);
    let numbers = given.iter().map(|(name, given)| match given {
        SizeValue::Known(number) => (name.clone(), *number),
        SizeValue::Varies(_) => (name.clone(), values[value(name).unwrap()]),
    });
    let numbers: Vec<(String, i64)> = numbers.collect();
    let bound = module.bind(def, numbers.iter().cloned());
    match (sized.check(values), bound) {
        (Err(_), Err(_)) => tally.refused += 1,
        (Err(_), Ok(_)) => {
            tally.refused += 1;
            tally.needlessly += 1;
        }
        (Ok(()), Err(error)) => panic!("{def} accepts {numbers:?}, where binding fails: {error}"),
        (Ok(()), Ok(concrete)) => {
            tally.accepted += 1;
            same(sized, &concrete, values, &format!("{def} at {numbers:?}"));
        }
    }
}

fn same(sized: &SizedProgram, concrete: &Program, values: &[i64], what: &str) {
    let general = &sized.general;
    assert_eq!(general.stages.len(), concrete.stages.len(), "{what}");
    for (number, (tensor, largest)) in concrete.tensors.iter().zip(&general.tensors).enumerate() {
        let shape = sized.shape(crate::program::TensorId(number as u32), values);
        assert_eq!(shape, tensor.shape, "{what}: {}", tensor.name);
        assert!(shape.iter().zip(&largest.shape).all(|(a, b)| a <= b), "{what}: {}", tensor.name);
    }
    assert_eq!((general.inputs, &general.outputs), (concrete.inputs, &concrete.outputs), "{what}");
    for ((stage, other), ranges) in general.stages.iter().zip(&concrete.stages).zip(&sized.ranges) {
        let name = &concrete.tensor(other.output).name;
        for ((axis, it), (lo, hi)) in stage.axes.iter().zip(&other.axes).zip(ranges) {
            let ends = (sized.value(lo, values), sized.value(hi, values));
            assert_eq!(ends, (it.lo, it.hi), "{what}: `{}` of `{name}`", it.name);
            assert!(axis.lo <= it.lo && it.hi <= axis.hi, "{what}: `{}` of `{name}`", it.name);
        }
        // A copy of the base is right even where all elements are computed.
        assert!(stage.base == other.base || other.base.is_none(), "{what}: `{name}`");
        let mut rules = AtSizes { sized, values };
        let (body, it) = (rules.of(&stage.body), rules.of(&other.body));
        assert_eq!(body, unchecked(&it, &body, what), "{what}: `{name}`");
        for (scatter, it) in stage.scatter.iter().zip(&other.scatter) {
            assert_eq!(scatter.at.rewrite(&mut rules).unwrap(), it.at, "{what}: `{name}`");
            assert!(scatter.checked || !it.checked, "{what}: `{name}`");
        }
    }
}

/// The concrete body with the checks of the general one, which has at least its own.
fn unchecked(body: &Expr, general: &Expr, what: &str) -> Expr {
    let mut checks = Vec::new();
    let mut copy = general.clone();
    copy.for_each_read_mut(&mut |read| checks.push(read.checked.clone()));
    let mut checks = checks.into_iter();
    let mut body = body.clone();
    body.for_each_read_mut(&mut |read| {
        let all = checks.next().unwrap_or_default();
        assert!(read.checked.iter().all(|dimension| all.contains(dimension)), "{what}");
        read.checked = all;
    });
    body
}

/// Puts numbers for sizes, and folds as binding does.
struct AtSizes<'a> {
    sized: &'a SizedProgram,
    values: &'a [i64],
}

impl AtSizes<'_> {
    fn of(&mut self, expr: &Expr) -> Expr {
        expr.rewrite(self).unwrap()
    }
}

impl Rewrite for AtSizes<'_> {
    fn axis(&mut self, axis: AxisId) -> Option<Index> {
        let Some(number) = axis.size() else { return Some(Index::axis(axis)) };
        Some(Index::constant(self.values[number] / self.sized.sizes[number].range.multiple))
    }

    fn index(&mut self, index: Index) -> Option<Index> {
        let start = Index::constant(index.constant_term());
        index.terms().iter().try_fold(start, |sum, term| {
            let atom = match &term.atom {
                Atom::Value(value) => match &**value {
                    Expr::Const(scalar) => Index::constant(scalar.as_integer() as i64),
                    _ => Index::atom(term.atom.clone()),
                },
                atom => Index::atom(atom.clone()),
            };
            sum.add(&atom.scale(term.coefficient)?)
        })
    }

    fn expr(&mut self, expr: Expr) -> Option<Expr> {
        Some(match expr {
            Expr::Index(index, dtype) => match (index.as_constant(), index.into_value()) {
                (Some(value), _) => Expr::Const(lower::constant(dtype, i128::from(value))),
                (None, Err(index)) => Expr::Index(index, dtype),
                (None, Ok(value)) => Expr::Cast(dtype, Box::new(value)),
            },
            // Quotients by sizes are 64-bit arithmetic until the sizes are known.
            Expr::Arith(op, a, b) => match (quotient(op, &a, &b), *a, *b) {
                (Some(found), ..) => found,
                (None, a, b) => simplify::arith(op, a, b),
            },
            Expr::Cast(dtype, a) => match *a {
                Expr::Index(index, DType::Int64) => Expr::Index(index, dtype),
                Expr::Const(a) if dtype.is_float() && a.dtype() == DType::Int64 => {
                    Expr::Const(lower::constant(dtype, a.as_integer()))
                }
                a => Expr::Cast(dtype, Box::new(a)),
            },
            Expr::CompareIndex(op, a, b) => simplify::compare_index(op, a, b),
            Expr::Logic(op, a, b) => simplify::logic(op, *a, *b),
            Expr::Select(c, a, b) => simplify::select(*c, *a, *b),
            Expr::Unary(UnaryOp::Not, a) => match *a {
                Expr::Const(a) => simplify::boolean(a.as_integer() == 0),
                a => Expr::Unary(UnaryOp::Not, Box::new(a)),
            },
            other => other,
        })
    }
}

fn quotient(op: crate::ops::ArithOp, a: &Expr, b: &Expr) -> Option<Expr> {
    let (Expr::Index(index, DType::Int64), Expr::Const(by)) = (a, b) else { return None };
    let by = i64::try_from(by.as_integer()).ok().filter(|by| *by > 0)?;
    let index = match op {
        crate::ops::ArithOp::Div => index.div(by)?,
        crate::ops::ArithOp::Rem => index.rem(by),
        _ => return None,
    };
    Some(Expr::Index(index, DType::Int64))
}
