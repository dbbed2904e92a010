//! Golden tests of every primitive and tail strategy.

use tensorwright_lang::Module;
use tensorwright_lang::program::Program;
use tensorwright_schedule::check::{Verdict, check};
use tensorwright_schedule::primitives::Primitive;
use tensorwright_schedule::{LoopNest, Schedule, canonical, lower, lower_traced};

const GEMM: &str =
    "def gemm(float(M,K) A, const float(K,N) B) -> (C) { C(m,n) +=! A(m,k) * B(k,n) }";
const MV: &str = "def mv(float(M,K) A, float(K) x) -> (y) { y(i) +=! A(i,k) * x(k) }";
const BLUR: &str = "def blur(float(N) A) -> (out) {
  rows(i) = A(i) + A(i+1)
  out(i) = rows(i) * rows(i+1)
}";

const PADDED: &str = "def padded(float(C,H) in, const float(K,C,R) w) -> (out) {
  out(k,h) +=! (h+r-1 >= 0 && h+r-1 < H) ? in(c,h+r-1) * w(k,c,r) : 0 where h in 0:H
}";
const POOL: &str = "def pool(float(H) in) -> (out) {
  out(h) max=! (2*h+r-1 >= 0 && 2*h+r-1 < H) ? in(2*h+r-1) : -1.0 where h in 0:H/2, r in 0:3
}";
const SKEWED: &str = "def skewed(float(H) in, float(R) w) -> (out) {
  out(h) +=! (h > 0) ? in(h+r-1) * w(r) : 0 where h in 0:H-R+2
}";
const SPREAD: &str = "def spread(float(C,L) in, const float(C,R) w, int s, int p) -> (out) {
  spread(c,i) = (i % s == 0) ? in(c,i/s) : 0 where i in 0:(L-1)*s+1
  padded(c,i) = (i >= p && i < (L-1)*s+1+p) ? spread(c,i-p) : 0 where i in 0:(L-1)*s+1+2*p
  out(i) +=! padded(c,i+r) * w(c,R-1-r)
}";
const SCATTERED: &str = "def scattered(float(L) in, const float(R) w, int s, int p) -> (out) {
  out(y) +=! ((y+p-r) % s == 0 && (y+p-r)/s >= 0 && (y+p-r)/s < L) ? in((y+p-r)/s) * w(r) : 0
    where y in 0:(L-1)*s+R-2*p
}";
const CIRCULANT: &str = "def circulant(float(N) X, const float(P,Q,S) w) -> (O) {
  O(o) +=! w(o/S, j, (o%S - t) % S) * X(j*S + t) where o in 0:P*S, t in 0:S
}";
const FILTER: &str = "def filter(float(C,W) in, const float(K,C,R) weight) -> (out) {
  out(k,w) +=! in(c,w+r) * weight(k,c,r)
}";
const BILINEAR: &str = "def bilinear(float(N,P) A, const float(M,P,Q) B, float(N,Q) C) -> (O) {
  O(i,j) +=! A(i,k) * B(j,k,l) * C(i,l)
}";
const WEIGHTS: &str = "def weights(float(N,P) A, const float(M,P,Q) B, const float(Q) C) -> (O) {
  O(i,j) +=! A(i,k) * B(j,k,l) * C(l)
}";

const LAYER: &str = "def layer(float(B,I) x, float(O,I) w, float(O) bias) -> (out) {
  out(b,o) = bias(o)
  out(b,o) += x(b,i) * w(o,i)
}";
const NORM: &str = "def norm(float(N,D) x, float(N,D) r) -> (h, y) {
  h(n,d) = x(n,d) + r(n,d)
  square(n) +=! h(n,d) * h(n,d)
  y(n,d) = h(n,d) / square(n)
}";
const PICTURE: &str = "def picture(float(H,W) in) -> (out) {
  bx(y,x) = in(y,max(x-1,0)) + in(y,x) + in(y,min(x+1,W-1)) where x in 0:W
  out(y,x) = bx(max(y-1,0),x) + bx(y,x) + bx(min(y+1,H-1),x) where y in 0:H
}";
const CHAIN: &str = "def chain(float(N) in) -> (out) {
  a(i) = in(i) + in(i+1)
  b(i) = a(i) * a(i+2)
  out(i) = b(i) + b(i+1)
}";
const WINDOWS: &str = "def windows(float(N) in, float(K) w) -> (out) {
  sums(i) +=! in(i+k) * w(k)
  out(i) = sums(i) + sums(i+2)
}";
const HALVES: &str = "def halves(float(N) in) -> (out) {
  small(i) = in(i) + 1
  out(i) = small(2*i) + small(2*i+1) + small(2*i+2) where i in 0:(N-1)/2
}";
const TRIANGLE: &str = "def triangle(float(N,N) A, float(N) x) -> (y) {
  y(i) +=! j <= i ? A(i,j) * x(j) : 0 where i in 0:N, j in 0:N
}";
const LOWER: &str = "def lower(float(N,N) A) -> (L) {
  L(i,j) = j > i ? 0 : A(i,j) where i in 0:N, j in 0:N
}";
const BAND: &str = "def band(float(N,N) A) -> (m) {
  m(i) max=! (j <= i && j > i - 9) ? A(i,j) : -INFINITY where i in 0:N, j in 0:N
}";
/// Blurs of blurs, with nested borders.
const TWICE_CLAMPED: &str = "def twice(float(N) A) -> (out) {
  one(i) = A(clamp(i-1, 0, N-1)) + A(i) + A(clamp(i+1, 0, N-1))
  two(i) = one(clamp(i-1, 0, N-1)) + one(i) + one(clamp(i+1, 0, N-1))
  out(i) = two(clamp(i-1, 0, N-1)) + two(i) + two(clamp(i+1, 0, N-1))
}";

