//! Tests of small programs of all types, vectorized and parallel.
#![allow(unsafe_code, reason = "tests call generated code")]

use crate::support;
use crate::support::{Inputs, call, check, check_with, load, program, scheduled};
use tensorwright_codegen_llvm::Processor;
use tensorwright_codegen_llvm::{CodegenOptions, Listing, compile, listing};
use tensorwright_lang::dtype::DType;
use tensorwright_lang::program::Program;
use tensorwright_reference::{Buffer, random_inputs};

/// All loops, the last one vectorized with a tail, the first one parallel.
const VECTORS: &str = "O: split i 8 [guard]\nO: vectorize i.1\nO: parallel i.0\n";

/// The same with another loop inside the parallel one.
fn inner(other: &str) -> String {
    format!("O: split i 8 [guard]\nO: reorder i.0 {other} i.1\nO: vectorize i.1\nO: parallel i.0\n")
}

const SPECIAL: [f64; 21] = [
    0.0,
    -0.0,
    1.5,
    -1.5,
    f64::NAN,
    f64::INFINITY,
    f64::NEG_INFINITY,
    65504.0,
    65520.0,
    -65519.0,
    1e-7,
    6e-8,
    2e-8,
    1e-40,
    3.4e38,
    1e300,
    1.0 + 1.0 / 2048.0,
    1.0 + 1.0 / 2048.0 + 1e-10,
    -128.7,
    300.2,
    4.0e9,
];

fn special(dtype: DType) -> Inputs {
    let buffer = Buffer::from_f64s(DType::Double, &[21], &SPECIAL).unwrap();
    Inputs::from([("X".to_owned(), buffer.convert(dtype).unwrap())])
}

#[test]
fn every_type_converts_to_every_type() {
    let results: Vec<String> = DType::ALL.iter().map(|to| format!("to_{to}")).collect();
    let line = |to: &DType| format!("to_{to}(i) = {to}(X(i))\n");
    let lines: String = DType::ALL.iter().map(line).collect();
    let vectors = |name: &String| VECTORS.replace("O:", &format!("{name}:"));
    let schedule: String = results.iter().map(vectors).collect();
    for from in DType::ALL {
        let source = format!("def f({from}(N) X) -> ({}) {{ {lines} }}", results.join(", "));
        check_with(&source, &[("N", 21)], &schedule, &special(from));
        check_with(&source, &[("N", 21)], "", &special(from));
    }
}

#[test]
fn operators_of_every_numeric_type() {
    for dtype in DType::ALL.into_iter().filter(|dtype| *dtype != DType::Bool) {
        for op in ["a(i) + b(i)", "a(i) - b(i)", "a(i) * b(i)", "a(i) / b(i)", "a(i) % b(i)"] {
            if dtype.is_float() && op.contains('%') {
                continue;
            }
            let source = format!("def f({dtype}(N) a, {dtype}(N) b) -> (O) {{ O(i) = {op} }}");
            let values = [-7.0, 7.0, 3.0, -3.0, 0.0, -1.0, -128.0, 1.0, 2.0, 100.0, 5.0];
            let other = [2.0, -2.0, 0.0, -1.0, 5.0, -1.0, -1.0, 0.0, 3.0, 7.0, -128.0];
            let buffer = |values: &[f64]| {
                let doubles = Buffer::from_f64s(DType::Double, &[11], values).unwrap();
                doubles.convert(DType::Int8).unwrap().convert(dtype).unwrap()
            };
            let inputs =
                Inputs::from([("a".into(), buffer(&values)), ("b".into(), buffer(&other))]);
            check_with(&source, &[("N", 11)], VECTORS, &inputs);
        }
    }
}

#[test]
fn reductions_of_every_type() {
    let summed = |dtype: &DType| !matches!(dtype, DType::Bool);
    for dtype in DType::ALL.into_iter().filter(summed) {
        for op in ["+=!", "*=!", "min=!", "max=!"] {
            let source = format!("def f({dtype}(M,N) A) -> (O) {{ O(i) {op} A(k,i) }}");
            // Storage-only types are summed in a separate stage.
            let schedule = if dtype.is_storage_only() { VECTORS.to_owned() } else { inner("k") };
            check(&source, &[("M", 5), ("N", 21)], &schedule);
        }
    }
}

