//! Tolerances hold for sums and products in many orders, with and without FMA.
//!
//! This evaluator, in the declared precision, shares no code with the interpreter: it rounds every
//! operation to its type, and supports only the constructs of the programs below.

use std::collections::BTreeMap;

use crate::{Buffer, Value, random, run};
use tensorwright_lang::Module;
use tensorwright_lang::builtin::Builtin;
use tensorwright_lang::dtype::DType;
use tensorwright_lang::ops::{ArithOp, LogicOp, ReductionOp, UnaryOp};
use tensorwright_lang::program::{AxisId, Combine, Expr, Index, Program, Read, Stage};
use tensorwright_random::SplitMix;

/// The order in which another evaluation combines the terms of a reduction.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Order {
    Forwards,
    Backwards,
    Shuffled,
    Tree,
}

/// Rounds to a type as a machine with arithmetic of that type would.
fn rounded(dtype: DType, value: f64) -> f64 {
    let format = dtype.float_format().filter(|_| dtype != DType::Double && value.is_finite());
    let Some(format) = format else { return value };
    // The distance of the numbers around the value.
    let exponent = value.abs().max(format.least_normal()).log2().floor() as i32;
    let step = 2f64.powi(exponent - format.mantissa_bits as i32);
    let rounded = (value / step).round_ties_even() * step;
    if rounded.abs() > format.largest() { rounded * f64::INFINITY } else { rounded }
}

/// Another evaluation.
struct Machine<'a> {
    program: &'a Program,
    tensors: BTreeMap<u32, Vec<f64>>,
    order: Order,
    fused: bool,
    /// Whether storage-only types are computed in `float`.
    wide: bool,
    random: SplitMix,
}

impl Machine<'_> {
    /// The type in which an expression is computed.
    fn working(&self, expr: &Expr) -> DType {
        let dtype = expr.dtype(&|id| self.program.tensor(id).dtype);
        if self.wide { dtype.computed_in() } else { dtype }
    }

    fn index(&self, index: &Index, point: &[i64]) -> i128 {
        let axis = |axis: AxisId| point[axis.0 as usize];
        let mut value = |expr: &Expr| -> Result<i128, ()> { Ok(self.eval(expr, point) as i128) };
        index.eval(&axis, &mut value).unwrap()
    }

    fn read(&self, read: &Read, point: &[i64]) -> f64 {
        let shape = &self.program.tensor(read.tensor).shape;
        let position =
            read.subscripts.iter().zip(shape).fold(0, |position, (subscript, extent)| {
                position * extent + self.index(subscript, point) as i64
            });
        self.tensors[&read.tensor.0][position as usize]
    }

    fn eval(&self, expr: &Expr, point: &[i64]) -> f64 {
        let dtype = self.working(expr);
        let eval = |expr: &Expr| self.eval(expr, point);
        let value = match expr {
            Expr::Const(scalar) => scalar.as_f64(),
            Expr::Index(index, _) => self.index(index, point) as f64,
            Expr::Read(read) => self.read(read, point),
            Expr::Unary(UnaryOp::Neg, a) => -eval(a),
            Expr::Unary(UnaryOp::Not, a) => f64::from(eval(a) == 0.0),
            Expr::Arith(op, a, b) => match (op, &**a, &**b) {
                (ArithOp::Add, Expr::Arith(ArithOp::Mul, x, y), z)
                | (ArithOp::Add, z, Expr::Arith(ArithOp::Mul, x, y))
                    if self.fused =>
                {
                    fused(dtype, eval(x), eval(y), eval(z))
                }
                _ => arith(*op, eval(a), eval(b)),
            },
            Expr::Compare(op, a, b) => f64::from(op.holds(eval(a).partial_cmp(&eval(b)))),
            Expr::CompareIndex(op, a, b) => {
                f64::from(op.holds(Some(self.index(a, point).cmp(&self.index(b, point)))))
            }
            Expr::Logic(op, a, b) => match (op, eval(a) != 0.0) {
                (LogicOp::And, true) | (LogicOp::Or, false) => eval(b),
                (_, decided) => f64::from(decided),
            },
            Expr::Select(c, a, b) => eval(if eval(c) != 0.0 { a } else { b }),
            Expr::Call(builtin, args) => {
                call(*builtin, dtype, &args.iter().map(eval).collect::<Vec<f64>>())
            }
            Expr::Cast(to, a) => rounded(*to, eval(a)),
        };
        rounded(dtype, value)
    }

    fn reduce(&mut self, op: ReductionOp, dtype: DType, mut terms: Vec<f64>) -> f64 {
        // Narrow types are accumulated in `float`.
        let dtype = if dtype == DType::Double { dtype } else { DType::Float };
        let combine = |a: f64, b: f64| match op {
            ReductionOp::Sum => rounded(dtype, a + b),
            ReductionOp::Product => rounded(dtype, a * b),
            ReductionOp::Min => a.min(b),
            ReductionOp::Max => a.max(b),
        };
        match self.order {
            Order::Forwards => {}
            Order::Backwards => terms.reverse(),
            Order::Shuffled => {
                for last in (1..terms.len()).rev() {
                    terms.swap(last, self.random.index(last + 1));
                }
            }
            Order::Tree => {
                while terms.len() > 1 {
                    let pairs = terms.chunks(2).map(|pair| pair.iter().copied().reduce(combine));
                    terms = pairs.map(Option::unwrap).collect();
                }
            }
        }
        terms.into_iter().reduce(combine).unwrap()
    }

    fn stage(&mut self, stage: &Stage) {
        let tensor = self.program.tensor(stage.output);
        let rank = stage.spatial();
        let base = stage.base.map(|id| self.tensors[&id.0].clone());
        let mut made = base.clone().unwrap_or_else(|| vec![0.0; tensor.elements() as usize]);
        for point in points(stage, 0, rank) {
            let place = point.iter().zip(&tensor.shape);
            let position = place.fold(0, |position, (at, extent)| position * extent + at) as usize;
            let mut terms: Vec<f64> = points(stage, rank, stage.axes.len())
                .into_iter()
                .map(|rest| self.eval(&stage.body, &[point.clone(), rest].concat()))
                .collect();
            let value = match stage.combine {
                Combine::Assign => terms[0],
                Combine::Reduce(op) => self.reduce(op, tensor.dtype, terms),
                Combine::Accumulate(op) => {
                    terms.insert(0, base.as_ref().unwrap()[position]);
                    self.reduce(op, tensor.dtype, terms)
                }
            };
            made[position] = rounded(tensor.dtype, value);
        }
        self.tensors.insert(stage.output.0, made);
    }
}

