//! Compares one kernel for a range of sizes with a kernel made for each of them.
//!
//! ```console
//! $ cargo run --release -p tensorwright --example sized
//! ```
#![allow(clippy::print_stdout, reason = "prints a table")]

use std::error::Error;
use std::time::Instant;

use tensorwright::ir::{SizeRange, SizeValue};
use tensorwright::{Arguments, Buffer, Inputs, Module, View};

/// A definition, its sizes with their greatest and likely values, and the sizes of calls.
struct Case {
    name: &'static str,
    text: &'static str,
    sizes: &'static [(&'static str, i64, i64)],
    calls: &'static [&'static [i64]],
}

const CASES: [Case; 4] = [
    Case {
        name: "matrix product",
        text: "def f(float(M,K) A, float(K,N) B) -> (C) { C(m,n) +=! A(m,k) * B(k,n) }",
        sizes: &[("M", 4096, 256), ("K", 4096, 256), ("N", 4096, 256)],
        calls: &[&[1, 256, 256], &[33, 256, 256], &[256, 256, 256], &[100, 300, 500], &[511, 511, 511]],
    },
    Case {
        name: "dense layer, batch",
        text: "def f(float(B,256) x, float(256,256) w) -> (y) { y(b,n) +=! x(b,k) * w(k,n) }",
        sizes: &[("B", 2000, 128)],
        calls: &[&[1], &[2], &[5], &[16], &[33], &[128], &[300], &[1000], &[2000]],
    },
    Case {
        name: "softmax",
        text: "def f(float(N,D) x) -> (y) { m(n) max=! x(n,d)  s(n) +=! exp(x(n,d) - m(n))
            y(n,d) = exp(x(n,d) - m(n)) / s(n) }",
        sizes: &[("N", 2000, 64), ("D", 4096, 512)],
        calls: &[&[1, 512], &[7, 100], &[64, 512], &[200, 1000], &[2000, 64]],
    },
    Case {
        name: "unsharp mask",
        text: "def f(float(H,W) x) -> (y) {
            t(i,j) = x(i, min(max(j-1, 0), W-1)) + 2 * x(i,j) + x(i, min(j+1, W-1)) where i in 0:H, j in 0:W
            u(i,j) = t(min(i+1, H-1), j) + 2 * t(i,j) + t(max(i-1, 0), j) where i in 0:H, j in 0:W
            y(i,j) = 2 * x(i,j) - u(i,j) / 16 }",
        sizes: &[("H", 4096, 480), ("W", 4096, 640)],
        calls: &[&[480, 640], &[333, 777], &[1080, 1920]],
    },
];

fn main() -> Result<(), Box<dyn Error>> {
    for Case { name, text, sizes, calls } in CASES {
        let module = Module::parse("sized.tc", text)?;
        let def = module.def("f")?;
        let program = def.bind_sized(sizes.iter().map(|(name, most, likely)| {
            let range = SizeRange { least: 1, most: *most, likely: *likely, multiple: 1 };
            (*name, SizeValue::Varies(range))
        }))?;
        let sized = program.compile().build()?;
        println!("{name}");
        for call in calls {
            let bound =
                def.bind(sizes.iter().zip(*call).map(|((name, ..), value)| (*name, *value)))?;
            let fixed = bound.compile().build()?;
            let inputs = bound.random_inputs(1)?;
            let arguments = views(&inputs)?;
            let (mut of_fixed, mut of_sized) = (f64::MAX, f64::MAX);
            // Interleaved, and the best of each.
            for _ in 0..30 {
                of_fixed = of_fixed.min(seconds(|| fixed.run(arguments.clone()).is_ok()));
                of_sized = of_sized.min(seconds(|| sized.run(arguments.clone()).is_ok()));
            }
            let (us, ratio) = (of_sized * 1e6, of_sized / of_fixed);
            println!("  {call:?}: {us:.1} us, {ratio:.2} of the time of a kernel for these sizes");
        }
    }
    Ok(())
}

/// The inputs in place.
fn views(inputs: &Inputs) -> Result<Arguments<'_>, Box<dyn Error>> {
    inputs.iter().try_fold(Arguments::new(), |arguments, (name, buffer)| {
        let shape: Vec<usize> = buffer.shape().iter().map(|extent| *extent as usize).collect();
        let elements = Buffer::as_f32(buffer).ok_or("an input of another type")?;
        Ok(arguments.view(name, View::dense(elements, &shape)?))
    })
}

/// The mean seconds of a few calls.
fn seconds(mut call: impl FnMut() -> bool) -> f64 {
    let start = Instant::now();
    let mut calls = 0;
    while start.elapsed().as_micros() < 2000 {
        assert!(call(), "the call failed");
        calls += 1;
    }
    start.elapsed().as_secs_f64() / f64::from(calls)
}
