//! Which rewritings are found for the example kernels, by their structure alone.
#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

use std::path::Path;

use tensorwright_lang::Module;
use tensorwright_lang::precision::Precision;
use tensorwright_policy::rewritings;
use tensorwright_schedule::canonical;

/// The rewritings of an example, one line each, best guess first.
fn found(file: &str, def: &str, sizes: &[(&str, i64)]) -> Vec<String> {
    let kernels = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/kernels");
    let text = std::fs::read_to_string(kernels.join(file)).unwrap();
    let module = Module::parse(file, &text).unwrap();
    let program = module.def(def).unwrap().bind(sizes.iter().copied()).unwrap();
    let drafts = rewritings(&canonical(&program), Precision::Fast);
    drafts.iter().map(|draft| draft.schedule.to_string().trim().replace('\n', "; ")).collect()
}

#[test]
fn transposed_convolutions_are_taken_apart_into_phases() {
    let sizes = [("N", 1), ("C", 8), ("K", 8), ("L", 20), ("R", 4), ("s", 2), ("p", 1)];
    let phases = "padded: inline; spread: inline; out: phases i by 2; out: pad in";
    assert_eq!(found("conv_transpose.tc", "conv1d_transpose", &sizes), [phases, ""]);
}

#[test]
fn guarded_reads_are_padded() {
    let sizes = [("B", 1), ("IP", 4), ("OP", 8), ("H", 12), ("W", 12), ("KH", 3), ("KW", 3)];
    let sizes = [sizes.as_slice(), &[("s", 1), ("p", 1)]].concat();
    assert_eq!(found("conv2d.tc", "conv2d_padded", &sizes), ["out: pad in", ""]);
    // The text has padded it already.
    assert_eq!(found("conv2d.tc", "conv2d_two_stage", &sizes), [""]);
}

#[test]
fn sums_of_products_are_factored() {
    let sizes = [("N", 12), ("P", 512), ("Q", 512), ("M", 8)];
    // Summing over k first reads B along its rows.
    let both = ["O: factor k", "O: factor l", ""];
    assert_eq!(found("bilinear.tc", "bilinear", &sizes), both);
    // Both ways read rows here; the partial sums T(i,k,j) are fewer than T(i,l,j).
    let sizes = [("N", 12), ("P", 256), ("Q", 512), ("M", 8)];
    assert_eq!(found("bilinear.tc", "mttkrp", &sizes), ["O: factor l", "O: factor k", ""]);
}

#[test]
fn what_is_as_good_as_it_gets_is_left_alone() {
    let sizes = [("M", 12), ("N", 16), ("K", 24)];
    assert_eq!(found("gemm.tc", "gemm", &sizes), [""]);
}

#[test]
fn rows_that_follow_each_other_may_be_one() {
    let mut sizes =
        vec![("B", 1), ("IP", 8), ("OP", 8), ("H", 14), ("W", 14), ("KH", 1), ("KW", 1)];
    assert_eq!(found("conv2d.tc", "conv2d", &sizes), ["", "out: fuse h w"]);
    // Windows make rows overlap, and rows of whole vectors need no help.
    sizes[5..].clone_from_slice(&[("KH", 3), ("KW", 3)]);
    assert_eq!(found("conv2d.tc", "conv2d", &sizes), [""]);
    sizes[4..].clone_from_slice(&[("W", 32), ("KH", 1), ("KW", 1)]);
    assert_eq!(found("conv2d.tc", "conv2d", &sizes), [""]);
}