/// Schedules that decide a condition on `i` and `k` block by block, with uniform and divergent
/// lanes.
const BLOCKS: [&str; 3] = [
    "O: split k 4\nO: split i 4 [peel]\nO: reorder i.0 k.0 i.1 k.1\n",
    "O: split i 8 [guard]\nO: split k 2 [peel]\nO: reorder i.0 k.0 k.1 i.1\nO: vectorize i.1\nO: parallel i.0\n",
    "O: split k 8 [guard]\nO: vectorize k.1\nO: parallel i\n",
];

#[test]
fn blocks_of_masked_terms_are_left_out() {
    let sizes = [("M", 37), ("N", 45)];
    let conditions =
        ["k <= i", "k > i", "2 * k >= i + 3", "k <= i && k > i - 6", "k == i || k < i / 2"];
    for (op, otherwise) in [("+=!", "0"), ("*=!", "1"), ("max=!", "-INFINITY"), ("min=!", "3.5")] {
        for condition in conditions {
            let source = format!(
                "def f(float(M,N) A) -> (O) {{
                   O(i) {op} ({condition}) ? A(k,i) : {otherwise} where i in 0:N, k in 0:M }}"
            );
            BLOCKS.iter().for_each(|schedule| check(&source, &sizes, schedule));
        }
    }
    let elements =
        "def f(float(M,N) A) -> (O) { O(k,i) = k < i ? exp(A(k,i)) : 2 where k in 0:M, i in 0:N }";
    BLOCKS[..2].iter().for_each(|schedule| check(elements, &sizes, schedule));
}

#[test]
fn what_masked_terms_leave_alone_is_what_the_reference_has() {
    // The minimum of no numbers is the initial value, not the next integer.
    let ends = "def f(int64(M,N) A) -> (O) {
        O(i) min=! k < i ? A(k,i) : 9223372036854775806 where i in 0:N, k in 0:M }";
    check(ends, &[("M", 32), ("N", 32)], BLOCKS[0]);
    // A maximum that continues from NaN ignores it.
    let onto = "def f(float(N) X, float(N,N) A) -> (O) {
        O(i) = X(i)
        O(i) max= k < i - 30 ? A(k,i) : -INFINITY where k in 0:N }";
    let mut inputs = random_inputs(&program(onto, None, &[("N", 21)]), 3).unwrap();
    inputs.extend(special(DType::Float));
    check_with(onto, &[("N", 21)], BLOCKS[0], &inputs);
    let scattered = "def f(float(N) X, int(K) I, float(K) A) -> (O) {
        O(i) = X(i)
        O(i) max= A(k) scatter i = I(k) }";
    let mut inputs = random_inputs(&program(scattered, None, &[("N", 21), ("K", 4)]), 3).unwrap();
    inputs.extend(special(DType::Float));
    for schedule in ["", "O: privatize k\n"] {
        check_with(scattered, &[("N", 21), ("K", 4)], schedule, &inputs);
    }
}

#[test]
fn conditions_are_lazy_lane_by_lane() {
    let sizes = [("N", 37)];
    let padded = "def f(float(N) A) -> (O) { O(i) = (i >= 2 && i < N + 2) ? A(i - 2) : 0.5 where i in 0:41 }";
    check(padded, &sizes, VECTORS);
    check(padded, &sizes, "");
    let nested = "def f(float(N) A) -> (O) {
        O(i) = i < 3 ? 1 : (i >= 40 || A(i - 3) > 0) ? 2 : A(i - 3) * A(0) where i in 0:50 }";
    check(nested, &sizes, VECTORS);
    let uniform = "def f(float(N) A, int s) -> (O) { O(i) = (s > 100 && A(i) > 0) ? A(i) : -A(i) }";
    check(uniform, &sizes, VECTORS);
}

