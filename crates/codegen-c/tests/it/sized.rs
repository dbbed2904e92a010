//! Tests of kernels whose sizes vary.

use std::process::Command;

use crate::support::sized::{SizedCase, run_sized, up_to};
use crate::support::{SANITIZE, STRICT, compile, plain_processor, scratch};
use tensorwright_codegen_c::{Dialect, EmitError, emit, emit_device, header, rust_module, wrapper};
use tensorwright_lang::Module;
use tensorwright_lang::program::{SizeRange, SizeValue, SizedProgram};
use tensorwright_machine::{Cpu, Goal};
use tensorwright_policy::{default_sized, lower_options};
use tensorwright_schedule::interface::{Condition, Formula, Function, Part};
use tensorwright_schedule::{canonical_sized, lower, lower_with};
use tensorwright_testkit::{generate, seeds};

const ADD: &str = "def add(float(N,M) x, float(M) b) -> (y) { y(n,m) = x(n,m) + b(m) + N }";
const PAIRS: &str = "def pairs(float(N,M) x) -> (y) { y(n,m) = x(n,m) + x(n+1,m) }";
const GEMM: &str = "def gemm(float(M,K) A, float(K,N) B) -> (C) { C(m,n) +=! A(m,k) * B(k,n) }";
const TILED: &str = "C: split m 4\nC: split n 8\nC: split k 4\nC: reorder m.0 n.0 k.0 m.1 k.1 n.1\n\
    C: vectorize n.1\nC: parallel m.0";
const STENCIL: &str = "def stencil(float(H,W) x) -> (y) {
  t(i,j) = x(i, min(max(j - 1, 0), W - 1)) + x(i, min(j + 1, W - 1)) where i in 0:H, j in 0:W
  y(i,j) = t(min(i + 1, H - 1), j) - t(max(i - 1, 0), j) where i in 0:H, j in 0:W
}";
const SOFTMAX: &str = "def softmax(float(N,D) x) -> (y) {
  top(n) max=! x(n,d)
  e(n,d) = exp(x(n,d) - top(n))
  total(n) +=! e(n,d)
  y(n,d) = e(n,d) / total(n)
}";

fn multiple(most: i64, likely: i64, multiple: i64) -> SizeValue {
    SizeValue::Varies(SizeRange { least: multiple, most, likely, multiple })
}

