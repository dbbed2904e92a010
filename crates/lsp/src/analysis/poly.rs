//! Formulas over the sizes and integer scalars of a signature: `H - KH + 1`.

use std::collections::BTreeMap;

use tensorwright_lang::polynomial::Polynomial;

/// The most terms; longer sums are unreadable.
const MAX_TERMS: usize = 12;

/// A sum of products of names.
pub(super) type Poly = Polynomial<String, MAX_TERMS>;

/// The values of names.
pub(super) type Values = BTreeMap<String, i64>;
