//! Compares rewritten expressions in 64-bit arithmetic with originals in 128 bits.

use tensorwright_random::SplitMix;

use super::*;
use crate::ops::CompareOp;
use crate::program::{Location, wrap_integer};

/// Scalar tensors, by type.
const TYPES: [DType; 6] =
    [DType::Int64, DType::Int64, DType::UInt64, DType::UInt64, DType::Int32, DType::UInt8];

fn dtype(tensor: TensorId) -> DType {
    TYPES[tensor.0 as usize]
}

fn data(tensor: u32) -> Expr {
    Expr::Read(Read {
        tensor: TensorId(tensor),
        subscripts: Vec::new(),
        checked: Vec::new(),
        place: Location::default(),
    })
}

/// Evaluates an expression at a point.
struct Machine {
    data: [i128; 6],
    axis: i64,
    /// Whether index arithmetic wraps around at 64 bits.
    wraps: bool,
}

impl Machine {
    fn wrap(&self, value: i128) -> i128 {
        if self.wraps { i128::from(value as i64) } else { value }
    }

    fn index(&self, index: &Index) -> i128 {
        index.terms().iter().fold(self.wrap(index.constant_term().into()), |sum, term| {
            let atom = match &term.atom {
                Atom::Axis(_) => self.axis.into(),
                Atom::Div(inner, by) => self.index(inner).div_euclid((*by).into()),
                Atom::Mod(inner, by) => self.index(inner).rem_euclid((*by).into()),
                Atom::Min(a, b) => self.index(a).min(self.index(b)),
                Atom::Max(a, b) => self.index(a).max(self.index(b)),
                Atom::Product(inner, _) => self.index(inner) * i128::from(self.axis),
                Atom::Value(value) => self.wrap(self.expr(value)),
            };
            self.wrap(sum.checked_add(atom * i128::from(term.coefficient)).unwrap())
        })
    }

    fn expr(&self, expr: &Expr) -> i128 {
        match expr {
            Expr::Const(scalar) => scalar.as_integer(),
            Expr::Read(read) => self.data[read.tensor.0 as usize],
            Expr::Index(index, dtype) => {
                let index = i128::from(self.index(index) as i64);
                wrap_integer(*dtype, index)
            }
            Expr::Cast(dtype, inner) => wrap_integer(*dtype, self.expr(inner)),
            Expr::CompareIndex(op, a, b) => {
                i128::from(op.holds(Some(self.index(a).cmp(&self.index(b)))))
            }
            Expr::Compare(op, a, b) => i128::from(op.holds(Some(self.expr(a).cmp(&self.expr(b))))),
            Expr::Arith(ArithOp::Div, a, b) => self.expr(a).div_euclid(self.expr(b)),
            Expr::Arith(ArithOp::Rem, a, b) => self.expr(a).rem_euclid(self.expr(b)),
            Expr::Logic(LogicOp::And, a, b) => self.expr(a) & self.expr(b),
            Expr::Logic(LogicOp::Or, a, b) => self.expr(a) | self.expr(b),
            Expr::Unary(_, a) => 1 - self.expr(a),
            Expr::Select(c, a, b) => self.expr(if self.expr(c) != 0 { a } else { b }),
            other => panic!("{other:?}"),
        }
    }
}

struct Random(SplitMix);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0.below(n)
    }

    fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// A number of a type, often near its ends or near a fraction of the wrap-around point.
    fn number(&mut self, dtype: DType) -> i128 {
        let (least, most) = dtype.integer_range().unwrap();
        let near = i128::from(self.below(5)) - 2;
        let value = match self.below(5) {
            0 => least + near,
            1 => most + near,
            2 => near,
            3 => (1 << 64) / i128::from(1 + self.below(9)) + near,
            _ => i128::from(self.bits()),
        };
        wrap_integer(dtype, value)
    }

    fn factor(&mut self) -> i64 {
        [1, 1, 1, -1, 2, 3, -3, 5, 64, -1000, 1 << 20][self.below(11) as usize]
    }

    fn index(&mut self, depth: u32) -> Index {
        let mut sum = Index::constant(self.below(41) as i64 - 20);
        for _ in 0..1 + self.below(2) {
            let part = self.part(depth);
            sum = sum.add(&part.scale(self.factor()).unwrap()).unwrap();
        }
        sum
    }

    fn part(&mut self, depth: u32) -> Index {
        let by = [2, 3, 7, 10, 64, 1 << 16][self.below(6) as usize];
        match if depth == 0 { self.below(3) } else { self.below(7) } {
            0 => Index::axis(AxisId(0)),
            1 | 2 => Index::value(data(self.below(6) as u32)),
            3 => self.index(depth - 1).div(by).unwrap(),
            4 => self.index(depth - 1).rem(by),
            5 => self.index(depth - 1).min(self.index(depth - 1)),
            _ => self.index(depth - 1).max(self.index(depth - 1)),
        }
    }
}

