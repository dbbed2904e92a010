//! Products with sizes, and quotients by them.
//!
//! ```text
//! x(i) / (H * W)     a value: any function of sizes
//! where i in 0:H*W   a range: a product of sizes
//! x(i * W + j)       a subscript: `W` has to be a number
//! ```

use super::Proofs;
use crate::diagnostic::{Code, Diagnostic};
use crate::ops::ArithOp;
use crate::program::{Atom, AxisId, Expr, Index, Interval};
use crate::source::Span;

impl Proofs<'_> {
    /// A product, quotient or remainder of two indices that are no constants; `None` if it is the
    /// same data-dependent value as for known sizes.
    #[allow(clippy::result_large_err, reason = "as everywhere in binding")]
    pub(in crate::bind) fn nonaffine(
        &self,
        op: ArithOp,
        lhs: &Index,
        rhs: &Index,
        span: Span,
        is_affine: bool,
    ) -> Result<Option<Index>, Diagnostic> {
        let (left, right) = (self.is_of_sizes(lhs), self.is_of_sizes(rhs));
        match op {
            ArithOp::Mul if left && right || (left || right) && !is_affine => {
                let (inner, factor) = if right { (lhs, rhs) } else { (rhs, lhs) };
                let product = product(inner, factor).or_else(|| product(factor, inner));
                match product {
                    Some(product) => Ok(Some(product)),
                    None => Err(self.fixed(factor, "multiplies an index", span)),
                }
            }
            ArithOp::Mul if left || right => {
                let factor = if right { rhs } else { lhs };
                Err(self.fixed(factor, "multiplies an index", span))
            }
            ArithOp::Div | ArithOp::Rem if right => {
                let is_positive =
                    || rhs.sub(&Index::constant(1)).is_some_and(|row| self.require(&row));
                if is_affine || !self.is_64_bit(lhs) || !is_positive() {
                    return Err(self.fixed(rhs, "divides an index", span));
                }
                Ok(None)
            }
            _ => Ok(None),
        }
    }

    /// Whether 64 bits hold an index, for index variables of any range.
    fn is_64_bit(&self, index: &Index) -> bool {
        let axis = |axis: AxisId| match axis.size() {
            Some(_) => self.interval(&Index::axis(axis)),
            None => Interval { lo: 0, hi: 1 << 62 },
        };
        let value = |value: &Expr| self.interval(&Index::value(value.clone()));
        index.interval(&axis, &value).is_64_bit()
    }

    /// E1011: sizes in a place that needs a number.
    fn fixed(&self, index: &Index, does: &str, span: Span) -> Diagnostic {
        let names = self.names(&[index]);
        let name = names.first().map_or("a size", String::as_str);
        let message = match names.len() {
            0 | 1 => format!("{name} {does}, so it has to be a number"),
            _ => format!("a formula of {} {does}, so it has to be a number", names.join(" and ")),
        };
        Diagnostic::new(Code::VaryingSize, span, message)
            .here("not a sum of multiples of index variables and sizes")
            .help(format!(
                "give {} one value, and compile for each value that is needed",
                names.join(" and ")
            ))
    }
}

/// E1011: a value of sizes alone in a subscript.
pub(in crate::bind) fn value(proofs: &Proofs<'_>, value: &Expr, span: Span) -> Diagnostic {
    proofs.fixed(&Index::value(value.clone()), "is converted in an index", span)
}

/// The product of an index with a sum of multiples of sizes.
fn product(index: &Index, factor: &Index) -> Option<Index> {
    let start = index.scale(factor.constant_term())?;
    factor
        .terms()
        .iter()
        .try_fold(start, |sum, term| sum.add(&times(index, &term.atom)?.scale(term.coefficient)?))
}

/// The product with an atom that is a size or a product of sizes.
fn times(index: &Index, factor: &Atom) -> Option<Index> {
    let right = factors(factor)?;
    let start = product_of(&right, index.constant_term())?;
    index.terms().iter().try_fold(start, |sum, term| {
        let product = match factors(&term.atom) {
            Some(mut all) => {
                all.extend(&right);
                product_of(&all, term.coefficient)?
            }
            None => {
                let atom = Index::atom(term.atom.clone()).scale(term.coefficient)?;
                right.iter().try_fold(atom, |product, size| product.times(*size))?
            }
        };
        sum.add(&product)
    })
}

/// The sizes of a product, in normal form, times a number.
fn product_of(sizes: &[AxisId], coefficient: i64) -> Option<Index> {
    if coefficient == 0 {
        return Some(Index::constant(0));
    }
    let mut sizes = sizes.to_vec();
    sizes.sort();
    let (first, rest) = sizes.split_first()?;
    rest.iter().try_fold(Index::axis(*first), |all, size| all.times(*size))?.scale(coefficient)
}

/// The sizes whose product an atom is.
fn factors(atom: &Atom) -> Option<Vec<AxisId>> {
    match atom {
        Atom::Axis(axis) => axis.size().map(|_| vec![*axis]),
        Atom::Product(inner, factor) => {
            let [term] = inner.terms() else { return None };
            let mut all = factors(&term.atom)?;
            all.push(*factor);
            Some(all)
        }
        _ => None,
    }
}