#[test]
fn strides_reversals_and_quotients() {
    let sizes = [("N", 120)];
    let bodies = [
        "A(2*i) where i in 0:60",
        "A(3*i + 1) where i in 0:39",
        "A(7*i) where i in 0:17",
        "A(N - 1 - i) where i in 0:120",
        "A(i / 4) where i in 0:480",
        "A(i % 5) where i in 0:64",
        "A((7*i + 3) / 2 % 60) where i in 0:64",
        "float(i * 3 - 50) + float((i - 30) / 7) + float((i - 30) % 7) + A(i) where i in 0:100",
    ];
    for body in bodies {
        let source = format!("def f(float(N) A) -> (O) {{ O(i) = {body} }}");
        for schedule in ["", VECTORS, "O: split i 5 [guard]\nO: vectorize i.1\n"] {
            check(&source, &sizes, schedule);
        }
    }
    let transposed = "def f(double(M,N) A) -> (O) { O(i,j) = A(j,i) }";
    check(transposed, &[("M", 19), ("N", 23)], &inner("j"));
}

const GATHER: &str = "def f(float(N,D) A, int(K) I) -> (O) { O(i,d) = A(I(i),d) }";

#[test]
fn gathers_in_bounds() {
    for schedule in ["", &inner("d"), "O: vectorize d\nO: parallel i\n"] {
        check(GATHER, &[("N", 9), ("D", 6), ("K", 29)], schedule);
    }
}

/// Runs a program with 29 positions `I`, the last of which is wrong; returns the failed buffers.
fn failed(program: &Program, schedule: &str, wrong: i32) -> Vec<String> {
    let nest = scheduled(program, schedule);
    let mut inputs = random_inputs(program, 3).unwrap();
    let mut indices = vec![1; 29];
    indices[28] = wrong;
    inputs.insert("I".into(), Buffer::from_i32(&[29], indices).unwrap());
    let failed = support::targets().into_iter().map(|target| {
        let ran = call(program, &load(&nest, target), &inputs, true);
        assert_eq!(ran.status, 1, "{wrong} {schedule}");
        let read = ran.compiled.interface.failed_read(ran.status).unwrap();
        nest.as_nest().buffer(read.buffer).name.clone()
    });
    failed.collect()
}

#[test]
fn gathers_out_of_bounds_return_a_status_and_touch_nothing() {
    let program = program(GATHER, None, &[("N", 9), ("D", 6), ("K", 29)]);
    let lanes = inner("d");
    let cases = [(9, ""), (-1, lanes.as_str()), (i32::MAX, &lanes), (i32::MIN, "O: vectorize d\n")];
    for (wrong, schedule) in cases {
        assert!(failed(&program, schedule, wrong).iter().all(|name| name == "A"));
    }
}

/// In the order of the interface, independent of evaluation order.
#[test]
fn gathers_of_gathers_have_their_numbers() {
    let source = "def f(float(N) A, int(K) I, int(K) J) -> (O) { O(i) = A(I(J(i))) }";
    let program = program(source, None, &[("N", 9), ("K", 11)]);
    let nest = scheduled(&program, "");
    let loaded = load(&nest, support::targets()[0]);
    let fails = |i: i32, j: i32| {
        let mut inputs = random_inputs(&program, 3).unwrap();
        inputs.insert("I".into(), Buffer::from_i32(&[11], vec![i; 11]).unwrap());
        inputs.insert("J".into(), Buffer::from_i32(&[11], vec![j; 11]).unwrap());
        let ran = call(&program, &loaded, &inputs, false);
        let read = ran.compiled.interface.failed_read(ran.status);
        read.map(|read| nest.as_nest().buffer(read.buffer).name.clone())
    };
    assert_eq!(fails(8, 10), None);
    assert_eq!(fails(9, 10).as_deref(), Some("A"));
    assert_eq!(fails(8, 11).as_deref(), Some("I"));
}

#[test]
fn idle_lanes_do_not_fail() {
    let source =
        "def f(float(N) A, int(K) I) -> (O) { O(i) = I(i) >= 0 && I(i) < N ? A(I(i)) : -1 }";
    let indices = vec![3, -5, 99, 0, 8, i32::MAX, i32::MIN, 2, 9, 1, 10];
    let inputs = Inputs::from([("I".into(), Buffer::from_i32(&[11], indices).unwrap())]);
    for schedule in ["", VECTORS] {
        check_with(source, &[("N", 9), ("K", 11)], schedule, &inputs);
    }
}

