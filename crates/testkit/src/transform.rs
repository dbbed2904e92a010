//! Meaning-preserving rewrites of a text: renaming and reformatting.
//!
//! They must not change a program's hash or anything computed from it.

use std::collections::{BTreeMap, BTreeSet};

use crate::Rng;
use crate::generate::type_names;
use crate::token::{Token, TokenKind, tokens};

/// Reserved words beside the types: keywords, builtin functions and constants.
const RESERVED: &[&str] = &[
    "def",
    "where",
    "const",
    "true",
    "false",
    "concat",
    "INFINITY",
    "NAN",
    "M_PI",
    "M_E",
    "abs",
    "min",
    "max",
    "clamp",
    "sqrt",
    "rsqrt",
    "cbrt",
    "exp",
    "exp2",
    "expm1",
    "log",
    "log2",
    "log10",
    "log1p",
    "sin",
    "cos",
    "tan",
    "asin",
    "acos",
    "atan",
    "sinh",
    "cosh",
    "tanh",
    "asinh",
    "acosh",
    "atanh",
    "erf",
    "erfc",
    "lgamma",
    "tgamma",
    "sigmoid",
    "floor",
    "ceil",
    "round",
    "rint",
    "nearbyint",
    "trunc",
    "pow",
    "atan2",
    "fmod",
    "hypot",
    "copysign",
    "fma",
    "isnan",
    "isinf",
    "isfinite",
    "fabs",
    "fmin",
    "fmax",
    "bitand",
    "bitor",
    "bitxor",
    "bitnot",
    "shl",
    "shr",
    "relu",
    "gelu",
    "gelu_tanh",
    "silu",
    "softplus",
    "select",
    "fn",
    "argmin",
    "argmax",
    "in",
];

/// Whether a word has a meaning in the language.
#[must_use]
pub fn is_of_the_language(word: &str) -> bool {
    RESERVED.contains(&word) || type_names().any(|name| name == word)
}

/// Whether a word is reserved, including C's `f`-suffixed function names.
fn is_reserved(word: &str) -> bool {
    let stem = word.strip_suffix('f').unwrap_or(word);
    is_of_the_language(word) || (stem.len() > 2 && is_of_the_language(stem))
}

/// A renamed text, and the mapping of names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RenamedText {
    /// The text.
    pub text: String,
    /// The new name of each old one: defs, tensors, scalars, sizes and index variables.
    pub names: BTreeMap<String, String>,
}

impl RenamedText {
    /// The new name; the name itself if it was not in the text.
    #[must_use]
    pub fn name<'a>(&'a self, old: &'a str) -> &'a str {
        self.names.get(old).map_or(old, String::as_str)
    }
}

/// Renames every name of a text consistently; blanks and comments stay.
#[must_use]
pub fn rename(text: &str, seed: u64) -> RenamedText {
    let mut rng = Rng::new(seed);
    let mut names = BTreeMap::new();
    let mut taken = BTreeSet::new();
    let mut renamed = String::with_capacity(text.len());
    let mut copied = 0;
    let all = tokens(text);
    for (at, token) in all.iter().enumerate() {
        if token.kind != TokenKind::Word || is_language(&all, at) {
            continue;
        }
        let name =
            names.entry(token.text.to_owned()).or_insert_with(|| fresh(&mut rng, &mut taken));
        let start = offset(text, token);
        renamed.push_str(&text[copied..start]);
        renamed.push_str(name);
        copied = start + token.text.len();
    }
    renamed.push_str(&text[copied..]);
    RenamedText { text: renamed, names }
}

