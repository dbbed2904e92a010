//! Output of `package` works without Tensorwright, from C, Rust and Python.

mod calls;
mod errors;
mod scratch;

use calls::{Call, c_program, python_program, rust_program};
use scratch::Scratch;

const GEMM: &str = "def gemm(float(M,K) A, float(K,N) B) -> (C) { C(m,n) +=! A(m,k) * B(k,n) }";

const DENSE: &str = "def dense(float(B,I) x, const float(O,I) w, const float(O) bias) -> (y) {
  y(b,o) = bias(o)
  y(b,o) += x(b,i) * w(o,i)
  y(b,o) = max(y(b,o), 0)
}";

const CONV: &str = "def conv(float(B,C,H,W) I, float(O,C,KH,KW) F, int s, int p) -> (R) {
  R(b,o,h,w) +=! s*h + kh - p >= 0 && s*h + kh - p < H && s*w + kw - p >= 0 && s*w + kw - p < W
      ? I(b, c, s*h + kh - p, s*w + kw - p) * F(o,c,kh,kw) : 0
    where h in 0:(H + 2*p - KH) / s + 1, w in 0:(W + 2*p - KW) / s + 1
}";

const SCALED: &str = "def scaled(float a, float(N) x) -> (y, total) {
  y(i) = a * x(i)
  total() +=! y(i)
}";

const MANIFEST: &str = r#"
[package]
name = "kernels"

[[operator]]
file = "gemm.tc"
sizes = { M = 33, N = 40, K = 17 }

[[operator]]
file = "gemm.tc"
sizes = { M = 16, N = 16, K = 16 }

[[operator]]
file = "dense.tc"
sizes = { B = "1..20@1,4,20", I = 24, O = 40 }
threads = 2

[[operator]]
file = "conv.tc"
sizes = { B = 1, C = 3, H = 9, W = 8, O = 5, KH = 3, KW = 3, s = 2, p = 1 }

[[operator]]
file = "scaled.tc"
sizes = { N = 19 }
"#;

/// A directory with the package of [`MANIFEST`] in `out`.
fn packaged(name: &str) -> Scratch {
    let scratch = Scratch::new(name);
    for (file, text) in [("gemm", GEMM), ("dense", DENSE), ("conv", CONV), ("scaled", SCALED)] {
        scratch.write(&format!("{file}.tc"), text);
    }
    scratch.write("kernels.toml", MANIFEST);
    let told = scratch.package("kernels.toml", "out");
    assert!(told.contains("wrote out/libkernels.so"), "{told}");
    scratch
}

/// Calls of all operators of [`MANIFEST`].
fn calls(scratch: &Scratch) -> Vec<Call> {
    let conv = [("B", 1), ("C", 3), ("H", 9), ("W", 8), ("O", 5), ("KH", 3), ("KW", 3)];
    let conv = [&conv[..], &[("s", 2), ("p", 1)]].concat();
    let call = |number, operator, text, sizes: &[(&str, i64)]| {
        Call::new(scratch, number, operator, text, sizes)
    };
    let mut calls = vec![
        call(0, "gemm", GEMM, &[("M", 33), ("N", 40), ("K", 17)]),
        call(1, "gemm", GEMM, &[("M", 16), ("N", 16), ("K", 16)]),
        call(2, "scaled", SCALED, &[("N", 19)]),
        call(3, "conv", CONV, &conv),
    ];
    for batch in [1, 2, 9, 20] {
        let sizes = [("B", batch), ("I", 24), ("O", 40)];
        calls.push(call(calls.len(), "dense", DENSE, &sizes));
    }
    assert!(calls.iter().all(Call::is_real));
    calls
}

/// The levels of a usual package that this machine can run.
fn levels() -> Vec<&'static str> {
    let runs = |name: &&str| tensorwright::Target::named(name).unwrap().check_runs_here().is_ok();
    ["avx2", "avx512"].into_iter().filter(runs).collect()
}

#[test]
fn c_programs_call_static_and_shared_libraries_at_every_level() {
    let scratch = packaged("c");
    let calls = calls(&scratch);
    for level in levels() {
        for (library, linked) in [("static", "out/libkernels.a"), ("shared", "out/libkernels.so")] {
            let source = format!("{level}.{library}.c");
            scratch.write(&source, c_program("kernels", level, &calls));
            let path = "-Wl,-rpath,$ORIGIN/out";
            scratch.run("cc", &["-std=gnu11", "-Iout", &source, linked, path, "-lm", "-o", "main"]);
            scratch.run(scratch.path("main"), &[]);
            calls.iter().for_each(|call| call.check(&scratch, level));
        }
    }
}

