//! Output of `compile` works without Tensorwright, from C and Rust.

use std::path::{Path, PathBuf};
use std::process::Command;

/// A program with an input that is prepared by its schedule.
const PROGRAM: &str = "def dense(float(M,K) A, const float(K,N) W) -> (C) {
  C(m,n) +=! A(m,k) * W(k,n)
}
";

const SCHEDULE: &str = "W: layout [d1/16, d0, d1%16]
C: split n 16
C: reorder n.0 m k n.1
C: vectorize n.1
";

const C_MAIN: &str = r#"
#include "HEADER"
#include <stdio.h>
#include <stdlib.h>

int main(void) {
    static float a[2 * 3] = {1, 2, 3, 4, 5, 6}, w[3 * 20], c[2 * 20];
    for (int i = 0; i < 3 * 20; i++) w[i] = (float)(i % 20);
    if (!dense_runs_here()) printf("needs %s: ", dense_target());
    void *prepared = aligned_alloc(64, (size_t)dense_prepared_bytes());
    const int codes[2] = {dense_prepare(w, prepared, NULL), dense_run(a, w, c, prepared, NULL, NULL)};
    if (codes[0] != 0 || codes[1] != 0) return printf("%d %d\n", codes[0], codes[1]), 0;
    printf("%g %g\n", c[2], c[20 + 19]);
    return 0;
}
"#;

const RUST_MAIN: &str = "
#[path = \"dense.rs\"]
mod dense;