/// Definitions, sizes and schedules: dense and strided accesses, tiles, clamps, intermediates in the
/// workspace, workers, gathers, scatters, recurrences, and conversions.
fn cases() -> Vec<(SizedCase, Vec<Vec<i64>>)> {
    let of = SizedCase::new;
    vec![
        (
            of("add", ADD, &[("N", up_to(20, 5)), ("M", up_to(70, 40))], ""),
            vec![
                vec![1, 1],
                vec![0, 4],
                vec![21, 4],
                vec![4, 71],
                vec![-1, 3],
                vec![i64::MAX, i64::MIN],
            ],
        ),
        (
            of(
                "pairs",
                PAIRS,
                &[("N", up_to(30, 10)), ("M", up_to(60, 20))],
                "y: split n 2\ny: split m 8\ny: vectorize m.1\ny: unroll n.1\ny: reorder n.0 m.0 n.1 m.1",
            ),
            vec![vec![1, 5], vec![2, 5], vec![30, 60]],
        ),
        (
            of(
                "gemm",
                GEMM,
                &[("M", up_to(20, 12)), ("N", up_to(40, 24)), ("K", up_to(30, 16))],
                TILED,
            ),
            vec![vec![1, 1, 1], vec![0, 1, 1]],
        ),
        (
            of(
                "gemm_cached",
                GEMM,
                &[("M", up_to(20, 12)), ("N", multiple(40, 24, 8)), ("K", SizeValue::Known(5))],
                "C: split m 4\nC: parallel m.0\nC: cache_write at m.0",
            ),
            vec![vec![3, 12], vec![3, 0], vec![3, 8], vec![20, 48]],
        ),
        (
            of(
                "stencil",
                STENCIL,
                &[("H", up_to(25, 12)), ("W", up_to(50, 30))],
                "t: parallel i\ny: parallel i\ny: split j 8\ny: vectorize j.1",
            ),
            vec![vec![1, 1]],
        ),
        (
            of(
                "softmax",
                SOFTMAX,
                &[("N", up_to(20, 8)), ("D", up_to(70, 33))],
                "y: parallel n\ntop: prefetch x at d 4\ntotal: prefetch e at d 4",
            ),
            vec![vec![1, 1]],
        ),
        (
            of(
                "rows",
                SOFTMAX,
                &[("N", up_to(7, 3)), ("D", up_to(5000, 33))],
                "total: compute_at y n\ne: compute_at y n\ny: parallel n",
            ),
            vec![vec![7, 9], vec![1, 1]],
        ),
        (
            of(
                "images",
                "def images(half(N,C,H,W) x, half a, half(C) w) -> (y, s) { y(n,h,v) +=! x(n,c,h,v) * w(c)  s(n) max=! y(n,h,v) * a }",
                &[
                    ("N", up_to(3, 2)),
                    ("C", SizeValue::Known(3)),
                    ("H", up_to(9, 5)),
                    ("W", up_to(20, 8)),
                ],
                "",
            ),
            vec![],
        ),
        (
            of(
                "gather",
                "def gather(float(E,D) t, uint8(N) x) -> (y) { y(n,d) = t(min(int32(x(n)), E - 1), d) }",
                &[("E", up_to(30, 10)), ("D", up_to(20, 8)), ("N", up_to(20, 7))],
                "y: split d 8",
            ),
            vec![],
        ),
        (
            of(
                "scan",
                "def scan(float(T,D) x) -> (z) { z(t,d) = 0.5 * z(t-1,d) + x(t,d) scan t from 0 }",
                &[("T", up_to(20, 8)), ("D", up_to(20, 8))],
                "z: reorder d t\nz: parallel d",
            ),
            vec![],
        ),
        (
            of(
                "count",
                "def count(float(N) x, int32(N) at) -> (c) { c(b) +=! x(i) scatter b = clamp(at(i), 0, 3) where b in 0:4 }",
                &[("N", up_to(50, 20))],
                "",
            ),
            vec![],
        ),
    ]
}

#[test]
fn kernels_agree_with_the_reference_at_many_sizes() {
    let calls = run_sized("sized", &cases(), 24, "-O1");
    assert!(calls > 150, "{calls}");
}

/// A random program under the default schedule; `None` if its sizes cannot vary.
fn random(seed: u64) -> Option<SizedCase> {
    let program = generate(seed);
    let module = Module::parse("random.tc", &program.text).unwrap();
    let def = module.def(&program.def).unwrap();
    let scalars = def.integer_scalars();
    let is_known = |(name, _): &&(String, i64)| scalars.contains(&name.as_str());
    let values = program.sizes.iter().map(|size @ (name, likely)| match is_known(&size) {
        true => (name.clone(), SizeValue::Known(*likely)),
        false => (name.clone(), up_to(2 * likely + 3, *likely)),
    });
    let mut sized: SizedProgram = def.bind_sized(values).ok()?;
    // Nothing is prepared ahead of calls.
    for program in [&mut sized.likely, &mut sized.general] {
        program.tensors.iter_mut().for_each(|tensor| tensor.is_const = false);
    }
    let goal: Goal = Goal::new(Cpu::avx2()).with_workers(1 + (seed % 2) as i64).into();
    let canonical = canonical_sized(&sized)?;
    let schedule = default_sized(&sized, canonical.clone(), &goal).unwrap();
    let nest = schedule.apply(canonical).unwrap();
    let nest = lower_with(nest, &lower_options(&goal.target), &mut |_, _| {}).unwrap();
    let known = program.sizes.iter().filter(is_known).cloned().collect();
    let name = format!("random{seed}");
    Some(SizedCase::lowered(&name, module, program.def, sized, nest, known))
}

/// `TENSORWRIGHT_SIZED=FIRST..END` tries programs of these seeds.
#[test]
fn kernels_of_random_programs_agree_with_the_reference() {
    let seeds = seeds("TENSORWRIGHT_SIZED", 0..13);
    let all = seeds.end - seeds.start;
    let cases: Vec<_> = seeds.filter_map(random).map(|case| (case, Vec::new())).collect();
    let calls = run_sized("sized_random", &cases, 24, "-O0");
    println!("{all} programs, {} whose sizes can vary, {calls} calls", cases.len());
    assert!(calls as u64 > 6 * all, "{calls} calls");
}

