//! Tests of compiled builtins against a math library.
//!
//! Single precision is compared with double precision, which is practically exact. Double precision
//! is compared with the library's, whose own error of up to 1 ulp is added to the bound.
#![allow(unsafe_code, reason = "tests call the code they generate")]
#![allow(clippy::print_stdout, reason = "the measured errors, with `--nocapture`")]

mod kernel;

use kernel::{Element, Kernel};
use tensorwright_codegen_llvm::Processor;
use tensorwright_codegen_llvm::jit::Jit;
use tensorwright_lang::builtin::{Builtin, Signature};
use tensorwright_machine::Cpu;

/// A builtin with its own implementation, a reference and the stated error in ulp.
type Implemented = (Builtin, fn(f64) -> f64, f64);

const IMPLEMENTED: [Implemented; 14] = [
    (Builtin::Exp, f64::exp, 1.0),
    (Builtin::Exp2, f64::exp2, 1.0),
    (Builtin::Expm1, f64::exp_m1, 2.0),
    (Builtin::Log, f64::ln, 1.0),
    (Builtin::Log2, f64::log2, 2.0),
    (Builtin::Log10, f64::log10, 2.0),
    (Builtin::Log1p, f64::ln_1p, 2.0),
    (Builtin::Tanh, f64::tanh, 2.0),
    (Builtin::Erf, libm::erf, 2.0),
    (Builtin::Sigmoid, sigmoid, 2.5),
    (Builtin::Sin, f64::sin, 1.0),
    (Builtin::Cos, f64::cos, 1.0),
    (Builtin::Rsqrt, rsqrt, 1.5),
    (Builtin::Sqrt, f64::sqrt, 0.5),
];

fn sigmoid(x: f64) -> f64 {
    let e = (-x.abs()).exp();
    (if x < 0.0 { e } else { 1.0 }) / (1.0 + e)
}

fn rsqrt(x: f64) -> f64 {
    1.0 / x.sqrt()
}

/// The targets that this machine can run.
fn targets() -> Vec<(Processor, Jit)> {
    let targets = Cpu::NAMES.map(|name| Processor::named(name).unwrap());
    targets.into_iter().filter_map(|t| Jit::new(&t).ok().map(|jit| (t, jit))).collect()
}

fn native() -> (Processor, Jit) {
    targets().swap_remove(0)
}

/// The lanes of a register.
fn full<T>(target: &Processor) -> u32 {
    target.cpu().vector_bytes() as u32 / u32::try_from(size_of::<T>()).unwrap()
}

/// The distance from the exact value in units in the last place of single precision.
fn single_ulps(got: f32, exact: f64) -> f64 {
    let rounded = exact as f32;
    if rounded.is_nan() || rounded.is_infinite() || got.is_infinite() || got.is_nan() {
        let edge = got.is_infinite() && exact.abs() > f64::from(f32::MAX) * (1.0 - 2e-7);
        let near = rounded.is_infinite() && got.abs() == f32::MAX;
        let same = got == rounded || (got.is_nan() && rounded.is_nan()) || edge || near;
        return if same { 0.0 } else { f64::INFINITY };
    }
    let exponent = exact.abs().max(f64::from(f32::MIN_POSITIVE)).log2().floor();
    (f64::from(got) - exact).abs() / (exponent - 23.0).exp2()
}

/// The distance from the library's value in representable numbers.
fn double_ulps(got: f64, expected: f64) -> f64 {
    if got.is_nan() || expected.is_nan() {
        return if got.is_nan() == expected.is_nan() { 0.0 } else { f64::INFINITY };
    }
    let order = |x: f64| {
        let magnitude = i128::from(x.abs().to_bits());
        if x.is_sign_negative() { -magnitude } else { magnitude }
    };
    (order(got) - order(expected)).unsigned_abs() as f64
}

const EDGES: [f64; 24] = [
    0.0,
    1.0,
    2.0,
    0.5,
    0.25,
    1e-3,
    1e-10,
    1e-30,
    1e-39,
    1e-45,
    1e-310,
    5e-324,
    0.1,
    0.693,
    0.34658,
    0.999_999_94,
    1.000_000_1,
    10.0,
    88.0,
    104.0,
    745.0,
    3e38,
    1e300,
    f64::INFINITY,
];

