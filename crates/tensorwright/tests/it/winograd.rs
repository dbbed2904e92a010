//! Winograd's algorithm computes what the direct sum computes: for every tile, filter, number of
//! dimensions and remainder, with the loops as the rewriting leaves them and as rules schedule them.

use tensorwright::schedule::primitives::Winograd;
use tensorwright::schedule::{ScheduleState, canonical};
use tensorwright::{Buffer, Cpu, Goal, Inputs, Kernel, Module, Precision, Program, Value};
use tensorwright_policy::cpu::rules::complete;

const CONV2D: &str = "def conv(TYPE(N,C,H,W) in, const TYPE(K,C,R,S) weight) -> (out) {
  out(n,k,h,w) +=! in(n,c,h+r,w+s) * weight(k,c,r,s)
}";

const BIAS: &str = "def conv(TYPE(N,C,H,W) in, TYPE(K,C,R,S) weight, TYPE(K) bias) -> (out) {
  out(n,k,h,w) = bias(k)
  out(n,k,h,w) += in(n,c,h+r,w+s) * weight(k,c,r,s)
  out(n,k,h,w) = fmaxf(out(n,k,h,w), 0)
}";

const CONV3D: &str = "def conv(TYPE(N,C,D,H,W) in, const TYPE(K,C,Q,R,S) weight) -> (out) {
  out(n,k,d,h,w) +=! in(n,c,d+q,h+r,w+s) * weight(k,c,q,r,s)
}";

const GROUPED: &str = "def conv(TYPE(N,G,C,H,W) in, const TYPE(G,K,C,R,S) weight) -> (out) {
  out(n,g,k,h,w) +=! in(n,g,c,h+r,w+s) * weight(g,k,c,r,s)
}";

const CONV1D: &str = "def conv(TYPE(C,W) in, const TYPE(K,C,S) weight) -> (out) {
  out(k,w) +=! in(c,w+s) * weight(k,c,s)
}";

const PADDED: &str = "def conv(TYPE(C,H,W) in, const TYPE(K,C,R,S) weight) -> (out) {
  padded(c,y,x) = (y >= 1 && y < H+1 && x >= 1 && x < W+1) ? in(c,y-1,x-1) : 0 where y in 0:H+2, x in 0:W+2
  out(k,h,w) +=! padded(c,h+r,w+s) * weight(k,c,r,s)
}";

fn program(text: &str, dtype: &str, sizes: &[(&str, i64)]) -> Program {
    let text = text.replace("TYPE", dtype);
    let text = if dtype == "double" { text.replace("fmaxf", "fmax") } else { text };
    let module = Module::parse("conv.tc", &text).unwrap();
    module.def("conv").unwrap().bind(sizes.iter().copied()).unwrap()
}

/// Runs a program with the stage rewritten, once with its loops as they come and once scheduled.
fn check(program: &Program, stage: &str, loops: &[&str], results: i64) {
    let targets = loops.iter().map(|name| (*name).to_owned()).collect();
    let mut draft = ScheduleState::new(canonical(program.ir()));
    draft.apply(stage, Winograd { targets, results }).unwrap();
    assert!(draft.nest.error_growth > 1.0);
    let scheduled = complete(draft.clone(), &Goal::new(Cpu::avx512()).with_workers(2));
    assert!(scheduled.schedule.steps.len() > draft.schedule.steps.len());
    let inputs = program.random_inputs(7).unwrap();
    for (draft, threads) in [(draft, 1), (scheduled.clone(), 1), (scheduled, 2)] {
        let text = draft.schedule.to_string();
        let builder = program.compile().threads(threads).schedule_text(&text).unwrap();
        let kernel = builder.build().unwrap();
        assert!(kernel.lowered().error_growth() > 1.0);
        let outputs = kernel.run(&inputs).unwrap();
        let verification = kernel.verify(&inputs, &outputs).unwrap();
        assert!(verification.passed(), "{program}\n{text}\n{:?}", verification.mismatches);
    }
}

