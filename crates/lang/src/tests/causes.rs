//! One mistake gives one error, and does not affect unrelated definitions.

use crate::Module;
use crate::diagnostic::Code;

/// The codes of the diagnostics of a text.
fn codes(text: &str) -> Vec<Code> {
    let errors = Module::parse("t.tc", text).unwrap_err();
    errors.list().iter().map(|problem| problem.code).collect()
}

#[test]
fn an_index_that_is_named_like_a_tensor_is_one_error() {
    let text = "def f(float(N,K) x, float(K) d) -> (y) {
  s(n) +=! x(n,d) * x(n,d)
  r(n) = rsqrt(s(n) / K)
  z(n,d) = x(n,d) * r(n)
  m(n) max=! z(n,d)
  y(n,d) = z(n,d) / m(n) * d(d)
}";
    assert_eq!(codes(text), [Code::NotAnIndex]);
    let text = "def f(float(N,K) x, float(K) d) -> (s) { s(n) +=! x(n,d) * x(n,d) + x(n,d) }";
    assert_eq!(codes(text), [Code::TensorWithoutSubscripts]);
    let text = "def f(float(N,K) x) -> (m, y) { m(i) max=! x(i,j)  y(i,m) = x(i,m) - m(i) }";
    assert_eq!(codes(text), [Code::NotAnIndex]);
}

#[test]
fn recurrences_that_need_each_other_are_one_error() {
    let text = "def f(float(T) x) -> (p, v) {
  p(t) = p(t-1) + 0.1 * v(t-1) scan t from 0
  v(t) = v(t-1) - 0.1 * p(t) + x(t) scan t from 0
}";
    assert_eq!(codes(text), [Code::UsedBeforeDefined]);
    let errors = Module::parse("t.tc", text).unwrap_err();
    assert_eq!(errors.list()[0].message, "`p` and `v` are computed from each other");
    let help = errors.list()[0].help.clone().unwrap();
    assert!(!help.contains("move the statement"), "{help}");
}

#[test]
fn dimensions_that_are_left_open_are_one_error_each() {
    for open in ["...", "..", "..=", "*", ":", "?", "-1"] {
        let text = format!("def f(float({open}, D) x) -> (y) {{ y(n,d) = x(n,d) }}");
        assert_eq!(codes(&text), [Code::UnexpectedToken], "{open}");
    }
}

#[test]
fn definitions_beside_broken_ones_can_be_used() {
    let text = "def bad(float(N) x) -> (y) { y(i) = z(i) }
def good(float(N) x) -> (y) { y(i) = x(i) }
def caller(float(N) x) -> (y) { y = bad(x) }
def far(float(N) x) -> (y) { y = caller(x) }
def user(float(N) x) -> (y) { y = good(x) }
def again(float(N) x) -> (y) { y(i) = x(i) }
def again(float(N) x) -> (y) { y(i) = 2 * x(i) }
def own(float(N) x) -> (y) { y = own(x) }
def open(float(N) x) -> (y) { y(i) +=! x(i - j) * j }";
    let module = Module::parse_partly("t.tc", text.as_bytes()).unwrap();
    assert_eq!(module.broken(), ["bad", "caller", "far", "again", "again", "own", "open"]);
    assert!(module.bind("user", [("N", 4)]).is_ok());
    for name in ["bad", "caller", "far", "again", "own", "open"] {
        assert_eq!(module.def(name).unwrap_err(), Module::parse("t.tc", text).unwrap_err());
    }
    assert_eq!(module.def("nobody").unwrap_err().list()[0].code, Code::NoSuchDef);
    assert!(Module::parse_partly("t.tc", b"def f(").is_err(), "a text that cannot be read");
}