fn edges() -> impl Iterator<Item = f64> {
    EDGES.into_iter().flat_map(|x| [x, -x]).chain([f64::NAN])
}

/// Numbers spread evenly over bit patterns.
fn singles(stride: usize) -> Vec<f32> {
    let spread = (0..=u32::MAX).step_by(stride).map(f32::from_bits);
    edges().map(|x| x as f32).chain(spread).collect()
}

/// Numbers from every binade, and more where functions are interesting.
fn doubles(count: usize) -> Vec<f64> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let random = (0..count).map(|index| {
        let unit = (next() >> 11) as f64 / (1_u64 << 52) as f64 - 1.0;
        match index % 4 {
            0 => f64::from_bits(next()),
            1 => unit,
            2 => unit * 8.0,
            _ => unit * 760.0,
        }
    });
    edges().chain(random).collect()
}

/// The worst argument of a function.
fn worst<T: Copy>(args: &[T], errors: impl Iterator<Item = f64>) -> (T, f64) {
    let pairs = args.iter().copied().zip(errors);
    pairs.max_by(|a, b| a.1.total_cmp(&b.1)).unwrap()
}

fn check_single_precision(args: &[f32]) {
    let (target, jit) = native();
    for (builtin, exact, stated) in IMPLEMENTED {
        let kernel = Kernel::new::<f32>(&jit, &target, builtin, full::<f32>(&target));
        let results = kernel.run([args, &[], &[]]);
        let errors = args.iter().zip(&results).map(|(&x, &y)| single_ulps(y, exact(x.into())));
        let (x, ulps) = worst(args, errors);
        println!("{:>8} float: {ulps:.3} ulp at {x:e}", builtin.name());
        assert!(ulps <= stated, "{builtin:?}({x:e}): {ulps} ulp");
    }
}

/// Four million numbers.
#[test]
fn single_precision_keeps_the_stated_errors() {
    check_single_precision(&singles(1021));
}

#[test]
fn double_precision_keeps_the_stated_errors() {
    let args = doubles(1_000_000);
    let (target, jit) = native();
    for (builtin, library, stated) in IMPLEMENTED {
        let results =
            Kernel::new::<f64>(&jit, &target, builtin, full::<f64>(&target)).run([&args, &[], &[]]);
        let errors = args.iter().zip(&results).map(|(&x, &y)| double_ulps(y, library(x)));
        let (x, ulps) = worst(&args, errors);
        println!("{:>8} double: {ulps:.3} ulp at {x:e}", builtin.name());
        assert!(ulps <= stated + 1.0, "{builtin:?}({x:e}): {ulps} ulp");
    }
}

/// Without fused multiply-add, and with other vector lengths.
#[test]
fn every_target_and_length_keeps_the_stated_errors() {
    let singles: Vec<f32> = singles(99_991);
    let doubles = doubles(20_000);
    for (target, jit) in targets() {
        for (builtin, exact, stated) in IMPLEMENTED {
            for lanes in [1, 3, 4, 32] {
                let what = format!("{builtin:?} on {lanes} lanes of {target}");
                let results =
                    Kernel::new::<f32>(&jit, &target, builtin, lanes).run([&singles, &[], &[]]);
                let errors =
                    singles.iter().zip(&results).map(|(&x, &y)| single_ulps(y, exact(x.into())));
                let (x, ulps) = worst(&singles, errors);
                assert!(ulps <= stated, "{what}: {ulps} ulp at {x:e}");
                let results =
                    Kernel::new::<f64>(&jit, &target, builtin, lanes).run([&doubles, &[], &[]]);
                let errors = doubles.iter().zip(&results).map(|(&x, &y)| double_ulps(y, exact(x)));
                let (x, ulps) = worst(&doubles, errors);
                assert!(ulps <= stated + 1.0, "{what}: {ulps} ulp at {x:e}");
            }
        }
    }
}

