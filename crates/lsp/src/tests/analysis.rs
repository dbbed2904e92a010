//! Tests of the analysis.
//!
//! A `$` in a text marks the queried offset.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use crate::analysis::{Analysis, CompletionKind, Symbol};
use tensorwright_testkit::{Rng, mutate};

/// The analysis of a text without its mark, and the offset of the mark.
fn marked(text: &str) -> (Analysis, u32) {
    let at = text.find('$').unwrap();
    (Analysis::new("t.tc", &text.replacen('$', "", 1)), at as u32)
}

fn hover(text: &str) -> Option<String> {
    let (analysis, at) = marked(text);
    analysis.hover(at).map(|hover| hover.markdown)
}

/// The name at the mark, and the line and column of its definition.
fn definition(text: &str) -> Option<(String, usize, usize)> {
    let (analysis, at) = marked(text);
    let span = analysis.definition(at)?;
    let source = tensorwright_lang::source::Source::new("t.tc", analysis.text());
    let (line, column) = source.line_column(span.start);
    Some((source.slice(span).to_owned(), line, column))
}

fn example(name: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/kernels");
    std::fs::read_to_string(root.join(name)).unwrap()
}

/// A text with the mark before the `number`th occurrence of `needle`.
fn mark(text: &str, needle: &str, number: usize) -> String {
    let (at, _) = text.match_indices(needle).nth(number).unwrap();
    format!("{}${}", &text[..at], &text[at..])
}

const GEMM: &str = "# sizes: M=64, N=32, K=16
# The product of two matrices.
def gemm(float(M,K) A, const float(K,N) B) -> (C) {
  C(m,n) +=! A(m,k) * B(k,n)
}
";

#[test]
fn hovers() {
    let conv = example("conv2d.tc");
    let gemm = |needle, number| mark(GEMM, needle, number);
    let cases = [
        ("an index of a product", gemm("m,n", 0)),
        ("a reduced index", gemm("k)", 0)),
        ("a size", gemm("K)", 0)),
        ("an input", gemm("A(", 0)),
        ("a const input", gemm("B(k", 0)),
        ("a result", gemm("C(m", 0)),
        ("a definition", gemm("gemm(", 0)),
        ("the height of a convolution", mark(&conv, "h + kh", 0)),
        ("a stride", mark(&conv, "h + kh, sw", 0)),
        ("a range that is given", mark(&conv, "h+kh-p >= 0", 0)),
        ("a range under a condition", mark(&conv, "kh,kw) : 0", 0)),
        ("a tensor between statements", mark(&conv, "padded(b", 1)),
        ("a result of a convolution", mark(&conv, "out(b,op", 0)),
        ("a function of numbers", "def f(float(N) A) -> (B) { B(i) = $exp(A(i)) }".to_owned()),
        ("a function of the prelude", "def f(float(N) A) -> (B) { B(i) = $gelu(A(i)) }".to_owned()),
        (
            "a function of the text",
            "# Half of it.\nfn halved(x) = 0.5 * x\ndef f(float(N) A) -> (B) { B(i) = $halved(A(i)) }".to_owned(),
        ),
        ("a parameter of a function", "fn halved(x) = 0.5 * $x".to_owned()),
        ("a function of bits", "def f(int32(N) A) -> (B) { B(i) = $shl(A(i), 2) }".to_owned()),
        ("C's name of it", "def f(float(N) A) -> (B) { B(i) = $fmaxf(A(i), 0) }".to_owned()),
        ("a test", "def f(float(N) A) -> (B) { B(i) = $isnan(A(i)) }".to_owned()),
        ("a constant", "def f(float(N) A) -> (B) { B(i) = $M_PI * A(i) }".to_owned()),
        ("a conversion", "def f(int(N) A) -> (B) { B(i) = $float(A(i)) }".to_owned()),
        ("concat", "def f(int(N) A) -> (B) { B = $concat(A, A) }".to_owned()),
        ("a result that is an input", "def f(float(N) A) -> (A) { $A(i) = 2 * A(i) }".to_owned()),
        ("no formula", "def f(float(N) A) -> (B) { B($i) = A(i / 2) }".to_owned()),
        (
            "a call",
            "def g(float(N) A) -> (B) { B(i) = A(i + 1) }\ndef f(float(M) X) -> (Y) { $Y = g(X) }"
                .to_owned(),
        ),
        (
            "the callee",
            "def g(float(N) A) -> (B) { B(i) = A(i + 1) }\ndef f(float(M) X) -> (Y) { Y = $g(X) }"
                .to_owned(),
        ),
        (
            "an input beside an error",
            "def f(float(N) A, int(N) B) -> (C) { C(i) = $A(i) + B(i) }".to_owned(),
        ),
        (
            "a definition beside one with an error",
            "def f(float(N) A) -> (B) { B(i) = A(i) + }\ndef g(float(N) A) -> (B) { B($i) = A(i) }"
                .to_owned(),
        ),
    ];
    let mut all = String::new();
    for (title, text) in cases {
        let hover = hover(&text).unwrap_or_else(|| "nothing".to_owned());
        writeln!(all, "## {title}\n\n{hover}\n").unwrap();
    }
    insta::assert_snapshot!(all);
}