#[test]
fn every_value_of_a_range_is_right_from_c() {
    let scratch = Scratch::new("range");
    scratch.write("gemm.tc", GEMM);
    let buckets = "1..130@1,2,5,16,40,130";
    let operator = |name: &str, sizes: &str| {
        format!("[[operator]]\nname = \"{name}\"\nfile = \"gemm.tc\"\nsizes = {{ {sizes} }}\n")
    };
    let manifest = [
        operator("rows", &format!("M = \"{buckets}\", N = 9, K = 7")),
        operator("columns", &format!("N = \"{buckets}\", M = 9, K = 7")),
        operator("terms", &format!("K = \"{buckets}\", M = 9, N = 7")),
    ];
    scratch.write("ranges.toml", manifest.concat());
    scratch.package("ranges.toml", "out");
    let mut calls = Vec::new();
    for value in 1..=130 {
        let sizes = |varying, a, b| [(varying, value), (a, 9), (b, 7)];
        for (name, sizes) in [
            ("rows", sizes("M", "N", "K")),
            ("columns", sizes("N", "M", "K")),
            ("terms", sizes("K", "M", "N")),
        ] {
            calls.push(Call::new(&scratch, calls.len(), name, GEMM, &sizes));
        }
    }
    let level = *levels().last().unwrap();
    scratch.write("main.c", c_program("ranges", level, &calls));
    scratch.run("cc", &["-std=gnu11", "-Iout", "main.c", "out/libranges.a", "-lm", "-o", "main"]);
    scratch.run(scratch.path("main"), &[]);
    calls.iter().for_each(|call| call.check(&scratch, level));
}

#[test]
fn rust_programs_use_the_crate() {
    let scratch = packaged("rust");
    let calls = calls(&scratch);
    let level = levels()[0];
    let manifest = "[package]\nname = \"user\"\nversion = \"0.1.0\"\nedition = \"2021\"\n\
                    [dependencies]\nkernels = { path = \"../out/kernels\" }\n[workspace]\n";
    scratch.write("user/Cargo.toml", manifest);
    scratch.write("user/src/main.rs", rust_program("kernels", level, &calls));
    let cargo = std::env::var_os("CARGO").map_or("cargo".into(), std::path::PathBuf::from);
    let target = scratch.path("target");
    let target = target.to_str().unwrap();
    let strict = "build.rustflags=[\"-Dwarnings\"]";
    let args =
        ["run", "--offline", "--quiet", "--config", strict, "--manifest-path", "user/Cargo.toml"];
    scratch.run(cargo, &[&args[..], &["--target-dir", target]].concat());
    calls.iter().for_each(|call| call.check(&scratch, level));
}

#[test]
fn python_calls_the_shared_library() {
    let scratch = packaged("python");
    let calls = calls(&scratch);
    scratch.write("main.py", python_program("kernels", "best", &calls));
    scratch.run("python3", &["main.py"]);
    calls.iter().for_each(|call| call.check(&scratch, "best"));
}

#[test]
fn two_packages_share_a_program() {
    let scratch = Scratch::new("two");
    scratch.write("gemm.tc", GEMM);
    let operator = "[[operator]]\nfile = \"gemm.tc\"\nsizes = { M = 4, N = 4, K = 4 }\n";
    for name in ["first", "second"] {
        scratch.write(&format!("{name}.toml"), operator);
        scratch.package(&format!("{name}.toml"), "out");
    }
    // A crate without constants has less code, and no warnings either.
    let crate_ = ["--edition=2021", "--crate-type=lib", "--emit=metadata", "out/first/src/lib.rs"];
    let rustc = std::env::var_os("RUSTC").map_or("rustc".into(), std::path::PathBuf::from);
    scratch.run(rustc, &[&["-Dwarnings"], &crate_[..]].concat());
    scratch.write(
        "main.c",
        "#include \"first.h\"\n#include \"second.h\"\n#include <stdio.h>\n\
         int main(void) {\n    float a[16], b[16], c[16], d[16];\n    \
         for (int i = 0; i < 16; i++) a[i] = b[i] = (float)(i % 4);\n    \
         if (first_gemm(4, 4, 4, a, b, c, NULL, NULL) != 0) return 1;\n    \
         if (second_gemm(4, 4, 4, a, b, d, NULL, NULL) != 0) return 2;\n    \
         printf(\"%g %g\\n\", c[3], d[3]);\n    return 0;\n}\n",
    );
    let libraries = ["out/libfirst.a", "out/libsecond.a", "-lm"];
    scratch.run("cc", &[&["-Iout", "main.c"], &libraries[..], &["-o", "main"]].concat());
    assert_eq!(scratch.run(scratch.path("main"), &[]), "18 18\n");
}

#[test]
fn the_same_manifest_gives_the_same_bytes() {
    let scratch = packaged("again");
    scratch.package("kernels.toml", "elsewhere/with a longer name");
    let files = |directory: &str| {
        let list = ["README", "kernels.h", "libkernels.a", "libkernels.so"].map(str::to_owned);
        let inner = ["Cargo.toml", "build.rs", "libkernels.a", "src/lib.rs"];
        let all = list.into_iter().chain(inner.map(|name| format!("kernels/{name}")));
        all.map(|name| (std::fs::read(scratch.path(directory).join(&name)).unwrap(), name))
            .collect::<Vec<_>>()
    };
    for (first, second) in files("out").iter().zip(files("elsewhere/with a longer name")) {
        assert!(*first == second, "{} differs", second.1);
    }
    // No file contains the build path.
    for (content, name) in files("out") {
        let place = scratch.path("").to_str().unwrap().as_bytes().to_vec();
        assert!(!content.windows(place.len()).any(|part| part == place), "{name} has a path");
    }
}

