//! Tests of typed interfaces: C and Rust programs that call a kernel.

#![allow(unsafe_code, reason = "compiled kernels are called")]

use std::path::Path;
use std::process::Command;

use crate::support::{SANITIZE, STRICT, compile, plain, plain_processor, program, scratch};
use tensorwright_codegen_c::{Requirement, c_names, emit, header, rust_module, wrapper};
use tensorwright_lang::Module;
use tensorwright_schedule::{Interface, LoweredNest, Schedule, canonical, lower};

/// `y = a * A x`, with a scalar input that is passed by value, and with names that C and Rust
/// reserve.
fn scaled() -> LoweredNest {
    let text = "def scaled(float a, float(M,K) A, float(K) restrict) -> (y) {
                  t(m) +=! A(m,k) * restrict(k)
                  y(m) = a * t(m)
                }";
    plain(&program(text, &[("M", 2), ("K", 3)]))
}

fn succeeds(directory: &Path, program: &str) {
    let output = Command::new(directory.join(program)).output().unwrap();
    assert!(output.status.success(), "{program}: {}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn c_programs_call_kernels_by_name() {
    let (directory, nest) = (scratch("c_interface"), scaled());
    let source = emit(&nest).unwrap();
    let write = |file: &str, text: &str| std::fs::write(directory.join(file), text).unwrap();
    write("scaled.c", &source.code);
    write("scaled.h", &source.header);
    write(
        "main.c",
        "#include \"scaled.h\"\n\
         int main(void) {\n\
             const float A[6] = {1, 2, 3, 4, 5, 6}, x[3] = {1, 1, 2};\n\
             float y[2] = {0, 0};\n\
             if (scaled_call(0.5f, A, x, y) != 0) { return 1; }\n\
             return y[0] == 4.5f && y[1] == 10.5f ? 0 : 2;\n\
         }\n",
    );
    let flags: Vec<&str> = STRICT.into_iter().chain(["-o", "main"]).collect();
    compile("cc", &directory, &["main.c".into(), "scaled.c".into()], &flags);
    succeeds(&directory, "main");
    // The wrapper alone: it calls a kernel from another file.
    write("wrapper.c", &wrapper(&Interface::of(&nest), &plain_processor()));
    let flags: Vec<&str> = STRICT.into_iter().chain(["-c"]).collect();
    compile("cc", &directory, &["wrapper.c".into()], &flags);
    assert_eq!(header(&Interface::of(&nest), None), source.header);
}

#[test]
fn rust_programs_call_kernels_safely() {
    let (directory, nest) = (scratch("rust_interface"), scaled());
    let write = |file: &str, text: &str| std::fs::write(directory.join(file), text).unwrap();
    write("scaled.c", &emit(&nest).unwrap().code);
    write("scaled.rs", &rust_module(&Interface::of(&nest), &plain_processor()));
    write(
        "main.rs",
        "mod scaled;\n\
         fn main() {\n\
             let matrix = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];\n\
             let mut y = [0.0; 2];\n\
             scaled::scaled(0.5, &matrix, &[1.0, 1.0, 2.0], &mut y).unwrap();\n\
             assert_eq!(y, [4.5, 10.5]);\n\
             let error = scaled::scaled(0.5, &matrix, &[1.0], &mut y).unwrap_err();\n\
             assert_eq!(error.to_string(), \"`restrict` has 1 elements and ought to have 3\");\n\
         }\n",
    );
    let flags: Vec<&str> = STRICT.into_iter().chain(["-c"]).collect();
    compile("cc", &directory, &["scaled.c".into()], &flags);
    for edition in ["2021", "2024"] {
        let flags = ["-Dwarnings", "--edition", edition, "-Clink-arg=scaled.o", "-Clink-arg=-lm"];
        compile("rustc", &directory, &["main.rs".into()], &flags);
        succeeds(&directory, "main");
    }
}

/// The product of `a` and a constant matrix, with a scalar that is compiled in, for a schedule.
fn product(schedule: &str) -> LoweredNest {
    let text = "def q(float(M,K) a, const float(N,K) b, int s) -> (c) {
                  t(m,n) +=! a(m,k) * b(n,k)
                  c(m,n) = float(s) * t(m,n)
                }";
    let program = program(text, &[("M", 2), ("K", 3), ("N", 4), ("s", 2)]);
    let schedule = Schedule::parse(schedule).unwrap();
    lower(schedule.apply(canonical(&program)).unwrap()).unwrap()
}

/// A program that only uses the header.
const PRODUCT_MAIN: &str = "
#include \"q.h\"
#include <stdlib.h>

static const float a[6] = {1, 2, 3, 4, 5, 6}, b[12] = {1, 0, 0, 0, 1, 0, 0, 0, 1, 1, 1, 1};