#[test]
fn there_is_nothing_to_say_about_blanks_comments_and_numbers() {
    for text in [
        "$",
        "# $sizes",
        "def f(float(N) A) ->$ (B) { B(i) = A(i) + 12 }",
        "def f(float(N) A) -> (B) { B(i) = A(i) + 1$2 }",
    ] {
        assert_eq!(hover(text), None, "{text}");
        assert_eq!(definition(text), None, "{text}");
    }
}

#[test]
fn definitions_are_where_names_are_introduced() {
    let at = |name: &str, line, column| Some((name.to_owned(), line, column));
    let found = |needle, number| definition(&mark(GEMM, needle, number));
    assert_eq!(found("A(m", 0), at("A", 3, 21), "an input");
    assert_eq!(found("C)", 0), at("C", 4, 3), "a result: its first statement");
    assert_eq!(found("K,N", 0), at("K", 3, 18), "a size: where it stands first");
    assert_eq!(found("m,k", 0), at("m", 4, 5), "an index: on the left");
    assert_eq!(found("k,n", 0), at("k", 4, 18), "a reduced one: where it is mentioned first");
    let text = "def f(float(N) A) -> (s) { s() +=! A($i) where i in 0:N }";
    assert_eq!(definition(text), at("i", 1, 47), "one with a range: there");
    let text = "def f(float(N) A) -> (B) { B = $g(A) }\ndef g(float(N) A) -> (B) { B(i) = A.0$ }";
    let call = text.replacen(".0$", ".0", 1);
    assert_eq!(definition(&call), at("g", 2, 5), "a call");
    let size = text.replacen('$', "", 1);
    assert_eq!(definition(&size.replace("A.0$", "A$.0")), at("A", 2, 16), "a size of a tensor");
}

fn outline(symbols: &[Symbol], indent: &str, text: &mut String) {
    for symbol in symbols {
        writeln!(text, "{indent}{} {:?} {}", symbol.name, symbol.kind, symbol.detail).unwrap();
        outline(&symbol.children, "  ", text);
    }
}

#[test]
fn the_outline_has_definitions_and_tensors() {
    let mut text = String::new();
    outline(&Analysis::new("t.tc", &example("softmax.tc")).symbols(), "", &mut text);
    insta::assert_snapshot!(text);
}

