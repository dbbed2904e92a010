//! Compares the reference's functions with the platform's C library.
#![allow(unsafe_code, reason = "C functions are called")]

use std::collections::BTreeMap;

use crate::{Buffer, run};
use tensorwright_lang::Module;

type Unary = unsafe extern "C" fn(f64) -> f64;
type Binary = unsafe extern "C" fn(f64, f64) -> f64;

macro_rules! functions {
    ($table:ident: $kind:ident $params:tt; $($name:ident)+) => {
        unsafe extern "C" {
            $(fn $name $params -> f64;)+
        }
        const $table: &[(&str, $kind)] = &[$((stringify!($name), $name)),+];
    };
}

functions! { UNARY: Unary (x: f64);
    sqrt cbrt exp exp2 expm1 log log2 log10 log1p sin cos tan asin acos atan sinh cosh tanh asinh acosh
    atanh erf erfc tgamma lgamma floor ceil trunc round rint
}
functions! { BINARY: Binary (x: f64, y: f64); pow atan2 fmod hypot copysign }

/// Small and large arguments, ends of domains, infinities and NaN.
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

/// `Z(m,n) = value`, by the reference.
fn computed(value: &str, xs: &[f64], ys: &[f64]) -> Buffer {
    let text =
        format!("def f(double(M) X, double(N) Y) -> (Z) {{ Z(m,n) = n < N ? {value} : Y(n) }}");
    let module = Module::parse("f.tc", &text).unwrap_or_else(|errors| panic!("{errors}"));
    let sizes = [("M", xs.len() as i64), ("N", ys.len() as i64)];
    let program = module.def("f").unwrap().bind(sizes).unwrap_or_else(|errors| panic!("{errors}"));
    let buffer =
        |values: &[f64]| Buffer::from_f64(&[values.len() as i64], values.to_vec()).unwrap();
    let inputs = BTreeMap::from([("X".to_owned(), buffer(xs)), ("Y".to_owned(), buffer(ys))]);
    run(&program, &inputs).unwrap().outputs.remove(0).buffer
}

fn is_close(name: &str, ours: f64, theirs: f64) -> bool {
    let (allowed, least) = match name {
        // Near its zeros two terms cancel.
        "lgamma" => (1e-11, 1.0),
        "tgamma" => (1e-11, 1e-300),
        _ => (1e-14, 1e-300),
    };
    let same = (ours.is_nan() && theirs.is_nan()) || ours == theirs;
    same || (ours - theirs).abs() <= allowed * theirs.abs().max(least)
}

#[test]
fn functions_agree_with_the_platform_everywhere() {
    let xs = arguments();
    let ys: Vec<f64> = xs.iter().cycle().skip(101).step_by(5).copied().take(60).collect();
    let mut wrong = Vec::new();
    let mut check = |name: &str, x: f64, y: Option<f64>, ours: f64, theirs: f64| {
        if !is_close(name, ours, theirs) {
            wrong.push(format!("{name}({x:e}, {y:?}) = {ours:e}, and ought to be {theirs:e}"));
        }
    };
    for (name, function) in UNARY {
        let ours = computed(&format!("{name}(X(m))"), &xs, &[0.0]);
        for (x, ours) in xs.iter().zip(ours.as_f64().unwrap()) {
            // SAFETY: a function of a number.
            check(name, *x, None, *ours, unsafe { function(*x) });
        }
    }
    for (name, function) in BINARY {
        let ours = computed(&format!("{name}(X(m), Y(n))"), &xs, &ys);
        let points = xs.iter().flat_map(|x| ys.iter().map(move |y| (*x, *y)));
        for ((x, y), ours) in points.zip(ours.as_f64().unwrap()) {
            // SAFETY: a function of two numbers.
            check(name, x, Some(y), *ours, unsafe { function(x, y) });
        }
    }
    let some = wrong[..wrong.len().min(60)].join("\n");
    assert!(wrong.is_empty(), "{} wrong:\n{some}", wrong.len());
}
