//! Tests of emitted C against the reference interpreter.
//!
//! The code compiles without warnings, computes the same, and has no invalid accesses or undefined
//! behavior.

#![allow(unsafe_code, reason = "compiled kernels are called")]

use crate::support;
use std::path::Path;

use crate::support::{Case, plain, program, run_loaded, run_sanitized};
use tensorwright_codegen_c::{EmitOptions, emit, emit_with};
use tensorwright_lang::Module;
use tensorwright_lang::builtin::Builtin;
use tensorwright_lang::dtype::DType;
use tensorwright_lang::program::Program;
use tensorwright_reference::{Buffer, Value};
use tensorwright_schedule::nest::{LoopKind, Node, Role};
use tensorwright_schedule::{Interface, LoweredNest, Schedule, canonical, lower};

const GEMM: &str = "def gemm(float(M,K) A, float(K,N) B) -> (C) { C(m,n) +=! A(m,k) * B(k,n) }";

/// Every example program with golden data, at its sizes.
fn examples() -> Vec<(String, tensorwright_lang::program::Program)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let cases = std::fs::read_to_string(root.join("golden/cases.json")).unwrap();
    let cases: serde_json::Value = serde_json::from_str(&cases).unwrap();
    let mut programs = Vec::new();
    for (number, case) in cases.as_array().unwrap().iter().enumerate() {
        let (file, def) = (case["file"].as_str().unwrap(), case["def"].as_str().unwrap());
        let text = std::fs::read_to_string(root.join("kernels").join(file)).unwrap();
        let module = Module::parse(file, &text).unwrap();
        let sizes = case["sizes"].as_object().unwrap();
        let sizes = sizes.iter().map(|(name, size)| (name.clone(), size.as_i64().unwrap()));
        let program = module.def(def).unwrap().bind(sizes).unwrap();
        programs.push((format!("{def}_{number}"), program));
    }
    programs
}

#[test]
fn examples_match_the_reference() {
    let cases: Vec<Case> =
        examples().iter().map(|(name, program)| Case::new(name, program, plain(program))).collect();
    assert!(cases.len() > 100);
    run_sanitized("examples", &cases);
}

/// Parallelizes outermost loops with independent iterations.
fn parallelise(nodes: &mut [Node]) {
    for node in nodes {
        match node {
            Node::Loop(l) if l.role == Role::Spatial => l.kind = LoopKind::Parallel,
            Node::Loop(l) => parallelise(&mut l.body),
            Node::Guard(guard) => parallelise(&mut guard.body),
            _ => {}
        }
    }
}

/// The nest of a program with parallel outermost loops.
fn parallel(program: &Program) -> LoweredNest {
    let mut nest = canonical(program);
    parallelise(&mut nest.body);
    lower(nest).unwrap()
}

#[test]
fn parallel_loops_match_the_reference() {
    let case = |(name, program): &(String, _)| Case::new(name, program, parallel(program));
    // The examples repeat programs at several sizes.
    let cases: Vec<Case> = examples().iter().step_by(4).map(case).collect();
    run_sanitized("parallel", &cases);
}

fn scheduled(program: &Program, schedule: &str) -> LoweredNest {
    let schedule = Schedule::parse(schedule).unwrap_or_else(|error| panic!("{error}"));
    let nest = schedule.apply(canonical(program)).unwrap_or_else(|error| panic!("{error}"));
    lower(nest).unwrap()
}

#[test]
fn schedules_match_the_reference() {
    let gemm = program(GEMM, &[("M", 13), ("N", 37), ("K", 7)]);
    let schedules = [
        ("split", "C: split m 4\nC: split n 8"),
        ("vectorize", "C: split n 16\nC: reorder m n.0 k n.1\nC: vectorize n.1"),
        (
            "tile",
            "C: split m 4\nC: split n 2 8\nC: reorder m.0 n.0 k m.1 n.1 n.2\nC: parallel m.0\n\
             C: unroll m.1\nC: unroll n.1\nC: vectorize n.2",
        ),
    ];
    let case = |(name, schedule): (&str, &str)| Case::new(name, &gemm, scheduled(&gemm, schedule));
    run_sanitized("schedules", &schedules.map(case));
}

