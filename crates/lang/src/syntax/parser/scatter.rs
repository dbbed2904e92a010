//! Parses the `scatter` clauses of a statement.
//!
//! The word is a contextual keyword, like `scan`.

use super::{Parsed, Parser};
use crate::ops::AssignOp;
use crate::syntax::ast::ScatterClause;
use crate::syntax::token::TokenKind;

const FORM: &str = "a scatter is written `count(b) +=! 1 scatter b = bin(i) where b in 0:16`";

impl Parser<'_> {
    /// `scatter var = at, var = at`, if there are any.
    pub(super) fn scatter(&mut self) -> Parsed<Vec<ScatterClause>> {
        let mut clauses = Vec::new();
        if !self.at_clause("scatter") {
            return Ok(clauses);
        }
        self.bump();
        loop {
            clauses.push(self.scattered()?);
            if !self.at(TokenKind::Comma) {
                return Ok(clauses);
            }
            self.bump();
        }
    }

    fn scattered(&mut self) -> Parsed<ScatterClause> {
        if !self.at(TokenKind::Ident) {
            return self.fail_clause("an index variable of the left side", FORM);
        }
        let var = self.name("the name of an index variable")?;
        if !self.at(TokenKind::Assign(AssignOp::Assign)) {
            return self.fail_clause("`=` and the position of the value", FORM);
        }
        self.bump();
        if self.ends_stmt() {
            return self.fail_clause("the position of the value", FORM);
        }
        let at = self.expr()?;
        let span = var.span.to(self.previous());
        Ok(ScatterClause { var, at, span })
    }
}