const SCATTER: &str =
    "def f(float(K,D) A, int(K) I) -> (O) { O(n,d) +=! A(i,d) scatter n = I(i) where n in 0:9 }";

/// Plain loops; vectors with both kinds of tails; copies per worker, vectorized.
const SCATTERED: [&str; 4] = [
    "",
    "O: reorder i d\nO: split d 8\nO: vectorize d.1\n",
    "O: reorder i d\nO: split d 4 [peel]\nO: vectorize d.1\nO: split i 3\nO: unroll i.1\n",
    "O: split i 8\nO: privatize i.0\nO.part: reorder i.0 i.1 d\nO.part: split d 8\n\
     O.part: vectorize d.1\nO.part: parallel i.0\nO.part.start: parallel i.0\nO: parallel n\n",
];

#[test]
fn scatters_in_bounds() {
    let sizes = [("D", 21), ("K", 29)];
    for schedule in SCATTERED {
        check(SCATTER, &sizes, schedule);
        check(&SCATTER.replace("I(i)", "clamp(3 * I(i) - 1, 0, 8)"), &sizes, schedule);
        check(&SCATTER.replace("I(i)", "(i + i / 4) % 9"), &sizes, schedule);
    }
    // The position depends on data in each lane.
    let lanes = "def f(float(K,D) A, int(K,D) I) -> (O) {
        O(n,d) +=! A(i,d) scatter n = I(i,d) where n in 0:9 }";
    for schedule in SCATTERED {
        check(lanes, &sizes, schedule);
        check(&lanes.replace("I(i,d)", "clamp(I(i,d), 2, 7)"), &sizes, schedule);
    }
    let two = "def f(float(K,D) A, int(K) I, int(D) J) -> (O) {
        O(m,n) max=! A(i,d) scatter n = I(i), m = J(d) where n in 0:9, m in 0:4 }";
    check(two, &sizes, "");
    check(two, &sizes, "O: privatize d\nO.part: parallel d\n");
    let onto = "def f(float(K,D) A, int(K) I, float(M,D) B) -> (O) {
        O(n,d) = B(n,d)
        O(n,d) += A(i,d) scatter n = I(i) where d in 3:D }";
    for schedule in SCATTERED {
        check(onto, &[("D", 21), ("K", 29), ("M", 9)], schedule);
    }
}

/// Schedules with recurrences in lanes: with tails, in consecutive vectors, interleaved lines, and
/// with more lanes than a register.
const STEPS: [&str; 7] = [
    "O: split t 8\nO: vectorize t.1\n",
    "O: split t 3 4 [peel]\nO: unroll t.1\nO: vectorize t.2\n",
    "O: split t 5 [guard]\nO: vectorize t.1\n",
    "O: split t 2 7 [guard]\nO: unroll t.1\nO: vectorize t.2\nO: parallel n\n",
    "O: split t 4 [peel]\nO: reorder t.0 n t.1\nO: unroll n\nO: vectorize t.1\nO: unroll t.0\n",
    "O: split t 64\nO: vectorize t.1\n",
    "O: split t 2\nO: vectorize t.1\n",
];

/// A type of each kind and size.
const MOST_DIFFERENT: [DType; 5] =
    [DType::Float, DType::Double, DType::Int8, DType::UInt32, DType::BFloat16];

#[test]
fn running_sums_of_types_that_differ() {
    MOST_DIFFERENT.into_iter().for_each(running_sums);
}

#[test]
fn running_sums_of_the_other_types() {
    let is_other = |dtype: &DType| *dtype != DType::Bool && !MOST_DIFFERENT.contains(dtype);
    DType::ALL.into_iter().filter(is_other).for_each(running_sums);
}