const CLAMPED: &str = "def clamped(float(N) A) -> (out) {
  rows(i) = 2 * A(i)
  out(i) = rows(max(i - 1, 0)) + rows(i) + rows(min(i + 1, N - 1)) where i in 0:N
}";
const RESULTS: &str = "def results(float(N) A) -> (rows, out) {
  rows(i) = A(i) + A(i+1)
  out(i,j) = rows(i) * rows(i+1) where j in 0:2
}";
const MOMENTS: &str = "def moments(float(N,D) x) -> (sum, square) {
  c(n,d) = x(n,d) - 0.5
  sum(n) +=! c(n,d)
  square(n) +=! c(n,d) * c(n,d)
}";
const PRODUCTS: &str = "def products(float(M,K) A, float(K,N) B, float(M,N) g) -> (dA, dB, scale) {
  s(m,n) = g(m,n) * 2
  dA(m,k) +=! s(m,n) * B(k,n)
  dB(k,n) +=! A(m,k) * s(m,n)
  scale(m) max=! s(m,n)
}";
const FORK: &str = "def fork(float(H,W) in) -> (out) {
  p(y,x) = in(y,x) + 1
  a(y,x) = p(y,x) * p(y,x+1)
  b(y,x) = p(y,x) + p(y+1,x) where x in 0:W-1
  out(y,x) = a(y,x) - b(y,x) where y in 0:b.0
}";
const FORKED: &str = "def forked(float(N) in) -> (out) {
  a(i) = in(i) + 1
  m(i) = a(i) * 2
  b(i) = in(i) * 3
  out(i) = m(i) + b(i)
}";
const ATTEND: &str = "def attend(float(L,S) x, float(S,E) V) -> (O) {
  top(l) max=! x(l,s)
  w(l,s) = exp(x(l,s) - top(l))
  total(l) +=! w(l,s)
  p(l,s) = w(l,s) / total(l)
  O(l,e) +=! p(l,s) * V(s,e)
}";
const CAUSAL: &str = "def causal(float(T,T) x, float(T,E) V) -> (O) {
  top(l) max=! s <= l ? x(l,s) : -INFINITY where l in 0:T, s in 0:T
  w(l,s) = s <= l ? exp(x(l,s) - top(l)) : 0 where l in 0:T, s in 0:T
  total(l) +=! s <= l ? w(l,s) : 0 where l in 0:T, s in 0:T
  p(l,s) = s <= l ? w(l,s) / total(l) : 0 where l in 0:T, s in 0:T
  O(l,e) +=! s <= l ? p(l,s) * V(s,e) : 0 where l in 0:T, s in 0:T
}";
const MASKED: &str = "def masked(float(L,S) x, int(L,S) seen, float(S) V) -> (O) {
  top(l) max=! seen(l,s) > 0 ? x(l,s) : -INFINITY
  total(l) +=! seen(l,s) > 0 ? exp(x(l,s) - top(l)) : 0
  O(l) +=! seen(l,s) > 0 ? exp(x(l,s)) / total(l) * V(s) : 0
}";
const LOG_SUM: &str = "def log_sum(float(N,D) x) -> (y) {
  top(n) max=! x(n,d)
  total(n) +=! exp(x(n,d) - top(n))
  y(n) = log(total(n)) + top(n)
}";
const SUMMED: &str = "def summed(float(N,K) A) -> (s, m) {
  s(i) +=! A(i,k)
  m(i) = s(i) / K
}";
const GUARDED_SUM: &str = "def guarded(float(L,S) A, float(L) x) -> (y) {
  y(l) +=! x(l) > 0 ? log(x(l)) * A(l,s) : 0
}";
const HALVES_PRODUCT: &str =
    "def gemm(half(M,K) A, half(K,N) B) -> (C) { C(m,n) +=! A(m,k) * B(k,n) }";
const SQUARES: &str = "def squares(float(N,N) A) -> (out) {
  T(i,j) = A(j,i)
  out(i,j) = T(i,j)
  out(i,j) += T(i,k) * A(k,j)
}";

fn program(text: &str, sizes: &[(&str, i64)]) -> Program {
    let module = Module::parse("test.tc", text).unwrap();
    let def = module.defs().next().unwrap();
    def.bind(sizes.iter().copied()).unwrap()
}

/// The schedule, the scheduled nest and the lowered nest.
fn show(program: &Program, steps: &str) -> String {
    let schedule = Schedule::parse(steps).unwrap();
    let (spelled, text) = schedule.clone().spelled();
    assert_eq!(Schedule::parse(&text).unwrap(), spelled);
    assert_eq!(text, schedule.to_string());
    let nest = schedule.apply(canonical(program)).unwrap();
    let lowered = lower(nest.clone()).unwrap();
    assert_defined(program, &schedule);
    format!("{schedule}\n--- scheduled\n{nest}\n--- lowered\n{lowered}")
}

/// Every step and every pass yields a nest that reads only written elements.
fn assert_defined(program: &Program, schedule: &Schedule) {
    let look = |when: &str, nest: &LoopNest| {
        assert_eq!(check(nest, 1_000_000), Ok(Verdict::Sound), "after {when}:\n{nest}");
    };
    let mut nest = canonical(program);
    look("nothing", &nest);
    for step in &schedule.steps {
        step.apply(&mut nest).unwrap();
        look(&step.to_string(), &nest);
    }
    lower_traced(nest, &mut |pass, nest| look(pass, nest)).unwrap();
}