#[test]
fn completions_are_what_may_stand_there() {
    let names = |text: &str, kind| {
        let (analysis, at) = marked(text);
        let all = analysis.completions(at).into_iter().filter(|name| name.kind == kind);
        all.map(|name| format!("{} {}", name.label, name.detail)).collect::<Vec<String>>()
    };
    let text = "def g(float(N) A) -> (B) { B(i) = A(i) }
def f(float(M,K) X) -> (Y) {
  T(m,k) = X(m,k)
  Y(m) +=! T(m,k) * $
";
    let tensors = ["T intermediate", "X input", "Y result"];
    assert_eq!(names(text, CompletionKind::Tensor), tensors);
    assert_eq!(names(text, CompletionKind::Size), ["K size", "M size"]);
    assert_eq!(names(text, CompletionKind::Index), ["k index variable", "m index variable"]);
    assert_eq!(names(text, CompletionKind::Def), ["g definition"]);
    let functions = names(text, CompletionKind::Function);
    assert!(functions.contains(&"exp e to the power of x".to_owned()), "{functions:?}");
    assert_eq!(names("$", CompletionKind::Tensor), [""; 0]);
    assert!(names("$", CompletionKind::Keyword)[1].starts_with("def "));
    let comment = marked("# d$");
    assert_eq!(comment.0.completions(comment.1), []);
}

#[test]
fn sizes_in_a_comment_are_checked() {
    let problems = |text: &str| {
        let analysis = Analysis::new("t.tc", text);
        let problem = |p: &tensorwright_lang::diagnostic::Diagnostic| {
            let labels = p.labels.iter().map(|label| {
                let span = label.span.start as usize..label.span.end as usize;
                format!("{:?} {}", &analysis.text()[span], label.text)
            });
            format!("{} {}: {}", p.code, p.message, labels.collect::<Vec<String>>().join("; "))
        };
        analysis.problems().iter().map(problem).collect::<Vec<String>>()
    };
    let conv = "def f(float(M) I, float(N) K) -> (O) { O(i) +=! K(x) * I(i + x) }";
    assert_eq!(problems(&format!("# sizes: M=5,N=3\n{conv}")), [""; 0]);
    let comments = ["# sizes: M=2,N=3", "# sizes: M=2", "# sizes: M=9,N=3,Q=1"];
    let all: Vec<String> =
        comments.iter().flat_map(|comment| problems(&format!("{comment}\n{conv}"))).collect();
    insta::assert_snapshot!(all.join("\n"));
    // A command may take a size from its inputs.
    assert_eq!(
        problems(&format!("# x run t.tc --def f --size M=5 --input K=k.npy\n{conv}")),
        [""; 0]
    );
}

/// All texts of the repository: valid ones, and one for every diagnostic.
fn corpus() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let files = ["examples/kernels", "examples/pipelines", "tests/diagnostics"]
        .map(|d| std::fs::read_dir(root.join(d)));
    let files = files.into_iter().flat_map(|files| files.unwrap().map(|file| file.unwrap().path()));
    files.filter(|path| path.extension().is_some_and(|extension| extension == "tc")).collect()
}

#[test]
fn every_place_of_every_text_can_be_asked_about() {
    let mut answered = 0;
    for path in corpus() {
        let text = String::from_utf8_lossy(&std::fs::read(&path).unwrap()).into_owned();
        let analysis = Analysis::new("t.tc", &text);
        let step = if text.len() > 20_000 { 997 } else { 1 };
        for offset in (0..=text.len() as u32 + 2).step_by(step) {
            answered += usize::from(analysis.hover(offset).is_some());
            let _ = analysis.definition(offset);
            if offset % 37 == 0 {
                drop(analysis.completions(offset));
            }
        }
        drop(analysis.symbols());
    }
    assert!(answered > 10_000, "only {answered} places have a hover");
}

#[test]
fn mutated_texts_can_be_asked_about() {
    let texts = corpus().into_iter().map(|path| std::fs::read(path).unwrap());
    let texts: Vec<Vec<u8>> = texts.filter(|text| text.len() < 5_000).collect();
    let mut answered = 0;
    for seed in 0..600 {
        let mut rng = Rng::of(seed, 0);
        let input = rng.pick(&texts).clone();
        let text = String::from_utf8_lossy(&mutate(&input, &texts, &mut rng)).into_owned();
        let analysis = Analysis::new("mutated.tc", &text);
        let starts = text.match_indices(|c: char| c.is_ascii_alphanumeric()).map(|(at, _)| at);
        for at in starts {
            answered += usize::from(analysis.hover(at as u32).is_some());
        }
        drop((analysis.symbols(), analysis.completions(rng.index(text.len() + 1) as u32)));
    }
    assert!(answered > 3_000, "only {answered} hovers");
}
