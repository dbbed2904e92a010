//! Text mutations for fuzzing: near-valid texts, and stress of limits.

use crate::Rng;
use crate::token::tokens;

/// One kind of mutation.
type Mutation = fn(&mut Vec<u8>, &[Vec<u8>], &mut Rng);

/// Every kind; token mutations more often, because they get past the lexer.
const MUTATIONS: &[Mutation] = &[
    flip_bit,
    delete_range,
    duplicate_range,
    splice,
    insert_word,
    insert_word,
    insert_word,
    insert_number,
    insert_number,
    insert_nesting,
    insert_invalid_utf8,
    swap_tokens,
    swap_tokens,
    delete_token,
    delete_token,
    replace_token,
    repeat_chunk,
];

/// Valid and invalid words of the language.
const DICTIONARY: &[&str] = &[
    "def",
    "fn",
    "fn f(x) = x\n",
    "argmax=!",
    "relu",
    "select",
    "where",
    "in",
    "scan",
    "from",
    "scatter",
    "const",
    "true",
    "false",
    "concat",
    "bool",
    "int8",
    "int",
    "int64",
    "uint8",
    "byte",
    "uint64",
    "half",
    "bfloat16",
    "float",
    "double",
    "float128",
    "->",
    "(",
    ")",
    "{",
    "}",
    ",",
    ";",
    ":",
    "?",
    "=",
    "+=",
    "*=",
    "min=",
    "max=",
    "+=!",
    "*=!",
    "min=!",
    "max=!",
    "-=",
    "+",
    "-",
    "*",
    "/",
    "%",
    "==",
    "!=",
    "<",
    "<=",
    ">",
    ">=",
    "&&",
    "<<",
    ">>",
    "^",
    "~",
    "||",
    "!",
    "&",
    "|",
    "→",
    "≤",
    "×",
    "−",
    "//",
    "/*",
    "*/",
    "#",
    "\n",
    "\r",
    "\0",
    "i",
    "j",
    "k",
    "N",
    "A",
    "A.0",
    "A.99999999999",
    ".0",
    "A(i)",
    "min(",
    "clamp(",
    "exp(x)",
    "float(",
    "INFINITY",
    "NAN",
    "1.0f",
    "1f",
    "i in 0:N",
    "\u{feff}",
];

/// Numbers at and beyond machine limits.
const NUMBERS: [&str; 16] = [
    "0",
    "-1",
    "1000000",
    "2147483648",
    "4294967295",
    "9223372036854775807",
    "9223372036854775808",
    "18446744073709551615",
    "18446744073709551616",
    "-9223372036854775808",
    "0xFFFFFFFFFFFFFFFF",
    "0x",
    "1e308",
    "1e99999",
    "1e-99999",
    "340282366920938463463374607431768211456",
];

/// Nestable constructs: how a level opens, and how it closes.
const NESTINGS: [(&str, &str); 10] = [
    ("(", ")"),
    ("-", ""),
    ("!", ""),
    ("exp(", ")"),
    ("A(", ")"),
    ("x ? ", " : y"),
    ("x ? y : ", ""),
    ("1+(", ")"),
    ("{", "}"),
    ("float(", ")"),
];

/// Applies one to six random mutations; `corpus` supplies texts to splice.
#[must_use]
pub fn mutate(input: &[u8], corpus: &[Vec<u8>], rng: &mut Rng) -> Vec<u8> {
    let mut text = input.to_vec();
    let rounds = if rng.percent(60) { 1 + rng.index(2) } else { 1 + rng.index(6) };
    for _ in 0..rounds {
        rng.pick(MUTATIONS)(&mut text, corpus, rng);
    }
    text
}

/// A random range of at most `longest` bytes.
fn some_range(text: &[u8], longest: usize, rng: &mut Rng) -> std::ops::Range<usize> {
    let start = rng.index(text.len() + 1);
    let length = rng.index(longest.min(text.len() - start) + 1);
    start..start + length
}

fn insert(text: &mut Vec<u8>, at: usize, bytes: &[u8]) {
    text.splice(at..at, bytes.iter().copied());
}

#[expect(clippy::ptr_arg, reason = "every mutation has this signature")]
fn flip_bit(text: &mut Vec<u8>, _: &[Vec<u8>], rng: &mut Rng) {
    let at = rng.index(text.len());
    if let Some(byte) = text.get_mut(at) {
        *byte ^= 1 << rng.index(8);
    }
}

fn delete_range(text: &mut Vec<u8>, _: &[Vec<u8>], rng: &mut Rng) {
    let range = some_range(text, 40, rng);
    text.drain(range);
}

fn duplicate_range(text: &mut Vec<u8>, _: &[Vec<u8>], rng: &mut Rng) {
    let chunk = text[some_range(text, 80, rng)].to_vec();
    let at = rng.index(text.len() + 1);
    insert(text, at, &chunk);
}

/// The head of this text with the tail of another.
fn splice(text: &mut Vec<u8>, corpus: &[Vec<u8>], rng: &mut Rng) {
    if corpus.is_empty() {
        return;
    }
    let other = rng.pick(corpus);
    text.truncate(rng.index(text.len() + 1));
    text.extend_from_slice(&other[rng.index(other.len() + 1)..]);
}