#[test]
fn text_of_a_kernel() {
    let sizes = [("N", up_to(4096, 64)), ("D", multiple(1024, 512, 8))];
    let case = SizedCase::new("softmax", SOFTMAX, &sizes, "y: parallel n\ntop: parallel n");
    insta::assert_snapshot!("sized", case.code());
    let sizes = [("N", up_to(4096, 64)), ("M", multiple(1024, 512, 8))];
    let pairs = SizedCase::new("pairs", PAIRS, &sizes, "");
    insta::assert_snapshot!("sized_header", header(&pairs.interface, None));
}

/// A program that calls kernels with sizes and strides for which there can be no memory.
const TOO_LARGE: &str = r#"
#include "sums.h"
#include <stdio.h>
#include <string.h>

static int failed;

static void expect(int line, int64_t found, int64_t expected) {
    if (found != expected) {
        printf("line %d: %lld\n", line, (long long)found);
        failed = 1;
    }
}

#define EXPECT(found, expected) expect(__LINE__, found, expected)

int main(void) {
    const int64_t most = INT64_C(1) << 29, far = INT64_C(1) << 48;
    static float x[64], y[64];
    EXPECT(sums_call(most, most, x, y), -2);
    EXPECT(sums_workspace_bytes(most, most, 1), -2);
    EXPECT(sums_call(most, most / 2, x, y), -1);
    EXPECT(sums_workspace_bytes(most, most / 2, 1), INT64_C(5) << 59);
    for (int64_t bits = 0; bits < 64; ++bits) {
        for (int64_t more = -1; more <= 1; ++more) {
            const int64_t n = (int64_t)((UINT64_C(1) << bits) + (uint64_t)more);
            if (n < 1 || n > most) {
                EXPECT(sums_call(n, 4, x, y), -2);
                EXPECT(sums_call(4, n, x, y), -2);
                EXPECT(sums_run(n, n, x, y, NULL, NULL, NULL), -2);
                EXPECT(sums_workspace_bytes(n, n, INT32_MAX), -2);
            }
            const int64_t strides[] = {n, 4};
            if (n > far || n < -far) {
                EXPECT(sums_run(2, 4, x, y, strides, NULL, NULL), -2);
            }
            /* One row has no neighbors. */
            memset(y, 0, sizeof y);
            x[3] = 2;
            EXPECT(sums_run(1, 4, x, y, strides, NULL, NULL), 0);
            EXPECT(y[3] == 30, 1);
        }
    }
    const int64_t strides[] = {far, 4};
    EXPECT(sums_run(1 << 20, 4, x, y, strides, NULL, NULL), -2);
    EXPECT(sums_run(2, 4, x, y, NULL, (char *)x + 4, NULL), -4);
    return failed;
}
"#;

#[test]
fn sizes_without_memory_are_refused() {
    // Each tensor alone has at most 2^60 bytes.
    let text = "def sums(float(N,M) x) -> (y) {
      a(n,m) = x(n,m)  b(n,m) = 2*x(n,m)  c(n,m) = 3*x(n,m)  d(n,m) = 4*x(n,m)  e(n,m) = 5*x(n,m)
      y(n,m) = a(n,m) + b(n,m) + c(n,m) + d(n,m) + e(n,m)
    }";
    let any = up_to(1 << 29, 64);
    let case = SizedCase::new("sums", text, &[("N", any), ("M", any)], "");
    let directory = scratch("sized_too_large");
    let write = |file: &str, text: &str| std::fs::write(directory.join(file), text).unwrap();
    write("main.c", TOO_LARGE);
    write("sums.c", &case.code());
    write("sums.h", &header(&case.interface, None));
    let flags: Vec<&str> = STRICT.into_iter().chain(SANITIZE).chain(["-o", "main"]).collect();
    compile("cc", &directory, &["main.c".into(), "sums.c".into()], &flags);
    let mut command = Command::new(directory.join("main"));
    let output = command.env("ASAN_OPTIONS", "allocator_may_return_null=1").output().unwrap();
    let [said, failed] = [output.stdout, output.stderr].map(|o| String::from_utf8(o).unwrap());
    assert!(output.status.success(), "{said}{failed}");
}