fn running_sums(dtype: DType) {
    for value in ["P + A(n,t)", "A(n,t) * P", "min(P, A(n,t))", "max(A(n,t) * 2, max(P, A(n,t)))"] {
        // Storage-only types are rounded at every step.
        if dtype.is_storage_only() && !value.starts_with('m') {
            continue;
        }
        for before in ["O(n,t-1)", "O(n,t+1)"] {
            let value = value.replace('P', before);
            let source = format!(
                "def f({dtype}(N,T) A, {dtype}(N) B) -> (O) {{ O(n,t) = {value} scan t from B(n) }}"
            );
            for (length, schedule) in [1, 2, 13, 29, 64, 70, 5].into_iter().zip(STEPS) {
                check(&source, &[("N", 3), ("T", length)], schedule);
                // Remainders of vectors do not depend on the type.
                if matches!(dtype, DType::Float | DType::Int8) {
                    check(&source, &[("N", 3), ("T", 37)], schedule);
                }
            }
        }
    }
}

/// Segments that workers share, with a shorter last one, vectorized and sequential.
#[test]
fn pieces_of_running_sums() {
    let schedules = [
        "O: split t 8\nO: segment t.0\nO: reorder t.0 n t.1\nO: parallel t.0\nO.total: parallel n\n",
        "O: split t 12\nO: segment t.0\nO: split t.1 4\nO: vectorize t.1.1\nO: reorder t.0 n t.1.0 t.1.1\n\
         O: parallel t.0\nO.total: vectorize t.1\nO.last: vectorize t.0\n",
    ];
    for dtype in [DType::Float, DType::Double, DType::Int8, DType::UInt32] {
        for value in ["P + A(n,t)", "A(n,t) * P", "min(P, A(n,t))", "max(A(n,t), P)"] {
            for before in ["O(n,t-1)", "O(n,t+1)"] {
                let value = value.replace('P', before);
                let source =
                    format!("def f({dtype}(N,T) A) -> (O) {{ O(n,t) = {value} scan t from 1 }}");
                for (length, schedule) in
                    [(37, schedules[0]), (24, schedules[1]), (61, schedules[1])]
                {
                    check(&source, &[("N", 3), ("T", length)], schedule);
                }
            }
        }
    }
}

/// NaN is ignored, and stays before the first number.
#[test]
fn running_maxima_pass_by_what_is_no_number() {
    let source = "def f(float(N,T) X, float(N) S) -> (O, R) {
      O(n,t) = max(O(n,t-1), X(n,t)) scan t from S(n)
      R(n,t) = min(X(n,t), R(n,t+1)) scan t from S(n)
    }";
    let (nan, inf) = (f32::NAN, f32::INFINITY);
    let line = [nan, nan, -inf, nan, 3.0, nan, 1.0, -0.0, 0.0, inf, nan, 7.0, nan];
    let x = Buffer::from_f32(&[3, 13], line.repeat(3)).unwrap();
    let s = Buffer::from_f32(&[3], vec![nan, -inf, 2.0]).unwrap();
    let inputs = Inputs::from([("X".into(), x), ("S".into(), s)]);
    for schedule in STEPS {
        let both = format!("{schedule}{}", schedule.replace("O:", "R:"));
        check_with(source, &[("N", 3), ("T", 13)], &both, &inputs);
    }
}

#[test]
fn scatters_of_every_type() {
    for dtype in DType::ALL.into_iter().filter(|dtype| *dtype != DType::Bool) {
        for op in ["+=!", "*=!", "min=!", "max=!"] {
            let source = format!(
                "def f({dtype}(K) A, int64(K) I) -> (O) {{
                   O(n) {op} A(i) scatter n = I(i) where n in 0:5 }}"
            );
            check(&source, &[("K", 23)], "");
            let stage = if dtype.is_storage_only() { "O.sum" } else { "O" };
            let parts = format!("{stage}: privatize i\n{stage}.part: parallel i\n");
            check(&source, &[("K", 23)], &parts);
        }
    }
}

#[test]
fn scatters_out_of_bounds_return_a_status_and_touch_nothing() {
    let program = program(SCATTER, None, &[("D", 21), ("K", 29)]);
    for (wrong, schedule) in [9, -1, i32::MAX, i32::MIN].into_iter().zip(SCATTERED) {
        let buffer = if schedule.contains("privatize") { "O.part" } else { "O" };
        assert!(failed(&program, schedule, wrong).iter().all(|name| name == buffer));
    }
}