const OPS: [CompareOp; 6] =
    [CompareOp::Eq, CompareOp::Ne, CompareOp::Lt, CompareOp::Le, CompareOp::Gt, CompareOp::Ge];

#[test]
fn a_machine_of_64_bits_gives_what_128_bits_give() {
    let axis = |_| Interval { lo: 0, hi: 999 };
    let exact = Exact::new(&axis, &dtype, &|_, _| Some(50));
    let mut random = Random(SplitMix::new(7));
    let (mut refused, mut rewritten) = (0, 0);
    for round in 0..3_000 {
        let (a, b) = (random.index(2), random.index(1));
        let op = OPS[random.below(6) as usize];
        let compare = Expr::CompareIndex(op, a.clone(), b);
        let value = Expr::Index(a.clone(), DType::Int64);
        let subscript = exact.checked(&a, 50);
        let (Some(simple), Some(modulo), Some(subscript)) =
            (exact.expr(&compare), exact.expr(&value), subscript)
        else {
            refused += 1;
            continue;
        };
        rewritten += usize::from(simple != compare);
        for _ in 0..20 {
            let axis = random.below(1000) as i64;
            let data = TYPES.map(|dtype| random.number(dtype));
            let [truth, machine] = [false, true].map(|wraps| Machine { data, axis, wraps });
            let at =
                || format!("round {round}, axis {axis}, data {data:?}\n{compare:?}\n{simple:?}");
            assert_eq!(machine.expr(&simple), truth.expr(&compare), "{}", at());
            assert_eq!(machine.expr(&modulo), truth.expr(&value), "{}\n{modulo:?}", at());
            let inside = |value: i128| (0..50).contains(&value).then_some(value);
            let found = inside(machine.index(&subscript));
            assert_eq!(found, inside(truth.index(&a)), "{}\n{subscript:?}", at());
        }
    }
    assert!(refused < 300, "{refused} refused");
    assert!(rewritten > 750, "{rewritten} rewritten");
}

#[test]
fn what_fits_stays_as_it_is() {
    let axis = |_| Interval { lo: 0, hi: 1 << 40 };
    let exact = Exact::new(&axis, &dtype, &|_, _| None);
    let (i, small) = (Index::axis(AxisId(0)), Index::value(data(4)));
    let sum = i.scale(3).unwrap().add(&small.scale(1 << 20).unwrap()).unwrap();
    for index in [sum.clone(), sum.div(7).unwrap(), sum.rem(7), sum.clone().min(i.clone())] {
        let compare = Expr::CompareIndex(CompareOp::Lt, index, i.clone());
        assert_eq!(exact.expr(&compare), Some(compare));
    }
    let large = Index::value(data(0));
    let compare = Expr::CompareIndex(CompareOp::Lt, large, i);
    assert_eq!(exact.expr(&compare), Some(compare));
}

#[test]
fn one_large_term_is_compared_with_the_rest() {
    let axis = |_| Interval { lo: 0, hi: 9 };
    let exact = Exact::new(&axis, &dtype, &|_, _| None);
    let large = Index::value(data(0));
    let bound = Index::constant(100);
    let sum = large.scale(3).unwrap().add(&Index::constant(5)).unwrap();
    let compare = Expr::CompareIndex(CompareOp::Lt, sum, bound);
    // 3*I + 5 < 100
    let expected = Expr::CompareIndex(CompareOp::Le, large, Index::constant(31));
    assert_eq!(exact.expr(&compare), Some(expected));
}

#[test]
fn what_cannot_be_said_in_64_bits_is_refused() {
    let axis = |_| Interval { lo: 0, hi: 9 };
    let exact = Exact::new(&axis, &dtype, &|_, _| None);
    let (a, b) = (Index::value(data(0)), Index::value(data(1)));
    let sum = a.scale(1 << 40).unwrap().add(&b.scale(1 << 41).unwrap()).unwrap();
    let compare = Expr::CompareIndex(CompareOp::Lt, sum.clone(), Index::constant(7));
    assert_eq!(exact.expr(&compare), None);
    // As a bare value it wraps around.
    let value = Expr::Index(sum, DType::Int64);
    assert_eq!(exact.expr(&value), Some(value));
    // Deeply nested cases exceed the limit.
    let deep = (0..60).fold(a, |deep, n| {
        let other = b.scale(n + 2).unwrap();
        deep.scale(2).unwrap().min(other).add(&b).unwrap().max(Index::value(data(2)))
    });
    let compare = Expr::CompareIndex(CompareOp::Lt, deep, Index::constant(7));
    assert_eq!(exact.expr(&compare), None);
}