/// Sizes whose functions do not fit 64 bits, negative numbers, quotients and minima.
#[test]
fn functions_of_sizes_are_those_of_the_interface() {
    let any = up_to(1 << 40, 64);
    let text = "def f(float(N) x, float(M) z) -> (y, w) {
      y(i) = x(2*i) + x(2*i + 1) where i in 0:N/2
      w(i) = z(i + 3) + z(i)
    }";
    let case = SizedCase::new("f", text, &[("N", any), ("M", any)], "");
    let mut interface = case.interface;
    let [n, m] = [0, 1].map(Part::Number);
    let of = |terms: &[(i64, Part)], constant| Formula::new(terms.iter().cloned(), constant);
    let cube = Part::Product(of(&[(1, Part::Product(of(&[(1, n.clone())], 0), 1))], 0), 0);
    let difference = of(&[(3, n.clone()), (-5, m.clone())], -2);
    let conditions = [
        of(&[(1, cube.clone()), (-1, m.clone())], 5),
        of(&[(-1, cube), (7, m.clone())], 5),
        of(&[(1, Part::Div(difference.clone(), 4)), (1, n.clone())], 0),
        of(&[(-1, Part::Mod(difference, 7)), (1, m.clone())], 1),
        of(&[(2, Part::Min(of(&[(1, n.clone())], 0), of(&[(1, m.clone())], 3)))], -9),
        of(&[(-1, Part::Max(of(&[(1, n)], 0), of(&[(2, m)], 3)))], 900),
    ];
    let conditions = conditions.map(|formula| Condition::new(formula, String::new()));
    let directory = scratch("sized_functions");
    let write = |file: &str, text: &str| std::fs::write(directory.join(file), text).unwrap();
    let values = [1, 2, 3, 5, 8, 100, 399, 401, 1 << 20, 1 << 21, 1 << 22, 1 << 40];
    let (mut sources, mut kernels) = (String::new(), Vec::new());
    for condition in conditions {
        interface.conditions = vec![condition];
        interface.symbol = format!("f{}", kernels.len());
        write(&format!("f{}.c", kernels.len()), &wrapper(&interface, &plain_processor()));
        let rust = rust_module(&interface, &plain_processor());
        write(&format!("f{}.rs", kernels.len()), &rust);
        kernels.push(interface.clone());
    }
    let mut main = "#include <stdint.h>\n#include <stdio.h>\n".to_owned();
    for (number, kernel) in kernels.iter().enumerate() {
        let name = kernel.function(Function::Compute);
        main += &format!("int64_t f{number}_workspace_bytes(int64_t, int64_t, int32_t);\n");
        main += &format!("int {name}(void **b, void *w, void *p) {{ return !b + !w + !p; }}\n");
        for (a, b) in values.iter().flat_map(|a| values.map(|b| (*a, b))) {
            let one = format!("printf(\"%d\", f{number}_workspace_bytes({a}, {b}, 1) >= 0);\n");
            sources += &one;
        }
    }
    write("main.c", &format!("{main}int main(void) {{\n{sources}return 0;\n}}\n"));
    let files: Vec<_> = (0..kernels.len()).map(|n| format!("f{n}.c").into()).collect();
    let all: Vec<_> = files.iter().cloned().chain(["main.c".into()]).collect();
    let flags: Vec<&str> = STRICT.into_iter().chain(SANITIZE).chain(["-o", "main"]).collect();
    compile("cc", &directory, &all, &flags);
    let flags = ["-x", "c++", "-std=c++11", "-Wall", "-Wextra", "-Werror", "-c"];
    compile("g++", &directory, &files, &flags);
    let modules: String = (0..kernels.len()).map(|n| format!("pub mod f{n};\n")).collect();
    write("lib.rs", &modules);
    let rust = ["-Dwarnings", "--edition", "2024", "--crate-type=lib", "--emit=metadata"];
    compile("rustc", &directory, &["lib.rs".into()], &rust);
    let found = Command::new(directory.join("main")).output().unwrap().stdout;
    let expected = kernels.iter().flat_map(|kernel| {
        let pairs = values.iter().flat_map(|a| values.map(|b| [*a, b]));
        pairs.map(|sizes| u8::from(kernel.numbers_for(&sizes).is_some()) + b'0')
    });
    assert_eq!(String::from_utf8(found).unwrap().as_bytes(), expected.collect::<Vec<u8>>());
}