macro_rules! shows {
    ($($name:ident: $text:expr, $sizes:expr, $steps:expr;)*) => {
        $(#[test]
        fn $name() {
            insta::assert_snapshot!(stringify!($name), show(&program($text, &$sizes), $steps));
        })*

        /// The schedules above use every primitive.
        #[test]
        fn every_primitive_is_shown() {
            let steps = [$($steps),*].into_iter().flat_map(|text| Schedule::parse(text).unwrap().steps);
            let shown: Vec<&str> = steps.map(|step| step.primitive.keyword()).collect();
            for keyword in Primitive::KEYWORDS {
                assert!(shown.contains(keyword), "no test shows `{keyword}`");
            }
        }

        #[test]
        fn every_primitive_is_on_the_page() {
            let page = include_str!("../../../../docs/schedules.md");
            for keyword in Primitive::KEYWORDS {
                let is_row = |line: &str| {
                    let step = line.strip_prefix("| `").and_then(|row| row.split('`').next());
                    let words = step.and_then(|step| step.split_once(": "));
                    words.is_some_and(|(_, words)| words.split(' ').next() == Some(keyword))
                };
                assert!(page.lines().any(is_row), "docs/schedules.md has no row for `{keyword}`");
            }
        }
    };
}

shows! {
    tensorize: HALVES_PRODUCT, [("M", 32), ("N", 16), ("K", 48)],
        "C.sum: split m 16\nC.sum: split k 16\nC.sum: reorder m.0 k.0 m.1 n k.1\nC.sum: tensorize m.1 n k.1\nC.sum: cache_write at m.0\n";
    segment: RUNNING_SUM, [("T", 30)],
        "y: split t 8\ny: segment t.0\ny: split t.1 4\ny: vectorize t.1.1\ny: parallel t.0\ny.total: parallel t.0\n";
    private_copies: SCATTER_ONTO, [("N", 20), ("D", 6), ("B", 5)],
        "sum: split i 8\nsum: privatize i.0\nsum.part: reorder i.0 i.1 d\nsum.part: split d 4 [peel]\n\
         sum.part: vectorize d.1\nsum.part: parallel i.0\nsum.part.start: parallel i.0\nsum: parallel b\n";
    private_sums: GEMM, [("M", 5), ("N", 6), ("K", 8)],
        "C: split k 3\nC: privatize k.0\nC.part: reorder k.0 m k.1 n\nC.part: parallel k.0\nC: reorder m k.0 n\nC: vectorize n\n";
    split_guard: BLUR, [("N", 24)], "out: split i 8\n";
    split_peel: BLUR, [("N", 24)], "out: split i 8 [peel]\n";
    split_shift: BLUR, [("N", 24)], "out: split i 8 [shift]\n";
    split_round_up: BLUR, [("N", 24)], "out: split i 8 [round_up]\nout: vectorize i.1\n";
    split_three_ways: BLUR, [("N", 42)], "out: split i 2 4 -> outer middle inner\n";
    bind: GEMM, [("M", 5), ("N", 12), ("K", 8)],
        "C: split m 2\nC: split n 4\nC: split k 4\nC: reorder m.0 n.0 k.0 m.1 n.1 k.1\nC: bind m.0 block.y\n\
         C: bind n.0 block.x\nC: bind m.1 thread.y\nC: bind n.1 thread.x\nC: cache_read B at k.0\n\
         B.pack: bind d0 thread.x\nC: cache_write at n.0\n";
    bind_partial_sums: MV, [("M", 3), ("K", 20)],
        "y: split k 8\ny: rfactor k.1 at i\ny: bind i block.x\ny.rf: reorder k.1 k.0\ny.rf: bind k.1 thread.x\n";
    bind_threads_alone: BLUR, [("N", 24)], "out: split i 8\nout: bind i.1 thread.x\n";
    fuse: GEMM, [("M", 4), ("N", 6), ("K", 8)], "C: fuse m n -> mn\nC: parallel mn\n";
    reorder: GEMM, [("M", 4), ("N", 6), ("K", 8)], "C: reorder k m n\n";
    unroll: MV, [("M", 3), ("K", 8)], "y: unroll i\n";
    vectorize_across_lanes: MV, [("M", 3), ("K", 8)], "y: vectorize k\n";
    inline: BLUR, [("N", 24)], "rows: inline\n";
    compute_at: BLUR, [("N", 26)], "out: split i 8\nrows: compute_at out i.0\n";
    compute_at_around_the_reduction: LAYER, [("B", 4), ("I", 3), ("O", 5)],
        "out: reorder b i o\nout.0: compute_at out b\n";
    compute_at_of_clamped_reads_of_clamped_reads: TWICE_CLAMPED, [("N", 80)],
        "out: split i 8\ntwo: compute_at out i.0\none: compute_at out i.0\n";
    compute_at_of_clamped_reads: CLAMPED, [("N", 26)], "out: split i 8\nrows: compute_at out i.0\n";
    vectorize_between_borders: CLAMPED, [("N", 32)], "out: split i 8\nout: vectorize i.1\n";
    vectorize_between_borders_of_tiles: CLAMPED, [("N", 64)],
        "out: split i 16\nrows: compute_at out i.0\nout: split i.1 8\nout: vectorize i.1.1\n";
    slide: BLUR, [("N", 24)], "rows: slide out i\n";
    slide_in_blocks: PICTURE, [("H", 20), ("W", 12)],
        "out: split y 4 [peel]\nout: split x 8\nout: vectorize x.1\nbx: slide out y.1\nbx: split x 8\n\
         bx: vectorize x.1\nout: parallel y.0\n";
    slide_of_a_chain: CHAIN, [("N", 30)], "out: split i 10\nb: slide out i.1\na: slide out i.1\n";
    slide_of_sums: WINDOWS, [("N", 20), ("K", 4)], "out: split i 6 [guard]\nsums: slide out i.1\nsums: unroll k\n";
    slide_by_two: HALVES, [("N", 21)], "small: slide out i\n";
    masked_tiles: TRIANGLE, [("N", 64)],
        "y: split i 8\ny: split j 2 2 4\ny: reorder i.0 j.0 j.1 j.2 j.3 i.1\ny: vectorize i.1\ny: cache_write at j.2\n";
    compute_with: MOMENTS, [("N", 6), ("D", 5)], "sum: compute_with square n\nc: compute_at square n\n";
    compute_with_the_stage_before: MOMENTS, [("N", 6), ("D", 5)],
        "square: compute_with sum n\nsum: parallel n\n";
    compute_with_a_reader: MOMENTS, [("N", 6), ("D", 5)], "c: compute_with sum n\n";
    compute_with_terms: MOMENTS, [("N", 6), ("D", 5)], "sum: compute_with square d\nc: compute_at square d\n";
    compute_with_terms_in_blocks: PRODUCTS, [("M", 7), ("K", 3), ("N", 5)],
        "dA: split m 4 [peel]\ndB: split m 4 [peel]\ndB: reorder m.0 k n m.1\ndB: compute_with dA m.0\n\
         scale: split m 4 [peel]\nscale: compute_with dA m.0\ns: compute_at dA m.0\n\
         dB: cache_write at k\ndB: split n 4\n";
    compute_with_results_in_blocks_of_terms: PRODUCTS, [("M", 7), ("K", 3), ("N", 5)],
        "dA: split m 4 [guard]\ndB: split m 4 [guard]\ndB: reorder m.0 k n m.1\ndA: compute_with dB m.0\n\
         scale: split m 4 [guard]\nscale: compute_with dB m.0\ns: compute_at dB m.0\n";
    compute_with_past_a_stage: FORKED, [("N", 8)], "b: compute_with a i\n";
    compute_with_in_blocks: FORK, [("H", 11), ("W", 9)],
        "out: split y 4 [peel]\na: compute_at out y.0\nb: compute_at out y.0\na: compute_with b y\n\
         p: compute_at b y\nb: split x 4\nb: vectorize x.1\n";
    compute_with_of_tiles: MOMENTS, [("N", 11), ("D", 5)],
        "sum: split n 4 [peel]\nsquare: split n 4 [guard]\nsum: reorder n.0 d n.1\nsum: compute_with square n.0\n\
         c: compute_at square n.0\nsquare: parallel n.0\n";
    masked_terms: TRIANGLE, [("N", 64)], "y: split j 8\ny: vectorize j.1\n";
    masked_elements: LOWER, [("N", 60)],
        "L: split i 4\nL: split j 8 [peel]\nL: reorder i.0 j.0 i.1 j.1\nL: vectorize j.1\n";
    masked_band: BAND, [("N", 64)], "m: split j 8\nm: split i 4\nm: reorder i.0 j.0 i.1 j.1\n";
    compute_at_of_a_result: NORM, [("N", 4), ("D", 5)],
        "y: split n 2\nsquare: compute_at y n.1\nh: compute_at y n.1\n";
    cache_read_after_the_start: SQUARES, [("N", 5)],
        "out.0: inline\nout: reorder k i j\nout: cache_read T at k\n";
    cache_read: GEMM, [("M", 4), ("N", 20), ("K", 8)],
        "C: split n 8\nC: reorder n.0 m k n.1\nC: cache_read B at n.0 as [d1, d0]\n";
    cache_read_for_one_stage: MOMENTS, [("N", 6), ("D", 5)],
        "sum: compute_with square n\nsum: cache_read c alone at n\n";
    cache_write: GEMM, [("M", 4), ("N", 8), ("K", 8)],
        "C: split n 4\nC: reorder m n.0 k n.1\nC: unroll n.1\nC: cache_write at n.0\n";
    cache_write_inside_reduction: GEMM, [("M", 4), ("N", 8), ("K", 8)],
        "C: split k 4\nC: reorder k.0 m k.1 n\nC: cache_write at m\n";
    layout: GEMM, [("M", 4), ("N", 20), ("K", 8)],
        "B: layout [d1/8, d0, d1%8]\nC: split n 8 [round_up]\nC: reorder n.0 m k n.1\n\
         C: vectorize n.1\nC: cache_write at m\n";
    rfactor: MV, [("M", 3), ("K", 20)],
        "y: split k 8\ny: rfactor k.1 at i\ny.rf: vectorize k.1\n";
    pad: PADDED, [("C", 2), ("H", 9), ("K", 3), ("R", 3)], "out: pad in\n";
    pad_with_a_constant: POOL, [("H", 9)], "out: pad in\nout: unroll r\n";
    phases: SPREAD, [("C", 2), ("L", 5), ("R", 4), ("s", 2), ("p", 2)],
        "padded: inline\nspread: inline\nout: phases i by 2\nout: pad in\n";
    phases_with_tails: SPREAD, [("C", 2), ("L", 5), ("R", 4), ("s", 3), ("p", 3)],
        "padded: inline\nspread: inline\nout: phases i by 3\nout: pad in\nout: pad w\n";
    phases_in_one_statement: SCATTERED, [("L", 5), ("R", 4), ("s", 2), ("p", 1)],
        "out: phases y by 2\nout: pad in\n";
    expand: CIRCULANT, [("N", 12), ("P", 2), ("Q", 3), ("S", 4)], "O: expand w\n";
    winograd: FILTER, [("C", 2), ("K", 3), ("W", 6), ("R", 3)], "out: winograd w by 2\n";
    factor: BILINEAR, [("N", 3), ("P", 4), ("Q", 5), ("M", 2)],
        "O: factor l\nO: split j 2\nO.factor: compute_at O j.0\n";
    factor_of_constants: WEIGHTS, [("N", 3), ("P", 4), ("Q", 5), ("M", 2)],
        "O: factor l\nO.factor: layout [d1, d0]\n";
    factor_of_divisors: ATTEND, [("L", 2), ("S", 8), ("E", 3)], "p: inline\nO: factor s\n";
    factor_under_a_condition: CAUSAL, [("T", 8), ("E", 3)], "p: inline\nO: split s 4\nO: factor s.1\n";
    rebase: ATTEND, [("L", 2), ("S", 8), ("E", 3)], "top: rebase s 4\n";
    rebase_of_a_sum: LOG_SUM, [("N", 2), ("D", 8)], "top: rebase d 4\ntotal: split d 4\ntotal: factor d.1\n";
    rebase_in_blocks: CAUSAL, [("T", 8), ("E", 3)],
        "top: rebase s 4\np: inline\ntotal: split s 4\ntotal: factor s.1\nO: split s 4\nO: factor s.1\n\
         O: split l 4\nO: reorder l.0 l.1 s.0 e\ntotal: compute_at O l.0\ntop.scale: compute_at O l.0\n\
         top: compute_at O l.0\nO.factor: compute_at O l.0\ntotal.factor: compute_at O l.0\n\
         O.factor: reorder s.0 l e s.1\ntotal.factor: reorder s.0 l s.1\nO.factor: compute_with total.factor s.0\n\
         w: compute_at total.factor s.0\ntop.block: compute_at O l.0\ntop.block: reorder s.block l s\n\
         total.factor: compute_with top.block s.block\n";
    factor_under_conditions_of_results: GUARDED_SUM, [("L", 4), ("S", 8)], "y: factor s\n";
    rfactor_before_a_reader: SUMMED, [("N", 8), ("K", 8)],
        "m: compute_with s i\ns: split k 4\ns: rfactor k.1 at i\n";
    prefetch: GEMM, [("M", 4), ("N", 8), ("K", 8)], "C: reorder m k n\nC: prefetch B at k 2\n";
}

