//! Manifests of packages and tuning, up to bound programs.

use tensorwright::Module;
use tensorwright_lang::diagnostic::{Code, Diagnostic, Diagnostics};
use tensorwright_lang::source::Source;
use tensorwright_package::Plan;
use tensorwright_testkit::mutate;
use tensorwright_tuner::Manifest;

use super::{Input, Reached, Target, files};

pub(super) const TARGET: Target = Target {
    name: "manifests",
    reads: "manifests",
    extension: "toml",
    // Every value of a dynamic size is bound.
    seconds: 10.0,
    corpus,
    mutate,
    run,
};

const PROGRAM: &str = "\
def gemm(float(M,K) A, float(K,N) B) -> (C) { C(m,n) +=! A(m,k) * B(k,n) }
def row(float(N) x, int s) -> (y) { y(i) = x(i) * 2 where i in 0:N/s }
";

fn corpus() -> Vec<Vec<u8>> {
    let written = [
        "[[operator]]\nfile = \"a.tc\"\ndef = \"gemm\"\nsizes = { M = 8, N = 9, K = 10 }\n",
        "[tune]\ntime = \"10s\"\n\n[[operator]]\nfile = \"a.tc\"\ndef = \"gemm\"\n\
         sizes = { M = \"1..64\", N = 16, K = 8 }\n",
        "[package]\nname = \"kernels\"\ntargets = [\"avx2\", \"x86-64\"]\n\n[[operator]]\n\
         name = \"rows\"\nfile = \"a.tc\"\ndef = \"row\"\nsizes = { N = [4, 8], s = 1 }\n",
    ];
    let mut all = files(&["tests/diagnostics", "examples/rust-build"], "toml");
    all.extend(written.map(|text| text.as_bytes().to_vec()));
    all
}

fn run(input: &mut Input) -> Reached {
    let text = String::from_utf8_lossy(&input.bytes).into_owned();
    let manifest = match Manifest::parse(Source::new("fuzz.toml", &text)) {
        Ok(manifest) => manifest,
        Err(diagnostics) => return said(&diagnostics, Reached::Refused),
    };
    let mut load = |file: &str| {
        if file.ends_with(".tc") {
            return Module::parse(file, PROGRAM);
        }
        let missing = Diagnostic::without_place(Code::InvalidManifest, "no such file".to_owned());
        Err(Diagnostics::new(Source::new(file, ""), vec![missing]))
    };
    match Plan::new(&manifest, "fuzz", &mut load) {
        Ok(plan) => {
            std::hint::black_box(plan.kernels());
            Reached::Used
        }
        Err(diagnostics) => said(&diagnostics, Reached::Read),
    }
}

fn said(diagnostics: &Diagnostics, reached: Reached) -> Reached {
    std::hint::black_box(diagnostics.render(false));
    reached
}