const GEMM: &str = "def f(float(M,K) A, const float(K,N) B) -> (C) { C(m,n) +=! A(m,k) * B(k,n) }";

#[test]
fn tiled_products() {
    let sizes = [("M", 13), ("N", 70), ("K", 9)];
    check(
        GEMM,
        &sizes,
        "C: split m 6 [peel]\nC: split n 2 16 [guard]\nC: reorder m.0 n.0 k m.1 n.1 n.2\n\
        C: cache_write at n.0\nC.tile: unroll m.1\nC.tile: unroll n.1\nC.tile: vectorize n.2\nC: parallel m.0\n",
    );
    check(
        GEMM,
        &sizes,
        "B: layout [d1/16, d0, d1%16]\nC: split n 16 [guard]\nC: reorder m n.0 k n.1\nC: vectorize n.1\nC: parallel m\n",
    );
}

#[test]
fn every_builtin_in_vectors() {
    for call in [
        "exp(x(i))",
        "fmax(x(i), 0.1)",
        "sqrt(abs(x(i)))",
        "pow(abs(x(i)), x(i))",
        "sin(x(i))",
        "clamp(x(i), -0.5, 0.5)",
    ] {
        for dtype in ["half", "float", "double"] {
            let source = format!("def f({dtype}(N) x) -> (O) {{ O(i) = {call} }}");
            check(&source, &[("N", 21)], VECTORS);
        }
    }
}

#[test]
fn failures_are_values_and_text_is_stable() {
    let program = program(GEMM, None, &[("M", 4), ("N", 4), ("K", 4)]);
    let target = Processor::native().unwrap();
    let options = CodegenOptions::default();
    let nest = scheduled(&program, "").named("1 strange/name");
    assert_eq!(compile(&nest, &target, &options).unwrap().interface.symbol, "k1_strange_name");
    for kind in [Listing::EmittedIr, Listing::Ir, Listing::Assembly] {
        let text = |_| listing(&nest, &target, &options, kind).unwrap();
        assert_eq!(text(0), text(1));
        assert!(text(0).contains("k1_strange_name"));
    }
}

#[test]
fn lanes_that_do_not_take_part_keep_nothing_of_a_narrowed_value() {
    // `select <1, 1, 0, 0>` of four 64-bit lanes that are truncated to bytes, and other widths.
    for to in ["uint8", "int8", "int16", "uint32"] {
        for lanes in [2, 4, 8] {
            let source = format!(
                "def f(float(N) A) -> (O) {{ O(k) +=! {to}(max(k-m, 0)) where k in 0:5, m in 0:{} }}",
                lanes / 2
            );
            let schedule =
                format!("O: split m {lanes} [peel]\nO: rfactor m.1 at m.0\nO.rf: vectorize m.1\n");
            check(&source, &[("N", 1)], &schedule);
        }
    }
}

#[test]
fn three_lanes_that_become_bytes_are_not_truncated_on_aarch64() {
    let text = "def f(int64(N) X) -> (O) { O(i) = int8(X(i)) }";
    let program = program(text, None, &[("N", 9)]);
    let nest = scheduled(&program, "O: split i 3\nO: vectorize i.1\n");
    let target = Processor::named("neon").unwrap();
    let ir = listing(&nest, &target, &CodegenOptions::default(), Listing::Ir).unwrap();
    assert!(!ir.contains("trunc <3 x i64>"), "{ir}");
    assert!(ir.contains("shufflevector <24 x i8>"), "{ir}");
}

#[test]
fn divisors_that_are_zero_in_some_lanes_leave_the_others_alone() {
    for (dtype, operator) in [("int32", "/"), ("int32", "%"), ("uint16", "/"), ("uint64", "%")] {
        let source = format!(
            "def f(float(N) A) -> (O) {{ O(i) +=! {dtype}(40-i) {operator} \
             (j != 12 ? (j%2 == 1 ? {dtype}(0) : {dtype}(7)) : {dtype}(0)) \
             where i in 0:5, j in 0:13 }}"
        );
        let schedule = "O: split j 2 [peel]\nO: rfactor j.1 at j.0\nO.rf: vectorize j.1\n";
        check(&source, &[("N", 1)], schedule);
    }
}
