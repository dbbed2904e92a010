//! Gradients are ordinary definitions: they can be differentiated again and scheduled.

use std::collections::BTreeMap;

use crate::common::{Buffers, Case, Verdict};
use tensorwright_grad::{Gradient, Input, Output, grad};
use tensorwright_lang::Module;
use tensorwright_lang::dtype::DType;
use tensorwright_lang::precision::Precision;
use tensorwright_policy::rewritings;
use tensorwright_reference::{Buffer, Value, run};
use tensorwright_schedule::canonical;

fn gradient(text: &str, def: &str, wrt: &[&str]) -> Gradient {
    grad(&Module::parse("program.tc", text).unwrap(), def, wrt).unwrap()
}

fn doubles(shape: &[i64], values: &[f64]) -> Buffer {
    Buffer::from_fn(DType::Double, shape, |at| Value::Float(values[at])).unwrap()
}

fn agrees_again(text: &str, def: &str, sizes: &[(&str, i64)]) {
    agrees_again_at(text, def, sizes, Buffers::new());
}

fn agrees_again_at(text: &str, def: &str, sizes: &[(&str, i64)], inputs: Buffers) {
    let first = gradient(text, def, &[]);
    let case = Case {
        text: first.source().to_owned(),
        def: first.name(),
        sizes: sizes.iter().map(|(name, size)| ((*name).to_owned(), *size)).collect(),
        inputs,
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
fn second_derivatives_of_products_with_zeros_agree_with_finite_differences() {
    let text = "def f(double(N,D) x) -> (y) { y(n) *=! x(n,d) }";
    for row in [[2.0, 0.0, 3.0], [0.0, 0.0, 5.0], [1.0, 2.0, 3.0], [0.0, 0.0, 0.0]] {
        let x = doubles(&[1, 3], &row);
        let inputs = Buffers::from([("x".to_owned(), x)]);
        agrees_again_at(text, "f", &[("N", 1), ("D", 3)], inputs);
    }
    // An accumulation continues the caller's product over two variables.
    let text = "def f(double(N) y, double(N,D,E) x) -> (y) { y(n) *= x(n,d,e) }";
    let x = doubles(&[1, 2, 2], &[1.5, 0.0, 2.0, 0.5]);
    let y = doubles(&[1], &[0.0]);
    let inputs = Buffers::from([("x".to_owned(), x), ("y".to_owned(), y)]);
    agrees_again_at(text, "f", &[("N", 1), ("D", 2), ("E", 2)], inputs);
}

#[test]
fn gradients_of_products_that_overflow_are_zero_where_another_factor_is() {
    let text = "def f(double(N) x) -> (y) { y() *=! x(n) }";
    assert_eq!(gradient_at(text, &[0.0, 1e200, 1e200, 2.0]), [f64::INFINITY, 0.0, 0.0, 0.0]);
    assert_eq!(gradient_at(text, &[0.0, 0.0, 1e200, 1e200]), [0.0; 4]);
}

/// The gradient of one value per element of `x`, where the gradient of all results is 1.
fn gradient_at(text: &str, x: &[f64]) -> Vec<f64> {
    let made = gradient(text, "f", &["x"]);
    let module = Module::parse("gradient.tc", made.source()).unwrap();
    let size = x.len() as i64;
    let program = module.bind(made.name(), [("N", size)]).unwrap();
    let inputs: Buffers = program
        .input_ids()
        .map(|id| program.tensor(id))
        .map(|tensor| (tensor.name.clone(), tensor.shape.clone()))
        .map(|(name, shape)| {
            let ones = vec![1.0; shape.iter().product::<i64>() as usize];
            let values = if name == "x" { x } else { ones.as_slice() };
            let buffer = doubles(&shape, values);
            (name, buffer)
        })
        .collect();
    let outputs = run(&program, &inputs).unwrap().outputs;
    outputs[0].buffer.as_f64().unwrap().to_vec()
}

#[test]
fn nan_passes_gradients_on() {
    let nan = f64::NAN;
    let relu = "def f(double(N) x) -> (y) { y(i) = max(x(i), 0) }";
    assert_eq!(gradient_at(relu, &[-1.0, 0.0, 2.0, nan]), [0.0, 0.0, 1.0, 1.0]);
    let low = "def f(double(N) x) -> (y) { y(i) = min(x(i), 0) }";
    assert_eq!(gradient_at(low, &[-1.0, 0.0, 2.0, nan]), [1.0, 0.0, 0.0, 1.0]);
    // The first of equal ones.
    let both = "def f(double(N) x) -> (y) { y(i) = max(x(i), x(N - 1 - i)) }";
    assert_eq!(gradient_at(both, &[1.0, 3.0]), [0.0, 2.0]);
    let top = "def f(double(N) x) -> (y) { y() max=! x(i) }";
    assert_eq!(gradient_at(top, &[1.0, 3.0, 3.0, 0.0]), [0.0, 0.5, 0.5, 0.0]);
    assert_eq!(gradient_at(top, &[1.0, nan, 3.0, 0.0]), [0.25; 4]);
    let size = "def f(double(N) x) -> (y) { y(i) = abs(x(i)) }";
    let slopes = gradient_at(size, &[-2.0, 0.0, 2.0, nan]);
    assert_eq!(slopes[..3], [-1.0, 0.0, 1.0]);
    assert!(slopes[3].is_nan());
}

#[test]
fn what_leaves_out_nan_gives_it_no_gradient() {
    let nan = f64::NAN;
    let number = "def f(double(N) x) -> (y) { y(i) = fmax(x(i), 0) }";
    assert_eq!(gradient_at(number, &[-1.0, 0.0, 2.0, nan]), [0.0, 0.0, 1.0, 0.0]);
    let neighbour = "def f(double(N) x) -> (y) { y(i) = fmin(x(i), x(N - 1 - i)) }";
    assert_eq!(gradient_at(neighbour, &[1.0, nan]), [2.0, 0.0]);
    assert_eq!(gradient_at(neighbour, &[1.0, 1.0]), [1.0, 1.0]);
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
      top_ties_2() +=! x(i) < top ? 0 : 1
      d_top() +=! d_y(i) * x(i) * top_ties(i) * d_x(i)
      d_x_2(i) = d_y(i) * top * d_x(i) * top_ties(i) + (x(i) < top ? 0 : d_top / float(top_ties_2))
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
