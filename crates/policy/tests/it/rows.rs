//! Tests of row-wise fusion: norms, softmax, losses, but not products.

use tensorwright_lang::Module;
use tensorwright_lang::program::Program;
use tensorwright_machine::{Cpu, Goal};
use tensorwright_policy::{Preset, ScheduleSpace, default_schedule};
use tensorwright_schedule::{LoopNest, canonical, lower};

fn goal() -> Goal {
    Goal::new(Cpu::avx512()).into()
}

fn program(text: &str, sizes: &[(&str, i64)]) -> Program {
    let module = Module::parse("rows.tc", text).unwrap();
    module.bind("f", sizes.iter().copied()).unwrap()
}

fn untuned(program: &Program) -> LoopNest {
    default_schedule(program, &goal()).unwrap().apply(canonical(program)).unwrap()
}

/// The loops that contain no fused stages: one pass over memory each.
fn passes(program: &Program) -> usize {
    untuned(program).body.len()
}

const SOFTMAX: &str = "def f(float(N,D) x) -> (y) {
  top(n) max=! x(n,d)
  e(n,d) = exp(x(n,d) - top(n))
  total(n) +=! e(n,d)
  y(n,d) = e(n,d) / total(n)
}";

#[test]
fn functions_are_work_for_several_workers() {
    let goal: Goal = Goal::new(Cpu::avx512()).with_workers(2).into();
    let is_shared = |text: &str, rows: i64| {
        let program = program(text, &[("N", rows), ("D", 256)]);
        default_schedule(&program, &goal).unwrap().to_string().contains("parallel")
    };
    let sum = "def f(float(N,D) x, float(D) b) -> (y) { y(n,d) = max(x(n,d) + b(d), 0) }";
    assert!(!is_shared(sum, 128) && is_shared(sum, 256));
    let silu = "def f(float(N,D) x, float(D) b) -> (y) { y(n,d) = silu(x(n,d) + b(d)) }";
    assert!(!is_shared(silu, 16) && is_shared(silu, 64));
    assert!(!is_shared(SOFTMAX, 8) && is_shared(SOFTMAX, 64));
}

#[test]
fn rows_are_read_once() {
    assert_eq!(passes(&program(SOFTMAX, &[("N", 64), ("D", 1000)])), 1);
    let norm = "def f(float(B,N,D) x, float(D) gamma) -> (y) {
      mean(b,n) +=! x(b,n,d) / D
      variance(b,n) +=! (x(b,n,d) - mean(b,n)) * (x(b,n,d) - mean(b,n)) / D
      y(b,n,d) = (x(b,n,d) - mean(b,n)) * rsqrt(variance(b,n)) * gamma(d)
    }";
    assert_eq!(passes(&program(norm, &[("B", 4), ("N", 64), ("D", 512)])), 1);
    // The last stage is a reduction over the row itself.
    let loss = "def f(float(N,D) x, float(N,D) t) -> (loss) {
      top(n) max=! x(n,d)
      total(n) +=! exp(x(n,d) - top(n))
      loss(n) +=! t(n,d) * (top(n) + log(total(n)) - x(n,d))
    }";
    assert_eq!(passes(&program(loss, &[("N", 64), ("D", 512)])), 1);
}

#[test]
fn results_that_are_read_again_are_part_of_the_rows() {
    let text = "def f(float(N,D) x, float(N,D) r) -> (h, y) {
      h(n,d) = x(n,d) + r(n,d)
      square(n) +=! h(n,d) * h(n,d) / D
      y(n,d) = h(n,d) * rsqrt(square(n))
    }";
    let program = program(text, &[("N", 64), ("D", 1000)]);
    assert_eq!(passes(&program), 1);
}

#[test]
fn rows_that_no_cache_holds_are_not() {
    let long = 1 << 20;
    assert!(passes(&program(SOFTMAX, &[("N", 4), ("D", long)])) > 1);
}

#[test]
fn products_keep_their_tiles() {
    // Row by row this product would be a matrix-vector product: it is computed in blocks of rows.
    let text = "def f(float(M,K) A, float(K,N) B) -> (y) {
      C(m,n) +=! A(m,k) * B(k,n)
      top(m) max=! C(m,n)
      y(m,n) = exp(C(m,n) - top(m))
    }";
    let small = program(text, &[("M", 256), ("N", 256), ("K", 256)]);
    let schedule = default_schedule(&small, &goal()).unwrap().to_string();
    assert!(schedule.contains("C: compute_at y m.block"), "{schedule}");
    assert!(schedule.contains("top: compute_at y m.row"), "{schedule}");
    assert_eq!(passes(&small), 1);
    // No cache holds the second operand, which every block would read again.
    let large = program(text, &[("M", 256), ("N", 4096), ("K", 4096)]);
    let schedule = default_schedule(&large, &goal()).unwrap().to_string();
    assert!(!schedule.contains("C: compute_at"), "{schedule}");
    assert!(schedule.contains("top: compute_at y m"), "{schedule}");
    assert_eq!(passes(&large), 2);
}