#[test]
fn two_dimensions_with_every_tile_and_remainder() {
    for dtype in ["double", "float"] {
        for results in [2, 3, 4] {
            for (height, width) in [(6, 6), (7, 9), (10, 5)] {
                let sizes = [
                    ("N", 2),
                    ("C", 5),
                    ("K", 18),
                    ("H", height),
                    ("W", width),
                    ("R", 3),
                    ("S", 3),
                ];
                check(&program(CONV2D, dtype, &sizes), "out", &["h", "w"], results);
            }
        }
    }
}

#[test]
fn filters_of_other_lengths() {
    for (taps, results) in [(2, 2), (2, 3), (4, 3), (5, 2)] {
        let sizes = [("N", 1), ("C", 17), ("K", 3), ("H", 9), ("W", 11), ("R", taps), ("S", taps)];
        check(&program(CONV2D, "double", &sizes), "out", &["h", "w"], results);
    }
    let sizes = [("C", 16), ("K", 33), ("W", 40), ("S", 3)];
    check(&program(CONV1D, "double", &sizes), "out", &["w"], 4);
    let sizes = [("N", 1), ("C", 3), ("K", 4), ("H", 9), ("W", 8), ("R", 1), ("S", 3)];
    check(&program(CONV2D, "double", &sizes), "out", &["w"], 4);
}

#[test]
fn more_dimensions_groups_and_starting_values() {
    let sizes =
        [("N", 1), ("C", 4), ("K", 16), ("D", 4), ("H", 6), ("W", 7), ("Q", 3), ("R", 3), ("S", 3)];
    check(&program(CONV3D, "double", &sizes), "out", &["h", "w"], 2);
    check(&program(CONV3D, "double", &sizes), "out", &["d", "w"], 2);
    let sizes = [("N", 2), ("G", 3), ("C", 4), ("K", 5), ("H", 6), ("W", 7), ("R", 3), ("S", 3)];
    check(&program(GROUPED, "double", &sizes), "out", &["h", "w"], 4);
    let sizes = [("N", 2), ("C", 4), ("K", 5), ("H", 6), ("W", 7), ("R", 3), ("S", 3)];
    check(&program(BIAS, "double", &sizes), "out.1", &["h", "w"], 4);
    let sizes = [("C", 20), ("K", 32), ("H", 14), ("W", 14), ("R", 3), ("S", 3)];
    check(&program(PADDED, "float", &sizes), "out", &["h", "w"], 4);
}

#[test]
fn large_convolutions_use_it_where_precision_is_fast() {
    let sizes = [("C", 256), ("K", 256), ("H", 56), ("W", 56), ("R", 3), ("S", 3)];
    let program = program(PADDED, "float", &sizes);
    let lowered = |precision| program.compile().precision(precision).lower().unwrap();
    let fast = lowered(Precision::Fast);
    assert!(fast.schedule().to_string().contains("out: winograd h w by 4"), "{}", fast.schedule());
    assert_eq!(fast.precision(), Precision::Fast);
    for lowered in [lowered(Precision::Exact), program.compile().lower().unwrap()] {
        assert!(!lowered.schedule().to_string().contains("winograd"));
        assert_eq!((lowered.precision(), lowered.error_growth()), (Precision::Exact, 1.0));
    }
}

const SIZES: [(&str, i64); 7] =
    [("N", 1), ("C", 16), ("K", 8), ("H", 14), ("W", 14), ("R", 3), ("S", 3)];

/// Data of a convolution: what a pixel of a channel is made of its random value and its place.
type Pixels = fn(f64, [i64; 3]) -> f64;

fn convolution(scale: f64, pixels: Pixels) -> (Program, Inputs) {
    let program = program(CONV2D, "float", &SIZES);
    let mut inputs = program.random_inputs(3).unwrap();
    let changed = |name: &str, change: &dyn Fn(f64, &[i64]) -> f64| {
        let buffer = &inputs[name];
        let values = buffer.values().map(Value::as_f64).enumerate();
        let values: Vec<f64> = values.map(|(at, x)| change(x, &buffer.index(at))).collect();
        Buffer::from_f64s(buffer.dtype(), buffer.shape(), &values).unwrap()
    };
    let data = changed("in", &|x, at| pixels(x, [at[1], at[2], at[3]]));
    let weight = changed("weight", &|x, _| x * scale);
    inputs.insert("in".into(), data);
    inputs.insert("weight".into(), weight);
    (program, inputs)
}