/// Values at and beyond the limits of every type, with neighbors that round differently.
fn interesting(dtype: DType) -> Vec<Value> {
    if let Some((least, most)) = dtype.integer_range() {
        let near = [least, least + 1, -2, -1, 0, 1, 2, 7, 100, most - 1, most];
        return near.iter().map(|value| Value::Integer(*value).convert(dtype)).collect();
    }
    let mut values = vec![f64::NAN, f64::INFINITY, 0.0, -0.0, 0.3, 0.5, 0.999, 1.5, 2.5, 1e-9];
    values.extend([1e-5, 6e-8, 2.98e-8, 65_504.0, 65_519.9, 65_520.0, 1e5, 3e38, 3.4e38, 1e300]);
    for bits in [7, 8, 15, 16, 31, 32, 63, 64] {
        let power = f64::powi(2.0, bits);
        values.extend([power - 1.0, power, power * (1.0 + f64::EPSILON), power + 0.5]);
        // Values for which double rounding fails: just above half of a unit in 11 and in 8 bits.
        values.extend([1.0 + f64::powi(0.5, 11) + f64::powi(0.5, bits.min(40)), 1.0 + 0.5 / 128.0]);
    }
    let negative: Vec<f64> = values.iter().map(|value| -value).collect();
    values.extend(negative);
    values.into_iter().map(|value| Value::Float(value).convert(dtype)).collect()
}

fn filled(dtype: DType, values: &[Value]) -> Buffer {
    let mut buffer = Buffer::zeros(dtype, &[values.len() as i64]).unwrap();
    for (position, value) in values.iter().enumerate() {
        buffer.set(position, *value).unwrap();
    }
    buffer
}

#[test]
fn casts_between_all_types() {
    let mut cases = Vec::new();
    for from in DType::ALL {
        let values = interesting(from);
        let outputs: Vec<String> = DType::ALL.iter().map(|to| format!("to_{to}")).collect();
        let body: Vec<String> =
            DType::ALL.iter().map(|to| format!("to_{to}(i) = {to}(x(i))")).collect();
        let text = format!(
            "def casts({from}(N) x) -> ({}) {{\n{}\n}}",
            outputs.join(", "),
            body.join("\n")
        );
        let program = program(&text, &[("N", values.len() as i64)]);
        let mut case = Case::new(&format!("from_{from}"), &program, plain(&program));
        case.inputs.insert("x".to_owned(), filled(from, &values));
        cases.push(case);
    }
    run_sanitized("casts", &cases);
}

/// The C library has most functions under the same names; the others have their own line.
#[test]
fn every_function() {
    let functions = || Builtin::ALL.iter().filter(|b| b.operator().is_none());
    let results: Vec<String> = functions().map(|b| format!("of_{}", b.name())).collect();
    let statement = |builtin: &Builtin| {
        let args = ["x(i)", "y(i)", "z(i)"][..builtin.arity()].join(", ");
        format!("of_{0}(i) = {0}({args})\n", builtin.name())
    };
    let body: String = functions().map(statement).collect();
    let cases = DType::ALL.into_iter().filter(|dtype| dtype.is_float()).map(|dtype| {
        let params = ["x", "y", "z"].map(|name| format!("{dtype}(N) {name}")).join(", ");
        let text = format!("def functions({params}) -> ({}) {{\n{body}}}", results.join(", "));
        let program = program(&text, &[("N", 40)]);
        Case::new(&format!("functions_{dtype}"), &program, plain(&program))
    });
    run_sanitized("functions", &cases.collect::<Vec<Case>>());
}

