//! Tests of stencil pipelines in cache-sized blocks of rows.

use tensorwright_lang::Module;
use tensorwright_lang::program::Program;
use tensorwright_machine::{Cpu, Goal};
use tensorwright_policy::default_schedule;
use tensorwright_schedule::nest::Node;
use tensorwright_schedule::workspace::WorkspaceLayout;
use tensorwright_schedule::{LoopNest, canonical, lower};

fn program(text: &str, sizes: &[(&str, i64)]) -> Program {
    let module = Module::parse("stencils.tc", text).unwrap();
    module.bind("f", sizes.iter().copied()).unwrap()
}

fn untuned(program: &Program) -> LoopNest {
    let goal = Goal::new(Cpu::avx512()).into();
    default_schedule(program, &goal).unwrap().apply(canonical(program)).unwrap()
}

/// The loops that contain no fused stages: one pass over memory each.
fn passes(program: &Program) -> usize {
    untuned(program).body.iter().filter(|node| matches!(node, Node::Loop(_))).count()
}

const BLUR: &str = "def f(float(H,W) in) -> (out) {
  bx(y,x) = (in(y, clamp(x-1, 0, W-1)) + in(y,x) + in(y, clamp(x+1, 0, W-1))) / 3
  out(y,x) = (bx(clamp(y-1, 0, H-1), x) + bx(y,x) + bx(clamp(y+1, 0, H-1), x)) / 3
}";

#[test]
fn neighbouring_rows_stay_in_the_cache() {
    let large = program(BLUR, &[("H", 2000), ("W", 1500)]);
    assert_eq!(passes(&large), 1);
    let rows =
        untuned(&large).buffers.iter().find(|buffer| buffer.name == "bx").unwrap().elements();
    assert_eq!(rows, 34 * 1500);
}

#[test]
fn what_a_cache_holds_anyway_is_computed_once() {
    assert_eq!(passes(&program(BLUR, &[("H", 100), ("W", 100)])), 2);
}

#[test]
fn sums_over_windows_are_part_of_a_block() {
    let text = "def f(float(H,W) in) -> (out) {
      gx(y,x) = in(y,x+2) - in(y,x)
      gy(y,x) = in(y+2,x) - in(y,x)
      xx(y,x) = gx(y,x) * gx(y,x) where y in 0:H-2, x in 0:W-2
      xy(y,x) = gx(y,x) * gy(y,x) where y in 0:H-2, x in 0:W-2
      sxx(y,x) +=! xx(y+i,x+j) where i in 0:3, j in 0:3
      sxy(y,x) +=! xy(y+i,x+j) where i in 0:3, j in 0:3
      out(y,x) = sxx(y,x) - sxy(y,x) * sxy(y,x)
    }";
    assert_eq!(passes(&program(text, &[("H", 2000), ("W", 1500)])), 1);
}

#[test]
fn long_chains_become_several_blocks() {
    let stages: String = (1..=40)
        .map(|n| format!("s{n}(y,x) = s{}(y,x) + s{}(y+2,x) * 2\n", n - 1, n - 1))
        .collect();
    let text = format!(
        "def f(float(H,W) in) -> (out) {{ s0(y,x) = in(y,x) + in(y,x+1)\n{stages} out(y,x) = s40(y,x) - s40(y+1,x) }}"
    );
    let passes = passes(&program(&text, &[("H", 2000), ("W", 1500)]));
    assert!((4..=14).contains(&passes), "{passes} passes");
}

#[test]
fn windows_that_are_high_are_not_computed_twice() {
    let text = "def f(float(H,W) in) -> (out) {
      rows(y,x) max=! in(y,x+i) where i in 0:25
      out(y,x) max=! rows(y+i,x) where i in 0:65
    }";
    assert_eq!(passes(&program(text, &[("H", 2000), ("W", 1500)])), 2);
}

#[test]
fn what_is_read_in_place_is_computed_there() {
    let text = "def f(float(H,W) in) -> (out) {
      blurred(y,x) = (in(y,x) + 2 * in(y,x+1) + 4 * in(y,x+2) + 2 * in(y+1,x+1) + in(y+2,x+2) + in(y+2,x)) / 11
      out(y,x) = (in(y,x) - blurred(y,x)) * in(y,x) where y in 0:H-2, x in 0:W-2
    }";
    let program = program(text, &[("H", 2000), ("W", 1500)]);
    let schedule =
        default_schedule(&program, &Goal::new(Cpu::avx512()).into()).unwrap().to_string();
    assert!(schedule.contains("blurred: inline"), "{schedule}");
}

