//! Exact quotients and remainders of integers of any size.

use super::{Exact, as_value, extremum};
use crate::dtype::DType;
use crate::ops::ArithOp;
use crate::program::{Atom, Expr, Index, Scalar};

/// Sums of a few terms below this fit in 64 bits.
const ROOM: i128 = 1 << 60;

/// The parts of a sum in a division.
struct Parts {
    /// The multiples of the divisor, divided by it.
    outside: Index,
    /// The rest.
    inside: Index,
    by: i64,
}

impl Exact<'_> {
    /// The quotient and the remainder of an index, rounded down. The remainder fits; the quotient
    /// is exact as a sum, and the caller checks whether it fits.
    ///
    /// A large term is divided separately, and only its remainder is combined with the others: `(a
    /// + b) / c` is `a / c + b / c + (a % c + b % c) / c`.
    pub(super) fn divide(&self, index: &Index, by: i64) -> Option<(Index, Index)> {
        self.step()?;
        if let Some(cases) = self.cases(index) {
            let (a, b) = (self.divide(&cases.a, by)?, self.divide(&cases.b, by)?);
            if !(self.fits(&a.0) && self.fits(&b.0)) {
                return None;
            }
            let (is_min, x, y) = &cases.sides;
            let first = Box::new(self.is_first(*is_min, x, y)?);
            let remainder = Expr::Select(first, Box::new(as_value(a.1)), Box::new(as_value(b.1)));
            let quotient = extremum(cases.is_least, a.0, b.0);
            return Some((quotient, Index::value(remainder).rem(by)));
        }
        let mut parts = Parts { outside: Index::constant(0), inside: Index::constant(0), by };
        parts.add(&Index::constant(index.constant_term()))?;
        for term in index.terms() {
            self.divide_term(&term.atom, term.coefficient, &mut parts)?;
        }
        let Parts { outside, inside, .. } = parts;
        if !self.fits(&inside) {
            return None;
        }
        Some((outside.add(&inside.div(by)?)?, inside.rem(by)))
    }

    fn divide_term(&self, atom: &Atom, coefficient: i64, parts: &mut Parts) -> Option<()> {
        self.step()?;
        let by = parts.by;
        let fitting = self.fitting_atom(atom);
        let Some(number) = &fitting else {
            if let Atom::Div(inner, divisor) = atom {
                let sum = self.divide(inner, *divisor)?.0;
                parts.add(&Index::constant(sum.constant_term()).scale(coefficient)?)?;
                return sum.terms().iter().try_for_each(|term| {
                    let coefficient = term.coefficient.checked_mul(coefficient)?;
                    self.divide_term(&term.atom, coefficient, parts)
                });
            }
            let Atom::Value(value) = atom else { return None };
            let divided = |op| unsigned(op, value, by);
            return parts.scaled(
                coefficient,
                |factor, parts| {
                    parts.outside = parts.outside.add(&divided(ArithOp::Div).scale(factor)?)?;
                    parts.inside = parts.inside.add(&divided(ArithOp::Rem).scale(factor)?)?;
                    Some(())
                },
                &Index::atom(atom.clone()),
            );
        };
        let size = self.magnitude(number).saturating_mul(i128::from(coefficient).abs());
        if size <= ROOM {
            parts.inside = parts.inside.add(&number.scale(coefficient)?)?;
            return Some(());
        }
        parts.scaled(
            coefficient,
            |factor, parts| {
                parts.outside = parts.outside.add(&number.div(by)?.scale(factor)?)?;
                parts.inside = parts.inside.add(&number.rem(by).scale(factor)?)?;
                Some(())
            },
            number,
        )
    }
}

impl Parts {
    /// Adds a constant.
    fn add(&mut self, constant: &Index) -> Option<()> {
        let value = constant.constant_term();
        self.outside = self.outside.add(&Index::constant(value.div_euclid(self.by)))?;
        self.inside = self.inside.add(&Index::constant(value.rem_euclid(self.by)))?;
        Some(())
    }

    /// Adds a multiple of a number: multiples of the divisor go outside, and the rest is split as
    /// in `divided`.
    fn scaled(
        &mut self,
        coefficient: i64,
        divided: impl FnOnce(i64, &mut Parts) -> Option<()>,
        number: &Index,
    ) -> Option<()> {
        let (whole, rest) = match coefficient.unsigned_abs() < self.by.unsigned_abs() {
            true => (0, coefficient),
            false => (coefficient.div_euclid(self.by), coefficient.rem_euclid(self.by)),
        };
        if whole != 0 {
            self.outside = self.outside.add(&number.scale(whole)?)?;
        }
        if rest != 0 { divided(rest, self) } else { Some(()) }
    }
}

/// The quotient or remainder of a `uint64`; the result fits in `int64`.
fn unsigned(op: ArithOp, value: &Expr, by: i64) -> Index {
    let by = Expr::Const(Scalar::integer(DType::UInt64, i128::from(by)));
    let divided = Expr::Arith(op, Box::new(value.clone()), Box::new(by));
    Index::value(Expr::Cast(DType::Int64, Box::new(divided)))
}