/// One GEMM with tails in both directions, after every pass.
#[test]
fn passes() {
    let program = program(GEMM, &[("M", 5), ("N", 21), ("K", 3)]);
    let schedule = "C: split m 2 [peel]\nC: split n 2 8 [round_up]\n\
                    C: reorder n.0 m.0 k m.1 n.1 n.2\nC: unroll m.1\nC: unroll n.1\n\
                    C: vectorize n.2\nC: cache_read B at n.0\nC: cache_write at m.0\n";
    let nest = Schedule::parse(schedule).unwrap().apply(canonical(&program)).unwrap();
    let mut text = format!("{nest}");
    lower_traced(nest, &mut |pass, nest| text.push_str(&format!("--- {pass}\n{nest}"))).unwrap();
    insta::assert_snapshot!("passes", text);
}

#[test]
fn refusals_name_the_loop_and_the_reason() {
    let gemm = program(GEMM, &[("M", 5), ("N", 21), ("K", 3)]);
    let blur = program(BLUR, &[("N", 24)]);
    let wide = program(BLUR, &[("N", 100)]);
    let padded = program(PADDED, &[("C", 2), ("H", 9), ("K", 3), ("R", 3)]);
    let skewed = program(SKEWED, &[("H", 9), ("R", 3)]);
    let spread = program(SPREAD, &[("C", 2), ("L", 5), ("R", 4), ("s", 2), ("p", 2)]);
    let moments = program(MOMENTS, &[("N", 6), ("D", 5)]);
    let picture = program(PICTURE, &[("H", 8), ("W", 8)]);
    let attend = program(ATTEND, &[("L", 2), ("S", 8), ("E", 3)]);
    let masked = program(MASKED, &[("L", 2), ("S", 8)]);
    let pool = program(POOL, &[("H", 9)]);
    let summed = program(SUMMED, &[("N", 8), ("K", 8)]);
    let aside = program(
        "def f(float(N,M) A) -> (P) { Q(n,m) = A(n,m) + 1 T(n,m) = A(n,m) * 2 P(n,m) = Q(n,m) + T(n,m) }",
        &[("N", 4), ("M", 1)],
    );
    let guarded = program(
        "def f(float(N,S) x) -> (t) {
          top(l) max=! x(l,s)
          w(l,s) = l < N ? exp(x(l,s) - top(l)) : 0 where l in 0:N+1, s in 0:S
          t(l) +=! w(l,s)
        }",
        &[("N", 4), ("S", 8)],
    );
    let twice = program(
        "def f(float(L,S) x) -> (t) {
          w(l,s) = x(l,s)
          top(l) max=! x(l,s) where s in 0:8
          w(l,s) = exp(x(l,s) - top(l)) where s in 0:8
          t(l) +=! w(l,s)
        }",
        &[("L", 2), ("S", 16)],
    );
    let parts = program(
        "def f(float(L,S) x) -> (w) {
          top(l) = 0.0 where l in 0:L
          top(l) max= x(l,s) where l in 0:4
          w(l,s) = exp(x(l,s) - top(l))
        }",
        &[("L", 8), ("S", 8)],
    );
    let gathered = program(
        "def f(float(M) y, int32(L) idx) -> (t) {
          top(n) max=! y(m) where n in 0:4
          t(l) +=! exp(y(m) - top(idx(l)))
        }",
        &[("M", 8), ("L", 3)],
    );
    let logs = program(
        "def f(float(L,S) A, float(L) x) -> (y) {
          z(l) = log(x(l))
          y(l) +=! A(l,s) > 0 ? z(l) * A(l,s) : 0
        }",
        &[("L", 4), ("S", 8)],
    );
    let windowed = program(
        "def f(float(N) A, float(N) B) -> (out) {
          a(i) = A(i) + 1
          b(i) = B(i) * 2
          out(i) = a(i) + a(i+1) + b(i) + b(i+1)
        }",
        &[("N", 9)],
    );
    let fork = program(FORK, &[("H", 11), ("W", 9)]);
    let forked = program(FORKED, &[("N", 8)]);
    let products = program(PRODUCTS, &[("M", 7), ("K", 3), ("N", 5)]);
    let iir = program(RECURSIVE, &[("N", 4), ("T", 9)]);
    let layer = program(LAYER, &[("B", 4), ("I", 3), ("O", 5)]);
    let results = program(RESULTS, &[("N", 10)]);
    let squares = program(SQUARES, &[("N", 5)]);
    let cases = [
        (&gemm, "D: split m 2"),
        (&gemm, "C: split x 2"),
        (&gemm, "C: split k 2 [round_up]"),
        (&gemm, "C: split k 2 [shift]"),
        (&gemm, "C: split m 8 [shift]"),
        (&gemm, "C: reorder k m n\nC: split m 2 [shift]"),
        (&gemm, "C: split m 2 -> n x"),
        (&gemm, "C: fuse m k"),
        (&gemm, "C: fuse n k"),
        (&gemm, "C: parallel k"),
        (&gemm, "C: parallel m\nC: parallel n"),
        (&gemm, "C: split m 2 [shift]\nC: parallel m.0"),
        (&gemm, "C: split m 2 [shift]\nC: reorder m.1 m.0\nC: parallel m.1"),
        (&gemm, "C: split m 2 [shift]\nC: parallel m.1\nC: reorder m.1 m.0"),
        (&gemm, "C: split m 2 [shift]\nC: parallel m.1"),
        (&gemm, "C: split n 7\nC: parallel n.0\nC: split n.1 3 [shift]"),
        (&gemm, "C: vectorize m"),
        (&gemm, "C: unroll n\nC: split n 2"),
        (&gemm, "C: inline"),
        (&gemm, "A: layout [d1, d0]"),
        (&gemm, "B: layout [d1]"),
        (&gemm, "C: cache_read X at m"),
        (
            &moments,
            "sum: compute_with square n\nc: compute_at square n\nsum: cache_read x alone at n",
        ),
        (&gemm, "C: rfactor n at m"),
        (&gemm, "C: rfactor k at k"),
        (&blur, "rows: compute_at rows i"),
        (&blur, "rows: slide rows i"),
        (&blur, "out: split i 8\nrows: slide out i.1\nout: split i.1 2"),
        (&blur, "out: split i 8\nrows: slide out i.1\nout: parallel i.1"),
        (&blur, "out: split i 8\nrows: slide out i.1\nout: reorder i.1 i.0"),
        (&blur, "out: split i 8\nout: parallel i.0\nrows: slide out i.0"),
        (&blur, "out: split i 10 [shift]\nrows: slide out i.0"),
        (&blur, "out: split i 8\nrows: slide out i.1\nout: fuse i.0 i.1"),
        (
            &blur,
            "rows: slide out i\nrows: split i 2 2\nrows: reorder i.0 i.2 i.1\nrows: vectorize i.1",
        ),
        (&products, "dB: reorder m k n\ndB: compute_with dA m\ndA: parallel m"),
        (&products, "dB: reorder m k n\ndB: compute_with dA m\ndA: split m 2 [shift]"),
        (
            &products,
            "dB: reorder m k n\ndA: split m 4 [shift]\ndB: split m 4\ndB: compute_with dA m.0",
        ),
        (&products, "dB: reorder m k n\ndB: compute_with dA m\ndA: fuse m k"),
        (&products, "dB: reorder m k n\ndB: compute_with dA m\ndA: vectorize m"),
        (&products, "dB: reorder m k n\ndB: compute_with dA m\ndB: rfactor m at m"),
        (&iir, "z: compute_with y t"),
        (&moments, "sum: compute_with sum n"),
        (&picture, "bx: compute_with out y"),
        (&moments, "sum: compute_with square n\nsum: compute_with square n"),
        (&moments, "sum: split n 2\nsum: compute_with square n"),
        (&moments, "sum: parallel n\nsum: compute_with square n"),
        (&moments, "square: split n 2 2\nsum: compute_with square n.2"),
        (&fork, "b: compute_at out y\na: compute_with b x"),
        (&fork, "a: compute_with b y"),
        (&fork, "p: compute_at b y\na: compute_with b y"),
        (&forked, "a: compute_with b i"),
        (&summed, "m: compute_with s i\ns: split i 4\ns: cache_write at i.0"),
        (&aside, "T: compute_with Q n\nP: compute_with Q m"),
        (&guarded, "top: rebase s 4"),
        (&twice, "top: rebase s 4"),
        (&parts, "top: rebase s 4"),
        (&gathered, "top: rebase m 4"),
        (&logs, "y: factor s"),
        (
            &windowed,
            "a: slide out i\nb: compute_at out i\na: split i 2 2\nb: split i 2 2\na: compute_with b i.1\n\
          a: unroll i.2\nb: unroll i.2\nb: vectorize i.1",
        ),
        (&attend, "top: rebase s 3"),
        (&attend, "top: rebase l 2"),
        (&attend, "total: rebase s 4"),
        (&pool, "out: rebase r 3"),
        (&masked, "O: factor s"),
        (&layer, "out.0: slide out b"),
        (&results, "rows: compute_at out i"),
        (&results, "rows: compute_at out j"),
        (&wide, "out: vectorize i"),
        (&blur, "rows: split i 2\nrows: compute_at out i"),
        (&blur, "out: split i 8\nout: vectorize i.1\nrows: compute_at out i.1"),
        (&gemm, "C: pad A"),
        (&gemm, "C: split m 2\nC: pad A"),
        (&padded, "out: pad in\nout: pad in"),
        (&padded, "out: pad w"),
        (&skewed, "out: pad in"),
        (&gemm, "C: phases m by 2"),
        (&spread, "out: phases i by 2"),
        (&spread, "padded: inline\nspread: inline\nout: phases r by 2"),
        (&spread, "padded: inline\nspread: inline\nout: phases i by 3"),
        (&spread, "padded: inline\nspread: inline\nout: phases i by 1"),
        (&spread, "spread: phases i by 2"),
        (&gemm, "C: factor k"),
        (&gemm, "C: factor m"),
        (&blur, "out: factor i"),
        (&layer, "out.0: compute_at out i"),
        (&layer, "out: reorder i b o\nout.0: compute_at out b"),
        (&layer, "out: reorder b i o\nout.0: compute_at out o"),
        (&layer, "out: split i 2\nout: reorder b i.0 o i.1\nout.0: compute_at out i.1"),
        (&layer, "out.0: inline\nout: cache_read bias at i"),
        (&layer, "out: reorder i b o\nout: cache_read out.0 at b"),
        (&layer, "out.0: compute_at out o\nout: rfactor i at b"),
        (&squares, "out.0: inline\nout: reorder k i j\nT: compute_at out i"),
        (&blur, "out: phases i"),
        (&blur, "out: split i"),
        (&blur, "out: split i 0"),
        (&blur, "out: split i 8 [wrap]"),
        (&blur, "out: tile i 8"),
        (&blur, "out split i 8"),
        (&blur, "out: split i 8 $"),
    ];
    let mut text = String::new();
    for (program, steps) in cases {
        let result = Schedule::parse(steps).and_then(|schedule| schedule.apply(canonical(program)));
        let error = result.err().map_or("ACCEPTED".to_owned(), |error| error.to_string());
        text.push_str(&format!("{steps}\n  {error}\n"));
    }
    insta::assert_snapshot!("refusals", text);
}

