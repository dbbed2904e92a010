//! Snapshots of the gradients of common operators.

use std::path::Path;

use tensorwright_grad::{grad, training};
use tensorwright_lang::Module;

fn gradient_of(file: &str, def: &str, wrt: &[&str]) -> String {
    let kernels = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/kernels");
    let text = std::fs::read_to_string(kernels.join(file)).unwrap();
    let module = Module::parse(file, &text).unwrap();
    grad(&module, def, wrt).unwrap().source().to_owned()
}

macro_rules! gradients {
    ($($test:ident $file:literal $def:literal;)*) => {
        $(#[test]
        fn $test() {
            insta::assert_snapshot!(gradient_of($file, $def, &[]));
        })*
    };
}

gradients! {
    matrix_product "gemm.tc" "gemm";
    convolution "conv2d.tc" "conv2d";
    strided_and_padded_convolution "conv2d.tc" "conv2d_padded";
    grouped_convolution "gconv.tc" "group_conv2d";
    depthwise_convolution "depthwise.tc" "depthwise_conv2d";
    transposed_convolution "conv_transpose.tc" "conv1d_transpose";
    maximum_pooling "maxpool.tc" "maxpool2x2";
    padded_maximum_pooling "maxpool.tc" "maxpool";
    average_pooling "maxpool.tc" "avgpool";
    softmax "softmax.tc" "softmax";
    layer_norm "norm.tc" "layer_norm";
    embedding_bag "gather.tc" "embedding_bag";
    perceptron "mlp.tc" "MLP3";
    gelu "activation.tc" "gelu";
    attention "attention.tc" "attention";
    product "reductions.tc" "row_product";
    sum_of_everything "reductions.tc" "sum_all";
    blur "blur.tc" "blur3x3";
    block_circulant "circulant.tc" "bcm_project";
    rotary_embedding "rope.tc" "rope";
}

#[test]
fn what_is_worth_keeping_is_returned_by_the_forward_pass() {
    let kernels = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/kernels");
    let mut all = String::new();
    for (file, def) in
        [("softmax.tc", "softmax"), ("norm.tc", "layer_norm"), ("attention.tc", "attention")]
    {
        let module =
            Module::parse(file, &std::fs::read_to_string(kernels.join(file)).unwrap()).unwrap();
        let made = training(&module, def, &[]).unwrap();
        let forward =
            made.forward().map_or("# the definition itself\n", |forward| forward.source());
        all += &format!("{forward}\n{}\n", made.gradient().source());
    }
    insta::assert_snapshot!(all);
}

#[test]
fn sums_read_what_another_gradient_has_computed() {
    let text =
        "def f(float(D) bias, float(N,D) x) -> (y) { y(n,d) = tanh(x(n,d) + bias(d)) * x(n,d) }";
    let module = Module::parse("f.tc", text).unwrap();
    let of_bias = grad(&module, "f", &["bias"]).unwrap().source().to_owned();
    let text = "def f(float(D) bias, float(N,D) x) -> (y) { y(n,d) = tanh(x(n,d) + bias(d)) }";
    let module = Module::parse("f.tc", text).unwrap();
    let of_both = grad(&module, "f", &[]).unwrap().source().to_owned();
    // A call shared by the value and its derivative is made once.
    let text =
        "def f(float(N,D) x) -> (y) { h(n,d) = x(n,d) * erf(x(n,d))  y(n,d) = h(n,d) * h(n,d) }";
    let module = Module::parse("f.tc", text).unwrap();
    let called_once = grad(&module, "f", &[]).unwrap().source().to_owned();
    insta::assert_snapshot!(format!("{of_bias}\n{of_both}\n{called_once}"));
}

/// The number of statements that compute the gradient of `top`.
fn about_the_top(body: &str) -> usize {
    let text = format!(
        "def f(float(N,D) x, float(N,D) v) -> (y) {{
          top(n) max=! x(n,d)
          e(n,d) = d <= n ? exp(x(n,d) - top(n)) : 0
          {body}
        }}"
    );
    let module = Module::parse("f.tc", &text).unwrap();
    let source = grad(&module, "f", &["x"]).unwrap().source().to_owned();
    source.lines().filter(|line| line.contains("d_top(") || line.contains("top_ties(")).count()
}

#[test]
fn the_maximum_has_a_gradient_only_where_results_depend_on_it() {
    let total = "total(n) +=! d <= n ? e(n,d) : 0";
    let without = [
        format!("{total}\n y(n,d) = e(n,d) / total(n)"),
        format!("{total}\n y(n,d) = d <= n ? e(n,d) / total(n) : v(n,d)"),
        format!("{total}\n y(n) +=! v(n,d) * e(n,d) / total(n)"),
        format!("{total}\n y(n,d) = 1 - e(n,d) / total(n) * (e(n,d) / total(n))"),
    ];
    for body in without {
        assert_eq!(about_the_top(&body), 0, "{body}");
    }
    let with = [
        format!("{total}\n y(n) = top(n) + log(total(n))"),
        format!("{total}\n y(n,d) = e(n,d) / total(n) + log(total(n))"),
        format!("{total}\n y(n,d) = e(n,d) * e(n,d) / total(n)"),
        format!("{total}\n y(n,d) = e(n,d) / total(n) / total(n)"),
        format!("{total}\n y(n,d) = e(n,d) / total(N-1-n) where n in 0:N"),
        format!("{total}\n y(n,d) = e(n,d) > 0.5 ? e(n,d) / total(n) : 0"),
        "total(n) +=! d <= n ? e(n,d) : 1\n y(n,d) = e(n,d) / total(n)".to_owned(),
        "total(d) +=! e(n,d)\n y(n,d) = e(n,d) / total(d)".to_owned(),
        "y(n,d) = e(n,d)".to_owned(),
    ];
    for body in with {
        assert!(about_the_top(&body) > 0, "{body}");
    }
}