#[test]
fn odd_functions_keep_the_sign_of_zero() {
    let (target, jit) = native();
    for builtin in [Builtin::Tanh, Builtin::Erf, Builtin::Expm1, Builtin::Log1p, Builtin::Sqrt] {
        let kernel = Kernel::new::<f32>(&jit, &target, builtin, 4);
        let results = kernel.run([&[-0.0_f32, 0.0], &[], &[]]);
        assert_eq!(results.map_bits(), [1 << 31, 0], "{builtin:?}");
    }
}

trait MapBits {
    fn map_bits(&self) -> Vec<u32>;
}

impl MapBits for Vec<f32> {
    fn map_bits(&self) -> Vec<u32> {
        self.iter().map(|x| x.to_bits()).collect()
    }
}

/// The C library's result for a builtin that is not in [`IMPLEMENTED`].
fn library(builtin: Builtin, [x, y, z]: [f64; 3]) -> f64 {
    let truth = |truth: bool| f64::from(u8::from(truth));
    match builtin {
        Builtin::Abs => x.abs(),
        Builtin::Min | Builtin::Max if x.is_nan() || y.is_nan() => f64::NAN,
        Builtin::Clamp if x.is_nan() || y.is_nan() || z.is_nan() => f64::NAN,
        Builtin::Min | Builtin::Fmin => x.min(y),
        Builtin::Max | Builtin::Fmax => x.max(y),
        Builtin::Clamp => x.max(y).min(z),
        Builtin::Cbrt => x.cbrt(),
        Builtin::Tan => x.tan(),
        Builtin::Asin => x.asin(),
        Builtin::Acos => x.acos(),
        Builtin::Atan => x.atan(),
        Builtin::Sinh => x.sinh(),
        Builtin::Cosh => x.cosh(),
        Builtin::Asinh => libm::asinh(x),
        Builtin::Acosh => x.acosh(),
        Builtin::Atanh => libm::atanh(x),
        Builtin::Erfc => libm::erfc(x),
        Builtin::Lgamma => libm::lgamma(x),
        Builtin::Tgamma => libm::tgamma(x),
        Builtin::Floor => x.floor(),
        Builtin::Ceil => x.ceil(),
        Builtin::Round => x.round(),
        Builtin::Rint => x.round_ties_even(),
        Builtin::Trunc => x.trunc(),
        Builtin::Pow => x.powf(y),
        Builtin::Atan2 => x.atan2(y),
        Builtin::Fmod => x % y,
        Builtin::Hypot => x.hypot(y),
        Builtin::Copysign => x.copysign(y),
        Builtin::Fma => x.mul_add(y, z),
        Builtin::IsNan => truth(x.is_nan()),
        Builtin::IsInf => truth(x.is_infinite()),
        Builtin::IsFinite => truth(x.is_finite()),
        _ => IMPLEMENTED.iter().find(|(b, ..)| *b == builtin).unwrap().1(x),
    }
}

/// Every combination of interesting numbers for some arguments; the others are zero.
fn combinations(arity: usize) -> [Vec<f64>; 3] {
    let points = [
        0.0,
        -0.0,
        0.3,
        -0.7,
        1.0,
        -1.0,
        1.5,
        2.0,
        2.5,
        -2.5,
        3.0,
        -3.0,
        8.5,
        33.0,
        1e4,
        -16_777_217.0,
        1e-40,
        1e30,
        f64::INFINITY,
        f64::NEG_INFINITY,
        f64::NAN,
    ];
    let axes = [0, 1, 2].map(|axis| if axis < arity { &points[..] } else { &[0.0] });
    let mut args = [const { Vec::new() }; 3];
    for &x in axes[0] {
        for &y in axes[1] {
            for &z in axes[2] {
                args[0].push(x);
                args[1].push(y);
                args[2].push(z);
            }
        }
    }
    args
}

