//! A program of each kind.

use super::agree::{compare, varies};
use crate::Module;
use crate::program::{SizeRange, SizeValue};

/// All sizes between 1 and 24 except the given numbers; the conditions, and how many sizes were
/// accepted, refused, and refused although binding succeeds.
fn check(text: &str, likely: &[(&str, i64)], known: &[(&str, i64)]) -> String {
    let module = Module::parse("t.tc", text).unwrap();
    let def = module.defs().last().unwrap().name().to_owned();
    let likely = likely.iter().map(|(name, value)| ((*name).to_owned(), varies(1, 24, *value)));
    let known = known.iter().map(|(name, value)| ((*name).to_owned(), SizeValue::Known(*value)));
    let given: Vec<(String, SizeValue)> = likely.chain(known).collect();
    let sized = match module.bind_sized(&def, given.iter().cloned()) {
        Ok(sized) => sized,
        Err(error) => return error.to_string(),
    };
    let tally = compare(&module, &def, &given).unwrap();
    assert!(tally.accepted > 0);
    let needlessly = match tally.needlessly {
        0 => String::new(),
        some => format!("; {some} of {} needlessly", tally.refused),
    };
    format!("{}{needlessly}", sized.conditions_text().join(", "))
}

fn always(text: &str, likely: &[(&str, i64)]) {
    assert_eq!(check(text, likely, &[]), "", "{text}");
}

#[test]
fn contractions_need_no_conditions() {
    let mkn = [("M", 8), ("K", 7), ("N", 9)];
    always("def f(float(M,K) A, float(K,N) B) -> (C) { C(m,n) +=! A(m,k) * B(k,n) }", &mkn);
    always(
        "def f(float(M,K) I, float(N,K) W, float(N) B) -> (O) {
           O(m,n) = B(n)
           O(m,n) += I(m,k) * W(n,k)
           O(m,n) = max(O(m,n), 0)
         }",
        &mkn,
    );
    always("def f(float(N) x) -> (y) { y(i) = x(N-1-i) }", &[("N", 8)]);
    always("def f(float(N) x) -> (y) { y() min=! x(i)  y() = y / float(N) }", &[("N", 8)]);
}

#[test]
fn windows_must_fit() {
    let conv = "def f(float(H) x, float(K) w, int s) -> (y) { y(h) +=! x(s*h + k) * w(k) }";
    let likely = [("H", 16), ("K", 3)];
    assert_eq!(check(conv, &likely, &[("s", 1)]), "H >= K");
    assert_eq!(check(conv, &likely, &[("s", 2)]), "H >= K");
    assert_eq!(check(conv, &[("H", 20)], &[("s", 3), ("K", 4)]), "H >= 4");
    let padded = "def f(float(H) x, float(K) w, int s, int p) -> (y) {
      y(h) +=! (0 <= s*h + k - p && s*h + k - p < H ? x(s*h + k - p) : 0) * w(k)
        where h in 0:(H + 2*p - K) / s + 1
    }";
    assert_eq!(check(padded, &likely, &[("s", 1), ("p", 1)]), "H + 2 >= K");
    assert_eq!(check(padded, &likely, &[("s", 2), ("p", 1)]), "H + 2 >= K");
    let pairs = "def f(float(N) x) -> (y) { y(i) = x(i) + x(i+1) }";
    assert_eq!(check(pairs, &[("N", 8)], &[]), "N >= 2");
    let inner = "def f(float(N) x) -> (y) { y(i) = x(i) + x(i+2) where i in 0:N-2 }";
    assert_eq!(check(inner, &[("N", 8)], &[]), "N >= 3");
}

#[test]
fn guarded_reads_limit_or_not() {
    always("def f(float(N) x) -> (y) { y(i) = x(i) + (i > 0 ? x(i-1) : 0) }", &[("N", 8)]);
    always("def f(float(N) x) -> (y) { y(i) = i > 0 ? x(i-1) : 0 }", &[("N", 8)]);
    always("def f(float(N) x) -> (y) { y(i) = x(min(i+1, N-1)) + x(i) }", &[("N", 8)]);
    always("def f(float(N) x) -> (y) { y(i) = x(i/2) }", &[("N", 8)]);
    always(
        "def f(float(H,W) x) -> (y) {
           y(i,j) = x(min(max(i-1,0),H-1), min(max(j+2,0),W-1)) where i in 0:H, j in 0:W
         }",
        &[("H", 8), ("W", 9)],
    );
    always(
        "def f(float(N) x, float(M) z) -> (y) {
           y(i) = i < N ? x(i) : z(i - N) where i in 0:N+M
         }",
        &[("N", 5), ("M", 6)],
    );
    always("def f(float(N) x, float(M) z) -> (y) { y = concat(x, z) }", &[("N", 5), ("M", 6)]);
}