/// All points of some axes of a stage.
fn points(stage: &Stage, from: usize, to: usize) -> Vec<Vec<i64>> {
    stage.axes[from..to].iter().fold(vec![Vec::new()], |points, axis| {
        let extend =
            |point: Vec<i64>| (axis.lo..axis.hi).map(move |at| [&point[..], &[at]].concat());
        points.into_iter().flat_map(extend).collect()
    })
}

fn arith(op: ArithOp, a: f64, b: f64) -> f64 {
    match op {
        ArithOp::Add => a + b,
        ArithOp::Sub => a - b,
        ArithOp::Mul => a * b,
        ArithOp::Div => a / b,
        ArithOp::Rem => panic!("not in these programs"),
    }
}

fn fused(dtype: DType, x: f64, y: f64, z: f64) -> f64 {
    match dtype {
        DType::Float => f64::from((x as f32).mul_add(y as f32, z as f32)),
        _ => x.mul_add(y, z),
    }
}

fn call(builtin: Builtin, dtype: DType, args: &[f64]) -> f64 {
    let either = |float: fn(f32) -> f32, double: fn(f64) -> f64| {
        if dtype == DType::Double { double(args[0]) } else { float(args[0] as f32).into() }
    };
    match builtin {
        Builtin::Max => args[0].max(args[1]),
        Builtin::Clamp => args[0].max(args[1]).min(args[2]),
        Builtin::Abs => args[0].abs(),
        Builtin::Sqrt => either(f32::sqrt, f64::sqrt),
        Builtin::Exp => either(f32::exp, f64::exp),
        Builtin::Tanh => either(f32::tanh, f64::tanh),
        Builtin::Sigmoid => either(|x| 1.0 / (1.0 + (-x).exp()), |x| 1.0 / (1.0 + (-x).exp())),
        other => panic!("not in these programs: {other:?}"),
    }
}