#[test]
fn attention_is_one_pass() {
    let text = "def f(float(H,L,D) Q, float(H,S,D) K, float(H,S,E) V) -> (O) {
      scores(h,l,s) +=! Q(h,l,d) * K(h,s,d)
      scaled(h,l,s) = scores(h,l,s) / 8
      top(h,l) max=! scaled(h,l,s)
      weight(h,l,s) = exp(scaled(h,l,s) - top(h,l))
      total(h,l) +=! weight(h,l,s)
      p(h,l,s) = weight(h,l,s) / total(h,l)
      O(h,l,e) +=! p(h,l,s) * V(h,s,e)
    }";
    let program = program(text, &[("H", 4), ("L", 200), ("S", 300), ("D", 64), ("E", 64)]);
    assert_eq!(passes(&program), 1);
    let space = ScheduleSpace::new(&program, &goal(), &Preset::Full.options()).unwrap();
    let parameters = space.search_space().parameters();
    let block = parameters.iter().position(|parameter| parameter.name() == "O:block").unwrap();
    let texts: Vec<String> =
        (0..parameters[block].count()).map(|r| parameters[block].text(r)).collect();
    assert_eq!(texts, ["64", "16", "32", "128", "apart"]);
    // Only the scores and the weights of a block are stored.
    let nest = lower(untuned(&program)).unwrap();
    assert!(
        nest.to_string().contains("float p[64][300]") || nest.to_string().contains("[64][300]")
    );
}

/// The gradient of attention as [`tensorwright_grad`] writes it.
const GRADIENT: &str = "def f(
  float(H,L,D) Q, float(H,S,D) K, float(H,S,E) V, float(H,L,E) d_O
) -> (d_Q, d_K, d_V) {
  scores(h,l,s) +=! Q(h,l,d) * K(h,s,d)
  scaled(h,l,s) = scores(h,l,s) / 8
  top(h,l) max=! scaled(h,l,s)
  weight(h,l,s) = exp(scaled(h,l,s) - top(h,l))
  total(h,l) +=! weight(h,l,s)
  total_inverse(h,l) = 1 / total(h,l)
  p(h,l,s) = weight(h,l,s) / total(h,l)
  d_p(h,l,s) +=! d_O(h,l,e) * V(h,s,e)
  d_total(h,l) +=! -d_p(h,l,s) * p(h,l,s) * total_inverse(h,l)
  d_weight(h,l,s) = d_p(h,l,s) * total_inverse(h,l) + d_total(h,l)
  d_scores(h,l,s) = d_weight(h,l,s) * weight(h,l,s) / 8
  d_Q(h,l,d) +=! d_scores(h,l,s) * K(h,s,d)
  d_K(h,s,d) +=! d_scores(h,l,s) * Q(h,l,d)
  d_V(h,s,e) +=! d_O(h,l,e) * p(h,l,s)
}";

#[test]
fn the_gradient_of_attention_is_one_pass() {
    // Rows and columns may have the same extent.
    for rows in [200, 300] {
        let sizes = [("H", 8), ("L", rows), ("S", 300), ("D", 64), ("E", 64)];
        let program = program(GRADIENT, &sizes);
        assert_eq!(passes(&program), 1);
        let schedule = default_schedule(&program, &goal()).unwrap().to_string();
        for step in ["d_K: compute_with d_Q l.block", "d_V: compute_with d_Q l.block"] {
            assert!(schedule.contains(step), "{schedule}");
        }
    }
}

#[test]
fn workers_share_heads_and_not_sums_over_rows() {
    let workers = Goal { workers: 2, ..Goal::new(Cpu::avx512()) }.into();
    let schedule = |heads| {
        let sizes = [("H", heads), ("L", 300), ("S", 300), ("D", 64), ("E", 64)];
        default_schedule(&program(GRADIENT, &sizes), &workers).unwrap().to_string()
    };
    let (one, many) = (schedule(1), schedule(8));
    assert!(many.contains("d_K: compute_with d_Q l.block"), "{many}");
    assert!(many.contains("d_Q: parallel h"), "{many}");
    assert!(!one.contains("compute_with"), "{one}");
}

