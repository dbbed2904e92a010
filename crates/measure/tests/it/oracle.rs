//! Finds slightly wrong results of a program too large for the interpreter.
//!
//! The wrong elements are in rows of small numbers among rows of large ones: a tolerance relative
//! to the largest element would accept anything there.

use crate::common::{config, next, object, program, schedule};
use tensorwright::Schedule;
use tensorwright_measure::Measurer;
use tensorwright_outcome::Outcome;

/// 22 million iterations; the last row has small numbers.
const TEXT: &str = "def mm(float(M,K) A, float(K,N) B) -> (C) {\n\
    C(m,n) +=! (m % 10 == 9 ? 0.0001 : 10000.0) * A(m,k) * B(k,n) }";
const SIZES: [(&str, i64); 3] = [("M", 280), ("N", 281), ("K", 283)];

/// The same program in C, with a change to an element of a small row.
fn body(terms: &str, change: &str) -> String {
    format!(
        "const float *A = buffers[0], *B = buffers[1]; float *C = buffers[2];\n\
         for (int m = 0; m < 280; m++) for (int n = 0; n < 281; n++) {{\n\
         int is_small = m % 10 == 9; float sum = 0, scale = is_small ? 1e-4f : 1e4f;\n\
         for (int k = 0; k < {terms}; k++) sum += scale * A[283 * m + k] * B[281 * k + n];\n\
         {change}\nC[281 * m + n] = sum; }}"
    )
}

#[test]
fn small_mistakes_of_large_programs_are_found() {
    let program = program(TEXT, "mm", &SIZES);
    let mut config = config();
    config.seed = 17;
    let mut measurer = Measurer::start(&program, config).unwrap();
    measurer.submit(0, &schedule("C: split n 16\nC: reorder m n.0 k n.1\nC: vectorize n.1"));
    let scheduled = next(&mut measurer).outcome;
    assert!(matches!(scheduled, Outcome::Measured(_)), "{scheduled}");

    let mut fate = |terms: &str, change: &str| {
        let object = object(&program, "", &body(terms, change));
        measurer.submit_object(1, &Schedule::default(), object);
        next(&mut measurer).outcome
    };
    let right = fate("283", "");
    assert!(matches!(right, Outcome::Measured(_)), "{right}");
    let mut wrong = |terms: &str, change: &str| match fate(terms, change) {
        Outcome::WrongResult { reason } => reason,
        outcome => panic!("{terms} {change}: {outcome}"),
    };

    let one = wrong("283", "if (m == 279 && n == 280) sum += 1e-5f;");
    assert!(one.contains("1 of 78680 elements differ; the first is number 78679"), "{one}");
    let dropped = wrong("(is_small ? 282 : 283)", "");
    let thousandth = wrong("283", "if (is_small) sum *= 1.001f;");
    for reason in [dropped, thousandth] {
        let (_, rest) = reason.split_once("output 0: ").unwrap();
        let count: usize = rest.split(' ').next().unwrap().parse().unwrap();
        // Of 28 rows; some elements are nearly zero.
        assert!(count > 28 * 281 * 8 / 10 && count <= 28 * 281, "{reason}");
    }
}