/// The start of a token, or any offset in a text that is not UTF-8.
fn token_start(text: &[u8], rng: &mut Rng) -> usize {
    match token_ranges(text) {
        Some(ranges) if !ranges.is_empty() => rng.pick(&ranges).start,
        _ => rng.index(text.len() + 1),
    }
}

fn token_ranges(text: &[u8]) -> Option<Vec<std::ops::Range<usize>>> {
    let text = std::str::from_utf8(text).ok()?;
    let start = |part: &str| part.as_ptr() as usize - text.as_ptr() as usize;
    let range = |part: &str| start(part)..start(part) + part.len();
    Some(tokens(text).iter().map(|token| range(token.text)).collect())
}

fn insert_word(text: &mut Vec<u8>, _: &[Vec<u8>], rng: &mut Rng) {
    let at = token_start(text, rng);
    let word = format!("{} ", rng.pick(DICTIONARY));
    insert(text, at, word.as_bytes());
}

fn insert_number(text: &mut Vec<u8>, _: &[Vec<u8>], rng: &mut Rng) {
    let number = *rng.pick(&NUMBERS);
    let mut ranges = token_ranges(text).unwrap_or_default();
    ranges.retain(|range| text[range.start].is_ascii_digit());
    if ranges.is_empty() || rng.percent(30) {
        let at = token_start(text, rng);
        insert(text, at, format!(" {number} ").as_bytes());
    } else {
        text.splice(rng.pick(&ranges).clone(), number.bytes());
    }
}

/// Deep nesting: closed, half closed or left open.
fn insert_nesting(text: &mut Vec<u8>, _: &[Vec<u8>], rng: &mut Rng) {
    let (open, close) = *rng.pick(&NESTINGS);
    let depth = *rng.pick(&[3, 30, 300, 3000, 30_000]);
    let closed = *rng.pick(&[depth, depth, depth / 2, 0]);
    let nest = format!("{}1{}", open.repeat(depth), close.repeat(closed));
    let at = token_start(text, rng);
    insert(text, at, nest.as_bytes());
}

fn insert_invalid_utf8(text: &mut Vec<u8>, _: &[Vec<u8>], rng: &mut Rng) {
    const INVALID: [&[u8]; 5] =
        [b"\xff", b"\xc3", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xe2\x86"];
    let at = rng.index(text.len() + 1);
    let invalid = *rng.pick(&INVALID);
    insert(text, at, invalid);
}

/// Replaces one token by another.
fn replace_token(text: &mut Vec<u8>, _: &[Vec<u8>], rng: &mut Rng) {
    let Some(ranges) = token_ranges(text).filter(|ranges| !ranges.is_empty()) else {
        return;
    };
    let source = text[rng.pick(&ranges).clone()].to_vec();
    text.splice(rng.pick(&ranges).clone(), source);
}

fn swap_tokens(text: &mut Vec<u8>, _: &[Vec<u8>], rng: &mut Rng) {
    let Some(ranges) = token_ranges(text).filter(|ranges| ranges.len() > 1) else {
        return;
    };
    let first = rng.index(ranges.len() - 1);
    let second = (first + 1 + rng.index(4)).min(ranges.len() - 1);
    let (a, b) = (ranges[first].clone(), ranges[second].clone());
    let middle = [&text[b.clone()], &text[a.end..b.start], &text[a.clone()]].concat();
    text.splice(a.start..b.end, middle);
}

fn delete_token(text: &mut Vec<u8>, _: &[Vec<u8>], rng: &mut Rng) {
    if let Some(ranges) = token_ranges(text).filter(|ranges| !ranges.is_empty()) {
        text.drain(rng.pick(&ranges).clone());
    }
}

/// Repeats a chunk: many statements, many terms, many parameters.
fn repeat_chunk(text: &mut Vec<u8>, _: &[Vec<u8>], rng: &mut Rng) {
    let range = some_range(text, 60, rng);
    let count = *rng.pick(&[10, 10, 100, 1000]);
    let chunk = text[range.clone()].repeat(count);
    insert(text, range.end, &chunk);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mutation_is_a_function_of_its_seed() {
        let corpus = [b"def f(float(N) A) -> (B) { B(i) = A(i) }".to_vec(), b"C".to_vec()];
        for seed in 0..500 {
            let first = mutate(&corpus[0], &corpus, &mut Rng::new(seed));
            assert_eq!(first, mutate(&corpus[0], &corpus, &mut Rng::new(seed)));
        }
    }

    #[test]
    fn nothing_to_mutate_is_no_problem() {
        for seed in 0..2000 {
            let _ = mutate(b"", &[], &mut Rng::new(seed));
            let _ = mutate(b"\xff\xfe", &[Vec::new()], &mut Rng::new(seed));
        }
    }

    #[test]
    fn most_mutants_differ() {
        let text = b"def f(float(N) A) -> (B) { B(i) = A(i) }";
        let same = (0..1000).filter(|seed| mutate(text, &[], &mut Rng::new(*seed)) == text).count();
        assert!(same < 200, "{same} of 1000 mutants are the original");
    }
}
