//! Gradients are definitions like any other: they can be differentiated again, and schedules know
//! their form.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a failed expectation is how a test speaks")]

mod common;

use std::collections::BTreeMap;

use common::{Buffers, Case, Verdict};
use tensorwright_grad::{Gradient, Input, Output, grad};
use tensorwright_lang::Module;
use tensorwright_lang::precision::Precision;
use tensorwright_policy::rewritings;
use tensorwright_schedule::canonical;

fn gradient(text: &str, def: &str, wrt: &[&str]) -> Gradient {
    grad(&Module::parse("program.tc", text).unwrap(), def, wrt).unwrap()
}

fn agrees_again(text: &str, def: &str, sizes: &[(&str, i64)]) {
    let first = gradient(text, def, &[]);
    let case = Case {
        text: first.source().to_owned(),
        def: first.name(),
        sizes: sizes.iter().map(|(name, size)| ((*name).to_owned(), *size)).collect(),
        inputs: Buffers::new(),
        index_inputs: BTreeMap::new(),
        seed: 3,
    };
    match case.compare() {
        Ok(Verdict::Agrees(directions)) => assert!(directions > 0, "kinks everywhere"),
        Ok(Verdict::Refused(reason)) => panic!("{reason}\n{}", first.source()),
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn second_derivatives_agree_with_finite_differences() {
    agrees_again(
        "def f(double(N) x) -> (y) { y(i) = exp(x(i)) * tanh(x(i)) / (1 + x(i) * x(i)) }",
        "f",
        &[("N", 4)],
    );
    agrees_again(
        "def f(double(M,K) A, double(K,N) B) -> (C) { C(m,n) +=! A(m,k) * A(m,k) * B(k,n) }",
        "f",
        &[("M", 3), ("K", 4), ("N", 2)],
    );
    agrees_again(
        "def f(double(H) in, double(K) w, int s) -> (out) { out(h) +=! in(s*h + k) * w(k) }",
        "f",
        &[("H", 9), ("K", 3), ("s", 2), ("out_h", 4)],
    );
    agrees_again(
        "def f(double(N,D) x) -> (y) {
           e(n,d) = exp(x(n,d))
           total(n) +=! e(n,d)
           y(n,d) = e(n,d) / total(n)
         }",
        "f",
        &[("N", 2), ("D", 5)],
    );
}

#[test]
fn the_gradient_of_a_strided_convolution_is_computed_in_phases() {
    let text = "def conv(float(C,H) in, float(F,C,K) w, int s, int p) -> (out) {
      out(f,h) +=! s*h+k-p >= 0 && s*h+k-p < H ? in(c,s*h+k-p) * w(f,c,k) : 0
        where h in 0:(H+2*p-K)/s+1
    }";
    let gradient = gradient(text, "conv", &["in"]);
    let module = Module::parse("gradient.tc", gradient.source()).unwrap();
    let sizes = [("C", 8), ("H", 32), ("F", 16), ("K", 4), ("s", 2), ("p", 1), ("out_h", 16)];
    let sizes = sizes.into_iter().filter(|(name, _)| gradient.source().contains(name));
    let program = module.bind(gradient.name(), sizes).unwrap();
    let found: Vec<String> = rewritings(&canonical(&program), Precision::Exact)
        .into_iter()
        .map(|draft| draft.schedule.to_string())
        .collect();
    assert!(found.iter().any(|schedule| schedule.contains("phases h by 2")), "{found:#?}");
}

#[test]
fn inputs_and_outputs_are_named_in_order() {
    let text = "def gemm(float a, float(M,K) A, float(K,N) B, float(M,N) C) -> (C) {
      C(m,n) = a * C(m,n)
      C(m,n) += A(m,k) * B(k,n)
    }";
    let gradient = gradient(text, "gemm", &["C", "A"]);
    let value = |name: &str| Input::Value(name.to_owned());
    let cotangent = Input::Cotangent { name: "d_C".to_owned(), of: "C".to_owned() };
    assert_eq!(gradient.name(), "gemm_grad");
    assert_eq!(gradient.inputs(), [value("a"), value("B"), cotangent]);
    let outputs: Vec<(&str, &str)> = gradient
        .outputs()
        .iter()
        .map(|Output { name, of, .. }| (name.as_str(), of.as_str()))
        .collect();
    assert_eq!(outputs, [("d_A", "A"), ("d_C_in", "C")]);
}

#[test]
fn names_that_are_taken_are_not_taken_again() {
    let text = "def f(float(N) x, float(N) d_x, float(N) top_ties) -> (y) {
      top() max=! x(i)
      y(i) = top * d_x(i) * top_ties(i) * x(i)
    }
    def f_grad(float(N) x) -> (y) { y(i) = x(i) }";
    insta::assert_snapshot!(gradient(text, "f", &["x"]).source(), @r"
    # The gradient of `f` with respect to x.
    def f_grad_2(float(N) x, float(N) d_x, float(N) top_ties, float(N) d_y) -> (d_x_2) {
      top() max=! x(i)
      top_ties_2() +=! x(i) == top ? 1 : 0
      d_top() +=! d_y(i) * x(i) * top_ties(i) * d_x(i)
      d_x_2(i) = d_y(i) * top * d_x(i) * top_ties(i) + (x(i) == top ? d_top / float(top_ties_2) : 0)
    }
    ");
}

#[test]
fn a_statement_whose_gradient_would_be_too_long_is_refused() {
    let product =
        |depth: u32| (0..depth).fold("x(i)".to_owned(), |half, _| format!("({half} * {half})"));
    let text = format!("def f(float(N) x) -> (y) {{ y(i) = {} }}", product(13));
    let error = grad(&Module::parse("long.tc", &text).unwrap(), "f", &[]).unwrap_err();
    assert_eq!(error.list()[0].message, "the gradient of `y` would be too long");
}
