//! Checks the derivatives of all scalar functions against finite differences.
//!
//! Functions without a derivative are listed with the reason.

use std::collections::BTreeMap;

use crate::common::{Buffers, Case, Verdict};
use tensorwright_lang::builtin::{Builtin, Signature};

/// A statement with a call of the function; inputs are between 0.25 and 1.75.
fn call(builtin: Builtin) -> String {
    let first = match builtin {
        Builtin::Asin | Builtin::Acos | Builtin::Atanh => "0.5 * a(i)",
        Builtin::Acosh => "1 + a(i)",
        _ => "a(i) - 0.1",
    };
    let args = [first, "b(i)", "c(i)"][..builtin.arity()].join(", ");
    format!("y(i) = {}({args})", builtin.name())
}

#[test]
fn derivatives_agree_with_finite_differences() {
    let mut refused = String::new();
    let numbers = Builtin::ALL
        .iter()
        .filter(|b| !matches!(b.signature(), Signature::FloatTest | Signature::Integer));
    for builtin in numbers {
        let params = ["double(N) a", "double(N) b", "double(N) c"][..builtin.arity()].join(", ");
        let case = Case {
            text: format!("def f({params}) -> (y) {{ {} }}", call(*builtin)),
            def: "f",
            sizes: BTreeMap::from([("N".to_owned(), 12)]),
            inputs: Buffers::new(),
            index_inputs: BTreeMap::new(),
            seed: 5,
        };
        match case.compare() {
            Ok(Verdict::Agrees(directions)) => {
                assert!(directions > 3, "{}: only {directions} directions", builtin.name());
            }
            Ok(Verdict::Refused(reason)) => refused += &format!("{}: {reason}\n", builtin.name()),
            Err(error) => panic!("{error}"),
        }
    }
    insta::assert_snapshot!(refused, @r"
    lgamma: the language cannot express the derivative of `lgamma`
    tgamma: the language cannot express the derivative of `tgamma`
    floor: `f` has no gradient
    ceil: `f` has no gradient
    round: `f` has no gradient
    rint: `f` has no gradient
    trunc: `f` has no gradient
    ");
}

/// Conversions of conditions and floats to integers, in values and in subscripts.
#[test]
fn conversions_to_integers_of_what_is_solved_for() {
    let values = "y(i) +=! a(i + k) * b(k) * double(int(i < 3)) where i in 0:5, k in 0:4";
    let subscripts = "y(i) +=! a(i + k) * b(k + int(0.5 * i)) where i in 0:5, k in 0:4";
    for statement in [values, subscripts] {
        let case = Case {
            text: format!("def f(double(N) a, double(N) b) -> (y) {{ {statement} }}"),
            def: "f",
            sizes: BTreeMap::from([("N".to_owned(), 12)]),
            inputs: Buffers::new(),
            index_inputs: BTreeMap::new(),
            seed: 7,
        };
        let verdict = case.compare().unwrap_or_else(|error| panic!("{error}"));
        assert!(matches!(verdict, Verdict::Agrees(directions) if directions > 3), "{statement}");
    }
}
