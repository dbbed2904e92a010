//! Programs with device schedules, for tests.

use tensorwright_lang::program::Program;
use tensorwright_schedule::{
    DeviceLimits, LowerOptions, LoweredNest, Schedule, canonical, lower_with,
};

use super::{Case, program};

pub(crate) const GEMM: &str =
    "def gemm(float(M,K) A, float(K,N) B) -> (C) { C(m,n) +=! A(m,k) * B(k,n) }";
pub(crate) const TILED: &str = "C: split m 8 2\nC: split n 8 2\nC: split k 4\nC: reorder m.0 n.0 k.0 m.1 n.1 k.1 m.2 n.2\n\
    C: bind m.0 block.y\nC: bind n.0 block.x\nC: bind m.1 thread.y\nC: bind n.1 thread.x\n\
    C: cache_read A at k.0 in shared\nC: cache_read B at k.0 in shared\n\
    A.pack: fuse d0 d1 -> t\nA.pack: split t 8 8\nA.pack: bind t.1 thread.y\nA.pack: bind t.2 thread.x\n\
    B.pack: bind d0 thread.y\nB.pack: bind d1 thread.x\n\
    C: cache_write at n.0\nC.tile: unroll m.2\nC.tile: unroll n.2\nC: unroll m.2\nC: unroll n.2\n";

/// The nest of a program under a schedule, lowered for a device.
pub(crate) fn device(program: &Program, steps: &str) -> LoweredNest {
    let nest = Schedule::parse(steps).unwrap().apply(canonical(program)).unwrap();
    let options = LowerOptions::device(DeviceLimits::default());
    lower_with(nest, &options, &mut |_, _| {}).unwrap()
}

