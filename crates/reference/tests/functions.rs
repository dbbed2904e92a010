//! Functions of the reference beside those of the platform's C library, in and far outside of their
//! domains.
#![allow(unsafe_code, reason = "C functions are called")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::collections::BTreeMap;

use tensorwright_lang::Module;
use tensorwright_reference::{Buffer, run};

macro_rules! functions {
    ($($name:ident($($x:ident),+)),+ $(,)?) => {
        unsafe extern "C" {
            $(fn $name($($x: f64),+) -> f64;)+
        }
        fn call(name: &str, x: f64, y: f64) -> f64 {
            let _ = y;
            // SAFETY: functions of numbers.
            match name {
                $(stringify!($name) => unsafe { $name($($x),+) },)+
                _ => panic!("{name}"),
            }
        }
        const FUNCTIONS: &[(&str, usize)] = &[$((stringify!($name), [$(stringify!($x)),+].len())),+];
    };
}

functions! {
    sqrt(x), cbrt(x), exp(x), exp2(x), expm1(x), log(x), log2(x), log10(x), log1p(x), sin(x), cos(x),
    tan(x), asin(x), acos(x), atan(x), sinh(x), cosh(x), tanh(x), asinh(x), acosh(x), atanh(x), erf(x),
    erfc(x), tgamma(x), lgamma(x), floor(x), ceil(x), trunc(x), round(x), rint(x), pow(x, y),
    atan2(x, y), fmod(x, y), hypot(x, y), copysign(x, y),
}

/// Small, large, at the ends of domains, and what is no number.
fn arguments() -> Vec<f64> {
    let mut magnitudes =
        vec![0.0, f64::MIN_POSITIVE, f64::MAX, f64::INFINITY, 5e-324, 0.5, 1.0, 1.5, 2.0, 3.0];
    for exponent in (-320..=308).step_by(7) {
        magnitudes.push(1.2345 * 10_f64.powi(exponent));
    }
    for step in 1..60 {
        magnitudes.push(f64::from(step) * 0.37);
        magnitudes.push(1.0 + 2_f64.powi(-step));
        magnitudes.push(1.0 - 2_f64.powi(-step));
        magnitudes.push(f64::from(step) * 12.5);
    }
    let negative: Vec<f64> = magnitudes.iter().map(|x| -x).collect();
    magnitudes.into_iter().chain(negative).chain([f64::NAN]).collect()
}

#[test]
fn functions_agree_with_the_platform_everywhere() {
    let xs = arguments();
    let ys: Vec<f64> = xs.iter().cycle().skip(101).step_by(5).copied().take(60).collect();
    let mut wrong = Vec::new();
    for (name, arity) in FUNCTIONS {
        let ys = if *arity == 2 { ys.as_slice() } else { &ys[..1] };
        let value =
            if *arity == 2 { format!("{name}(X(m), Y(n))") } else { format!("{name}(X(m))") };
        let text =
            format!("def f(double(M) X, double(N) Y) -> (Z) {{ Z(m,n) = n < N ? {value} : Y(n) }}");
        let module = Module::parse("f.tc", &text).unwrap_or_else(|errors| panic!("{errors}"));
        let sizes = [("M", xs.len() as i64), ("N", ys.len() as i64)];
        let program = module.def("f").unwrap().bind(sizes).unwrap_or_else(|e| panic!("{e}"));
        let buffer =
            |values: &[f64]| Buffer::from_f64(&[values.len() as i64], values.to_vec()).unwrap();
        let inputs = BTreeMap::from([("X".to_owned(), buffer(&xs)), ("Y".to_owned(), buffer(ys))]);
        let output = run(&program, &inputs).unwrap().outputs.remove(0).buffer;
        let points = xs.iter().flat_map(|x| ys.iter().map(move |y| (*x, *y)));
        for ((x, y), ours) in points.zip(output.as_f64().unwrap()) {
            let theirs = call(name, x, y);
            let same = ours.is_nan() && theirs.is_nan() || *ours == theirs;
            let allowed = match *name {
                "tgamma" | "lgamma" => 1e-11,
                _ => 1e-14,
            };
            let scale =
                if *name == "lgamma" { theirs.abs().max(1.0) } else { theirs.abs().max(1e-300) };
            if !same && !((ours - theirs).abs() <= allowed * scale) {
                wrong.push(format!("{name}({x:e}, {y:e}) = {ours:e}, and ought to be {theirs:e}"));
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "{} wrong:\n{}",
        wrong.len(),
        wrong[..wrong.len().min(60)].join("\n")
    );
}
