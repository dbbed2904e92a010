//! Matrix products for tensor-core types, mostly of whole tiles.

use tensorwright_testkit::Rng;

use super::Example;
use super::examples::until_quick;

/// A random one.
pub(super) fn draw(rng: &mut Rng) -> Example {
    until_quick(|| attempt(rng))
}

fn attempt(rng: &mut Rng) -> Example {
    let dtype = *rng.pick(&["half", "half", "bfloat16"]);
    let (a, a_at) = *rng.pick(&[("M,K", "m,k"), ("M,K", "m,k"), ("K,M", "k,m")]);
    let (b, b_at) = *rng.pick(&[("K,N", "k,n"), ("K,N", "k,n"), ("N,K", "n,k")]);
    let product = match rng.index(3) {
        0 => format!("float(A({a_at})) * float(B({b_at}))"),
        1 => format!("B({b_at}) * A({a_at})"),
        _ => format!("A({a_at}) * B({b_at})"),
    };
    let after = *rng.pick(&["", "", "\n  D(m,n) = max(C(m,n), 0)", "\n  D(m,n) = C(m,n) * C(m,n)"]);
    let outputs = match after {
        "" => "C",
        _ => *rng.pick(&["D", "D", "C, D"]),
    };
    let text = format!(
        "def kernel({dtype}({a}) A, {dtype}({b}) B) -> ({outputs}) {{\n  C(m,n) +=! {product}{after}\n}}\n"
    );
    let sizes = ["M", "N", "K"].map(|name| {
        let extent = *rng.pick(&[16, 16, 32, 32, 48, 24]);
        (name.to_owned(), extent)
    });
    Example { text, def: "kernel".to_owned(), sizes: sizes.to_vec() }
}