/// Renames within every definition from a small pool, so that definitions share names: the index
/// variables of one are tensors of the next. Names of definitions and functions stay. The mapping
/// is that of `def`.
#[must_use]
pub fn rename_within(text: &str, def: &str, seed: u64) -> RenamedText {
    let mut rng = Rng::new(seed);
    let all = tokens(text);
    let begins = |token: &Token<'_>| matches!(token.text, "def" | "fn");
    let global: BTreeSet<&str> =
        all.windows(2).filter(|pair| begins(&pair[0])).map(|pair| pair[1].text).collect();
    let (mut told, mut names) = (BTreeMap::new(), BTreeMap::new());
    let (mut taken, mut is_told) = (BTreeSet::new(), false);
    let mut renamed = String::with_capacity(text.len());
    let mut copied = 0;
    for (at, token) in all.iter().enumerate() {
        if begins(token) {
            if is_told {
                told = std::mem::take(&mut names);
            }
            (names, taken) = (BTreeMap::new(), BTreeSet::new());
            is_told = all.get(at + 1).is_some_and(|name| name.text == def);
        }
        let stays = token.kind != TokenKind::Word || global.contains(token.text);
        if stays || is_language(&all, at) {
            continue;
        }
        let name = names
            .entry(token.text.to_owned())
            .or_insert_with(|| common(&mut rng, &mut taken, &global));
        let start = offset(text, token);
        renamed.push_str(&text[copied..start]);
        renamed.push_str(name);
        copied = start + token.text.len();
    }
    renamed.push_str(&text[copied..]);
    RenamedText { text: renamed, names: if is_told { names } else { told } }
}

/// A name from the small pool that is new to a definition.
fn common(rng: &mut Rng, taken: &mut BTreeSet<String>, global: &BTreeSet<&str>) -> String {
    let most = 6 + taken.len();
    loop {
        let name = format!("{}{}", rng.pick(&["a", "i", "v_", "i_"]), rng.index(most));
        if !global.contains(name.as_str()) && !is_reserved(&name) && taken.insert(name.clone()) {
            return name;
        }
    }
}

/// The offset of a token in its text.
fn offset(text: &str, token: &Token<'_>) -> usize {
    token.text.as_ptr() as usize - text.as_ptr() as usize
}