/// The gradient of a norm: an output with rows, and sums over rows.
const NORM_GRADIENT: &str = "def f(float(N,D) x, float(D) g, float(N,D) d_y) -> (d_x, d_g, d_b) {
  s(n) +=! x(n,d) / D
  q(n) +=! (x(n,d) - s(n)) * (x(n,d) - s(n)) / D
  r(n) = rsqrt(q(n) + 1e-5)
  d_r(n) +=! d_y(n,d) * g(d) * (x(n,d) - s(n))
  d_s(n) +=! d_y(n,d) * g(d)
  d_x(n,d) = (d_y(n,d) * g(d) - d_s(n) / D - d_r(n) * r(n) * r(n) / D * (x(n,d) - s(n))) * r(n)
  d_g(d) +=! d_y(n,d) * (x(n,d) - s(n)) * r(n)
  d_b(d) +=! d_y(n,d)
}";

#[test]
fn the_gradient_of_a_norm_is_one_pass() {
    let program = program(NORM_GRADIENT, &[("N", 250), ("D", 768)]);
    assert_eq!(passes(&program), 1);
    let schedule = default_schedule(&program, &goal()).unwrap().to_string();
    for step in ["d_g: compute_with d_x n", "d_b: compute_with d_x n", "s: compute_at d_x n"] {
        assert!(schedule.contains(step), "{schedule}");
    }
}

#[test]
fn workers_add_to_copies_of_sums_over_rows() {
    let workers = Goal { workers: 2, ..Goal::new(Cpu::avx512()) }.into();
    let schedule = |rows| {
        let program = program(NORM_GRADIENT, &[("N", rows), ("D", 768)]);
        let schedule = default_schedule(&program, &workers).unwrap();
        let nest = schedule.apply(canonical(&program)).unwrap();
        (schedule.to_string(), nest.body.len())
    };
    let (even, passes) = schedule(250);
    for step in
        ["d_g: privatize n.block", "d_g.part: compute_with d_x n.row", "d_x: parallel n.block"]
    {
        assert!(even.contains(step), "{even}");
    }
    // The rows, and for each sum a loop that adds the copies.
    assert_eq!(passes, 3);
    // Shares have equal sizes; a prime extent has none.
    let (prime, passes) = schedule(251);
    assert!(!prime.contains("privatize"), "{prime}");
    assert!(passes > 3);
}

#[test]
fn results_beside_each_other_share_what_they_need() {
    let text = "def f(float(N,D) x) -> (y, z) {
      total(n) +=! x(n,d)
      e(n,d) = exp(x(n,d) - total(n))
      y(n,d) = e(n,d) / total(n)
      z(n,d) = e(n,d) * total(n)
    }";
    assert_eq!(passes(&program(text, &[("N", 64), ("D", 1000)])), 1);
    // A sum over rows that rows need is complete before them.
    let text = "def f(float(N,D) x) -> (total, y) {
      total(d) +=! x(n,d)
      top(n) max=! x(n,d)
      y(n,d) = (x(n,d) - top(n)) / total(d)
    }";
    let schedule = default_schedule(&program(text, &[("N", 64), ("D", 1000)]), &goal()).unwrap();
    assert!(!schedule.to_string().contains("compute_with"), "{schedule}");
}

#[test]
fn what_would_be_computed_twice_stays_apart() {
    // Neighbouring rows read the same row of `b`.
    let text = "def f(float(H,W) x) -> (y) {
      b(i,j) = exp(x(i,j)) where i in 0:H, j in 0:W
      s(i) +=! b(i,j)
      y(i,j) = b(i,j) + b(i+1,j) - s(i)
    }";
    let program = program(text, &[("H", 65), ("W", 256)]);
    let schedule = default_schedule(&program, &goal()).unwrap().to_string();
    assert!(!schedule.contains("b: compute_at"), "{schedule}");
}

#[test]
fn searches_may_take_them_apart() {
    let program = program(SOFTMAX, &[("N", 64), ("D", 1000)]);
    let space = ScheduleSpace::new(&program, &goal(), &Preset::Full.options()).unwrap();
    let parameters = space.search_space().parameters();
    let rows = parameters.iter().position(|parameter| parameter.name() == "y:rows").unwrap();
    let start = space.start();
    assert_eq!(parameters[rows].text(start.rank(rows)), "fused");
    let apart = space.decode(&start.with(rows, 1)).unwrap();
    assert_eq!(apart.apply(canonical(&program)).unwrap().body.len(), 4);
    // A tiling-only search starts where tiles matter.
    let tiles = ScheduleSpace::new(&program, &goal(), &Preset::Tiles.options()).unwrap();
    let nest = tiles.decode(&tiles.start()).unwrap().apply(canonical(&program)).unwrap();
    assert_eq!(nest.body.len(), 4);
}