/// A forward and a backward recurrence.
const RECURSIVE: &str = "def filter(float(N,T) x) -> (z) {
  y(n,t) = 0.5 * y(n,t-1) + x(n,t) scan t from 0
  z(n,t) = 0.5 * z(n,t+1) + y(n,t) scan t from y(n,T-1)
}";

#[test]
fn the_loops_of_a_recurrence_run_in_order() {
    let filter = program(RECURSIVE, &[("N", 20), ("T", 11)]);
    let cases = [
        "",
        "y: split n 8\ny: reorder n.0 t n.1\ny: vectorize n.1\ny: parallel n.0\nz: split t 4 [peel]\n",
        "y: split t 4\ny: reorder t.1 t.0",
        "y: split t 4 [shift]",
        "y: split t 4 [round_up]",
        "y: vectorize t",
        "y: parallel t",
        "y: fuse n t",
        "y: inline",
        "y: compute_at z n",
        "y: cache_write at n",
        "y: rfactor t at n",
        "y: pad y",
        "y: cache_read y at n",
        "z: layout [d1, d0]",
    ];
    let mut text = String::new();
    for steps in cases {
        let result = Schedule::parse(steps).and_then(|schedule| schedule.apply(canonical(&filter)));
        let said = result.map_or_else(|error| error.to_string(), |nest| nest.to_string());
        text.push_str(&format!("{steps}\n  {said}\n"));
    }
    insta::assert_snapshot!("recurrences", text);
}

