//! Kernels on OpenCL devices, against the reference: default and explicit schedules, guards,
//! deadlines.
#![allow(clippy::print_stdout, reason = "a skipped test says so")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

use tensorwright::{Code, Def, Module, Program, Target, set_deadline};

/// No kernel of these tests takes a second; on a busy machine, up to a minute.
const DEADLINE: Duration = Duration::from_secs(120);

/// The most iterations for comparisons with the reference.
const MOST_ITERATIONS: u128 = 4_000_000;

type Sizes = BTreeMap<String, i64>;

/// The first OpenCL device; an error if one is required.
fn device() -> Option<Target> {
    set_deadline(DEADLINE);
    let found = tensorwright::target("opencl:0");
    if let Err(error) = &found {
        assert!(std::env::var_os("TENSORWRIGHT_NEEDS_DEVICES").is_none(), "{error}");
        println!("skipped: {error}");
    }
    found.ok()
}

fn examples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples")
}

/// Runs a program on a device with a schedule or the default one; returns the problem, if any.
fn problem(program: &Program, device: &Target, schedule: Option<&str>) -> Option<String> {
    let inputs = program.random_inputs(11).unwrap();
    let mut builder = program.compile().target(device.clone());
    if let Some(schedule) = schedule {
        builder = builder.schedule_text(schedule).unwrap();
    }
    let kernel = match builder.build() {
        Ok(kernel) => kernel,
        Err(error) => return Some(error.to_string()),
    };
    match kernel.run_guarded(&inputs) {
        Ok(outputs) => {
            let verified = kernel.verify(&inputs, &outputs).unwrap();
            (!verified.passed()).then(|| format!("{:?}", verified.mismatches))
        }
        // Random subscripts may be out of bounds, which both have to report.
        Err(error) if error.list()[0].code == Code::IndexOutOfBounds => {
            program.run_reference(&inputs).is_ok().then(|| error.to_string())
        }
        Err(error) => Some(error.to_string()),
    }
}

fn bound(text: &str, sizes: &[(&str, i64)]) -> Program {
    let module = Module::parse("test.tc", text).unwrap();
    module.defs().next().unwrap().bind(sizes.iter().copied()).unwrap()
}

fn example(file: &str, def: &str, sizes: &[(&str, i64)]) -> Program {
    let text = std::fs::read_to_string(examples().join(file)).unwrap();
    Module::parse(file, &text).unwrap().def(def).unwrap().bind(sizes.iter().copied()).unwrap()
}

const GEMM: &str = "def gemm(float(M,K) A, float(K,N) B) -> (C) { C(m,n) +=! A(m,k) * B(k,n) }";
const BLUR: &str = "def blur(float(H,W) in) -> (out) {
  bx(y,x) = in(y,x) + in(y,x+1) + in(y,x+2)
  out(y,x) = bx(y,x) + bx(y+1,x) + bx(y+2,x)
}";
const TOP: &str = "def top2(float(N,D) x) -> (first, second) {
  first(n) max=! x(n,d)
  second(n) max=! x(n,d) < first(n) ? x(n,d) : -1e30
}";

/// Two staged operands, where threads load more than one element, and 7 columns per thread.
const STAGED: &str = "C: split m 64\nC: split n 64 7\nC: split k 12 2\n\
    C: reorder m.0 n.0 k.0 m.1 n.1 k.1 k.2 n.2\n\
    C: bind m.0 block.y\nC: bind n.0 block.x\nC: bind m.1 thread.y\nC: bind n.1 thread.x\n\
    C: cache_read A at k.0 in shared\n\
    A.pack: fuse d0 d1 -> d0_d1\nA.pack: split d0_d1 64 64\n\
    A.pack: bind d0_d1.1 thread.y\nA.pack: bind d0_d1.2 thread.x\n\
    C: cache_read B at k.0 in shared\n\
    B.pack: fuse d0 d1 -> d0_d1\nB.pack: split d0_d1 64 64\n\
    B.pack: bind d0_d1.1 thread.y\nB.pack: bind d0_d1.2 thread.x\n\
    C: cache_write at n.0\nC.tile: unroll k.2\nC.tile: unroll n.2\nC: unroll n.2\n";

/// A stage computed in the blocks of its reader, shared by their threads.
const FUSED: &str = "out: split y 8\nout: split x 32\nout: reorder y.0 x.0 y.1 x.1\n\
    bx: compute_at out x.0\nout: bind y.0 block.y\nout: bind x.0 block.x\n\
    out: bind y.1 thread.y\nout: bind x.1 thread.x\nbx: bind y thread.y\nbx: bind x thread.x\n";

