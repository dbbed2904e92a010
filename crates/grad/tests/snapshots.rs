//! The printed gradients of known operators, to be read.
#![allow(clippy::unwrap_used, reason = "a failed expectation is how a test speaks")]

use std::path::Path;

use tensorwright_grad::grad;
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
