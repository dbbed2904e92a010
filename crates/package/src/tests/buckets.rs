//! Bucketed kernels compute every value of a dynamic size correctly.

use std::collections::BTreeMap;

use crate::buckets::{BucketedKernel, Kind, Padding, Ranged, Variation};
use tensorwright::{Diagnostics, Inputs, Module, Target};
use tensorwright_tuner::{Extent, SizeRange};

/// A definition with a dynamic size.
struct Case {
    text: &'static str,
    fixed: &'static [(&'static str, i64)],
    varying: &'static str,
}

const OUTERMOST: Case = Case {
    text: "def gemm(float(M,K) A, float(K,N) B) -> (C) { C(m,n) +=! A(m,k) * B(k,n) }",
    fixed: &[("N", 9), ("K", 7)],
    varying: "M",
};

const INNERMOST: Case = Case { fixed: &[("M", 9), ("K", 7)], varying: "N", ..OUTERMOST };

const REDUCED: Case = Case { fixed: &[("M", 5), ("N", 17)], varying: "K", ..OUTERMOST };

const CONVOLUTION: Case = Case {
    text: "def conv(float(B,C,H) I, const float(O,C,K) W) -> (R) {
             R(b,o,h) +=! I(b,c,h + k) * W(o,c,k)
           }",
    fixed: &[("C", 2), ("H", 11), ("O", 3), ("K", 3)],
    varying: "B",
};

const FUSED: Case = Case {
    text: "def fused(float(M,N) x, const float(N) bias, float scale) -> (y, z) {
             t(m,n) = x(m,n) * scale + bias(n)
             y(m,n) = max(t(m,n), 0)
             z(m,n) = exp(-abs(t(m,n)))
           }",
    fixed: &[("M", 3)],
    varying: "N",
};

const GREATEST: Case = Case {
    text: "def greatest(float(M,N) A) -> (c) { c(m) max=! A(m,n) - 1 }",
    fixed: &[("M", 3)],
    varying: "N",
};

const GATHER: Case = Case {
    text: "def gather(float(V,D) table, int32(N) at) -> (R) { R(n,d) = table(at(n) - 1 + 1, d) }",
    fixed: &[("V", 4), ("D", 5)],
    varying: "N",
};

impl Case {
    fn ranged(&self, range: &SizeRange) -> Result<Ranged, Diagnostics> {
        let module = Module::parse("case.tc", self.text).unwrap();
        let def = module.chosen(None, "").unwrap();
        Ranged::of(&def, &self.fixed(), self.varying, range)
    }

    fn variation(&self) -> Variation {
        match self.ranged(&range("1..130")).unwrap() {
            Ranged::Covered(buckets) => buckets.variation,
            Ranged::Each(_) => panic!("{} is not covered", self.text),
        }
    }

    fn fixed(&self) -> BTreeMap<String, i64> {
        self.fixed.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect()
    }

    /// Compares every value of a range with the reference.
    fn check(&self, text: &str) {
        let range = range(text);
        let module = Module::parse("case.tc", self.text).unwrap();
        let def = module.chosen(None, "").unwrap();
        let native = Target::native().unwrap();
        let kernel =
            BucketedKernel::new(&def, &self.fixed(), self.varying, &range, &native).unwrap();
        for value in range.first..=range.last {
            let mut sizes = self.fixed();
            sizes.insert(self.varying.to_owned(), value);
            let program = def.bind(sizes).unwrap();
            let seed = value as u64;
            let inputs = program.random_inputs(seed).unwrap();
            let results = kernel.run(value, &inputs).unwrap();
            for output in program.run_reference(&inputs).unwrap().outputs {
                let mismatch =
                    output.mismatch_within(&results[&output.name], kernel.error_growth());
                let (name, cover) = (&output.name, kernel.cover(value));
                assert_eq!(mismatch, None, "{name} for {value} by {cover:?}, seed {seed}");
            }
        }
    }
}

fn range(text: &str) -> SizeRange {
    match text.parse().unwrap() {
        Extent::Range(range) => range,
        Extent::Exact(_) => panic!("{text} is no range"),
    }
}

/// Few buckets, so that most values lie between them.
const SPARSE: &str = "1..130@1,3,16,17,50,130";

#[test]
fn an_outermost_size_is_sliced_in_place() {
    assert_eq!(
        (OUTERMOST.variation().kind, OUTERMOST.variation().padding),
        (Kind::Sliced, Padding::Zero)
    );
    OUTERMOST.check(SPARSE);
    OUTERMOST.check("1..130");
}

#[test]
fn an_innermost_size_is_sliced_with_copies() {
    assert_eq!(INNERMOST.variation().dimensions, [None, Some(1), Some(1)]);
    INNERMOST.check(SPARSE);
    INNERMOST.check("1..130");
}

#[test]
fn a_batch_of_convolutions_varies() {
    CONVOLUTION.check(SPARSE);
}

#[test]
fn a_fused_elementwise_operator_varies() {
    FUSED.check(SPARSE);
}

