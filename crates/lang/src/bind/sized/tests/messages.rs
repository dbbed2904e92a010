//! Messages, whole.

use std::collections::BTreeMap;

use super::agree::varies;
use crate::Module;
use crate::bind::proofs::Proofs;
use crate::bind::sized::{refuse, sizes};
use crate::diagnostic::Diagnostics;
use crate::program::{SizeRange, SizeValue};

fn message(text: &str, sizes: &[(&str, SizeValue)]) -> String {
    let module = Module::parse("t.tc", text).unwrap();
    let def = module.defs().last().unwrap();
    def.bind_sized(sizes.iter().map(|(name, value)| (*name, *value))).unwrap_err().to_string()
}

const N: (&str, SizeValue) =
    ("N", SizeValue::Varies(SizeRange { least: 1, most: 300, likely: 9, multiple: 1 }));

#[test]
fn sizes_that_have_to_be_numbers() {
    let text = "def f(float(N) x) -> (y) { y(i,j) = x(i*N + j) where i in 0:1, j in 0:N }";
    insta::assert_snapshot!(message(text, &[N]), @"
    [E1011] Error: `N` multiplies an index, so it has to be a number
       ╭─[ t.tc:1:39 ]
       │
     1 │ def f(float(N) x) -> (y) { y(i,j) = x(i*N + j) where i in 0:1, j in 0:N }
       │                                       ─┬─
       │                                        ╰─── not a sum of multiples of index variables and sizes
       │
       │ Help: give `N` one value, and compile for each value that is needed
    ───╯
    ");
    let text = "def f(float(N,M) x) -> (y) { y(i) = x(i/M, i%M) where i in 0:N*M }";
    insta::assert_snapshot!(message(text, &[N, ("M", varies(1, 9, 3))]), @"
    [E1011] Error: `M` divides an index, so it has to be a number
       ╭─[ t.tc:1:39 ]
       │
     1 │ def f(float(N,M) x) -> (y) { y(i) = x(i/M, i%M) where i in 0:N*M }
       │                                       ─┬─
       │                                        ╰─── not a sum of multiples of index variables and sizes
       │
       │ Help: give `M` one value, and compile for each value that is needed
    ───╯
    ");
    let text = "def f(float(N) x) -> (y) { y(i) = x(i/(N+M)) where i in 0:N }";
    let text = text.replace("x)", "x, float(M) z)");
    insta::assert_snapshot!(message(&text, &[N, ("M", varies(1, 9, 3))]), @"
    [E1011] Error: a formula of `N` and `M` divides an index, so it has to be a number
       ╭─[ t.tc:1:49 ]
       │
     1 │ def f(float(N) x, float(M) z) -> (y) { y(i) = x(i/(N+M)) where i in 0:N }
       │                                                 ───┬───
       │                                                    ╰───── not a sum of multiples of index variables and sizes
       │
       │ Help: give `N` and `M` one value, and compile for each value that is needed
    ───╯
    ");
    let text = "def f(float(N) x) -> (y) { y(i) = x(i + int64(int8(N)) / 2) where i in 0:1 }";
    insta::assert_snapshot!(message(text, &[("N", varies(1, 300, 100))]), @"
    [E1011] Error: `N` is converted in an index, so it has to be a number
       ╭─[ t.tc:1:41 ]
       │
     1 │ def f(float(N) x) -> (y) { y(i) = x(i + int64(int8(N)) / 2) where i in 0:1 }
       │                                         ─────────┬────────
       │                                                  ╰────────── not a sum of multiples of index variables and sizes
       │
       │ Help: give `N` one value, and compile for each value that is needed
    ───╯
    ");
}

#[test]
fn ranges_and_bounds_without_a_formula() {
    let text = "def f(float(N) x) -> (y) { y(i) = i % 2 == 0 ? x(i+1) : 0 }";
    insta::assert_snapshot!(message(text, &[("N", varies(2, 30, 8))]), @"
    [E1011] Error: the range of `i` is not known for all `N`
       ╭─[ t.tc:1:48 ]
       │
     1 │ def f(float(N) x) -> (y) { y(i) = i % 2 == 0 ? x(i+1) : 0 }
       │                                                ───┬──
       │                                                   ╰──── `i + 1` in dimension 0 of `x` (extent N) has no formula for its limit
       │
       │ Help: give the range with `where i in 0:...`, or give `N` one value
    ───╯
    ");
    let text = "def f(float(N) x) -> (y) { y(i) = i % 3 == 0 ? x(i+2) : x(i) where i in 0:N }";
    insta::assert_snapshot!(message(text, &[N]), @"
    [E1011] Error: cannot prove for all `N` that `i + 2` stays in dimension 0 of `x` (extent N)
       ╭─[ t.tc:1:48 ]
       │
     1 │ def f(float(N) x) -> (y) { y(i) = i % 3 == 0 ? x(i+2) : x(i) where i in 0:N }
       │                                                ───┬──
       │                                                   ╰──── may be out of bounds for some sizes
       │
       │ Help: state the condition in the form of the subscript, or give `N` one value
    ───╯
    ");
    // No program is known for which this happens.
    let module = Module::parse("t.tc", "def f(float(N) x) -> (y) { y(i) = x(i) }").unwrap();
    let values: BTreeMap<String, SizeValue> = BTreeMap::from([("N".to_owned(), N.1)]);
    let def = module.def("f").unwrap();
    let sizes = sizes::sizes(def.hir(), &values).unwrap();
    let proofs = Proofs::new(&sizes.varying, &[]);
    let error = refuse::statement(&proofs, &[], def.span());
    insta::assert_snapshot!(Diagnostics::new(module.source().clone(), vec![error]).to_string(), @"
    [E1011] Error: the ranges here are not known for all `N`
       ╭─[ t.tc:1:1 ]
       │
     1 │ def f(float(N) x) -> (y) { y(i) = x(i) }
       │ ────────────────────┬───────────────────
       │                     ╰───────────────────── no formula of sizes was found
       │
       │ Help: give `N` one value
    ───╯
    ");
}

#[test]
fn ranges_of_sizes_that_are_none() {
    let text = "def f(float(N) x) -> (y) { y(i) = x(i) }";
    let range = |least, most, likely, multiple| {
        message(text, &[("N", SizeValue::Varies(SizeRange { least, most, likely, multiple }))])
    };
    insta::assert_snapshot!(range(0, 4, 2, 1), @"
    [E0703] Error: `N` cannot be 0 to 4
       ╭─[ t.tc:1:13 ]
       │
     1 │ def f(float(N) x) -> (y) { y(i) = x(i) }
       │             ┬
       │             ╰── a size is at least 1 and at most 2^48
    ───╯
    ");
    insta::assert_snapshot!(range(5, 4, 4, 1), @"
    [E0703] Error: `N` cannot be 5 to 4
       ╭─[ t.tc:1:13 ]
       │
     1 │ def f(float(N) x) -> (y) { y(i) = x(i) }
       │             ┬
       │             ╰── the least value is above the greatest
    ───╯
    ");
    insta::assert_snapshot!(range(4, 8, 9, 1), @"
    [E0703] Error: `N` cannot be 4 to 8
       ╭─[ t.tc:1:13 ]
       │
     1 │ def f(float(N) x) -> (y) { y(i) = x(i) }
       │             ┬
       │             ╰── the likely value 9 is not among them
    ───╯
    ");
    insta::assert_snapshot!(range(4, 8, 8, 0), @"
    [E0703] Error: `N` cannot be 4 to 8
       ╭─[ t.tc:1:13 ]
       │
     1 │ def f(float(N) x) -> (y) { y(i) = x(i) }
       │             ┬
       │             ╰── there are no multiples of 0
    ───╯
    ");
    insta::assert_snapshot!(range(4, 8, 6, 4), @"
    [E0703] Error: `N` cannot be 4 to 8
       ╭─[ t.tc:1:13 ]
       │
     1 │ def f(float(N) x) -> (y) { y(i) = x(i) }
       │             ┬
       │             ╰── 6 is no multiple of 4
    ───╯
    ");
    let text = "def f(float(N) x, int s) -> (y) { y(i) = x(s*i) }";
    insta::assert_snapshot!(message(text, &[N, ("s", varies(1, 2, 1))]), @"
    [E1011] Error: the scalar `s` is a range of values
       ╭─[ t.tc:1:23 ]
       │
     1 │ def f(float(N) x, int s) -> (y) { y(i) = x(s*i) }
       │                       ┬
       │                       ╰── a number, or read at run time
       │
       │ Help: give it one value, or none to pass it with every call
    ───╯
    ");
    let text = "def f(float(N,N,N,N) x) -> (y) { y(a,b,c,d) = x(a,b,c,d) }";
    insta::assert_snapshot!(message(text, &[("N", varies(1, 1 << 20, 8))]), @"
    [E0705] Error: `x` is too large: 1048576 x 1048576 x 1048576 x 1048576
       ╭─[ t.tc:1:22 ]
       │
     1 │ def f(float(N,N,N,N) x) -> (y) { y(a,b,c,d) = x(a,b,c,d) }
       │                      ┬
       │                      ╰── it would have more than 2^62 bytes
       │
       │ Help: use smaller sizes
    ───╯

    [E0705] Error: `y` is too large: 1048576 x 1048576 x 1048576 x 1048576
       ╭─[ t.tc:1:34 ]
       │
     1 │ def f(float(N,N,N,N) x) -> (y) { y(a,b,c,d) = x(a,b,c,d) }
       │                                  ┬
       │                                  ╰── it would have more than 2^62 bytes
       │
       │ Help: use smaller sizes
    ───╯
    ");
}

#[test]
fn sizes_that_a_program_refuses() {
    let text = "def f(float(N) x, float(K) w, float(M) z) -> (y) {
      y(i) +=! x(i+k) * w(k) * z(i)
    }";
    let module = Module::parse("t.tc", text).unwrap();
    let k = SizeRange { least: 2, most: 20, likely: 4, multiple: 2 };
    let given = [("N", varies(1, 64, 8)), ("K", SizeValue::Varies(k)), ("M", varies(1, 64, 5))];
    let sized = module.bind_sized("f", given).unwrap();
    let refused = |values: &[i64]| sized.check(values).unwrap_err().to_string();
    assert_eq!(refused(&[4, 4]), "2 sizes are given, and 3 vary");
    assert_eq!(refused(&[65, 4, 5]), "`N` is 65, and must be 1 to 64");
    assert_eq!(refused(&[8, 5, 5]), "`K` is 5, and must be 2 to 20, a multiple of 2");
    insta::assert_snapshot!(refused(&[3, 4, 1]), @"`N + 1 >= K + M` does not hold for N = 3, K = 4, M = 1");
    insta::assert_snapshot!(sized.conditions_text().join(", "), @"N + 1 >= K + M");
}