fn main() {
    let a = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
    let w: Vec<f32> = (0..60).map(|i| (i % 20) as f32).collect();
    let mut c = [0.0; 40];
    let prepared = dense::Prepared::new(&w).unwrap();
    dense::dense_prepared(&a, &w, &mut c, &prepared).unwrap();
    println!(\"{} {}\", c[2], c[39]);
}
";

/// Columns are 0 to 19, and rows of `A` sum to 6 and 15.
const EXPECTED: &str = "12 285\n";

struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("tensorwright-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        std::fs::write(path.join("dense.tc"), PROGRAM).unwrap();
        std::fs::write(path.join("dense.sched"), SCHEDULE).unwrap();
        Self(path)
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.0.join(name), text).unwrap();
    }

    /// Runs a program here; its standard output.
    fn run(&self, program: impl AsRef<Path>, args: &[&str]) -> String {
        let mut command = Command::new(program.as_ref());
        command.args(args).current_dir(&self.0).env("TENSORWRIGHT_THREADS", "1");
        let output = command.output().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{} {args:?}: {errors}", program.as_ref().display());
        String::from_utf8(output.stdout).unwrap()
    }

    fn compile(&self, emit: &str, output: &str) -> String {
        let sizes = ["--size", "M=2,K=3,N=20", "--schedule", "dense.sched"];
        let emit = ["--emit", emit, "-o", output];
        let args = [&["compile", "dense.tc"][..], &sizes[..], &emit[..]].concat();
        self.run(env!("CARGO_BIN_EXE_tensorwright"), &args)
    }

    fn main(&self) -> PathBuf {
        self.0.join("main")
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn a_shared_library_is_called_from_c() {
    let scratch = Scratch::new("shared");
    let told = scratch.compile("shared", "libdense.so");
    assert!(told.contains("wrote libdense.h"), "{told}");
    scratch.write("main.c", &C_MAIN.replace("HEADER", "libdense.h"));
    scratch.run("cc", &["-std=c11", "main.c", "./libdense.so", "-Wl,-rpath,$ORIGIN", "-o", "main"]);
    assert_eq!(scratch.run(scratch.main(), &[]), EXPECTED);
}

#[test]
fn one_library_is_for_a_range_of_sizes() {
    let scratch = Scratch::new("range");
    let text = "def add(float(M,N) x, float(N) b) -> (y) { y(i,j) = x(i,j) + b(j) + x(0,j) }";
    scratch.write("add.tc", text);
    let main = r#"
#include "libadd.h"
#include <stdio.h>

int main(void) {
    float x[4 * 10], b[6], y[3 * 8];
    for (int i = 0; i < 40; i++) x[i] = i;
    for (int j = 0; j < 6; j++) b[j] = 100 * j;
    for (int i = 0; i < 24; i++) y[i] = -1;
    /* Three rows of six elements: from rows of ten, into rows of eight. */
    const int64_t strides[] = {10, 8};
    int code = add_run(3, 6, x + 12, b, y, strides, NULL, NULL);
    printf("%d: %g %g %g %g\n", code, y[0], y[8 + 5], y[2 * 8 + 5], y[8 + 6]);
    code = add_call(2, 4, x, b, y);
    printf("%d: %g %g\n", code, y[0], y[7]);
    printf("%d %d\n", add_call(1001, 4, x, b, y), add_call(0, 4, x, b, y));
    return 0;
}
"#;
    scratch.write("main.c", main);
    let sizes = ["--size", "M=1..1000,N=2..64~48%2"];
    let args = [&["compile", "add.tc"][..], &sizes, &["--emit", "shared", "-o", "libadd.so"]];
    scratch.run(env!("CARGO_BIN_EXE_tensorwright"), &args.concat());
    scratch.run("cc", &["-std=c11", "main.c", "./libadd.so", "-Wl,-rpath,$ORIGIN", "-o", "main"]);
    // 12 + 0 + 12, 27 + 500 + 17, 37 + 500 + 17; 0 + 0 + 0, 7 + 300 + 3.
    assert_eq!(scratch.run(scratch.main(), &[]), "0: 24 544 554 -1\n0: 0 310\n-2 -2\n");
}

#[test]
fn an_object_is_linked_with_its_wrapper() {
    let scratch = Scratch::new("object");
    let told = scratch.compile("object", "dense.o");
    assert!(told.contains("wrote dense_call.c"), "{told}");
    scratch.write("main.c", &C_MAIN.replace("HEADER", "dense.h"));
    scratch.run("cc", &["-std=c11", "main.c", "dense_call.c", "dense.o", "-lm", "-o", "main"]);
    assert_eq!(scratch.run(scratch.main(), &[]), EXPECTED);
}

#[test]
fn processors_that_lack_what_a_kernel_needs_are_told_so() {
    let scratch = Scratch::new("processor");
    let target = ["--target", "avx512"];
    let args = ["compile", "dense.tc", "--size", "M=2,K=3,N=20", "--schedule", "dense.sched"];
    let args = [&args[..], &target, &["--emit", "object", "-o", "dense.o"]].concat();
    scratch.run(env!("CARGO_BIN_EXE_tensorwright"), &args);
    let header = std::fs::read_to_string(scratch.0.join("dense.h")).unwrap();
    let needs = "avx512 (skylake-avx512, x86_64-unknown-linux-gnu): x86-64 with sse3 ssse3 fma sse4.1 sse4.2 movbe \
                 popcnt avx f16c bmi avx2 bmi2 avx512f avx512dq avx512cd avx512bw avx512vl lzcnt";
    assert!(header.contains(needs), "{header}");

    // Pretends that this processor lacks a feature.
    let wrapper = std::fs::read_to_string(scratch.0.join("dense_call.c")).unwrap();
    let lacking = wrapper.replace("found = dense_has_all() ? 1 : -1", "found = -1");
    assert_ne!(lacking, wrapper);
    scratch.write("dense_call.c", &lacking);
    scratch.write("main.c", &C_MAIN.replace("HEADER", "dense.h"));
    scratch.run("cc", &["-std=c11", "main.c", "dense_call.c", "dense.o", "-lm", "-o", "main"]);
    assert_eq!(scratch.run(scratch.main(), &[]), format!("needs {needs}: -5 -5\n"));
}

#[test]
fn c_source_stands_alone() {
    let scratch = Scratch::new("source");
    scratch.compile("c", "dense.c");
    scratch.compile("header", "dense.h");
    scratch.write("main.c", &C_MAIN.replace("HEADER", "dense.h"));
    scratch.run("cc", &["-std=c11", "main.c", "dense.c", "-lm", "-o", "main"]);
    assert_eq!(scratch.run(scratch.main(), &[]), EXPECTED);
}

#[test]
fn a_rust_module_is_linked_with_its_object() {
    let scratch = Scratch::new("rust");
    let told = scratch.compile("rust", "dense.rs");
    assert!(told.contains("rustc main.rs"), "{told}");
    scratch.write("main.rs", RUST_MAIN);
    let rustc = std::env::var_os("RUSTC").map_or(PathBuf::from("rustc"), PathBuf::from);
    scratch.run(
        rustc,
        &["--edition=2024", "-Dwarnings", "main.rs", "-C", "link-arg=dense.o", "-o", "main"],
    );
    assert_eq!(scratch.run(scratch.main(), &[]), EXPECTED);
}

/// Definitions whose parameters the loops of some sizes do not read, and one with a constant.
const STABLE: &str = "def nb(float(N,3) p, float(N) m, float eps) -> (a) {
  r2(i,j) +=! (p(j,k)-p(i,k))*(p(j,k)-p(i,k))
  w(i,j) = i!=j ? m(j)*rsqrt(r2(i,j)+eps)*(1/(r2(i,j)+eps)) : 0
  a(i,k) +=! w(i,j)*(p(j,k)-p(i,k))
}
def axpy(float a, float(N) x, float(N) y, int k) -> (z) { z(i) = x(i) + (i >= k ? a*y(i) : 0) }
def q(float(M,K) a, const float(N,K) b) -> (c) { c(m,n) +=! a(m,k)*b(n,k) }
";