#[test]
fn arithmetic_of_all_types() {
    let mut cases = Vec::new();
    for dtype in DType::ALL.into_iter().filter(|dtype| *dtype != DType::Bool) {
        let values = interesting(dtype);
        let remainder = if dtype.is_float() { "fmod(x(i), y(j))" } else { "x(i) % y(j)" };
        let bits = match dtype.is_float() {
            true => "x(i)",
            false => "((x(i) & y(j)) ^ ~x(j)) + (x(i) << y(j)) + (x(i) >> y(j) | y(i) >> 3)",
        };
        let text = format!(
            "def arithmetic({dtype}(N) x, {dtype}(N) y) -> (a, b, c, d, e, f, g, h, s, p, q, t) {{
               t(i,j) = {bits} + 0 * y(j)
               a(i,j) = x(i) + y(j) - x(j)
               b(i,j) = x(i) * y(j)
               c(i,j) = x(i) / y(j)
               d(i,j) = {remainder}
               e(i,j) = min(x(i), y(j))
               f(i,j) = clamp(x(i), y(j), x(j))
               g(i,j) = (x(i) < y(j) || x(i) != x(i)) ? abs(x(i)) : -y(j)
               h(i,j) = x(i) >= 0 && !(y(j) == 1)
               s() +=! x(i)
               p(i) *=! x(i) * y(j)
               q() max=! x(i)
             }}"
        );
        let program = program(&text, &[("N", values.len() as i64)]);
        let mut case = Case::new(&format!("arithmetic_{dtype}"), &program, plain(&program));
        case.inputs.insert("x".to_owned(), filled(dtype, &values));
        case.inputs.insert("y".to_owned(), filled(dtype, &values));
        cases.push(case);
    }
    run_sanitized("arithmetic", &cases);
}

#[test]
fn out_of_bounds_subscripts_are_reported_and_not_followed() {
    let text = "def gather(float(N,D) X, int64(A) I, int64(A) J) -> (Z) {
                  Z(i,d) = X(I(i),d) + X(3*J(i)+1, d)
                }";
    let program = program(text, &[("N", 6), ("D", 3), ("A", 4)]);
    let mut case = Case::new("gather", &program, plain(&program));
    assert_eq!(case.interface.checked.len(), 2);
    let mut gather = |i: [i64; 4], j: [i64; 4]| {
        case.inputs.insert("I".to_owned(), Buffer::new(&[4], i.to_vec()).unwrap());
        case.inputs.insert("J".to_owned(), Buffer::new(&[4], j.to_vec()).unwrap());
        run_loaded("gather", &case)
    };
    assert_eq!(gather([0, 5, 2, 3], [0, 1, 1, 0]), 0);
    assert_eq!(gather([0, 6, 2, 3], [0, 1, 1, 0]), 1);
    assert_eq!(gather([0, 5, 2, -1], [0, 1, 1, 0]), 1);
    assert_eq!(gather([0, 5, 2, 3], [0, 1, 2, 0]), 2);
    assert_eq!(gather([0, 5, 2, 3], [0, 1, i64::MAX, 0]), 2);
}

#[test]
fn lanes_of_recurrences_match_the_reference() {
    let text = "def running(float(N,T) x, int16(N,T) k) -> (y, z, p) {
                  y(n,t) = y(n,t-1) + x(n,t) scan t from x(n,0)
                  z(n,t) = max(x(n,t), z(n,t+1)) scan t from -INFINITY
                  p(n,t) = p(n,t-1) * k(n,t) scan t from 1
                }";
    let program = program(text, &[("N", 2), ("T", 29)]);
    let lanes = "y: split t 2 4 [peel]\ny: unroll t.1\ny: vectorize t.2\nz: split t 8\n\
                 z: vectorize t.1\np: vectorize t\n";
    let pieces = "y: split t 8\ny: segment t.0\ny: reorder t.0 n t.1\ny: parallel t.0\n\
                  y.total: parallel n\ny.last: vectorize t.0\n";
    let cases = [("lanes", lanes), ("pieces", pieces)];
    let case = |(name, steps): (&str, &str)| Case::new(name, &program, scheduled(&program, steps));
    run_sanitized("running", &cases.map(case));
}