#[test]
fn attention_with_a_mask_and_softmax() {
    always(
        "def f(float(T,D) q, float(T,D) k, float(T,D) v) -> (o) {
           s(t,u) +=! q(t,d) * k(u,d)
           m(t) max=! u <= t ? s(t,u) : -INFINITY
           e(t,u) = u <= t ? exp(s(t,u) - m(t)) : 0
           z(t) +=! e(t,u)
           o(t,d) +=! e(t,u) / z(t) * v(u,d)
         }",
        &[("T", 8), ("D", 4)],
    );
}

#[test]
fn recurrences_and_scatters() {
    always("def f(float(T) x) -> (y) { y(t) = y(t-1) + x(t) scan t from 0 }", &[("T", 8)]);
    always("def f(float(T) x) -> (y) { y(t) = y(t+1) * 0.5 + x(t) scan t from 0 }", &[("T", 8)]);
    always(
        "def f(float(N,D) x, int(N) to) -> (y) {
           y(v,d) +=! x(n,d) scatter v = to(n) where v in 0:N
         }",
        &[("N", 8), ("D", 3)],
    );
    always("def f(float(N,M) x) -> (y) { y(n) argmax=! x(n,m) }", &[("N", 8), ("M", 3)]);
}

#[test]
fn numbers_computed_from_sizes_are_values() {
    always("def f(float(N) x) -> (y) { y(i) = x(i) / N + float(N - 1 - i) }", &[("N", 8)]);
    always(
        "def f(float(H,W) x) -> (y) { y() +=! x(h,w)  y() = y / (H * W) + float(H / 2) }",
        &[("H", 8), ("W", 9)],
    );
    // What is read is decided as for the likely size.
    let part = "def f(float(N) x) -> (y) { y(i) = N > 1 ? x(i) / (N - 1) : x(i) }";
    assert_eq!(check(part, &[("N", 8)], &[]), "N >= 2; 1 of 1 needlessly");
    let other = "def f(float(N) x) -> (y) { y(i) = N > 4 ? x(i) : x(i) + x(i+1) }";
    assert_eq!(check(other, &[("N", 8)], &[]), "N >= 5; 2 of 3 needlessly");
}

#[test]
fn parts_of_tensors_keep_the_rest() {
    let part = "def f(float(N) x) -> (y) { y(i) = x(i)  y(i) += x(i) where i in 0:N-2 }";
    assert_eq!(check(part, &[("N", 8)], &[]), "N >= 3");
    let part = "def f(float(N) x) -> (y) { y(i) = 7 where i in 0:N+3  y(i) = x(i) where i in 0:N }";
    assert_eq!(check(part, &[("N", 8)], &[]), "");
    let two = "def f(float(N) x, float(M) z) -> (y) { y(i) = x(i)  y(i) = z(i) where i in 0:M }";
    assert_eq!(check(two, &[("N", 9), ("M", 8)], &[]), "N >= M");
    // For the likely sizes it computes all elements.
    let equal = check(two, &[("N", 8), ("M", 8)], &[]);
    assert_eq!(equal.split(';').next(), Some("N == M"));
}

#[test]
fn calls_and_equal_extents() {
    let call = "def g(float(N,M) a, float(M) b) -> (c) { c(n) +=! a(n,m) * b(m) }
                def f(float(A,B) x, float(C) y) -> (z) { z = g(x, y) }";
    assert_eq!(check(call, &[("A", 5), ("B", 6), ("C", 6)], &[]), "C == B");
    let sum = "def f(float(N) x, float(M) z) -> (y) { y(i) = x(i) + z(i) }";
    assert_eq!(check(sum, &[("N", 8), ("M", 8)], &[]), "M == N");
}

#[test]
fn ranges_may_have_formulas_of_any_kind() {
    let halves = "def f(float(N) x) -> (y) { y(i) = x(2*i) where i in 0:(N+1)/2 }";
    assert_eq!(check(halves, &[("N", 8)], &[]), "");
    let cut = "def f(float(N) x) -> (y) { y(i) = x(i) where i in 0:min(N, 10) }";
    assert_eq!(check(cut, &[("N", 8)], &[]), "");
    let area = "def f(float(H,W) x) -> (y, z) { y(i) = 1.0 where i in 0:H*W  z(i) = y(i) * 2 }";
    assert_eq!(check(area, &[("H", 8), ("W", 3)], &[]), "");
}

#[test]
fn multiples_are_counted() {
    let text = "def f(float(N) x) -> (y) { y(i,j) = x(8*i + j) where j in 0:8 }";
    let module = Module::parse("t.tc", text).unwrap();
    let range = SizeRange { least: 8, most: 256, likely: 64, multiple: 8 };
    let given = [("N".to_owned(), SizeValue::Varies(range))];
    let sized = module.bind_sized("f", given.iter().cloned()).unwrap();
    assert_eq!(sized.shape(sized.general.outputs[0], &[24]), [3, 8]);
    let tally = compare(&module, "f", &given).unwrap();
    assert_eq!((tally.refused, tally.needlessly), (0, 0));
    assert!(sized.check(&[20]).is_err());
}
