//! The lexer: text to tokens.
//!
//! It never fails: an unknown token is reported, and replaced by the most likely intended one or by
//! a [`TokenKind::Error`].

use super::foreign::{self, Foreign};
use super::number::{self, NumberError};
use super::token::{Token, TokenKind, quote};
use crate::builtin::Builtin;
use crate::diagnostic::{Code, Diagnostic};
use crate::dtype::DType;
use crate::ops::{ArithOp, AssignOp, CompareOp, LogicOp, ReductionOp};
use crate::source::Span;
use crate::text::is_obeyed;

/// The most errors reported in one pass: far more than anyone reads, and few enough that a large
/// invalid file does not fill the memory.
pub(super) const MAX_REPORTS: usize = 1000;

/// The longest text quoted in a fix.
const MAX_FIX_BYTES: usize = 400;

/// The tokens of a text, the last one a [`TokenKind::End`], and the errors.
pub(super) fn lex(text: &str) -> (Vec<Token>, Vec<Diagnostic>) {
    let mut lexer = Lexer {
        text,
        pos: if text.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 },
        first_on_line: true,
        tokens: Vec::new(),
        diagnostics: Vec::new(),
        brackets: Vec::new(),
    };
    while let Some(next) = lexer.rest().chars().next() {
        lexer.token(next);
    }
    lexer.push(TokenKind::End, 0);
    (lexer.tokens, lexer.diagnostics)
}

struct Lexer<'s> {
    text: &'s str,
    pos: usize,
    first_on_line: bool,
    tokens: Vec<Token>,
    diagnostics: Vec<Diagnostic>,
    /// The unclosed `[`s: their offsets, and their diagnostics.
    brackets: Vec<(usize, usize)>,
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

impl<'s> Lexer<'s> {
    /// Reads one token, comment or blank, which starts with `next`.
    fn token(&mut self, next: char) {
        match next {
            '\n' => {
                self.pos += 1;
                self.first_on_line = true;
            }
            '#' => self.pos += self.line_len(),
            '(' => self.push(TokenKind::LParen, 1),
            ')' => self.push(TokenKind::RParen, 1),
            ',' => self.push(TokenKind::Comma, 1),
            '[' | ']' => self.bracket(next),
            '"' | '\'' | '`' => self.string(next),
            '/' if self.rest().starts_with("//") => self.line_comment(),
            '/' if self.rest().starts_with("/*") => self.block_comment(),
            '.' if self.byte(1).is_some_and(|byte| byte.is_ascii_digit()) => self.number(0),
            _ if next.is_ascii_whitespace() || next == '\u{b}' => self.pos += 1,
            _ if next.is_whitespace() => self.blank(next),
            _ if is_word(next) => self.word(),
            _ => self.operator(next),
        }
    }