const RUNNING_SUM: &str = "def running(float(T) x) -> (y) { y(t) = y(t-1) + x(t) scan t from 0 }";

/// Running sums, maxima and products in both directions, and recurrences that lanes cannot compute.
const RUNNING: &str =
    "def running(float(N,T) x, int32(N,T) k, half(N,T) h) -> (y, z, p, s, two, filter, both, m, free) {
  y(n,t) = y(n,t-1) + x(n,t) * 2 scan t from 0
  z(n,t) = max(x(n,t), z(n,t+1)) scan t from -INFINITY
  p(n,t) = k(n,t) * p(n,t-1) * (k(n,t) + 1) scan t from 1
  s(n,t) = s(n,t-1) + h(n,t) scan t from 0
  two(n,t) = two(n,t-2) + x(n,t) scan t from 0
  filter(n,t) = 0.5 * filter(n,t-1) + x(n,t) scan t from 0
  both(n,t) = both(n,t-1) + max(both(n,t-1), x(n,t)) scan t from 0
  m(n,t) = max(m(n,t-1), h(n,t)) scan t from 0
  free(n,t) = max(free(n,t-1), x(n,t)) scan t from x(n,0)
}";

#[test]
fn lanes_may_be_steps_of_a_running_sum() {
    let running = program(RUNNING, &[("N", 3), ("T", 11)]);
    let cases = [
        "y: split t 4 [peel]\ny: vectorize t.1",
        "z: split t 4\nz: vectorize t.1",
        "p: split t 2 4\np: unroll t.1\np: vectorize t.2",
        "m: split n 2\nm: reorder n.0 t n.1\nm: unroll n.1\nm: vectorize t",
        "p: split t 2 3\np: fuse t.1 t.2\np: vectorize t.1_t.2",
        "s: vectorize t",
        "two: vectorize t",
        "filter: vectorize t",
        "both: vectorize t",
        "y: split t 4\ny: unroll t.1\ny: vectorize t.0",
        "y: split t 4\ny: vectorize t.0",
        "y: split t 4\ny: segment t.0\ny: split t.1 2\ny: vectorize t.1.1\ny: parallel t.0\ny.total: parallel t.0",
        "z: split t 4\nz: segment t.0\nz: reorder t.1 t.0 n\nz.last: vectorize t.0",
        "p: split n 2\np: split t 5\np: reorder t.0 n.0 t.1 n.1\np: segment t.0\np.total: rfactor t.1 at t.0",
        "y: segment t",
        "y: split t 4\ny: segment t.1",
        "y: split t 2 4\ny: segment t.0",
        "y: split t 11\ny: segment t.0",
        "y: split t 4 [peel]\ny: segment t.0",
        "y: split t 4\ny: segment t.0\ny: segment t.0",
        "y: split t 4\ny: segment n",
        "s: split t 4\ns: segment t.0",
        "m: split t 4\nm: segment t.0",
        "filter: split t 4\nfilter: segment t.0",
        "free: split t 4\nfree: segment t.0",
    ];
    let mut text = String::new();
    for steps in cases {
        let stage = steps.split(':').next().unwrap();
        let result =
            Schedule::parse(steps).and_then(|schedule| schedule.apply(canonical(&running)));
        let said = match result {
            Err(error) => error.to_string(),
            Ok(nest) => {
                assert_eq!(check(&nest, 1 << 20), Ok(Verdict::Sound), "{steps}");
                let sound = &mut |pass: &str, nest: &LoopNest| {
                    assert_eq!(check(nest, 1 << 20), Ok(Verdict::Sound), "{steps} after {pass}");
                };
                let lowered = lower_traced(nest, sound).unwrap().to_string();
                let lines = lowered.lines().filter(|line| {
                    line.contains(&format!("{stage}."))
                        || line.contains(&format!("] {stage}("))
                        || line.contains(&format!(") {stage}("))
                });
                lines.map(str::trim).collect::<Vec<_>>().join("\n  ")
            }
        };
        text.push_str(&format!("{steps}\n  {said}\n"));
    }
    insta::assert_snapshot!("running", text);
}