const RUST_MAIN: &str = "
mod pairs;
use pairs::Error;

fn main() {
    let x: Vec<f32> = (0..40).map(|n| n as f32).collect();
    let mut y = [-1.0; 40];
    pairs::pairs(5, 8, &x, &mut y[..32]).unwrap();
    assert!((0..32).all(|n| y[n] == 2.0 * x[n] + 8.0), \"{y:?}\");
    assert!(y[32..].iter().all(|n| *n == -1.0));
    // Three rows of a wider matrix.
    y.fill(-1.0);
    pairs::pairs_strided(3, 8, &x[1..], &mut y, [10, 12]).unwrap();
    for (at, found) in y.iter().enumerate() {
        let (n, m) = (at / 12, at % 12);
        let expected = if n < 2 && m < 8 { 2.0 * x[1 + 10 * n + m] + 10.0 } else { -1.0 };
        assert_eq!(*found, expected, \"{at}\");
    }
    let error = pairs::pairs(5, 8, &x, &mut y).unwrap_err();
    assert_eq!(error, Error::Length { parameter: \"y\", expected: 32, actual: 40 });
    assert_eq!(pairs::pairs(1, 8, &x, &mut y).unwrap_err(), Error::Size);
    assert_eq!(pairs::pairs(5, 9, &x, &mut y).unwrap_err(), Error::Size);
    assert_eq!(pairs::pairs(usize::MAX, 8, &x, &mut y).unwrap_err(), Error::Size);
    let error = pairs::pairs_strided(3, 8, &x, &mut y, [8, 7]).unwrap_err();
    assert_eq!(error.to_string(), \"rows of `y` overlap\");
    let error = pairs::pairs_strided(3, 8, &x, &mut y, [17, 8]).unwrap_err();
    assert_eq!(error, Error::Length { parameter: \"x\", expected: 42, actual: 40 });
    assert!(pairs::pairs_strided(3, 8, &x, &mut y, [usize::MAX, 8]).is_err());
}
";

#[test]
fn rust_programs_call_kernels_safely_at_any_sizes() {
    let directory = scratch("sized_rust");
    let write = |file: &str, text: &str| std::fs::write(directory.join(file), text).unwrap();
    let text = "def pairs(float(N,M) x) -> (y) { t(n,m) = x(n,m)  y(n,m) = t(n,m) + t(n+1,m) }";
    let sizes = [("N", up_to(4096, 64)), ("M", multiple(1024, 512, 8))];
    let case = SizedCase::new("pairs", text, &sizes, "");
    let module = rust_module(&case.interface, &plain_processor());
    write("main.rs", RUST_MAIN);
    write("pairs.rs", &module);
    write("pairs.c", &case.code());
    let flags: Vec<&str> = STRICT.into_iter().chain(["-c"]).collect();
    compile("cc", &directory, &["pairs.c".into()], &flags);
    for edition in ["2021", "2024"] {
        let flags = ["-Dwarnings", "--edition", edition, "-Clink-arg=pairs.o", "-Clink-arg=-lm"];
        compile("rustc", &directory, &["main.rs".into()], &flags);
        let output = Command::new(directory.join("main")).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    insta::assert_snapshot!("sized_rust", module);
}

#[test]
fn devices_refuse_sizes_that_vary() {
    let module = Module::parse("test.tc", ADD).unwrap();
    let sizes = [("N", up_to(8, 4)), ("M", up_to(8, 4))];
    let program = module.bind_sized("add", sizes).unwrap();
    let nest = lower(canonical_sized(&program).unwrap()).unwrap();
    let error = emit_device(&nest, Dialect::OpenCl).unwrap_err();
    assert_eq!(error, EmitError::Sized);
    assert_eq!(error.to_string(), "sizes of kernels for devices cannot vary yet");
    assert!(emit(&nest).is_ok());
}
