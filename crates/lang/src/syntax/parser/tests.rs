//! Parser tests: trees and diagnostics.

use tensorwright_random::SplitMix;

use super::*;
use crate::syntax::ast::{ExprKind, MAX_DEPTH, Stmt};
use crate::syntax::{print_expr, print_module};

fn source(text: &str) -> Source {
    Source::new("t", text)
}

/// `line:code message`, one line each, in source order.
fn problems(text: &str) -> String {
    let source = source(text);
    let (_, mut diagnostics) = parse(&source);
    diagnostics.sort_by_key(Diagnostic::span);
    let line = |d: &Diagnostic| {
        assert!(!d.labels.iter().any(|label| label.text.is_empty()), "unlabelled: {d:?}");
        let (line, _) = source.line_column(d.span().unwrap().start);
        format!("{line}:{} {}", d.code, d.message)
    };
    diagnostics.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// The single error of the statement: its code, the text it points at, and its help.
fn problem(stmt: &str) -> (Code, String, String) {
    let text = format!("def f(float(N) A, float(N) B) -> (C) {{\n  {stmt}\n}}\n");
    sole_problem(&text)
}

fn sole_problem(text: &str) -> (Code, String, String) {
    let source = source(text);
    let (_, diagnostics) = parse(&source);
    let [diagnostic] = diagnostics.as_slice() else { panic!("{text}\n{}", problems(text)) };
    let place = source.slice(diagnostic.span().unwrap()).to_owned();
    (diagnostic.code, place, diagnostic.help.clone().unwrap_or_default())
}

/// Applies the fix of the single error; the result must be valid.
#[track_caller]
fn fixed(text: &str) -> String {
    let (_, diagnostics) = parse(&source(text));
    let [diagnostic] = diagnostics.as_slice() else { panic!("{text}\n{}", problems(text)) };
    let fix = diagnostic.fix.clone().unwrap();
    let mut mended = text.to_owned();
    mended.replace_range(fix.span.start as usize..fix.span.end as usize, &fix.replacement);
    assert_eq!(problems(&mended), "", "{mended}");
    mended
}

#[track_caller]
fn fixed_stmt(stmt: &str) -> String {
    let text = fixed(&format!("def f(float(N) A, float(N) B) -> (C) {{ {stmt} }}"));
    text.split_once("{ ").unwrap().1.trim_end_matches(" }").to_owned()
}

#[track_caller]
fn fixed_header(header: &str) -> String {
    fixed(&format!("{header} {{ C(i) = A(i) }}")).split_once(" {").unwrap().0.to_owned()
}

#[test]
fn the_example_of_the_language() {
    let text = "
def conv2d(float(B,IP,H,W) in, const float(OP,IP,KH,KW) weight, int s, int p) -> (out) {
  out(b,op,h,w) +=! (s*h+kh-p >= 0 && s*h+kh-p < H && s*w+kw-p >= 0 && s*w+kw-p < W)
                    ? in(b,ip,s*h+kh-p,s*w+kw-p) * weight(op,ip,kh,kw) : 0
    where h in 0:(H+2*p-KH)/s+1, w in 0:(W+2*p-KW)/s+1;
  (a, b) = f(out)
}
def 2LUT(float(E) 1e, int() n) -> (O) { x = concat(a, b) O() = x(i)
  (q) = g(O.0) }";
    assert_eq!(problems(text), "");
    let (module, _) = parse(&source(text));
    assert_eq!(module.defs.len(), 2);
    assert_eq!(module.defs[1].body.len(), 3);
    assert!(print_module(&module).contains("where h in 0:(H + 2 * p - KH) / s + 1"));
}

#[test]
fn spans_leave_out_the_parentheses_around_but_not_those_within() {
    let text = "def f() -> (o) { o() = ((a) + (b)) }";
    let (module, _) = parse(&source(text));
    let Stmt::Comprehension(c) = &module.defs[0].body[0] else { panic!() };
    assert_eq!(source(text).slice(c.rhs.span), "(a) + (b)");
    let ExprKind::Arith(_, a, _) = &c.rhs.kind else { panic!() };
    assert_eq!(source(text).slice(a.span), "a");
    assert_eq!(source(text).slice(module.defs[0].span), text);
    assert_eq!(source(text).slice(c.span), "o() = ((a) + (b))");
}

#[test]
fn subscripts_stand_on_the_line_of_their_name() {
    let text = "def f() -> (o) {\n  o() = x\n  (a, b) = f(y)\n}";
    let (module, diagnostics) = parse(&source(text));
    assert!(diagnostics.is_empty());
    assert_eq!(module.defs[0].body.len(), 2);
    let (code, place, help) = problem("C(i) = A\n (i)");
    assert_eq!((code, place.as_str()), (Code::UnexpectedToken, "}"));
    assert!(help.contains("line of the name"));
    assert!(problem("C\n (i) = A(i)").2.contains("line of the name"));
}

#[test]
fn several_mistakes_are_reported_at_once() {
    let text = "\
def f(flaot(N) A) -> (C) {
  C(i) = A(i) +
  D(i) = A(i) * ) 2
  E(i) = (A(i) + 1
  F(i) = A[i]
  exp(i) = A(i)
  G(i) = A(i) where i in N
  H(i) = A(i)
}
def g(float(N A) -> (C) {
  C(i) = +
}
def h(float(N) A) -> (C) {
  C(i) = A(i) @ A(i)
  D(i+1) = A(i)
  E = A(i) + 1
  F(i) = A(i) = 2 ? 1 : 0
";
    assert_eq!(
        problems(text),
        "\
1:E0112 there is no type `flaot`
2:E0103 expected an expression after `+`
3:E0103 expected an expression after `*`
4:E0104 this `(` is never closed
5:E0101 square brackets are not used
6:E0108 `exp` is a built-in function and cannot be the name of a tensor
7:E0103 this range has only one end
10:E0103 expected `,` or `)`, found `A`
13:E0104 this `{` is never closed
14:E0101 the language does not use `@`
15:E0111 the subscript `i+1` on the left is not an index variable
16:E0109 the left side `E` has no subscripts
17:E0110 `=` stands in an expression"
    );
}

#[test]
fn a_broken_header_skips_to_the_next_def() {
    let text = "def f(float(N) A -> (C) {\n C(i) = (\n}\ndef g(A) -> (C) { }\nx\ndef h() -> (o) {}";
    let expected = "\
1:E0104 this `(` is never closed
4:E0103 the parameter `A` has no type";
    assert_eq!(problems(text), expected);
    assert_eq!(parse(&source(text)).0.defs.len(), 1);
    assert_eq!(problems("def f(float(N) A\ndef g() -> (o) {}").lines().count(), 1);
    assert_eq!(problems("x = 1\n}\ndef g() -> (o) {}").lines().count(), 1);
}

#[test]
fn left_sides_without_subscripts() {
    assert_eq!(fixed_stmt("C = A(i) + B(j) * N"), "C(i, j) = A(i) + B(j) * N");
    assert_eq!(fixed_stmt("C +=! A(i)"), "C() +=! A(i)");
    assert_eq!(fixed_stmt("C = 1"), "C() = 1");
    assert_eq!(fixed_stmt("C = exp(A(i))"), "C(i) = exp(A(i))");
    assert_eq!(problems("def f(float(N) A) -> (C) { C = A @ A }").lines().count(), 1);
    assert_eq!(problems("def f(float(N) A) -> (and) { B(i) = A(i) and(i) = B(i) }"), "");
    assert_eq!(problem("C, D = A(i) + 1").0, Code::TargetNeedsParentheses);
    assert_eq!(problem("C = A(i) where i in 0:3").0, Code::TargetNeedsParentheses);
}

#[test]
fn left_subscripts_are_names() {
    assert_eq!(problem("C(0) = A(i)").1, "0");
    assert_eq!(problem("C(i, i + 1) = A(i)").1, "i + 1");
    assert_eq!(problem("C(A(i)) = 1").0, Code::TargetSubscript);
    assert_eq!(problem("C(sin) = 1").0, Code::ReservedName);
}

#[test]
fn names_that_are_taken() {
    for text in [
        "def exp() -> (C) {}",
        "def f(float(N) M_PI) -> (C) {}",
        "def f(float(where) A) -> (C) {}",
        "def f(float(N) A) -> (float) {}",
        "def f() -> (C) { concat() = 1 }",
        "def f() -> (C) { min, b = g() }",
        "def f() -> (C) { C() = 1 where fmax in 0:2 }",
    ] {
        assert_eq!(sole_problem(text).0, Code::ReservedName, "{text}");
    }
    let keyword = "def f(float(N) where) -> (C) { C(i) = where(i) + where(0) where i in 0:N }";
    assert_eq!(sole_problem(keyword).0, Code::ReservedName);
    assert_eq!(problems("def f(float(N) if) -> (for) { for(i) = if(i) }"), "");
    assert_eq!(problems("def f(float(N) in) -> (C) { C(i) = in(i) where i in 0:in.0 }"), "");
}

#[test]
fn statements_that_can_be_mended() {
    for (wrong, right) in [
        ("let C(i) = A(i)", "C(i) = A(i)"),
        ("C(i) == A(i)", "C(i) = A(i)"),
        ("C(i) min = A(i)", "C(i) min= A(i)"),
        ("C(i) = A(i) > 0 and (B(i) > 0)", "C(i) = A(i) > 0 && (B(i) > 0)"),
        ("C(i) = max(A(i) > 0 or B(i) > 0, false)", "C(i) = max(A(i) > 0 || B(i) > 0, false)"),
        ("C(i) := A(i)", "C(i) = A(i)"),
        ("C(i) =+ A(i)", "C(i) += A(i)"),
        ("C(i) = +A(i)", "C(i) = A(i)"),
        ("C(i) = A[i]", "C(i) = A(i)"),
        ("C(i) = max(A(i), )", "C(i) = max(A(i) )"),
        ("C(i) = max(A(i) B(i))", "C(i) = max(A(i), B(i))"),
        ("C(i) = A(i))", "C(i) = A(i)"),
        ("C(i) = A(i) where i = 0:N", "C(i) = A(i) where i in 0:N"),
        ("C(i) = A(i) where i in 0..N", "C(i) = A(i) where i in 0:N"),
        ("C(i) = A(i) where i in N-1", "C(i) = A(i) where i in 0:N-1"),
        ("C(i) = A(i) where i in :N", "C(i) = A(i) where i in 0:N"),
        ("C(i) = A(i) = 1 ? 2 : 3", "C(i) = A(i) == 1 ? 2 : 3"),
        ("C(i) = where(A(i) > 0, A(i), 1)", "C(i) = (A(i) > 0 ? A(i) : 1)"),
        ("C() argmax= A(i)", "C() argmax=! A(i)"),
        ("C(i) = A(i) ≤ 1", "C(i) = A(i) <= 1"),
        ("C(i) = A(i) /* x */", "C(i) = A(i) # x"),
    ] {
        let wrong = if wrong.contains("/*") { format!("{wrong}\n") } else { wrong.to_owned() };
        assert_eq!(fixed_stmt(&wrong).trim_end(), right);
    }
}

#[test]
fn headers_that_can_be_mended() {
    let right = "def f(float(N) A) -> (C)";
    assert_eq!(fixed_header("def f(float(N) A) (C)"), right);
    assert_eq!(fixed_header("def f(float(N) A) => (C)"), right);
    assert_eq!(fixed_header("def f(float(N) A) → (C)"), right);
    assert_eq!(fixed_header("def f(float(N) A) -> C"), right);
    assert_eq!(fixed_header("def f(f32(N) A) -> (C)"), right);
    assert_eq!(fixed_header("def f(Float(N) A) -> (C)"), right);
    assert_eq!(fixed_header("def f(float[N] A) -> (C)"), right);
    assert_eq!(fixed_header("func f(float(N) A) -> (C)"), right);
    assert_eq!(fixed_header("def f(float(N) A,) -> (C)"), right);
    assert_eq!(fixed_header("def f(float A(N)) -> (C)"), "def f(float (N) A) -> (C)");
}

#[test]
fn mistakes_that_need_a_person() {
    for (stmt, place, help) in [
        ("C(i) -= A(i)", "-=", "`+= -x`"),
        ("C(i) /= A(i)", "/=", "`*= 1.0 / x`"),
        ("C(i) = A(i) ** 2", "**", "pow"),
        ("C(i) avg= A(i)", "avg=", "the reductions are"),
        ("float x = 1", "float", "remove the type"),
        ("return C", "return", "named after `->`"),
        ("for i in range(N): C(i) = 1", "for", "runs over all"),
        ("for (i = 0; i < N; i++) {\n C(i) = A(i);\n}", "for", "runs over all"),
        ("while (true) C(i) = 1", "while", "runs over all"),
        ("if (A(i) > 0) { C(i) = 1 } else { C(i) = 2 }", "if", "condition ? a : b"),
        ("if (A(i) > 0) C(i) = 1", "if", "condition ? a : b"),
        ("let s = A(i) + 1", "let", "`s() = ...`"),
        ("C(i) = A(i) +", "+", ""),
        ("C(i) = exp(A(i) *)", "*", ""),
        ("C =", "=", ""),
        ("C(i) = A(i) if A(i) > 0 else 0", "if", "condition ? a : b"),
        ("C(0) = A(0)", "0", "choose by the index"),
        ("C = A + B", "C", "`C(i) = ... A(i) ...`, or `C() = ...` for a scalar"),
        ("C = tanh(A)", "C", "index variables on both sides"),
        ("C(i) = A(i)(j)", "(", "one pair"),
        ("C(i) = A .0", ".0", "without a blank"),
        ("C(i) = float + 1", "float", "`float(x)`"),
        ("C(i) = A(i) > 0 ? 1", "}", "condition ? a : b"),
        ("C(i) = A(i) where 0 <= i", "0", "`i in 0:N`"),
        ("C(i) = A(i) where i < N", "<", "`i in 0:N`"),
        ("C(i) = A(i) where i in c ? 0 : 1:2", "?", "`min`"),
        ("C(i) = A(i) * * 2", "*", "operand is missing"),
        ("C(i) = \"x\"", "\"x\"", "quotes"),
        ("C(i) = A(i) where i in 0:", "}", ""),
        ("C(i) = A(i) B(i)", "B", ""),
        ("C(i) = ()", ")", ""),
        ("C(i)", "}", "C(i) = ..."),
        ("C(i) = (A(i)", "(", "missing `)`"),
        ("C(i = A(i)", "(", "missing `)`"),
    ] {
        let (_, found, given) = problem(stmt);
        assert_eq!(found, place, "{stmt}");
        assert!(given.contains(help), "{stmt}: {given}");
    }
}

#[test]
fn sizes_are_not_computed() {
    for size in ["2*N", "N + 1", "N/2"] {
        let (code, _, help) =
            sole_problem(&format!("def f(float({size}) A) -> (C) {{ C(i) = A(i) }}"));
        assert_eq!(code, Code::UnexpectedToken);
        assert!(help.contains("a name of its own"), "{help}");
    }
}

#[test]
fn results_are_named_and_not_typed() {
    assert_eq!(problems("def f() {}").lines().count(), 1);
    assert_eq!(problems("def f() -> () {}"), "1:E0103 a definition has at least one result");
    let typed = "def f() -> (float(M) C, D) {}";
    assert_eq!(problems(typed), "1:E0103 the type of a result is not written");
    assert_eq!(problems("def f() -> (o) {\n o() = 1\n").lines().count(), 1);
    assert_eq!(problems("def f() -> (o) {\n o() = (1\n").lines().count(), 1);
}

#[test]
fn precedence_is_that_of_c() {
    let text = "def f() -> (o) { o() = a || b && c == d < e + f * -g ? h : i ? j : k }";
    let (module, _) = parse(&source(text));
    let Stmt::Comprehension(c) = &module.defs[0].body[0] else { panic!() };
    assert_eq!(print_expr(&c.rhs), "a || b && c == d < e + f * -g ? h : i ? j : k");
    let ExprKind::Select(condition, _, other) = &c.rhs.kind else { panic!() };
    assert_eq!(print_expr(condition), "a || b && c == d < e + f * -g");
    assert!(matches!(other.kind, ExprKind::Select(..)));
}

#[test]
fn depth_counts_chains_and_parentheses() {
    let parse_rhs = |rhs: String| {
        problems(&format!("def f() -> (o) {{\n o() = {rhs}\n p() = 1 + }}")).replace('\n', "; ")
    };
    let too_deep = format!("2:E0105 this expression nests more than {MAX_DEPTH} levels deep; ");
    let other = "3:E0103 expected an expression after `+`";
    type Make = fn(usize) -> String;
    let makes: [Make; 6] = [
        |n| format!("{}x{}", "(".repeat(n), ")".repeat(n)),
        |n| format!("{}x", "-".repeat(n)),
        |n| format!("x{}", " + x".repeat(n)),
        |n| format!("{}x{}", "f(".repeat(n), ")".repeat(n)),
        |n| format!("x{}", " ? x : x".repeat(n)),
        |n| format!("{}x{}", "x ? ".repeat(n), " : x".repeat(n)),
    ];
    for make in makes {
        assert_eq!(parse_rhs(make(MAX_DEPTH - 1)), other);
        assert_eq!(parse_rhs(make(MAX_DEPTH)), format!("{too_deep}{other}"));
    }
}

/// Checks that a parse looks at each token a bounded number of times.
pub(super) fn check_effort(parser: &Parser<'_>) {
    let (looks, tokens) = (parser.looks.get(), parser.tokens.len());
    assert!(looks <= 100 * (tokens + 1), "{looks} looks at {tokens} tokens");
}

/// Runs on a stack as small as that of a thread.
fn on_small_stack(run: impl FnOnce() + Send + 'static) {
    std::thread::Builder::new().stack_size(2 << 20).spawn(run).unwrap().join().unwrap();
}

#[test]
fn large_rubbish_neither_overflows_nor_hangs() {
    on_small_stack(|| {
        let pieces = [
            "(",
            ")",
            "-",
            "!",
            "a?",
            "a ? b : ",
            "a+",
            "a(",
            "a,",
            "{",
            "}",
            "def ",
            "[",
            "a=",
            "\"",
            "\n(a,",
            "a(\n",
            ";a(",
            "a() = b c(",
            "/*",
            "1.",
            "0x",
            "where a in ",
            "a in 0:",
            "@ ",
            "a || a && a == a < a + a * (",
            "def f(",
            "def f()->(o){a()=(",
            "\na() = (",
            "é",
            "min=",
        ];
        for piece in pieces {
            let text = piece.repeat((24 << 10) / piece.len());
            for start in ["", "def f(", "def f() -> (o) {\n", "def f() -> (o) {\n o() = "] {
                let (_, diagnostics) = parse(&source(&format!("{start}{text}")));
                assert!(diagnostics.len() <= 2 * MAX_REPORTS);
            }
        }
        for piece in ["(", "-", "!", "a?", "a+"] {
            let start = "def f() -> (o) { o() = ";
            let text = piece.repeat(((4 << 20) - start.len()) / piece.len());
            let (_, diagnostics) = parse(&source(&format!("{start}{text}")));
            assert!(diagnostics.iter().any(|d| d.code == Code::NestingTooDeep), "{piece}");
        }
    });
}

#[test]
fn pieces_of_programs_never_panic() {
    let words = [
        "def", "f", "(", ")", "->", "{", "}", ",", "=", "+=!", "where", "in", ":", "?", "A.0", "1",
        "1.5", "+", "-", "!", "float", "const", "\n", ";", "[", "]", "@", "min", "x", "==", "&&",
    ];
    let mut random = SplitMix::new(1);
    for _ in 0..20_000 {
        let mut text = String::from("def f(float(N) A) -> (o) {\n");
        for _ in 0..24 {
            text += *random.pick::<&str>(&words);
            text.push(' ');
        }
        let source = source(&text);
        let (module, diagnostics) = parse(&source);
        assert!(diagnostics.iter().all(|d| d.span().is_some_and(|s| s.start <= s.end)));
        if diagnostics.is_empty() {
            let printed = print_module(&module);
            assert_eq!(problems(&printed), "", "{text}\n{printed}");
        }
    }
}

#[test]
fn a_text_that_is_too_large_is_refused() {
    let (_, diagnostics) = parse(&source(&" ".repeat((4 << 20) + 1)));
    assert_eq!(diagnostics.len(), 1);
    assert_eq!(diagnostics[0].code, Code::SourceTooLarge);
}
