//! The typed interfaces: a C program and Rust programs that call a kernel through them.

#![allow(unsafe_code, reason = "compiled kernels are called")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]
#![allow(dead_code, reason = "the other tests need more of the support")]

mod support;

use std::path::Path;
use std::process::Command;

use support::{STRICT, compile, plain, program, scratch};
use tensorwright_codegen_c::{Requirement, emit, header, rust_module, wrapper};
use tensorwright_schedule::{Interface, LoweredNest};

/// `y = a * A x`, with an input that is passed by value and names that C and Rust reserve.
fn scaled() -> LoweredNest {
    let text = "def scaled(float a, float(M,K) A, float(K) restrict) -> (y) {
                  t(m) +=! A(m,k) * restrict(k)
                  y(m) = a * t(m)
                }";
    plain(&program(text, &[("M", 2), ("K", 3)]))
}

/// What all processors of this machine's kind are.
fn plain_processor() -> Requirement {
    Requirement::new("plain", &format!("{}-unknown-linux-gnu", std::env::consts::ARCH), [])
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
    // The wrapper stands on its own: it calls a kernel from elsewhere.
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

#[test]
fn text_of_the_interfaces() {
    let nest = scaled();
    let processor =
        Requirement::new("avx2 (haswell)", "x86_64-unknown-linux-gnu", ["avx2", "fma", "bmi2"]);
    insta::assert_snapshot!("header", header(&Interface::of(&nest), None));
    insta::assert_snapshot!("header_of_an_object", header(&Interface::of(&nest), Some(&processor)));
    insta::assert_snapshot!("wrapper_of_an_object", wrapper(&Interface::of(&nest), &processor));
    insta::assert_snapshot!("rust_module", rust_module(&Interface::of(&nest), &processor));
}