/// Blocks at a border wait for each other where others do. PoCL never ended these, or wrote beyond their outputs, while
/// barriers stood in conditions.
#[test]
fn borders_and_barriers() {
    let Some(device) = device() else { return };
    let rows = "def rows(float(L,S) e) -> (t) { t(l) +=! e(l,s) }";
    let attention = [("T", 100), ("D", 16), ("E", 16)];
    let cases = [
        ("rows", bound(rows, &[("L", 100), ("S", 64)]), None),
        ("rows", bound(rows, &[("L", 100), ("S", 1000)]), None),
        ("attention", example("kernels/attention.tc", "causal_attention", &attention), None),
        ("loss", example("kernels/loss.tc", "cross_entropy", &[("B", 100), ("C", 100)]), None),
        ("top2", bound(TOP, &[("N", 100), ("D", 100)]), None),
        ("gemm", bound(GEMM, &[("M", 200), ("N", 300), ("K", 100)]), Some(STAGED)),
        ("blur", bound(BLUR, &[("H", 100), ("W", 200)]), Some(FUSED)),
        ("blur", bound(BLUR, &[("H", 384), ("W", 640)]), Some(FUSED)),
    ];
    for (name, program, schedule) in cases {
        assert_eq!(problem(&program, &device, schedule), None, "{name}");
    }
}

/// Definitions of the examples with the sizes of their golden tests.
fn golden() -> Vec<(PathBuf, String, Sizes)> {
    let folders = [("kernels", "golden/cases.json"), ("pipelines", "golden/pipelines.json")];
    let mut all = BTreeMap::new();
    for (folder, list) in folders {
        let text = std::fs::read_to_string(examples().join(list)).unwrap();
        let cases: serde_json::Value = serde_json::from_str(&text).unwrap();
        for case in cases.as_array().unwrap() {
            let path = examples().join(folder).join(case["file"].as_str().unwrap());
            let def = case["def"].as_str().unwrap().to_owned();
            let sizes = serde_json::from_value(case["sizes"].clone()).unwrap();
            all.entry((path, def)).or_insert(sizes);
        }
    }
    all.into_iter().map(|((path, def), sizes)| (path, def, sizes)).collect()
}

/// A definition with all sizes set to a value; where that is invalid or too large for the
/// reference, one program per size that can have the value alone.
fn programs(def: Def<'_>, golden: &Sizes, value: i64) -> Vec<(Sizes, Program)> {
    let fits = |sizes: Sizes| {
        let program = def.bind(sizes.clone()).ok()?;
        (program.iterations() <= MOST_ITERATIONS).then_some((sizes, program))
    };
    let is_size: BTreeSet<&str> = def.sizes().into_iter().collect();
    let names = || golden.keys().filter(|name| is_size.contains(name.as_str()));
    let with = |changed: &dyn Fn(&str) -> bool| {
        let mut sizes = golden.clone();
        for name in names().filter(|name| changed(name)) {
            sizes.insert(name.clone(), value);
        }
        fits(sizes)
    };
    match with(&|_| true) {
        Some(all) => vec![all],
        None => names().filter_map(|name| with(&|other| other == name)).collect(),
    }
}

/// The number of tests that share the examples.
const PARTS: usize = 6;

/// Runs a part of the examples with all sizes set to a value.
fn some_examples(value: i64, part: usize) {
    let Some(device) = device() else { return };
    let (mut ran, mut failures) = (BTreeSet::new(), Vec::new());
    for (path, name, sizes) in golden().into_iter().skip(part).step_by(PARTS) {
        let text = std::fs::read_to_string(&path).unwrap();
        let module = Module::parse(&path.display().to_string(), &text).unwrap();
        for (sizes, program) in programs(module.def(&name).unwrap(), &sizes, value) {
            ran.insert((path.clone(), name.clone()));
            if let Some(problem) = problem(&program, &device, None) {
                failures.push(format!("{name} of {} {sizes:?}: {problem}", path.display()));
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    println!("{} definitions with sizes of {value}", ran.len());
}

macro_rules! examples {
    ($($name:ident: $part:expr;)*) => { $(
        mod $name {
            #[test]
            fn of_size_17() {
                crate::devices::some_examples(17, $part);
            }

            #[test]
            fn of_size_100() {
                crate::devices::some_examples(100, $part);
            }

            #[test]
            #[ignore = "17 and 100 have the same paths"]
            fn of_sizes_1_and_7() {
                crate::devices::some_examples(1, $part);
                crate::devices::some_examples(7, $part);
            }
        }
    )* };
}

examples! {
    first: 0;
    second: 1;
    third: 2;
    fourth: 3;
    fifth: 4;
    sixth: 5;
}
