//! Texts and their tokens.

use super::*;

/// The tokens as `Kind:text`, and the error codes with the texts they point at.
fn lexed(text: &str) -> (Vec<String>, Vec<String>) {
    let (tokens, diagnostics) = lex(text);
    let slice = |span: Span| &text[span.start as usize..span.end as usize];
    let tokens = tokens.iter().map(|t| format!("{:?}:{}", t.kind, slice(t.span)));
    let codes = diagnostics.iter().map(|d| format!("{} {}", d.code, slice(d.span().unwrap())));
    (tokens.collect(), codes.collect())
}

fn kinds(text: &str) -> Vec<TokenKind> {
    let (tokens, diagnostics) = lex(text);
    assert!(diagnostics.is_empty(), "{text}: {diagnostics:?}");
    tokens.iter().map(|token| token.kind).filter(|kind| *kind != TokenKind::End).collect()
}

#[test]
fn numbers_and_names_that_start_with_a_digit() {
    let (tokens, codes) = lexed("2LUT 1e5 1e 1e-3 1e -3 0x1F 10u .5 2. 1.5f 2e-k");
    let expected = "Ident:2LUT Float:1e5 Ident:1e Float:1e-3 Ident:1e Arith(Sub):- Int:3 Int:0x1F \
                    Int:10u Float:.5 Float:2. Float:1.5f Ident:2e Arith(Sub):- Ident:k End:";
    assert_eq!(tokens.join(" "), expected);
    assert!(codes.is_empty());
}

#[test]
fn sizes_of_dimensions_are_one_token() {
    let (tokens, codes) = lexed("A.0 2LUT.13 A .0 in.1+1");
    let expected = "DimOf:A.0 DimOf:2LUT.13 Ident:A Float:.0 DimOf:in.1 Arith(Add):+ Int:1 End:";
    assert_eq!(tokens.join(" "), expected);
    assert!(codes.is_empty());
    assert_eq!(lexed("A.0x A.99999999999 A.b").1, ["E0102 A.0x", "E0102 A.99999999999", "E0101 ."]);
}

#[test]
fn assignments_are_as_long_as_possible() {
    let reduce = |op, initialize| TokenKind::Assign(AssignOp::Reduce { op, initialize });
    assert_eq!(kinds("+=!x"), [reduce(ReductionOp::Sum, true), TokenKind::Ident]);
    assert_eq!(kinds("+= !x"), [reduce(ReductionOp::Sum, false), TokenKind::Not, TokenKind::Ident]);
    assert_eq!(
        kinds("min= max=! *=!"),
        [
            reduce(ReductionOp::Min, false),
            reduce(ReductionOp::Max, true),
            reduce(ReductionOp::Product, true)
        ]
    );
    assert_eq!(
        kinds("min == amin="),
        [
            TokenKind::Ident,
            TokenKind::Compare(CompareOp::Eq),
            TokenKind::Ident,
            TokenKind::Assign(AssignOp::Assign)
        ]
    );
}

#[test]
fn lines_and_comments() {
    let (tokens, _) = lex("\u{feff}a b # c d\n  (e)\r\nf");
    let first: Vec<bool> = tokens.iter().map(|token| token.first_on_line).collect();
    assert_eq!(first, [true, false, true, false, false, true, false]);
}

#[test]
fn bad_numbers_are_still_numbers() {
    let (tokens, codes) = lexed("1f 1_000 010 1.2.3 0xZ 99999999999999999999 1e999");
    assert_eq!(tokens.len(), 8);
    assert!(tokens[..7].iter().all(|token| token.starts_with("Int:")), "{tokens:?}");
    assert!(codes.iter().all(|code| code.starts_with("E0102")), "{codes:?}");
    assert_eq!(codes.len(), 7);
}

#[test]
fn foreign_spellings_are_read_as_what_they_mean() {
    let (tokens, codes) = lexed("a ≤ b → c × d − e ∧ f ** 2 0..N x := y // z");
    let kinds: Vec<&str> = tokens.iter().filter_map(|token| token.split(':').next()).collect();
    let expected = "Ident Compare(Le) Ident Arrow Ident Arith(Mul) Ident Arith(Sub) Ident \
                    Logic(And) Ident Arith(Mul) Int Int Colon Ident Ident Assign(Assign) Ident End";
    assert_eq!(kinds.join(" "), expected);
    let expected = "E0101 ≤, E0101 →, E0101 ×, E0101 −, E0101 ∧, E0101 **, E0101 .., E0101 :=, \
                    E0101 //";
    assert_eq!(codes.join(", "), expected);
    assert_eq!(kinds_of_errors("a /* b\n c */ d"), ["Ident:a", "Ident:d", "End:"]);
    assert_eq!(kinds_of_errors("a /* b"), ["Ident:a", "End:"]);
}

fn kinds_of_errors(text: &str) -> Vec<String> {
    let (tokens, codes) = lexed(text);
    assert_eq!(codes.len(), 1, "{codes:?}");
    tokens
}

#[test]
fn brackets_are_parentheses_reported_in_pairs() {
    let text = "A[i, B[j]]";
    let (tokens, diagnostics) = lex(text);
    assert_eq!(tokens.iter().filter(|token| token.kind == TokenKind::LParen).count(), 2);
    assert_eq!(diagnostics.len(), 2);
    let fix = diagnostics[1].fix.clone().unwrap();
    assert_eq!((fix.span, fix.replacement.as_str()), (Span::new(6, 9), "(j)"));
}

#[test]
fn what_the_language_does_not_know() {
    assert_eq!(kinds_of_errors("é"), ["Ident:é", "End:"]);
    assert_eq!(kinds_of_errors("\"a b\" c"), ["Error:\"a b\"", "Ident:c", "End:"]);
    assert_eq!(kinds_of_errors("'a b"), ["Error:'a b", "End:"]);
    assert_eq!(kinds_of_errors("@@@ a"), ["Error:@@@", "Ident:a", "End:"]);
    assert_eq!(kinds_of_errors("a\u{a0}\u{a0}b"), ["Ident:a", "Ident:b", "End:"]);
    assert_eq!(kinds_of_errors("\0\0"), ["Error:\0\0", "End:"]);
}

#[test]
fn reports_are_limited() {
    assert_eq!(lex(&"@ ".repeat(10_000)).1.len(), MAX_REPORTS);
}