/// Programs, sizes and schedules: staged operands, partial sums, stencils, scatters, gathers,
/// recurrences, and conversions between storage and compute types.
pub(crate) type Kernel = (&'static str, &'static str, &'static [(&'static str, i64)], &'static str);
#[rustfmt::skip]
pub(crate) const KERNELS: &[Kernel] = &[
    ("softmax", "def softmax(float(N,D) x) -> (y) {\n\
           top(n) max=! x(n,d)\n\
           e(n,d) = exp(x(n,d) - top(n))\n\
           total(n) +=! e(n,d)\n\
           y(n,d) = e(n,d) / total(n)\n\
         }", &[("N", 13), ("D", 100)],
     "total: compute_at y n\ne: compute_at y n\ntop: compute_at y n\ny: bind n block.x\n\
         y: split d 32\ny: bind d.1 thread.x\ne: split d 32\ne: bind d.1 thread.x\ntotal: split d 32\n\
         total: rfactor d.1 at n\ntotal.rf: reorder d.1 d.0\ntotal.rf: bind d.1 thread.x\n\
         top: split d 16\ntop: rfactor d.1 at n\ntop.rf: reorder d.1 d.0\ntop.rf: bind d.1 thread.x\n"),
    ("conv2d", "def conv(float(N,C,H,W) in, float(K,C,R,S) w) -> (out) {\n\
           out(n,k,y,x) +=! in(n,c,y+r,x+s) * w(k,c,r,s)\n\
         }", &[("N", 2), ("C", 3), ("H", 18), ("W", 21), ("K", 5), ("R", 3), ("S", 3)],
     "out: split y 4\nout: split x 8\nout: fuse n k -> nk\nout: reorder nk y.0 x.0 c y.1 x.1 r s\n\
         out: bind nk block.z\nout: bind y.0 block.y\nout: bind x.0 block.x\nout: bind y.1 thread.y\n\
         out: bind x.1 thread.x\nout: cache_read in at c in shared\nin.pack: fuse d2 d3 -> t\n\
         in.pack: split t 4 8\nin.pack: bind t.1 thread.y\nin.pack: bind t.2 thread.x\n\
         out: cache_write at x.0\n"),
    ("histogram", "def count(int(N) bin, int B) -> (count) { count(b) +=! 1 scatter b = clamp(bin(i) % B, 0, B-1) where b in 0:B }", &[("N", 1000), ("B", 16)],
     "count: split i 128\ncount: privatize i.0\ncount.part: bind i.0 block.x\n\
         count.part.start: bind i.0 block.x\ncount.part.start: bind b thread.x\ncount: bind b thread.x\n"),
    ("gather", "def lut(float(E,D) table, int(B,L) words) -> (out) {\n\
           out(b,d) +=! table(abs(words(b,l)) % E,d)\n\
         }", &[("E", 50), ("D", 33), ("B", 7), ("L", 9)],
     "out: split d 16\nout: bind b block.y\nout: bind d.0 block.x\nout: bind d.1 thread.x\n"),
    ("blur", "def blur(float(H,W) in) -> (out) {\n\
           bx(y,x) = in(y,max(x-1,0)) + in(y,x) + in(y,min(x+1,W-1)) where x in 0:W\n\
           out(y,x) = bx(max(y-1,0),x) + bx(y,x) + bx(min(y+1,H-1),x) where y in 0:H\n\
         }", &[("H", 45), ("W", 70)],
     "out: split y 8\nout: split x 16\nout: reorder y.0 x.0 y.1 x.1\nbx: compute_at out x.0\n\
         out: bind y.0 block.y\nout: bind x.0 block.x\nout: bind y.1 thread.y\nout: bind x.1 thread.x\n\
         bx: bind y thread.y\nbx: bind x thread.x\n"),
    ("half", "def h(half(M,K) A, half(K,N) B) -> (C) { C(m,n) +=! A(m,k) * B(k,n) }", &[("M", 33), ("N", 20), ("K", 17)],
     "C.sum: split m 8\nC.sum: split n 8\nC.sum: reorder m.0 n.0 m.1 n.1 k\nC.sum: bind m.0 block.y\n\
         C.sum: bind n.0 block.x\nC.sum: bind m.1 thread.y\nC.sum: bind n.1 thread.x\n\
         C: bind m block.x\nC: bind n thread.x\n"),
    ("bf16", "def h(bfloat16(M,K) A, bfloat16(K,N) B) -> (C) { C(m,n) +=! A(m,k) * B(k,n) }", &[("M", 33), ("N", 20), ("K", 17)],
     "C.sum: bind m block.x\nC.sum: bind n thread.x\nC: bind m block.x\nC: bind n thread.x\n"),
    ("double", "def d(double(N) x, int64(N) i, uint8(N) u) -> (y, z, w) { y(n) = exp(x(n)) / 3 + tanh(x(n))\n\
          z(n) = i(n) / 7 + i(n) % 5 - i(n) * i(n)\n\
          w(n) = u(n) * u(n) + u(n) }", &[("N", 1000)],
     "y: split n 64\ny: bind n.0 block.x\ny: bind n.1 thread.x\nz: split n 100\nz: bind n.0 block.x\n\
         z: bind n.1 thread.x\n"),
    ("attention", "def attend(float(L,E) Q, float(S,E) K, float(S,E) V) -> (O) {\n\
           x(l,s) +=! Q(l,e) * K(s,e)\n\
           top(l) max=! x(l,s)\n\
           w(l,s) = exp(x(l,s) - top(l))\n\
           total(l) +=! w(l,s)\n\
           O(l,e) +=! w(l,s) / total(l) * V(s,e)\n\
         }", &[("L", 20), ("S", 33), ("E", 24)],
     "total: compute_at O l\nw: compute_at O l\ntop: compute_at O l\nx: compute_at O l\n\
         O: bind l block.x\nO: bind e thread.x\nx: split s 8\nx: bind s.1 thread.x\nw: bind s thread.x\n"),
    ("virtual", "def gemm(float(M,K) A, float(K,N) B) -> (C) { C(m,n) +=! A(m,k) * B(k,n) }", &[("M", 70), ("N", 66), ("K", 33)],
     "C: split m 2 8\nC: split n 2 16\nC: reorder m.0 n.0 m.1 n.1 m.2 n.2 k\nC: bind m.0 block.y\n\
         C: bind n.0 block.x\nC: bind m.2 thread.y\nC: bind n.2 thread.x\nC: unroll m.1\nC: unroll n.1\n"),
    ("layout", "def g(float(M,K) A, const float(K,N) B) -> (C) { C(m,n) +=! A(m,k) * B(k,n) }", &[("M", 20), ("N", 40), ("K", 17)],
     "B: layout [d1/8, d0, d1%8]\nC: split n 8\nC: reorder n.0 m k n.1\nC: bind n.0 block.x\n\
         C: bind m thread.x\n"),
    ("scan", "def filter(float(N,T) x) -> (y) { y(n,t) = 0.5 * y(n,t-1) + x(n,t) scan t from 0 }", &[("N", 50), ("T", 30)],
     "y: split n 16\ny: bind n.0 block.x\ny: bind n.1 thread.x\n"),
    ("gemm_vec", "def gemm(float(M,K) A, float(K,N) B) -> (C) { C(m,n) +=! A(m,k) * B(k,n) }", &[("M", 37), ("N", 64), ("K", 15)],
     "C: split m 8\nC: split n 8 4\nC: reorder m.0 n.0 m.1 n.1 k n.2\nC: bind m.0 block.y\n\
         C: bind n.0 block.x\nC: bind m.1 thread.y\nC: bind n.1 thread.x\nC: vectorize n.2\n\
         C: cache_write at n.1\n"),
];

/// A program under a schedule, lowered for a device, with inputs.
pub(crate) fn case(name: &str, text: &str, sizes: &[(&str, i64)], steps: &str) -> Case {
    let program = program(text, sizes);
    let nest = device(&program, steps);
    Case::new(name, &program, nest)
}