static int wrong(const float *c) {
    const float right[8] = {2, 4, 6, 12, 8, 10, 12, 30};
    for (int i = 0; i < 8; i++) if (c[i] != right[i]) return 1;
    return 0;
}

int main(void) {
    float c[8] = {0}, d[8] = {0}, e[8] = {0};
    if (q_interface() != q_INTERFACE) return 1;
    if (q_call(a, b, 2, c) != 0 || wrong(c)) return 2;
    if (q_call(a, b, 3, c) != -2) return 3;
    char *const memory = aligned_alloc(64, (size_t)q_prepared_bytes() + 64);
    for (int i = 0; i < 64; i++) memory[i] = 1;
    const int prepares = q_prepared_bytes() > 0;
    if (q_run(a, b, 2, d, memory, NULL, NULL) != (prepares ? -6 : 0)) return 4;
    if (q_prepare(b, NULL, NULL) != (prepares ? -3 : 0)) return 5;
    if (q_prepare(b, memory + 4, NULL) != (prepares ? -4 : 0)) return 6;
    if (q_prepare(b, memory, NULL) != 0) return 7;
    if (q_run(a, b, 2, d, memory, NULL, NULL) != 0 || wrong(d)) return 8;
    if (q_run(a, b, 2, d, memory + 4, NULL, NULL) != -4) return 9;
    if (q_run(a, b, 2, d, memory, memory + 4, NULL) != -4) return 10;
    void *const workspace = aligned_alloc(64, (size_t)q_workspace_bytes(1) + 64);
    if (q_run(a, b, 2, e, NULL, workspace, NULL) != 0 || wrong(e)) return 11;
    free(memory);
    free(workspace);
    return q_runs_here() ? 0 : 12;
}
";

/// Schedules that prepare nothing, that prepare, and that prepare in another way.
const PRODUCT_SCHEDULES: [&str; 3] =
    ["", "b: layout [d1, d0]", "b: layout [d0/2, d1, d0%2]\nt: split n 2\nt: reorder m n.0 k n.1"];

#[test]
fn one_program_is_linked_with_kernels_of_any_schedule() {
    let directory = scratch("stable_interface");
    let write = |file: &str, text: &str| std::fs::write(directory.join(file), text).unwrap();
    write("main.c", PRODUCT_MAIN);
    for (number, schedule) in PRODUCT_SCHEDULES.into_iter().enumerate() {
        let source = emit(&product(schedule)).unwrap();
        write("q.c", &source.code);
        if number == 0 {
            write("q.h", &source.header);
            let flags = [&STRICT[1..], &["-std=c11", "-c"]].concat();
            compile("cc", &directory, &["main.c".into()], &flags);
            let flags = ["-x", "c++", "-std=c++11", "-Wall", "-Wextra", "-Wpedantic", "-Werror"];
            compile(
                "g++",
                &directory,
                &["q.h".into()],
                &[&flags[..], &["-fsyntax-only", "-c"]].concat(),
            );
        }
        let flags: Vec<&str> = STRICT.into_iter().chain(SANITIZE).chain(["-o", "main"]).collect();
        compile("cc", &directory, &["main.o".into(), "q.c".into()], &flags);
        succeeds(&directory, "main");
        // With the wrapper of an object file, in both languages.
        write("wrapper.c", &wrapper(&Interface::of(&product(schedule)), &plain_processor()));
        let flags: Vec<&str> = STRICT.into_iter().chain(["-c"]).collect();
        compile("cc", &directory, &["wrapper.c".into()], &flags);
        let flags = ["-x", "c++", "-std=c++11", "-Wall", "-Wextra", "-Werror", "-c"];
        compile("g++", &directory, &["wrapper.c".into()], &flags);
    }
}

#[test]
fn rust_programs_do_not_know_the_schedule() {
    let directory = scratch("stable_rust");
    let write = |file: &str, text: &str| std::fs::write(directory.join(file), text).unwrap();
    write(
        "main.rs",
        "mod q;\n\
         fn main() {\n    \
             let a = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];\n    \
             let b = [1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0, 1.0, 1.0, 1.0];\n    \
             let (mut c, mut d) = ([0.0; 8], [0.0; 8]);\n    \
             q::q(&a, &b, 2, &mut c).unwrap();\n    \
             assert_eq!(c, [2.0, 4.0, 6.0, 12.0, 8.0, 10.0, 12.0, 30.0]);\n    \
             let prepared = q::Prepared::new(&b).unwrap();\n    \
             q::q_prepared(&a, &b, 2, &mut d, &prepared).unwrap();\n    \
             assert_eq!(c, d);\n    \
             let error = q::q(&a, &b, 3, &mut c).unwrap_err();\n    \
             assert_eq!(error.to_string(), \"`s` is 3, and the kernel is for 2\");\n\
         }\n",
    );
    for schedule in PRODUCT_SCHEDULES {
        let nest = product(schedule);
        write("q.c", &emit(&nest).unwrap().code);
        write("q.rs", &rust_module(&Interface::of(&nest), &plain_processor()));
        let flags: Vec<&str> = STRICT.into_iter().chain(["-c"]).collect();
        compile("cc", &directory, &["q.c".into()], &flags);
        let flags = ["-Dwarnings", "--edition", "2024", "-Clink-arg=q.o", "-Clink-arg=-lm"];
        compile("rustc", &directory, &["main.rs".into()], &flags);
        succeeds(&directory, "main");
    }
}

