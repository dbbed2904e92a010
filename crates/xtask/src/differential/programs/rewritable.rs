//! Programs that algebraic rewrites apply to, which random ones seldom are.

use tensorwright_testkit::Rng;

use super::Example;

/// A program with a generator for its sizes.
struct Template {
    def: &'static str,
    text: &'static str,
    sizes: fn(&mut Rng) -> Vec<(&'static str, i64)>,
}

const TEMPLATES: &[Template] = &[
    Template {
        def: "spread",
        text: "def spread(T(C,L) in, CONST T(C,K,R) w, int s, int p) -> (out) {
  spread(c,i) = (i % s == 0) ? in(c,i/s) : 0 where i in 0:(L-1)*s+1
  padded(c,i) = (i >= p && i < (L-1)*s+1+p) ? spread(c,i-p) : 0 where i in 0:(L-1)*s+1+2*p
  out(k,i) +=! padded(c,i+r) * w(c,k,R-1-r)
}",
        sizes: |rng| {
            let (taps, step) = (rng.range(1, 6), rng.range(2, 5));
            let mut sizes = vec![("C", rng.range(1, 4)), ("K", rng.range(1, 4)), ("R", taps)];
            sizes.extend([("L", rng.range(4, 9)), ("s", step), ("p", rng.range(0, taps + 2))]);
            sizes
        },
    },
    Template {
        def: "scattered",
        text: "def scattered(T(C,H,W) in, CONST T(C,R,S) w, int s, int p) -> (out) {
  out(y,x) +=! ((y+p-r) % s == 0 && (y+p-r)/s >= 0 && (y+p-r)/s < H
                && (x+p-q) % s == 0 && (x+p-q)/s >= 0 && (x+p-q)/s < W)
               ? in(c,(y+p-r)/s,(x+p-q)/s) * w(c,r,q) : 0
    where y in 0:(H-1)*s+R-2*p, x in 0:(W-1)*s+S-2*p, r in 0:R, q in 0:S
}",
        sizes: |rng| {
            let mut sizes = vec![("C", rng.range(1, 4)), ("R", rng.range(2, 6))];
            sizes.extend([("S", rng.range(2, 5)), ("H", rng.range(3, 7)), ("W", rng.range(3, 9))]);
            sizes.extend([("s", rng.range(2, 4)), ("p", rng.range(0, 2))]);
            sizes
        },
    },
    Template {
        def: "padded",
        text: "def padded(T(C,H,W) in, CONST T(K,C,R,R) w, int s, int p, int d) -> (out) {
  out(k,h,x) +=! (s*h+d*r-p >= 0 && s*h+d*r-p < H && s*x+d*q-p >= 0 && s*x+d*q-p < W)
                 ? in(c,s*h+d*r-p,s*x+d*q-p) * w(k,c,r,q) : 0
    where h in 0:(H+2*p-d*(R-1)-1)/s+1, x in 0:(W+2*p-d*(R-1)-1)/s+1,
          r in 0:R, q in 0:R, k in 0:K, c in 0:C
}",
        sizes: |rng| {
            let (taps, apart) = (rng.range(1, 4), rng.range(1, 3));
            // The window fits the image without any padding.
            let window = apart * (taps - 1) + 1;
            let mut sizes = vec![("C", rng.range(1, 4)), ("K", rng.range(1, 4)), ("R", taps)];
            sizes.extend([("H", window + rng.range(1, 5)), ("W", window + rng.range(1, 8))]);
            sizes.extend([("s", rng.range(1, 4)), ("p", rng.range(0, 4)), ("d", apart)]);
            sizes
        },
    },
    Template {
        def: "filtered",
        text: "def filtered(T(C,H,W) in, CONST T(K,C,R,S) w) -> (out) {
  out(k,h,x) +=! in(c,h+r,x+s) * w(k,c,r,s)
}",
        sizes: |rng| {
            let mut sizes = vec![("C", rng.range(1, 20)), ("K", rng.range(1, 20))];
            sizes.extend([("R", rng.range(2, 4)), ("S", rng.range(2, 5))]);
            sizes.extend([("H", rng.range(6, 11)), ("W", rng.range(6, 14))]);
            sizes
        },
    },
    Template {
        def: "circulant",
        text: "def circulant(T(N,C) X, CONST T(P,Q,S) w) -> (O) {
  O(n,o) +=! w(o/S, j, (o%S - t) % S) * X(n, j*S + t) where o in 0:P*S, t in 0:S, j in 0:Q
}",
        sizes: |rng| {
            let (blocks, size) = (rng.range(1, 4), rng.range(1, 9));
            let mut sizes = vec![("N", rng.range(1, 10)), ("P", rng.range(1, 4)), ("Q", blocks)];
            sizes.extend([("S", size), ("C", blocks * size)]);
            sizes
        },
    },
    Template {
        def: "pooled",
        text: "def pooled(T(C,H) in, int s) -> (out) {
  out(c,h) max=! (s*h+r-1 >= 0 && s*h+r-1 < H) ? in(c,s*h+r-1) : -9
    where h in 0:H/s, r in 0:3
}",
        sizes: |rng| vec![("C", rng.range(1, 5)), ("H", rng.range(5, 20)), ("s", rng.range(1, 4))],
    },
    Template {
        def: "contracted",
        text: "def contracted(T(N,P) A, CONST T(M,P,Q) B, T(N,Q) C, CONST T(Q) D) -> (O) {
  O(i,j) +=! A(i,k) * B(j,k,l) * C(i,l) * D(l)
}",
        sizes: |rng| {
            let mut sizes = vec![("N", rng.range(1, 9)), ("M", rng.range(1, 9))];
            sizes.extend([("P", rng.range(1, 9)), ("Q", rng.range(1, 20))]);
            sizes
        },
    },
    Template {
        def: "attention",
        text: "def attention(float(L,D) Q, float(S,D) K, float(S,E) V) -> (O) {
  x(l,s) +=! Q(l,d) * K(s,d)
  top(l) max=! x(l,s)
  w(l,s) = exp(x(l,s) - top(l))
  total(l) +=! w(l,s)
  p(l,s) = w(l,s) / total(l)
  O(l,e) +=! p(l,s) * V(s,e)
}",
        sizes: |rng| {
            let mut sizes = vec![("L", rng.range(1, 40)), ("S", blocks(rng))];
            sizes.extend([("D", rng.range(1, 3)), ("E", rng.range(1, 5))]);
            sizes
        },
    },
    Template {
        def: "causal",
        text: "def causal(double(H,N,N) x, double(H,N,E) V) -> (O) {
  top(h,l) max=! s <= l ? x(h,l,s) : -INFINITY where l in 0:N, s in 0:N
  w(h,l,s) = s <= l ? exp(x(h,l,s) - top(h,l)) : 0 where l in 0:N, s in 0:N
  total(h,l) +=! s <= l ? w(h,l,s) : 0 where l in 0:N, s in 0:N
  p(h,l,s) = s <= l ? w(h,l,s) / total(h,l) : 0 where l in 0:N, s in 0:N
  O(h,l,e) +=! s <= l ? p(h,l,s) * V(h,s,e) : 0 where l in 0:N, s in 0:N
}",
        sizes: |rng| {
            let positions = *rng.pick(&[6, 8, 12, 15, 24, 64, 72]);
            vec![("H", rng.range(1, 3)), ("N", positions), ("E", rng.range(1, 4))]
        },
    },
    Template {
        def: "log_softmax",
        text: "def log_softmax(float(N,D) X) -> (Y) {
  top(n) max=! X(n,d)
  total(n) +=! exp(X(n,d) - top(n))
  Y(n,d) = X(n,d) - top(n) - log(total(n))
}",
        sizes: |rng| vec![("N", rng.range(1, 6)), ("D", blocks(rng))],
    },
];

/// A length that can be split into blocks.
fn blocks(rng: &mut Rng) -> i64 {
    *rng.pick(&[2, 4, 6, 9, 16, 24, 35, 64, 96, 128])
}

/// A random one, of a random type, with or without constants.
pub(crate) fn draw(rng: &mut Rng) -> Example {
    let Template { def, text, sizes } = rng.pick(TEMPLATES);
    let dtype = *rng.pick(&["float", "float", "float", "double", "int32", "int8", "half"]);
    let constant = if rng.percent(60) { "const" } else { "" };
    let text = text.replace("T(", &format!("{dtype}(")).replace("CONST", constant);
    let sizes = sizes(rng).into_iter().map(|(name, value)| (name.to_owned(), value));
    Example { text, def: (*def).to_owned(), sizes: sizes.collect() }
}
