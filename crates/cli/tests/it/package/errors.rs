//! Invalid calls of packaged functions return error codes and never crash.

use super::packaged;

/// Makes invalid calls and prints their results.
const WRONG_CALLS: &str = r#"
#include "kernels.h"
#include <stdio.h>
#include <stdlib.h>

static void told(const char *what, int64_t code) {
    printf("%s: %s\n", what, code < 0 ? kernels_error_text((int32_t)code) : "done");
}

int main(void) {
    float *a = aligned_alloc(64, 1 << 16), *b = aligned_alloc(64, 1 << 16), *c = aligned_alloc(64, 1 << 16);
    for (int i = 0; i < 1 << 14; i++) a[i] = b[i] = c[i] = 1;
    char *prepared = aligned_alloc(64, (size_t)kernels_dense_prepared_bytes(4, 24, 40) + 64 & ~63ul);
    told("right", kernels_gemm(16, 16, 16, a, b, c, NULL, NULL));
    told("other sizes", kernels_gemm(16, 16, 17, a, b, c, NULL, NULL));
    told("negative sizes", kernels_gemm(-16, 16, 16, a, b, c, NULL, NULL));
    told("beyond the range", kernels_dense(21, 24, 40, a, b, c, c, NULL, NULL, NULL));
    told("below the range", kernels_dense(0, 24, 40, a, b, c, c, NULL, NULL, NULL));
    told("elements of other sizes", kernels_gemm_elements(16, 16, 17, 0));
    told("elements of no parameter", kernels_gemm_elements(16, 16, 16, 3));
    told("workspace of other sizes", kernels_gemm_workspace_bytes(16, 16, 17, 1));
    told("null input", kernels_gemm(16, 16, 16, NULL, b, c, NULL, NULL));
    told("null output", kernels_gemm(16, 16, 16, a, b, NULL, NULL, NULL));
    told("misaligned input", kernels_gemm(16, 16, 16, (float *)((char *)a + 1), b, c, NULL, NULL));
    told("misaligned output", kernels_gemm(16, 16, 16, a, b, (float *)((char *)c + 2), NULL, NULL));
    told("misaligned workspace", kernels_gemm(16, 16, 16, a, b, c, (char *)a + 4, NULL));
    told("null prepared memory", kernels_dense_prepare(4, 24, 40, b, c, NULL, NULL));
    told("misaligned prepared memory", kernels_dense_prepare(4, 24, 40, b, c, prepared + 4, NULL));
    told("null constant", kernels_dense_prepare(4, 24, 40, NULL, c, prepared, NULL));
    told("constants", kernels_dense_prepare(4, 24, 40, b, c, prepared, NULL));
    told("constants of another value", kernels_dense(9, 24, 40, a, b, c, a + 4096, prepared, NULL, NULL));
    told("no constants", kernels_dense(9, 24, 40, a, NULL, c, a + 4096, NULL, NULL, NULL));
    prepared[0] ^= 1;
    told("other memory", kernels_dense(4, 24, 40, a, b, c, a + 4096, prepared, NULL, NULL));
    told("no such level", kernels_set_level(2));
    told("a lower level", kernels_set_level(0));
    told("the best level", kernels_set_level(-1));
    told("an unknown code", -99);
    return 0;
}
"#;

#[test]
fn wrong_calls_return_codes_with_texts() {
    let scratch = packaged("errors");
    scratch.write("main.c", WRONG_CALLS);
    // Undefined behaviour in the dispatcher would end the program.
    let flags = ["-std=gnu11", "-g", "-Iout", "main.c", "out/libkernels.a", "-lm", "-o", "main"];
    scratch.run("cc", &flags);
    insta::assert_snapshot!(scratch.run(scratch.path("main"), &[]));
}

#[test]
fn a_missing_compiler_is_told_before_anything_is_built() {
    let scratch = super::Scratch::new("compiler");
    scratch.write("gemm.tc", super::GEMM);
    let operator = "[[operator]]\nfile = \"gemm.tc\"\nsizes = { M = 4, N = 4, K = 4 }\n";
    scratch.write("kernels.toml", operator);
    let args = ["package", "kernels.toml", "-o", "out", "--cc", "no-such-compiler"];
    let output = scratch.output(env!("CARGO_BIN_EXE_tensorwright"), &args);
    assert_eq!(output.status.code(), Some(1));
    insta::assert_snapshot!(String::from_utf8(output.stderr).unwrap());
    assert!(!scratch.path("out").exists());
}