/// Kernels with tiles of every size, the loops as they come and scheduled.
fn kernels(program: &Program) -> Vec<Kernel> {
    let kernel = |results: i64| {
        let targets = vec!["h".to_owned(), "w".to_owned()];
        let mut draft = ScheduleState::new(canonical(program.ir()));
        draft.apply("out", Winograd { targets, results }).unwrap();
        let scheduled = complete(draft.clone(), &Goal::new(Cpu::avx2()));
        [draft, scheduled].map(|d| program.compile().schedule(d.schedule).build().unwrap())
    };
    [2, 3, 4].into_iter().flat_map(kernel).collect()
}

#[test]
fn errors_stay_within_the_bound_whatever_the_data() {
    let checkered: Pixels = |x, [_, h, w]| x * if (h + w) % 2 == 0 { 1e3 } else { 1e-3 };
    let all: [(&str, f64, Pixels); 14] = [
        ("plain", 0.05, |x, _| x),
        ("not negative", 0.05, |x, _| f64::max(x, 0.0)),
        ("an image", 0.05, |x, _| f64::floor(127.5 * (x + 1.0))),
        ("one large pixel", 0.05, |x, [_, h, w]| if (h, w) == (10, 10) { 1e4 } else { x }),
        ("some far larger", 0.05, |x, [_, h, w]| if h % 5 + w % 5 == 0 { x * 1e6 } else { x }),
        ("checkered", 0.05, checkered),
        ("one side far larger", 0.05, |x, [_, _, w]| if w > 7 { x * 1e5 } else { x }),
        ("tiny", 1e-20, |x, _| x * 1e-20),
        ("subnormal", 0.05, |x, _| x * 1e-40),
        ("tiny weights", 1e-38, |x, _| x),
        ("huge", 1e18, |x, _| x * 1e18),
        ("nearly infinite", 0.005, |x, _| 3e37_f64.copysign(x)),
        (
            "an infinity",
            0.05,
            |x, [c, h, w]| if (c, h, w) == (0, 9, 9) { f64::INFINITY } else { x },
        ),
        ("a NaN", 0.05, |x, [c, h, w]| if (c, h, w) == (0, 9, 9) { f64::NAN } else { x }),
    ];
    for (name, scale, pixels) in all {
        let (program, inputs) = convolution(scale, pixels);
        for kernel in kernels(&program) {
            let outputs = kernel.run(&inputs).unwrap();
            let verification = kernel.verify(&inputs, &outputs).unwrap();
            let schedule = kernel.schedule();
            assert!(verification.passed(), "{name}\n{schedule}\n{:?}", verification.mismatches);
        }
    }
}

/// Whether a kernel passes that takes another value for one pixel: one of 144 terms is wrong in the
/// results around it.
fn passes_with_another(kernel: &Kernel, inputs: &Inputs, pixel: &[i64]) -> bool {
    let data = &inputs["in"];
    let values = data.values().map(Value::as_f64).enumerate();
    let values = values.map(|(at, x)| if data.index(at) == pixel { 0.5 - x } else { x });
    let values: Vec<f64> = values.collect();
    let mut others = inputs.clone();
    let other = Buffer::from_f64s(data.dtype(), data.shape(), &values).unwrap();
    others.insert("in".into(), other);
    kernel.verify(inputs, &kernel.run(&others).unwrap()).unwrap().passed()
}

#[test]
fn wrong_results_are_found() {
    let (program, inputs) = convolution(1.0, |x, _| x);
    for kernel in kernels(&program) {
        assert!(!passes_with_another(&kernel, &inputs, &[0, 7, 6, 6]), "{}", kernel.schedule());
    }
    // Nothing can be said about the results that an infinity takes part in, but about all others.
    let (program, inputs) =
        convolution(1.0, |x, [c, h, w]| if (c, h, w) == (0, 9, 9) { f64::INFINITY } else { x });
    for kernel in kernels(&program) {
        assert!(!passes_with_another(&kernel, &inputs, &[0, 7, 2, 2]), "{}", kernel.schedule());
        assert!(passes_with_another(&kernel, &inputs, &[0, 7, 9, 9]), "{}", kernel.schedule());
    }
}