#[test]
fn scatters_match_the_reference_and_are_checked() {
    let text = "def scatter(float(N,D) X, int64(N) I) -> (Y, Z) {
                  Y(r,d) +=! X(i,d) scatter r = I(i) where r in 0:6
                  Z(r) max=! X(i,d) scatter r = clamp(2 * I(i) - 1, 0, 5) where r in 0:6
                }";
    let program = program(text, &[("N", 9), ("D", 3)]);
    let shared = scheduled(
        &program,
        "Y: split i 4\nY: privatize i.0\nY.part: reorder i.0 i.1 d\nY.part: parallel i.0\nZ: unroll d\n",
    );
    let cases =
        [Case::new("plain", &program, plain(&program)), Case::new("shared", &program, shared)];
    run_sanitized("scatters", &cases);
    for mut case in cases {
        assert_eq!(case.interface.checked.len(), 1);
        let mut scatter = |i: i64| {
            let positions = vec![0, 5, 2, 3, 5, 5, 1, i, 0];
            case.inputs.insert("I".to_owned(), Buffer::new(&[9], positions).unwrap());
            run_loaded(&case.name.clone(), &case)
        };
        assert_eq!([5, 6, -1, i64::MAX].map(&mut scatter), [0, 1, 1, 1]);
    }
}

#[test]
fn index_arithmetic_rounds_down() {
    let text = "def indices(float(N) y) -> (a, c) {
                  a(i,j) = (i - 2*j) / 3 + 100 * ((j - i) % 4) where i in 0:N, j in 0:N
                  c(i) = y(max(min(i + 1, N - 1) - 2, 0)) where i in 0:N
                }";
    let program = program(text, &[("N", 9)]);
    run_sanitized("indices", &[Case::new("indices", &program, plain(&program))]);
}

#[test]
fn other_compilers_and_levels_do_not_warn() {
    let directory = support::scratch("compilers");
    let mut sources = Vec::new();
    for (name, program) in examples().iter().step_by(9) {
        let nest = parallel(program).named(name);
        let file = format!("{}.c", Interface::of(&nest).symbol);
        std::fs::write(directory.join(&file), emit(&nest).unwrap().code).unwrap();
        sources.push(file.into());
    }
    let flags = ["-std=c99", "-pedantic", "-O2", "-Wall", "-Wextra", "-Werror", "-c"];
    for compiler in ["gcc", "clang", "clang-19"] {
        if std::process::Command::new(compiler).arg("--version").output().is_ok() {
            support::compile(compiler, &directory, &sources, &flags);
        }
    }
}

#[test]
fn text_of_a_small_gemm() {
    let gemm = program(GEMM, &[("M", 4), ("N", 6), ("K", 5)]);
    insta::assert_snapshot!(emit(&plain(&gemm)).unwrap().code);
}

#[test]
fn text_of_a_parallel_gather() {
    let text = "def lut(float(E,D) table, int(B,L) words) -> (out) {
                  out(b,d) +=! table(words(b,l),d) / L
                }";
    let lut = program(text, &[("E", 10), ("D", 4), ("B", 3), ("L", 5)]);
    insta::assert_snapshot!(emit(&parallel(&lut)).unwrap().code);
}

/// Buffers are poisoned at the start of their lifetime, on the stack and in the workspace.
#[test]
fn poisoned_buffers() {
    let text = "def f(float(N,M) A) -> (out) {
  sum(i) +=! A(i,j)
  twice(i,j) = A(i,j) * 2
  out(i,j) = twice(i,j) * sum(i)
}";
    let program = program(text, &[("N", 3), ("M", 3)]);
    let nest = scheduled(&program, "twice: compute_at out i\n");
    let plain = emit(&nest).unwrap().code;
    let poisoned = emit_with(&nest, EmitOptions::poisoned()).unwrap().code;
    let is_fill = |line: &&str| line.contains("memset");
    let filled: Vec<&str> = poisoned.lines().filter(is_fill).map(str::trim).collect();
    assert_eq!(filled, ["memset(sum, 0xff, 12);", "memset(twice, 0xff, 12);"]);
    let others: Vec<&str> = poisoned.lines().filter(|line| !is_fill(line)).collect();
    assert_eq!(others, plain.lines().collect::<Vec<_>>());
}