#[test]
fn every_builtin_works_in_both_precisions() {
    for (target, jit) in targets() {
        let lengths = if target.cpu().is_native() { &[1, 16][..] } else { &[5] };
        let floats = Builtin::ALL.iter().filter(|b| b.signature() != Signature::Integer);
        for (&builtin, &lanes) in floats.flat_map(|b| lengths.iter().map(move |n| (b, n))) {
            let what = format!("{builtin:?} on {lanes} lanes of {target}");
            let args = combinations(builtin.arity());
            let kernel = Kernel::new::<f64>(&jit, &target, builtin, lanes);
            let got = kernel.run(args.each_ref().map(|arg| &arg[..]));
            for (index, &got) in got.iter().enumerate() {
                let at = args.each_ref().map(|arg| arg[index]);
                let expected = library(builtin, at);
                let zeros = got == 0.0 && expected == 0.0;
                let close = zeros || double_ulps(got, expected) <= 8.0;
                assert!(close, "{what} {at:?}: {got} {expected}");
            }
            let args = args.map(|arg| arg.iter().map(|&x| x as f32).collect::<Vec<_>>());
            let kernel = Kernel::new::<f32>(&jit, &target, builtin, lanes);
            let got = kernel.run(args.each_ref().map(|arg| &arg[..]));
            for (index, &got) in got.iter().enumerate() {
                let at = args.each_ref().map(|arg| f64::from(arg[index]));
                let expected = library(builtin, at);
                assert!(single_ulps(got, expected) <= 4.0, "{what} {at:?}: {got} {expected}");
            }
        }
    }
}

/// Powers of single precision at random points.
#[test]
fn powers_of_single_precision_are_within_an_ulp() {
    let (target, jit) = native();
    let kernel = Kernel::new::<f32>(&jit, &target, Builtin::Pow, full::<f32>(&target));
    let random: Vec<f32> = doubles(400_000).iter().map(|&x| x as f32).collect();
    let (x, y) = random.split_at(random.len() / 2);
    let results = kernel.run([x, y, &[]]);
    for ((&x, &y), &got) in x.iter().zip(y).zip(&results) {
        let ulps = single_ulps(got, f64::from(x).powf(y.into()));
        assert!(ulps <= 1.0, "{x:e} to the {y:e}: {got:e}, {ulps} ulp");
    }
}

fn integers<T: Element + PartialEq + std::fmt::Debug>(
    cases: [[T; 3]; 4],
    expected: impl Fn(Builtin, [T; 3]) -> T,
) {
    let args = [0, 1, 2].map(|index| cases.map(|case| case[index]));
    for (target, jit) in targets() {
        let taken = |b: &Builtin| matches!(b.signature(), Signature::Numeric | Signature::Integer);
        for builtin in Builtin::ALL.iter().copied().filter(taken) {
            for lanes in [1, 4, 7] {
                let kernel = Kernel::new::<T>(&jit, &target, builtin, lanes);
                let results = kernel.run(args.each_ref().map(|arg| &arg[..]));
                assert_eq!(results, cases.map(|case| expected(builtin, case)), "{builtin:?}");
            }
        }
    }
}

#[test]
fn integers_wrap_and_keep_their_signedness() {
    integers(
        [[i32::MIN, 3, 5], [-7, -9, -8], [4, 0, 2], [i32::MAX, -1, 0]],
        |builtin, [x, y, z]| match builtin {
            Builtin::Abs => x.wrapping_abs(),
            Builtin::Min => x.min(y),
            Builtin::Max => x.max(y),
            Builtin::BitAnd => x & y,
            Builtin::BitOr => x | y,
            Builtin::BitXor => x ^ y,
            Builtin::BitNot => !x,
            Builtin::ShiftLeft => x.checked_shl(y.cast_unsigned()).unwrap_or(0),
            Builtin::ShiftRight => x.checked_shr(y.cast_unsigned()).unwrap_or(x >> 31),
            _ => x.max(y).min(z),
        },
    );
    integers([[200_u8, 3, 250], [7, 129, 128], [4, 0, 2], [255, 1, 0]], |builtin, [x, y, z]| {
        match builtin {
            Builtin::Abs => x,
            Builtin::Min => x.min(y),
            Builtin::Max => x.max(y),
            Builtin::BitAnd => x & y,
            Builtin::BitOr => x | y,
            Builtin::BitXor => x ^ y,
            Builtin::BitNot => !x,
            Builtin::ShiftLeft => x.checked_shl(y.into()).unwrap_or(0),
            Builtin::ShiftRight => x.checked_shr(y.into()).unwrap_or(0),
            _ => x.max(y).min(z),
        }
    });
}