    fn rest(&self) -> &'s str {
        &self.text[self.pos..]
    }

    fn byte(&self, ahead: usize) -> Option<u8> {
        self.text.as_bytes().get(self.pos + ahead).copied()
    }

    /// The number of bytes up to the end of the line.
    fn line_len(&self) -> usize {
        self.rest().find('\n').unwrap_or(self.rest().len())
    }

    /// The length of the word that starts `ahead` bytes from here.
    fn word_len(&self, ahead: usize) -> usize {
        let rest = &self.rest()[ahead..];
        rest.find(|c| !is_word(c)).unwrap_or(rest.len())
    }

    fn span(&self, len: usize) -> Span {
        Span::new(self.pos as u32, (self.pos + len) as u32)
    }

    fn push(&mut self, kind: TokenKind, len: usize) {
        let token = Token { kind, first_on_line: self.first_on_line, span: self.span(len) };
        self.tokens.push(token);
        self.first_on_line = false;
        self.pos += len;
    }

    fn report(&mut self, diagnostic: Diagnostic) {
        if self.diagnostics.len() < MAX_REPORTS {
            self.diagnostics.push(diagnostic);
        }
    }

    fn unexpected(&self, len: usize, message: impl Into<String>) -> Diagnostic {
        Diagnostic::new(Code::UnexpectedCharacter, self.span(len), message)
    }

    /// A name, a keyword, `min=`, `A.0`, or a number.
    fn word(&mut self) {
        let len = self.word_len(0);
        let word = &self.rest()[..len];
        if number::is_number(word) || self.has_signed_exponent(word) {
            return self.number(len);
        }
        if !word.is_ascii() {
            let message = format!("the name {} has letters outside ASCII", quote(word));
            self.report(
                self.unexpected(len, message)
                    .here("this is not a name")
                    .help("names are made of the letters `a` to `z`, digits and `_`"),
            );
        }
        match word_kind(word) {
            TokenKind::Ident if self.dim_follows(len) => self.dim_of(len),
            TokenKind::Ident => match self.reduction(word) {
                Some((op, len)) => self.push(op, len),
                None => self.push(TokenKind::Ident, len),
            },
            kind => self.push(kind, len),
        }
    }

    fn has_signed_exponent(&self, word: &str) -> bool {
        number::awaits_exponent(word)
            && matches!(self.byte(word.len()), Some(b'+' | b'-'))
            && self.byte(word.len() + 1).is_some_and(|byte| byte.is_ascii_digit())
    }

    /// `min=`, `max=`, `argmin=!` and `argmax=!`, but not `min ==`.
    fn reduction(&self, word: &str) -> Option<(TokenKind, usize)> {
        let op = match word {
            "min" | "argmin" => ReductionOp::Min,
            "max" | "argmax" => ReductionOp::Max,
            _ => return None,
        };
        let (first, second) = (self.byte(word.len()), self.byte(word.len() + 1));
        let initialize = second == Some(b'!');
        let len = word.len() + 1 + usize::from(initialize);
        (first == Some(b'=') && second != Some(b'='))
            .then_some((TokenKind::Assign(AssignOp::Reduce { op, initialize }), len))
    }

    fn dim_follows(&self, len: usize) -> bool {
        self.byte(len) == Some(b'.') && self.byte(len + 1).is_some_and(|byte| byte.is_ascii_digit())
    }

    /// `A.0`, whose name has `name_len` bytes.
    fn dim_of(&mut self, name_len: usize) {
        let len = name_len + 1 + self.word_len(name_len + 1);
        let (name, dim) = (&self.rest()[..name_len], &self.rest()[name_len + 1..len]);
        if dim.parse::<u32>().is_err() {
            let message = format!("{} is not the number of a dimension", quote(dim));
            let diagnostic = Diagnostic::new(Code::InvalidNumber, self.span(len), message)
                .here("dimensions are counted from 0")
                .help(format!("write `{}.0` for the first", quote(name).trim_matches('`')));
            self.report(diagnostic);
        }
        self.push(TokenKind::DimOf, len);
    }

    /// A number of which the first `len` bytes are a word (none if it starts with a point).
    fn number(&mut self, mut len: usize) {
        let digits_only = self.rest()[..len].bytes().all(|byte| byte.is_ascii_digit());
        let point =
            |lexer: &Self, len| lexer.byte(len) == Some(b'.') && lexer.byte(len + 1) != Some(b'.');
        if digits_only && point(self, len) {
            len += 1;
            len += self.word_len(len);
        }
        if self.has_signed_exponent(&self.rest()[..len]) {
            len += 1;
            len += self.word_len(len);
        }
        while point(self, len) {
            // `1.2.3` is one error, not two numbers.
            len += 1;
            len += self.word_len(len);
        }
        let literal = &self.rest()[..len];
        let kind = match number::decode(literal) {
            Ok(number::Number::Int(_)) => TokenKind::Int,
            Ok(number::Number::Float(_)) => TokenKind::Float,
            Err(error) => {
                // It is still in the position of a number.
                self.report(bad_number(literal, error, self.span(len)));
                TokenKind::Int
            }
        };
        self.push(kind, len);
    }

    /// Blanks that only look like blanks, such as the non-breaking space.
    fn blank(&mut self, first: char) {
        let blank = |c: char| c.is_whitespace() && !c.is_ascii();
        let len = self.rest().find(|c| !blank(c)).unwrap_or(self.rest().len());
        self.report(
            self.unexpected(len, format!("a blank that is not a space (U+{:04X})", first as u32))
                .here("this looks like a space")
                .help("replace it by a space")
                .fix(self.span(len), " "),
        );
        self.pos += len;
    }

    fn operator(&mut self, next: char) {
        let foreign = foreign::find(self.rest());
        match (operator(self.rest().as_bytes()), foreign) {
            (Some((_, len)), Some(foreign)) if len < foreign.spelling.len() => {
                self.foreign(foreign);
            }
            (Some((kind, len)), _) => self.push(kind, len),
            (None, Some(foreign)) => self.foreign(foreign),
            (None, None) => self.unknown(next),
        }
    }

    fn foreign(&mut self, foreign: &Foreign) {
        let len = foreign.spelling.len();
        let mut diagnostic = self
            .unexpected(len, format!("`{}` {}", foreign.spelling, foreign.problem))
            .here("not part of the language")
            .help(foreign.help);
        if let Some(fix) = foreign.fix {
            diagnostic = diagnostic.fix(self.span(len), fix);
        }
        self.report(diagnostic);
        self.push(foreign.recovery, len);
    }

    /// Any other character; a run of the same one is reported once.
    fn unknown(&mut self, next: char) {
        let len = self.rest().find(|c| c != next).unwrap_or(self.rest().len());
        let shown = if next.is_ascii_graphic() {
            format!("`{next}`")
        } else if next.is_control() {
            format!("the control character U+{:04X}", next as u32)
        } else if is_obeyed(next) {
            format!("the invisible character U+{:04X}", next as u32)
        } else {
            format!("`{next}` (U+{:04X})", next as u32)
        };
        let diagnostic = self
            .unexpected(len, format!("the language does not use {shown}"))
            .here("not part of the language");
        self.report(match next {
            '.' => diagnostic.help("`A.0`, without blanks, is the size of dimension 0 of `A`"),
            '@' => diagnostic.help("a product of matrices is `C(m, n) +=! A(m, k) * B(k, n)`"),
            _ => diagnostic,
        });
        self.push(TokenKind::Error, len);
    }

    /// Square brackets, read as parentheses. A pair of them is reported once.
    fn bracket(&mut self, next: char) {
        if next == '[' {
            self.brackets.push((self.pos, self.diagnostics.len()));
            self.report(
                self.unexpected(1, "square brackets are not used")
                    .here("write `(` here")
                    .help("subscripts and sizes stand in parentheses: `A(i, j)`"),
            );
            return self.push(TokenKind::LParen, 1);
        }
        match self.brackets.pop() {
            Some((start, report)) => {
                let (inner, span) = (&self.text[start + 1..self.pos], self.span(1));
                if let Some(diagnostic) = self.diagnostics.get_mut(report) {
                    let mut paired = diagnostic.clone().label(span, "and `)` here");
                    if inner.len() <= MAX_FIX_BYTES {
                        let whole = Span::new(start as u32, span.end);
                        paired = paired.fix(whole, format!("({inner})"));
                    }
                    *diagnostic = paired;
                }
            }
            None => self.report(
                self.unexpected(1, "square brackets are not used")
                    .here("write `)` here")
                    .fix(self.span(1), ")"),
            ),
        }
        self.push(TokenKind::RParen, 1);
    }

    fn string(&mut self, quote: char) {
        let inner = &self.rest()[1..];
        let len = match inner.find([quote, '\n']) {
            Some(end) if inner[end..].starts_with(quote) => end + 2,
            Some(end) => end + 1,
            None => self.rest().len(),
        };
        self.report(
            self.unexpected(len, "there are no strings")
                .here("not part of the language")
                .help("a statement computes numbers; remove the quotes from a name"),
        );
        self.push(TokenKind::Error, len);
    }

    fn line_comment(&mut self) {
        let diagnostic = self
            .unexpected(2, "`//` does not start a comment")
            .here("write `#` here")
            .note("the division of integers, which rounds down, is `/`")
            .help("comments start with `#`")
            .fix(self.span(2), "#");
        self.report(diagnostic);
        self.pos += self.line_len();
    }

    fn block_comment(&mut self) {
        let end = self.rest()[2..].find("*/").map(|end| end + 2);
        let inner = &self.rest()[2..end.unwrap_or(self.rest().len())];
        let len = end.map_or(self.rest().len(), |end| end + 2);
        let mut diagnostic = self
            .unexpected(2, "`/*` does not start a comment")
            .here(if end.is_some() { "write `#` here" } else { "this comment never ends" })
            .help("comments start with `#` and go to the end of the line");
        if end.is_some() && len <= MAX_FIX_BYTES {
            let after = self.rest()[len..].trim_start_matches([' ', '\t', '\r']);
            let rest = if after.is_empty() || after.starts_with('\n') { "" } else { "\n" };
            let lines = inner.trim_end().replace('\n', "\n#");
            diagnostic = diagnostic.fix(self.span(len), format!("#{lines}{rest}"));
        }
        self.report(diagnostic);
        self.first_on_line |= inner.contains('\n');
        self.pos += len;
    }
}