/// A caller that gets sizes from its command line and only knows the kernels' names.
const STABLE_MAIN: &str = r#"
#include "nb.h"
#include "axpy.h"
#include "q.h"
#include <stdio.h>

int main(void) {
    const float p[6] = {0, 0, 0, 1, 0, 0}, m[2] = {1, 1}, x[2] = {1, 2}, y[2] = {4, 8};
    const float b[64 * 3] = {1, 2, 3}, row[3] = {1, 1, 1};
    float forces[6] = {9, 9, 9, 9, 9, 9}, z[2] = {9, 9}, c[64] = {9};
    if (nb_interface() != nb_INTERFACE || axpy_interface() != axpy_INTERFACE) return 1;
    if (q_interface() != q_INTERFACE) return 2;
    if (nb_call(p, m, 0.0f, forces) != 0 || q_call(row, b, c) != 0) return 3;
    const int k = axpy_call(2, x, y, 0, z) == 0 ? 0 : 1;
    if (k == 1 && axpy_call(2, x, y, 1, z) != 0) return 4;
    printf("%g %g %g %g\n", m[0], z[0], z[1], c[0]);
    return 0;
}
"#;

#[test]
fn a_caller_is_linked_with_kernels_of_other_sizes_and_schedules() {
    let scratch = Scratch::new("stable");
    scratch.write("stable.tc", STABLE);
    scratch.write("main.c", STABLE_MAIN);
    let tensorwright = env!("CARGO_BIN_EXE_tensorwright");
    let compile = |def: &str, more: &[&str]| {
        let output = format!("{def}.o");
        let args = ["compile", "stable.tc", "--def", def, "--emit", "object", "-o", &output];
        scratch.run(tensorwright, &[&args[..], more].concat());
    };
    scratch.write("b.sched", "b: layout [d1, d0]\n");
    let prepared = ["--size", "M=1,N=64,K=3", "--schedule", "b.sched"];
    let alone = ["--size", "M=1,N=1,K=3", "--untuned"];
    let objects = ["nb.o", "nb_call.c", "axpy.o", "axpy_call.c", "q.o", "q_call.c", "-lm"];
    let variants: [(&str, &str, &[&str], &str); 3] = [
        ("N=1", "N=1,k=0", &alone, "1 9 9 6\n"),
        ("N=2", "N=2,k=1", &prepared, "1 1 18 6\n"),
        ("N=2", "N=2", &prepared, "1 9 18 6\n"),
    ];
    for (number, (nb, axpy, q, expected)) in variants.into_iter().enumerate() {
        compile("nb", &["--size", nb, "--untuned"]);
        compile("axpy", &["--size", axpy, "--untuned"]);
        compile("q", q);
        if number == 0 {
            // Once, with the headers of the first kernels.
            scratch.run(
                "cc",
                &["-std=c11", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-c", "main.c"],
            );
        }
        let strict = ["-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "main.o"];
        scratch.run("cc", &[&strict[..], &objects, &["-o", "main"]].concat());
        assert_eq!(scratch.run(scratch.main(), &[]), expected, "{nb} {axpy}");
    }
    // An object does not link with the wrapper of another one.
    scratch.write("stale_call.c", &std::fs::read_to_string(scratch.0.join("q_call.c")).unwrap());
    compile("q", &alone);
    let args = ["main.o", "nb.o", "nb_call.c", "axpy.o", "axpy_call.c", "q.o", "stale_call.c"];
    let mut command = Command::new("cc");
    let output = command.args(args).args(["-lm", "-o", "stale"]).current_dir(&scratch.0).output();
    let errors = String::from_utf8(output.unwrap().stderr).unwrap();
    assert!(errors.contains("undefined reference to `q_preparation_"), "{errors}");
}

#[test]
fn files_that_would_hide_those_of_the_system_are_not_written() {
    let scratch = Scratch::new("hidden");
    let tried = |emit: &str, output: &str| {
        let args = ["compile", "dense.tc", "--size", "M=2,K=3,N=20", "--emit", emit, "-o", output];
        let mut command = Command::new(env!("CARGO_BIN_EXE_tensorwright"));
        let output = command.args(args).current_dir(&scratch.0).env("NO_COLOR", "1").output();
        (output.as_ref().unwrap().status.code(), String::from_utf8(output.unwrap().stderr).unwrap())
    };
    let expected = "[E0806] Error: stdio.o would hide `stdio.h` of the system\n   \
                    Help: write another file: `-o stdio_kernel.o`\n\n";
    let (code, errors) = tried("object", "stdio.o");
    assert_eq!((code, errors.as_str()), (Some(1), expected));
    for (emit, output, hidden) in [
        ("shared", "libm.so", "-lm"),
        ("shared", "math.so", "math.h"),
        ("header", "string.h", "string.h"),
    ] {
        let (code, errors) = tried(emit, output);
        assert_eq!(code, Some(1), "{output}");
        assert!(errors.contains(&format!("would hide `{hidden}` of the system")), "{errors}");
    }
    let written = std::fs::read_dir(&scratch.0).unwrap().count();
    assert_eq!(written, 2, "nothing but the program and its schedule");
}

#[test]
fn texts_go_to_standard_output() {
    let scratch = Scratch::new("texts");
    for (emit, expected) in [
        ("loops", "[n.1 = 0..16]"),
        ("passes", "# canonical"),
        ("c", "int dense_call("),
        ("header", "tw_pool"),
        ("llvm", "define"),
        ("asm", "dense"),
    ] {
        let args = ["compile", "dense.tc", "--size", "M=2,K=3,N=20", "--schedule", "dense.sched"];
        let args = [&args[..], &["--emit", emit]].concat();
        let text = scratch.run(env!("CARGO_BIN_EXE_tensorwright"), &args);
        assert!(text.contains(expected), "{emit}: {text}");
    }
}

#[test]
fn kernels_of_devices_say_how_they_are_launched() {
    let scratch = Scratch::new("devices");
    scratch.write("scale.tc", "def scale(float(N) x) -> (y) { y(i) = 2 * x(i) }");
    let steps = "y: split i 128\ny: bind i.0 block.x\ny: bind i.1 thread.x\n";
    scratch.write("scale.sched", steps);
    let compile = |emit: &str| {
        let args = ["compile", "scale.tc", "--size", "N=1000", "--schedule", "scale.sched"];
        let args = [&args[..], &["--emit", emit]].concat();
        scratch.run(env!("CARGO_BIN_EXE_tensorwright"), &args)
    };
    for (emit, expected) in
        [("opencl", "__kernel"), ("cuda", "__global__"), ("hip", "hip_runtime.h")]
    {
        let text = compile(emit);
        let launch = "// scale_1(x, y, workspace, status): 8 x 1 x 1 blocks of 128 x 1 x 1 threads, 0 bytes shared";
        assert_eq!(text.lines().next(), Some(launch), "{text}");
        assert!(text.contains(expected), "{text}");
    }
}