#[test]
fn a_summed_size_is_padded_with_zeros() {
    assert_eq!(
        (REDUCED.variation().kind, REDUCED.variation().padding),
        (Kind::Padded, Padding::Zero)
    );
    REDUCED.check(SPARSE);
    REDUCED.check("1..130");
}

#[test]
fn a_size_of_a_maximum_is_padded_with_copies() {
    assert_eq!(
        (GREATEST.variation().kind, GREATEST.variation().padding),
        (Kind::Padded, Padding::Edge)
    );
    GREATEST.check(SPARSE);
}

#[test]
fn subscripts_that_are_data_are_padded_with_copies() {
    assert_eq!(
        (GATHER.variation().kind, GATHER.variation().padding),
        (Kind::Sliced, Padding::Edge)
    );
    GATHER.check("2..130@16,130");
}

#[test]
fn constants_that_vary_are_not_prepared() {
    let dense = Case {
        text: "def dense(float(M,K) A, const float(K,N) W) -> (C) { C(m,n) +=! A(m,k) * W(k,n) }",
        fixed: &[("M", 4), ("K", 6)],
        varying: "N",
    };
    dense.check(SPARSE);
    let Ranged::Covered(buckets) = dense.ranged(&range("1..99")).unwrap() else { panic!() };
    assert!(buckets.list.iter().all(|(_, p)| p.inputs().iter().all(|input| !input.is_const)));
}

/// Why `N` cannot be dynamic from 2 to 512.
fn refusal(text: &'static str, fixed: &'static [(&'static str, i64)]) -> String {
    let case = Case { text, fixed, varying: "N" };
    let diagnostics = case.ranged(&range("2..512")).unwrap_err();
    diagnostics.list().first().unwrap().message.clone()
}

#[test]
fn what_cannot_vary_is_refused_with_the_reason() {
    let texts = [
        refusal("def f(float(N) A) -> (B) { B(i) = A(N - 1 - i) }", &[]),
        refusal("def f(float(N) A) -> (B) { B(i) = A(i) + i }", &[]),
        refusal("def f(float(N) A) -> (B) { B(i) = i < 3 ? A(i) : 0 where i in 0:N }", &[]),
        refusal("def f(float(N) A) -> (s) { s() *=! A(i) }", &[]),
        refusal("def f(float(N) A, float s) -> (B) { B() +=! A(i) * s }", &[]),
        refusal("def f(float(N) A) -> (B) { B() +=! exp(A(i)) }", &[]),
        refusal("def f(float(N) A) -> (m) { s() +=! A(i)\n m() = s / N }", &[]),
        refusal("def f(float(N,N) A) -> (B) { B(i) +=! A(i,j) }", &[]),
        refusal("def f(float(N) A) -> (B) { B(i) = A(i) B(i) = 0 where i in 0:1 }", &[]),
        refusal(
            "def f(float(N,D) Q, float(N,D) K) -> (S) { S(i,j) +=! Q(i,d) * K(j,d) }",
            &[("D", 4)],
        ),
        refusal(
            "def f(float(M,N) x) -> (y) { m(i) max=! x(i,j) e(i,j) = exp(x(i,j) - m(i))
               s(i) +=! e(i,j) y(i,j) = e(i,j) / s(i) }",
            &[("M", 4)],
        ),
    ];
    insta::assert_snapshot!(texts.join("\n"));
}

#[test]
fn a_short_range_of_what_cannot_vary_has_a_kernel_for_every_value() {
    let reverse = Case {
        text: "def reverse(float(N) A) -> (B) { B(i) = A(N - 1 - i) }",
        fixed: &[],
        varying: "N",
    };
    assert!(
        matches!(reverse.ranged(&range("1..20")).unwrap(), Ranged::Each(list) if list.len() == 20)
    );
    reverse.check("1..20");
}

#[test]
fn inputs_and_values_that_do_not_fit_are_refused() {
    let module = Module::parse("case.tc", OUTERMOST.text).unwrap();
    let def = module.chosen(None, "").unwrap();
    let (fixed, native) = (OUTERMOST.fixed(), Target::native().unwrap());
    let kernel = BucketedKernel::new(&def, &fixed, "M", &range("1..40@8,40"), &native).unwrap();
    let inputs = |value| {
        let mut sizes = fixed.clone();
        sizes.insert("M".to_owned(), value);
        def.bind(sizes).unwrap().random_inputs(0).unwrap()
    };
    let message = |value, inputs: &Inputs| {
        let error = kernel.run(value, inputs).unwrap_err();
        error.list().first().unwrap().message.clone()
    };
    assert_eq!(message(41, &inputs(41)), "`M` is 41, and the kernels are for 1..40@8,40");
    assert_eq!(message(0, &inputs(3)), "`M` is 0, and the kernels are for 1..40@8,40");
    let wrong = "input `A` is a float(3, 7), and not a float of shape [9, 7]";
    assert_eq!(message(9, &inputs(3)), wrong);
    let mut missing = inputs(9);
    missing.remove("B");
    assert_eq!(message(9, &missing), "input `B` is missing");
}