#[test]
fn stages_share_the_memory_of_a_long_chain() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/kernels/stencil_chain.tc");
    let module =
        Module::parse("stencil_chain.tc", &std::fs::read_to_string(path).unwrap()).unwrap();
    let program = module.bind("stencil_chain", [("H", 1536), ("W", 2560)]).unwrap();
    let goal = Goal::new(Cpu::avx512()).with_workers(2).into();
    let nest = default_schedule(&program, &goal).unwrap().apply(canonical(&program)).unwrap();
    let bytes = WorkspaceLayout::of(&lower(nest).unwrap()).size.bytes(2);
    assert!(bytes < 64 << 20, "{bytes} bytes");
}

/// Sums over small windows that are read in place stay in registers, inside products, and a border
/// is part of its reader.
#[test]
fn sums_over_windows_are_computed_in_the_vectors_of_their_reader() {
    let text = "def f(float(H,W) in) -> (out) {
      p(y,x) = in(clamp(y-2, 0, H-1), clamp(x-2, 0, W-1)) where y in 0:H+4, x in 0:W+4
      gx(y,x) = p(y,x+2) - p(y,x) where y in 0:H+2, x in 0:W+2
      gy(y,x) = p(y+2,x) - p(y,x) where y in 0:H+2, x in 0:W+2
      xx(y,x) = gx(y,x) * gx(y,x)
      yy(y,x) = gy(y,x) * gy(y,x)
      xy(y,x) = gx(y,x) * gy(y,x)
      sxx(y,x) +=! xx(y+i,x+j) where i in 0:3, j in 0:3
      sxy(y,x) +=! xy(y+i,x+j) where i in 0:3, j in 0:3
      syy(y,x) +=! yy(y+i,x+j) where i in 0:3, j in 0:3
      out(y,x) = sxx(y,x) * syy(y,x) - sxy(y,x) * sxy(y,x)
    }";
    let large = program(text, &[("H", 2000), ("W", 1500)]);
    let schedule = default_schedule(&large, &Goal::new(Cpu::avx512()).into()).unwrap().to_string();
    for step in ["p: inline", "xx: inline", "xy: inline", "gx: compute_at out y.block"] {
        assert!(schedule.contains(step), "{step}\n{schedule}");
    }
    for step in ["compute_at out x.panel", "unroll i", "unroll j"] {
        assert!(schedule.contains(&format!("sxx: {step}")), "{step}\n{schedule}");
        assert!(schedule.contains(&format!("sxy: {step}")), "{step}\n{schedule}");
    }
    assert_eq!(passes(&large), 1);
}

/// Data-dependent reads are gathered into vectors, however many there are.
#[test]
fn several_gathered_tensors_are_no_reason_for_scalars() {
    let text = "def f(float(N,W) a, float(N,W) b, int(W) at) -> (out) {
      out(x) max=! a(n, at(x)) + b(n, at(x))
    }";
    let gathered = program(text, &[("N", 31), ("W", 4096)]);
    let schedule =
        default_schedule(&gathered, &Goal::new(Cpu::avx512()).into()).unwrap().to_string();
    assert!(schedule.contains("out: vectorize"), "{schedule}");
}

/// The rows of a cheap stage that a tile needs stay in registers and are never stored.
#[test]
fn rows_that_are_read_again_stay_in_registers() {
    let blur = BLUR.replace("/ 3", "/ 4");
    let schedule = |text: &str| {
        let program = program(text, &[("H", 2000), ("W", 1500)]);
        default_schedule(&program, &Goal::new(Cpu::avx512()).into()).unwrap().to_string()
    };
    let cheap = schedule(&blur);
    assert!(cheap.contains("-> y.tile y.rows"), "{cheap}");
    assert!(cheap.contains("bx: compute_at out x.panel"), "{cheap}");
    // Divisions are not recomputed.
    let costly = schedule(BLUR);
    assert!(costly.contains("bx: compute_at out y.block"), "{costly}");
}

/// All terms of a small window are unrolled, over a tile of several rows that share reads.
#[test]
fn windows_share_what_they_read_with_the_next_rows() {
    let text = "def f(float(H,W) in) -> (out) {
      out(y,x) max=! in(y+i,x) where i in 0:25
    }";
    let program = program(text, &[("H", 2024), ("W", 1500)]);
    let schedule =
        default_schedule(&program, &Goal::new(Cpu::avx512()).into()).unwrap().to_string();
    assert!(schedule.contains("out: unroll i.1"), "{schedule}");
    assert!(
        schedule.contains("out: split y 1 16") || schedule.contains("out: split y 1 8"),
        "{schedule}"
    );
}