/// Whether a word is a keyword here. `in` is one only after the variable of a `where` clause;
/// likewise the words of `scan t from 0` and `scatter b = p(i)`.
fn is_language(all: &[Token<'_>], at: usize) -> bool {
    let is_scan = |first: usize| {
        all.get(first).is_some_and(|token| token.text == "scan")
            && all.get(first + 1).is_some_and(|token| token.kind == TokenKind::Word)
            && all.get(first + 2).is_some_and(|token| token.text == "from")
    };
    let is_word = |at: usize| all.get(at).is_some_and(|token| token.kind == TokenKind::Word);
    if all[at].text == "scatter" && is_word(at + 1) {
        return all.get(at + 2).is_some_and(|token| token.text == "=");
    }
    if is_scan(at) || at >= 2 && is_scan(at - 2) {
        return true;
    }
    if all[at].text != "in" {
        return is_reserved(all[at].text);
    }
    // After a variable of a `where` clause, and not after a type: `, half in` names a parameter.
    at >= 2
        && all[at - 1].kind == TokenKind::Word
        && !is_reserved(all[at - 1].text)
        && matches!(all[at - 2].text, "where" | ",")
}

/// A fresh name, sometimes starting with a digit.
fn fresh(rng: &mut Rng, taken: &mut BTreeSet<String>) -> String {
    const LETTERS: &[u8] = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_";
    loop {
        let mut name = String::new();
        if rng.percent(10) {
            // With a letter: digits and `_` alone would be a number.
            name.push_str("7x");
        }
        for _ in 0..=rng.index(6) {
            name.push(char::from(*rng.pick(LETTERS)));
        }
        if !is_reserved(&name) && taken.insert(name.clone()) {
            return name;
        }
    }
}

/// Rewrites the same tokens with other blanks, line ends and comments.
#[must_use]
pub fn reformat(text: &str, seed: u64) -> String {
    let mut rng = Rng::new(seed);
    let mut out = String::with_capacity(2 * text.len());
    let mut before: Option<Token<'_>> = None;
    for token in tokens(text) {
        if let Some(before) = before {
            out.push_str(&gap(&before, &token, &mut rng));
        }
        out.push_str(token.text);
        before = Some(token);
    }
    out.push('\n');
    out
}

/// Random whitespace and comments between two tokens.
fn gap(before: &Token<'_>, after: &Token<'_>, rng: &mut Rng) -> String {
    if before.kind == TokenKind::Dot || after.kind == TokenKind::Dot {
        return String::new();
    }
    // Only `name(` on one line is a call; with a line end in between, it is not.
    let call = before.kind == TokenKind::Word && after.text == "(";
    if call && after.starts_line {
        return format!("\n{}", blanks(rng));
    }
    if call {
        return blanks(rng);
    }
    match rng.index(10) {
        0 => format!("{}\n{}", blanks(rng), blanks(rng)),
        1 => format!(" {}\n", rng.pick(&COMMENTS)),
        2 | 3 if may_touch(before, after) => String::new(),
        _ => format!(" {}", blanks(rng)),
    }
}

const COMMENTS: [&str; 4] = ["# C(i) = 1", "#", "# where } def # (", "## déjà vu →"];

fn blanks(rng: &mut Rng) -> String {
    let count = rng.index(3);
    (0..count).map(|_| if rng.percent(10) { '\t' } else { ' ' }).collect()
}

/// Whether two tokens remain separate without a blank: one is a word or number, and the other an
/// operator that neither starts a number nor continues a word.
fn may_touch(before: &Token<'_>, after: &Token<'_>) -> bool {
    let symbol = |token: &Token<'_>| {
        token.kind == TokenKind::Symbol && !token.text.starts_with(|c: char| c.is_alphanumeric())
    };
    let word = |token: &Token<'_>| token.kind == TokenKind::Word;
    (word(before) && symbol(after)) || (symbol(before) && word(after))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generate::generate;

    /// The tokens up to reformatting. A line end matters only before a `(`.
    fn structure(text: &str) -> Vec<(TokenKind, String, bool)> {
        let all = tokens(text);
        let line = |at: usize| {
            at > 0
                && all[at].text == "("
                && all[at - 1].kind == TokenKind::Word
                && all[at].starts_line
        };
        (0..all.len()).map(|at| (all[at].kind, all[at].text.to_owned(), line(at))).collect()
    }

    #[test]
    fn reformat_keeps_the_tokens_and_changes_the_text() {
        for seed in 0..300 {
            let text = generate(seed).text;
            let other = reformat(&text, seed);
            assert_ne!(text, other);
            assert_eq!(structure(&text), structure(&other), "{text}\n---\n{other}");
        }
    }

    #[test]
    fn rename_is_a_bijection_on_names_and_keeps_all_else() {
        for seed in 0..300 {
            let text = generate(seed).text;
            let renamed = rename(&text, seed);
            let (old, new) = (tokens(&text), tokens(&renamed.text));
            assert_eq!(old.len(), new.len());
            for (at, (old_token, new_token)) in old.iter().zip(&new).enumerate() {
                assert_eq!(old_token.kind, new_token.kind);
                let expected = match old_token.kind {
                    TokenKind::Word if !is_language(&old, at) => renamed.name(old_token.text),
                    _ => old_token.text,
                };
                assert_eq!(new_token.text, expected);
            }
            let targets: BTreeSet<&String> = renamed.names.values().collect();
            assert_eq!(targets.len(), renamed.names.len());
        }
    }

    #[test]
    fn the_two_meanings_of_in_are_told_apart() {
        let renamed = rename("def f(float(N) in) -> (o) { o(i) = in(i) where i in 0:N }", 1);
        assert!(renamed.names.contains_key("in"));
        assert!(renamed.text.contains(" in 0:"));
        assert_eq!(renamed.text.matches(" in ").count(), 1);
    }

    #[test]
    fn a_call_stays_on_its_line_and_a_new_statement_on_its_own() {
        for seed in 0..100 {
            let text = reformat("x = f(a)\n y = z\n(a, b) = g(c)", seed);
            let all = tokens(&text);
            for pair in all.windows(2) {
                if pair[0].kind == TokenKind::Word && pair[1].text == "(" {
                    assert_eq!(pair[1].starts_line, pair[0].text == "z", "{text}");
                }
            }
        }
    }
}
