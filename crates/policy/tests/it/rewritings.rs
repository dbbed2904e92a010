//! Tests of the rewritings of the example kernels.

use std::path::Path;

use tensorwright_lang::Module;
use tensorwright_lang::precision::Precision;
use tensorwright_machine::{Cpu, Goal};
use tensorwright_policy::cpu::rules::schedule_by_rules;
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
    // The text pads it already.
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
    // Windows make rows overlap, and rows of whole vectors need no fusion.
    sizes[5..].clone_from_slice(&[("KH", 3), ("KW", 3)]);
    assert_eq!(found("conv2d.tc", "conv2d", &sizes), [""]);
    sizes[4..].clone_from_slice(&[("W", 32), ("KH", 1), ("KW", 1)]);
    assert_eq!(found("conv2d.tc", "conv2d", &sizes), [""]);
}

#[test]
fn workers_get_copies_of_small_results_of_scatters() {
    let copies = "count: split y 64; count: privatize y.0";
    let sizes = [("H", 1024), ("W", 1024), ("bins", 256)];
    assert_eq!(found("histogram.tc", "histogram", &sizes), [copies, ""]);
    // Few terms, or many results.
    let sizes = [("H", 64), ("W", 64), ("bins", 256)];
    assert_eq!(found("histogram.tc", "histogram", &sizes), [""]);
    let sizes = [("N", 4096), ("D", 64), ("V", 30000)];
    assert_eq!(found("scatter.tc", "embedding_gradient", &sizes), [""]);
    // Rows of results are already parallel.
    let sizes = [("N", 100_000), ("D", 512), ("V", 10)];
    assert_eq!(found("scatter.tc", "embedding_gradient", &sizes), [""]);
}

#[test]
fn recurrences_are_scheduled_by_rules() {
    let rules = |def: &str, sizes: &[(&str, i64)]| {
        let kernels = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bench/kernels");
        let text = std::fs::read_to_string(kernels.join("scans.tc")).unwrap();
        let filter = "def filter(float(N,T) X) -> (Y) {\n  Y(n,t) = 0.5 * Y(n,t-1) + X(n,t) scan t from 0\n}\n\
                      def back(double(N,T) X) -> (Y) {\n  Y(n,t) = Y(n,t+1) + X(n,t) scan t from 0\n}\n";
        let module = Module::parse("scans.tc", &(text + filter)).unwrap();
        let program = module.def(def).unwrap().bind(sizes.iter().copied()).unwrap();
        let schedule = schedule_by_rules(&program, &Goal::new(Cpu::avx2()).with_workers(4));
        format!("# {def} {sizes:?}\n{schedule}")
    };
    let text = [
        // Steps are lanes, of one line and of many.
        rules("cumsum", &[("N", 512), ("T", 4096)]),
        rules("back", &[("N", 16), ("T", 1000)]),
        rules("cumsum", &[("N", 100), ("T", 6)]),
        rules("cumsum", &[("N", 1000), ("T", 3)]),
        // Pieces of a line for each worker.
        rules("cummax", &[("N", 1), ("T", 1 << 21)]),
        rules("cumsum", &[("N", 3), ("T", 300_001)]),
        // Neighbours are.
        rules("cumsum_columns", &[("T", 512), ("W", 4096)]),
        // Neither can be.
        rules("filter", &[("N", 512), ("T", 4096)]),
    ];
    insta::assert_snapshot!(text.join("---\n"));
}

#[test]
fn scatters_are_scheduled_by_rules() {
    let rules = |file: &str, def: &str, sizes: &[(&str, i64)]| {
        let kernels = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/kernels");
        let text = std::fs::read_to_string(kernels.join(file)).unwrap();
        let module = Module::parse(file, &text).unwrap();
        let program = module.def(def).unwrap().bind(sizes.iter().copied()).unwrap();
        schedule_by_rules(&program, &Goal::new(Cpu::avx2()).with_workers(4)).to_string()
    };
    let text = [
        rules("histogram.tc", "histogram", &[("H", 1024), ("W", 1024), ("bins", 256)]),
        rules("scatter.tc", "embedding_gradient", &[("N", 4096), ("D", 512), ("V", 30000)]),
        rules("scatter.tc", "embedding_gradient", &[("N", 50), ("D", 20), ("V", 30)]),
        rules("scatter.tc", "group_max", &[("N", 40_000), ("B", 64), ("G", 100)]),
        rules("scatter.tc", "sparse_product", &[("E", 1 << 20), ("M", 1000), ("N", 1000)]),
    ];
    insta::assert_snapshot!(text.join("---\n"));
}