fn word_kind(word: &str) -> TokenKind {
    match word {
        "def" => TokenKind::Def,
        "where" => TokenKind::Where,
        "const" => TokenKind::Const,
        "true" => TokenKind::True,
        "false" => TokenKind::False,
        _ if DType::from_name(word).is_some() => TokenKind::Type,
        _ => TokenKind::Ident,
    }
}

/// The operator that the text starts with, and its length; the longest one wins, so `+=!x` is an
/// initialising reduction and `+= !x` adds a negated condition.
fn operator(text: &[u8]) -> Option<(TokenKind, usize)> {
    use TokenKind::{Arith, Assign, Bits, Compare, Logic};
    let reduce = |op, initialize| Assign(AssignOp::Reduce { op, initialize });
    Some(match text {
        [b'+', b'=', b'!', ..] => (reduce(ReductionOp::Sum, true), 3),
        [b'*', b'=', b'!', ..] => (reduce(ReductionOp::Product, true), 3),
        [b'+', b'=', ..] => (reduce(ReductionOp::Sum, false), 2),
        [b'*', b'=', ..] => (reduce(ReductionOp::Product, false), 2),
        [b'-', b'>', ..] => (TokenKind::Arrow, 2),
        [b'=', b'>', ..] => (TokenKind::FatArrow, 2),
        [b'=', b'=', ..] => (Compare(CompareOp::Eq), 2),
        [b'!', b'=', ..] => (Compare(CompareOp::Ne), 2),
        [b'<', b'=', ..] => (Compare(CompareOp::Le), 2),
        [b'>', b'=', ..] => (Compare(CompareOp::Ge), 2),
        [b'&', b'&', ..] => (Logic(LogicOp::And), 2),
        [b'|', b'|', ..] => (Logic(LogicOp::Or), 2),
        [b'<', b'<', ..] => (Bits(Builtin::ShiftLeft), 2),
        [b'>', b'>', ..] => (Bits(Builtin::ShiftRight), 2),
        [b'&', ..] => (Bits(Builtin::BitAnd), 1),
        [b'|', ..] => (Bits(Builtin::BitOr), 1),
        [b'^', ..] => (Bits(Builtin::BitXor), 1),
        [b'~', ..] => (Bits(Builtin::BitNot), 1),
        [b'+', ..] => (Arith(ArithOp::Add), 1),
        [b'-', ..] => (Arith(ArithOp::Sub), 1),
        [b'*', ..] => (Arith(ArithOp::Mul), 1),
        [b'/', ..] => (Arith(ArithOp::Div), 1),
        [b'%', ..] => (Arith(ArithOp::Rem), 1),
        [b'<', ..] => (Compare(CompareOp::Lt), 1),
        [b'>', ..] => (Compare(CompareOp::Gt), 1),
        [b'=', ..] => (Assign(AssignOp::Assign), 1),
        [b'!', ..] => (TokenKind::Not, 1),
        [b'?', ..] => (TokenKind::Question, 1),
        [b':', ..] => (TokenKind::Colon, 1),
        [b';', ..] => (TokenKind::Semicolon, 1),
        [b'{', ..] => (TokenKind::LBrace, 1),
        [b'}', ..] => (TokenKind::RBrace, 1),
        _ => return None,
    })
}