/// A random value made of reads, up to a depth.
fn value(random: &mut SplitMix, depth: usize) -> String {
    const LEAVES: [&str; 8] =
        ["A(i,k)", "B(k,j)", "C(i,j)", "0.3", "1.75", "A(j,k)", "i", "C(j,i)"];
    if depth == 0 {
        return LEAVES[random.index(LEAVES.len())].to_owned();
    }
    let (a, b) = (value(random, depth - 1), value(random, depth - 1));
    match random.index(14) {
        0 | 1 => format!("({a} + {b} * C(j,i))"),
        2 | 3 => format!("({a} - B(i,j) * {b})"),
        4..=6 => format!("({a} * {b} + A(i,j))"),
        7 => format!("(A(i,k) * {a} / (1.5 + abs(C(i,k) * {b})))"),
        8 => format!("max(C(i,j) * {a}, {b})"),
        9 => format!("({a} * C(i,k) < {b} ? A(i,k) * {a} : {b} * C(i,j))"),
        10 => format!("tanh(B(i,j) * {a})"),
        11 => format!("exp(clamp(A(i,j) + {a}, -3, 3))"),
        12 => format!("sqrt(abs({a} * B(i,j)))"),
        _ => format!("sigmoid({a} - A(k,j))"),
    }
}

/// Contractions onto a part of a base, then pointwise chains and a sum.
fn program(seed: u64) -> String {
    let mut random = SplitMix::new(seed * 7919 + 3);
    let floats = DType::ALL.into_iter().filter(|dtype| dtype.is_float());
    let floats: Vec<DType> = floats.chain([DType::Float]).collect();
    let dtype = floats[random.index(floats.len())];
    let op = ["+=!", "+=!", "+=!", "*=!", "min=!", "max=!"][random.index(6)];
    let again = op.trim_end_matches('!');
    let depth = 1 + random.index(3);
    let (first, second) = (value(&mut random, depth), value(&mut random, 1));
    format!(
        "def f({dtype}(N,N) A, {dtype}(N,N) B, {dtype}(N,N) C) -> (R, T, S) {{
           R(i,j) {op} {first} + A(i,k) where i in 0:N, j in 0:N, k in 0:N
           R(i,j) {again} {second} - B(k,j) where i in 1:N, j in 0:N-1, k in 1:N
           T(i,j) = R(i,j) * C(i,j) + R(j,i)
           S() +=! T(i,j) * T(j,i) - R(i,j)
         }}"
    )
}

/// Inputs of several magnitudes: some elements are large, some small, some zero.
fn inputs(program: &Program, seed: u64) -> BTreeMap<String, Buffer> {
    let mut numbers = SplitMix::new(seed);
    let made = program.tensors[..program.inputs].iter().map(|tensor| {
        let buffer = random::random(tensor.dtype, &tensor.shape, &tensor.name, seed).unwrap();
        let scaled: Vec<f64> = buffer
            .values()
            .map(|value| value.as_f64() * [1.0, 1.0, 0.01, 8.0, 0.0, -1.0][numbers.index(6)])
            .collect();
        (tensor.name.clone(), Buffer::from_f64s(tensor.dtype, &tensor.shape, &scaled).unwrap())
    });
    made.collect()
}

#[test]
fn every_order_in_the_declared_precision_is_within_the_tolerance() {
    let (mut bounds, mut known) = (0, 0);
    for seed in 0..240 {
        let text = program(seed);
        let module = Module::parse("tolerance.tc", &text).unwrap_or_else(|e| panic!("{text}\n{e}"));
        let program = module.bind("f", [("N", 3 + seed as i64 % 4)]).unwrap();
        let inputs = inputs(&program, seed);
        let reference = run(&program, &inputs).unwrap();
        let tolerances = reference.outputs.iter().flat_map(|output| &output.tolerance);
        bounds += tolerances.clone().count();
        known += tolerances.filter(|tolerance| tolerance.is_finite()).count();
        let ids = || program.input_ids().zip(&program.tensors);
        let values = |name: &String| inputs[name].values().map(Value::as_f64).collect();
        for order in [Order::Forwards, Order::Backwards, Order::Shuffled, Order::Tree] {
            for (fused, wide) in [(false, false), (true, false), (false, true), (true, true)] {
                let tensors = ids().map(|(id, tensor)| (id.0, values(&tensor.name))).collect();
                let random = SplitMix::new(seed);
                let mut machine =
                    Machine { program: &program, tensors, order, fused, wide, random };
                program.stages.iter().for_each(|stage| machine.stage(stage));
                for (id, output) in program.outputs.iter().zip(&reference.outputs) {
                    let tensor = program.tensor(*id);
                    let values = &machine.tensors[&id.0];
                    let other = Buffer::from_f64s(tensor.dtype, &tensor.shape, values).unwrap();
                    if let Some(mismatch) = output.mismatch(&other) {
                        let how = format!("{order:?}, fused {fused}, wide {wide}");
                        panic!("seed {seed}, {how}: `{}`: {mismatch}\n{program}", output.name);
                    }
                }
            }
        }
    }
    assert!(known * 4 > bounds * 3, "most bounds say something: {known} of {bounds}");
}