/// A sum and a count; the second one adds to existing values.
const SCATTER_ONTO: &str =
    "def scatter(int32(N) at, float(N,D) x, int32(B) start) -> (sum, count) {
  sum(b,d) +=! x(i,d) scatter b = at(i) where b in 0:B
  count(b) = start(b)
  count(b) += 1 scatter b = clamp(at(i), 0, B - 1)
}";

#[test]
fn loops_over_terms_of_a_scatter_are_not_shared() {
    let scatter = program(SCATTER_ONTO, &[("N", 20), ("D", 6), ("B", 5)]);
    let cases = [
        "",
        "sum: reorder i d\nsum: split d 4 [peel]\nsum: vectorize d.1\nsum: split i 8\nsum: unroll i.1",
        "sum: split i 8\nsum: privatize i.0\nsum.part: parallel i.0\ncount: privatize i\ncount: parallel b",
        "sum: parallel i",
        "sum: vectorize i",
        "count: vectorize i",
        "sum: split d 4 [shift]",
        "sum: split i 8 [shift]",
        "sum: fuse d i",
        "sum: inline",
        "sum: compute_at count i",
        "sum: cache_write at d",
        "sum: rfactor i at d",
        "sum: layout [d1, d0]",
        "sum: factor i",
        "sum: phases d by 2",
        "sum: winograd d by 2",
        "sum: privatize d",
        "sum: parallel d\nsum: privatize i",
        "sum.start: privatize b",
        "sum.start: reorder d b\nsum: privatize i",
        "sum.start: split b 3\nsum: privatize i",
        "count.0: inline",
    ];
    let mut text = String::new();
    for steps in cases {
        let result =
            Schedule::parse(steps).and_then(|schedule| schedule.apply(canonical(&scatter)));
        let said = result.map_or_else(|error| error.to_string(), |nest| nest.to_string());
        text.push_str(&format!("{steps}\n  {said}\n"));
    }
    let part = "def f(int32(N) at, float(B,N) x, float(B,G) y) -> (m) {
        m(b,g) = y(b,g)
        m(b,g) max= x(b,n) scatter g = at(n) where b in 0:1 }";
    let part = program(part, &[("N", 20), ("B", 2), ("G", 5)]);
    let nest = Schedule::parse("m: privatize n").unwrap().apply(canonical(&part)).unwrap();
    text.push_str(&format!("m: privatize n\n  {nest}\n"));
    insta::assert_snapshot!("scatters", text);
}

#[test]
fn tails_inside_each_other_are_limited() {
    let axes: Vec<String> = (0..12).map(|axis| format!("i{axis}")).collect();
    let shape = ["N"; 12].join(",");
    let all = axes.join(",");
    let text = format!("def f(float({shape}) A) -> (B) {{ B({all}) = A({all}) }}");
    let program = program(&text, &[("N", 3)]);
    let steps: String = axes.iter().map(|axis| format!("B: split {axis} 2 [peel]\n")).collect();
    let nest = Schedule::parse(&steps).unwrap().apply(canonical(&program)).unwrap();
    let error = lower(nest).unwrap_err();
    let text = "peeled loops inside each other make more than 500 tails; use the tail `guard` for \
                some of them";
    assert_eq!(error.to_string(), text);
}