#[test]
fn libraries_need_the_c_library_alone_and_hide_the_rest() {
    let scratch = packaged("symbols");
    let needed = scratch.run("readelf", &["-d", "out/libkernels.so"]);
    for line in needed.lines().filter(|line| line.contains("(NEEDED)")) {
        assert!(line.contains("[libc.so") || line.contains("[libm.so"), "{line}");
    }
    let exported = scratch.run("nm", &["-D", "--defined-only", "out/libkernels.so"]);
    let names: Vec<&str> = exported.lines().filter_map(|line| line.split(' ').nth(2)).collect();
    assert!(names.contains(&"kernels_gemm"), "{exported}");
    assert!(names.iter().all(|name| name.starts_with("kernels_")), "{exported}");
    assert!(!names.iter().any(|name| name.ends_with("_kernel")), "{exported}");
    let global = scratch.run("nm", &["-g", "--defined-only", "out/libkernels.a"]);
    let symbols = global.lines().filter_map(|line| line.split(' ').nth(2));
    assert!(symbols.clone().count() > 20, "{global}");
    assert!(symbols.clone().all(|symbol| symbol.starts_with("kernels_")), "{global}");
    let readme = std::fs::read_to_string(scratch.path("out/README")).unwrap();
    assert!(readme.contains("avx2    untuned; workspace 0 bytes"), "{readme}");
    assert!(readme.contains("kernels for B = 1 4 20"), "{readme}");
}

#[test]
fn threads_come_from_the_caller() {
    let scratch = packaged("threads");
    scratch.write(
        "main.c",
        "#include \"kernels.h\"\n#include <stdio.h>\n#include <stdlib.h>\nstatic int64_t iterations;\n\
         static void run(tw_pool *self, tw_task task, void *context, int64_t count) {\n    \
         iterations += count;\n    \
         for (int64_t n = 0; n < count; n++) task(context, n, n + 1, (int32_t)(n % self->workers));\n}\n\
         int main(void) {\n    static float x[20 * 24], w[40 * 24], bias[40], y[20 * 40], z[20 * 40];\n    \
         for (int i = 0; i < 480; i++) x[i] = (float)(i % 7);\n    \
         for (int i = 0; i < 960; i++) w[i] = (float)(i % 5 - 1);\n    \
         tw_pool pool = {run, 3};\n    \
         void *workspace = aligned_alloc(64, (size_t)kernels_dense_workspace_bytes(20, 24, 40, 3) + 64 & ~63ul);\n    \
         if (kernels_dense(20, 24, 40, x, w, bias, y, NULL, workspace, &pool) != 0) return 1;\n    \
         if (kernels_dense(20, 24, 40, x, w, bias, z, NULL, NULL, NULL) != 0) return 2;\n    \
         for (int i = 0; i < 800; i++) if (y[i] != z[i]) return 3;\n    \
         puts(iterations > 0 ? \"shared\" : \"alone\");\n    return 0;\n}\n",
    );
    scratch.run("cc", &["-std=gnu11", "-Iout", "main.c", "out/libkernels.a", "-lm", "-o", "main"]);
    assert_eq!(scratch.run(scratch.path("main"), &[]), "shared\n");
}

#[test]
fn schedules_come_from_records_for_the_level_that_this_machine_has() {
    let scratch = Scratch::new("records");
    scratch.write("gemm.tc", GEMM);
    scratch.write(
        "tuned.toml",
        "[[operator]]\nfile = \"gemm.tc\"\nsizes = { M = 32, N = 32, K = 32 }\n",
    );
    let tensorwright = env!("CARGO_BIN_EXE_tensorwright");
    let tune = ["tune", "--manifest", "tuned.toml", "--trials", "3", "--db", "records.sqlite3"];
    scratch.run(tensorwright, &tune);
    let package = ["package", "tuned.toml", "-o", "out", "--db", "records.sqlite3"];
    scratch.run(tensorwright, &package);
    let readme = std::fs::read_to_string(scratch.path("out/README")).unwrap();
    let of =
        |level: &str| readme.lines().find(|line| line.trim_start().starts_with(level)).unwrap();
    let best = *levels().last().unwrap();
    assert!(of(best).contains("tuned: trial"), "{readme}");
    let other = ["avx2", "avx512"].into_iter().find(|level| *level != best).unwrap();
    assert!(of(other).contains("untuned"), "{readme}");
    let missing = ["package", "tuned.toml", "-o", "out", "--db", "no-such.sqlite3"];
    let output = scratch.output(tensorwright, &missing);
    assert!(
        String::from_utf8_lossy(&output.stderr).contains("there are no records at no-such.sqlite3")
    );
}
