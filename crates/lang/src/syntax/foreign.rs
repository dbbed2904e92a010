//! Tokens of other languages, and their replacements.
//!
//! The lexer reports them and continues as if the replacement had been written.

use super::token::TokenKind;
use crate::ops::{ArithOp, AssignOp, CompareOp, LogicOp, ReductionOp};

/// A token of another language.
#[derive(Debug)]
pub(super) struct Foreign {
    /// Its spelling.
    pub(super) spelling: &'static str,
    /// The replacement token.
    pub(super) recovery: TokenKind,
    /// The message, after the quoted spelling.
    pub(super) problem: &'static str,
    /// The help text.
    pub(super) help: &'static str,
    /// The fix, where it is certain.
    pub(super) fix: Option<&'static str>,
}

const MUL: TokenKind = TokenKind::Arith(ArithOp::Mul);
const SUB: TokenKind = TokenKind::Arith(ArithOp::Sub);
const DIV: TokenKind = TokenKind::Arith(ArithOp::Div);
const EQ: TokenKind = TokenKind::Compare(CompareOp::Eq);
const NE: TokenKind = TokenKind::Compare(CompareOp::Ne);
const LE: TokenKind = TokenKind::Compare(CompareOp::Le);
const GE: TokenKind = TokenKind::Compare(CompareOp::Ge);
const AND: TokenKind = TokenKind::Logic(LogicOp::And);
const OR: TokenKind = TokenKind::Logic(LogicOp::Or);
const ASSIGN: TokenKind = TokenKind::Assign(AssignOp::Assign);
const ACCUMULATE: TokenKind =
    TokenKind::Assign(AssignOp::Reduce { op: ReductionOp::Sum, initialize: false });

const LOOK_ALIKE: &str = "only looks like an operator of the language";
const NO_REDUCTION: &str = "is not a reduction";
const REDUCTIONS: &str = "the reductions are `+=`, `*=`, `min=` and `max=`";

const fn foreign(
    spelling: &'static str,
    recovery: TokenKind,
    problem: &'static str,
    help: &'static str,
    fix: Option<&'static str>,
) -> Foreign {
    Foreign { spelling, recovery, problem, help, fix }
}

/// A non-ASCII character that looks like an operator.
const fn look_alike(
    spelling: &'static str,
    recovery: TokenKind,
    help: &'static str,
    fix: &'static str,
) -> Foreign {
    foreign(spelling, recovery, LOOK_ALIKE, help, Some(fix))
}

static FOREIGN: &[Foreign] = &[
    foreign("===", EQ, "is not an operator", "write `==`", Some("==")),
    foreign("!==", NE, "is not an operator", "write `!=`", Some("!=")),
    foreign("=<", LE, "is not an operator", "write `<=`", Some("<=")),
    foreign("<>", NE, "is not an operator", "write `!=`", Some("!=")),
    foreign("**", MUL, "is not an operator", "powers are written `pow(x, y)`", None),
    foreign(":=", ASSIGN, "is not an assignment", "write `=`", Some("=")),
    foreign("-=", ACCUMULATE, NO_REDUCTION, "add the negated value: `+= -x`", None),
    foreign("/=", ACCUMULATE, NO_REDUCTION, "multiply by the inverse: `*= 1.0 / x`", None),
    foreign("%=", ACCUMULATE, NO_REDUCTION, REDUCTIONS, None),
    foreign("&=", ACCUMULATE, NO_REDUCTION, "for conditions, `min=` over 0 and 1 is `and`", None),
    foreign("|=", ACCUMULATE, NO_REDUCTION, "for conditions, `max=` over 0 and 1 is `or`", None),
    foreign("^=", ACCUMULATE, NO_REDUCTION, REDUCTIONS, None),
    foreign("..", TokenKind::Colon, "does not make a range", "write `lo:hi`", Some(":")),
    foreign("...", TokenKind::Colon, "stands for nothing", "write out what it stands for", None),
    foreign(
        "..=",
        TokenKind::Colon,
        "does not make a range",
        "write `lo:hi`; the upper end is excluded, so add one to it",
        None,
    ),
    look_alike("→", TokenKind::Arrow, "the arrow is written `->`", "->"),
    look_alike("⟶", TokenKind::Arrow, "the arrow is written `->`", "->"),
    look_alike("⇒", TokenKind::Arrow, "the arrow is written `->`", "->"),
    look_alike("≤", LE, "write `<=`", "<="),
    look_alike("⩽", LE, "write `<=`", "<="),
    look_alike("≥", GE, "write `>=`", ">="),
    look_alike("⩾", GE, "write `>=`", ">="),
    look_alike("≠", NE, "write `!=`", "!="),
    look_alike("×", MUL, "multiplication is written `*`", "*"),
    look_alike("·", MUL, "multiplication is written `*`", "*"),
    look_alike("⋅", MUL, "multiplication is written `*`", "*"),
    look_alike("∗", MUL, "multiplication is written `*`", "*"),
    look_alike("÷", DIV, "division is written `/`", "/"),
    look_alike("−", SUB, "minus is written `-`", "-"),
    look_alike("–", SUB, "minus is written `-`", "-"),
    look_alike("—", SUB, "minus is written `-`", "-"),
    look_alike("∧", AND, "write `&&`", "&&"),
    look_alike("∨", OR, "write `||`", "||"),
    look_alike("¬", TokenKind::Not, "write `!`", "!"),
    look_alike("∞", TokenKind::Ident, "infinity is written `INFINITY`", "INFINITY"),
    look_alike("（", TokenKind::LParen, "write `(`", "("),
    look_alike("）", TokenKind::RParen, "write `)`", ")"),
    look_alike("，", TokenKind::Comma, "write `,`", ","),
    look_alike("：", TokenKind::Colon, "write `:`", ":"),
    look_alike("；", TokenKind::Semicolon, "write `;`", ";"),
    look_alike("＝", ASSIGN, "write `=`", "="),
];

/// The longest foreign spelling that the text starts with.
pub(super) fn find(text: &str) -> Option<&'static Foreign> {
    FOREIGN
        .iter()
        .filter(|foreign| text.starts_with(foreign.spelling))
        .max_by_key(|foreign| foreign.spelling.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_spelling_wins() {
        assert_eq!(find("..=N").map(|foreign| foreign.spelling), Some("..="));
        assert_eq!(find("...,").map(|foreign| foreign.spelling), Some("..."));
        assert_eq!(find("..N").map(|foreign| foreign.spelling), Some(".."));
        assert!(find("a == b").is_none());
    }
}