/// Reserved words of C, C++ or Rust, and names that the generated code uses.
const WORDS: &str = "register NULL class errno I self crate fn type main malloc free exit y0 gamma \
    restrict linux stdin prepared workspace pool buffers status workers memory tw_run M_PI this new";

#[test]
fn words_of_the_languages_may_be_names() {
    let directory = scratch("words");
    let write = |file: &str, text: &str| std::fs::write(directory.join(file), text).unwrap();
    let (mut main, mut modules, mut sources) = (String::new(), String::new(), Vec::new());
    for word in WORDS.split_whitespace() {
        let text = format!(
            "def {word}(float(N) {word}_call, const float(N) {word}) -> (r) {{
               r(i) = {word}_call(i) * {word}(i)
             }}"
        );
        // The source language reserves some words too.
        let Ok(module) = Module::parse("words.tc", &text) else { continue };
        let nest = plain(&module.bind(word, [("N", 4)]).unwrap());
        let (source, interface) = (emit(&nest).unwrap(), Interface::of(&nest));
        let file = format!("word_{word}");
        write(&format!("{file}.h"), &source.header);
        main += &format!("#include \"{file}.h\"\n");
        write(&format!("{file}.rs"), &rust_module(&interface, &plain_processor()));
        modules += &format!("#[path = \"{file}.rs\"]\npub mod word_{};\n", sources.len());
        let wrapper = wrapper(&interface, &plain_processor());
        for (end, text) in [("", &source.code), ("_call", &wrapper)] {
            write(&format!("{file}{end}.c"), text);
            sources.push(format!("{file}{end}.c").into());
        }
    }
    assert!(sources.len() > 40, "{sources:?}");
    let flags: Vec<&str> = STRICT.into_iter().chain(["-c"]).collect();
    compile("cc", &directory, &sources, &flags);
    write("lib.rs", &modules);
    let rust = ["-Dwarnings", "--edition", "2024", "--crate-type=lib", "--emit=metadata"];
    compile("rustc", &directory, &["lib.rs".into()], &rust);
    // All headers in one C++ program, after system headers.
    write("all.cpp", &format!("#include <cmath>\n#include <cstdlib>\n#include <cstdio>\n{main}"));
    let flags = ["-std=c++17", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-c"];
    compile("g++", &directory, &["all.cpp".into()], &flags);
}

#[test]
fn macros_of_the_headers_that_the_code_includes_are_no_names() {
    let (directory, code) = (scratch("macros"), emit(&scaled()).unwrap().code);
    let includes = code.lines().filter(|line| line.starts_with("#include"));
    let includes: String = includes.map(|line| format!("{line}\n")).collect();
    std::fs::write(directory.join("includes"), includes).unwrap();
    for (language, standard) in [("c", "c99"), ("c", "gnu11"), ("c++", "gnu++17")] {
        let mut command = Command::new("cc");
        command.args(["-dM", "-E", "-x", language, &format!("-std={standard}"), "includes"]);
        let text = command.current_dir(&directory).output().unwrap().stdout;
        let text = String::from_utf8(text).unwrap();
        let names = text.lines().filter_map(|line| line.split(' ').nth(1));
        let is_word = |name: &&str| !name.contains('(') && !name.starts_with('_');
        let names: Vec<&str> = names.filter(is_word).collect();
        let kept: Vec<&&str> = names.iter().filter(|name| c_names([**name]) == [**name]).collect();
        assert!(names.len() > 50 && kept.is_empty(), "{standard}: {kept:?}");
    }
}

#[test]
fn text_of_the_interfaces() {
    let nest = scaled();
    let processor =
        Requirement::new("avx2 (haswell)", "x86_64-unknown-linux-gnu", ["avx2", "fma", "bmi2"]);
    insta::assert_snapshot!("header", header(&Interface::of(&nest), None));
    insta::assert_snapshot!("header_of_an_object", header(&Interface::of(&nest), Some(&processor)));
    insta::assert_snapshot!("wrapper_of_an_object", wrapper(&Interface::of(&nest), &processor));
    insta::assert_snapshot!("rust_module", rust_module(&Interface::of(&nest), &processor));
    let prepared = Interface::of(&product(PRODUCT_SCHEDULES[1]));
    insta::assert_snapshot!("wrapper_that_prepares", wrapper(&prepared, &processor));
}