fn bad_number(literal: &str, error: NumberError, span: Span) -> Diagnostic {
    let shown = quote(literal);
    let diagnostic = |message: String| Diagnostic::new(Code::InvalidNumber, span, message);
    match error {
        NumberError::Malformed => diagnostic(format!("{shown} is not a number"))
            .here("malformed number")
            .help("numbers are written as in C: `12`, `0x1F`, `1.5`, `.5`, `1e-3`, `1.5f`"),
        NumberError::IntTooLarge => diagnostic(format!("the integer {shown} is too large"))
            .here("does not fit 64 bits")
            .help(format!("the largest integer is {}", u64::MAX)),
        NumberError::FloatTooLarge => diagnostic(format!("the number {shown} is too large"))
            .here("rounds to infinity")
            .help("infinity is written `INFINITY`"),
        NumberError::LeadingZero => {
            let decimal = literal.trim_start_matches('0');
            let decimal = if decimal.is_empty() { "0" } else { decimal };
            diagnostic(format!("the integer {shown} starts with a zero"))
                .here("in C this would be an octal number")
                .help(format!("write {}", quote(decimal)))
                .fix(span, decimal)
        }
        NumberError::FloatSuffixOnInt => {
            let float = format!("{}.0f", literal.trim_end_matches(['f', 'F']));
            diagnostic(format!("{shown} is neither an integer nor a float"))
                .here("the suffix `f` needs a fraction")
                .help(format!("write {}", quote(&float)))
                .fix(span, float)
        }
        NumberError::Grouped => {
            let digits = literal.replace('_', "");
            diagnostic(format!("{shown} has `_` among its digits"))
                .here("digits are not grouped")
                .help(format!("write {}", quote(&digits)))
                .fix(span, digits)
        }
    }
}

#[cfg(test)]
mod tests;
