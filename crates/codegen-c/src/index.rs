//! Emits index arithmetic: sums of multiples in 64 bits.
//!
//! If the ranges of loops and types prove that nothing overflows, as they nearly always do, the
//! arithmetic is written as is. Otherwise it uses unsigned numbers, which wrap around. Lowering
//! guarantees that such sums are only needed modulo 2^64.

use tensorwright_lang::dtype::DType;
use tensorwright_lang::ops::CompareOp;
use tensorwright_lang::program::{Atom, Index, Interval, Term};

use crate::emitter::Emitter;
use crate::error::EmitError;
use crate::helpers::Helper;
use crate::text::{Binding, Text};

/// A summand and its sign.
pub(crate) struct Summand {
    pub(crate) negative: bool,
    pub(crate) text: Text,
}

/// A sum; starts with a positive summand if there is one.
pub(crate) fn sum(mut summands: Vec<Summand>) -> Text {
    if summands.is_empty() {
        return Text::primary("0");
    }
    let first = summands.iter().position(|summand| !summand.negative).unwrap_or(0);
    let Summand { negative, text } = summands.remove(first);
    let start = match negative {
        true => Text::new(format!("-{}", text.at(Binding::Product)), Binding::Sum),
        false => text,
    };
    summands.into_iter().fold(start, |sum, Summand { negative, text }| {
        Text::binary(sum, if negative { "-" } else { "+" }, text, Binding::Sum)
    })
}

impl Emitter<'_> {
    /// An index as an `int64_t`.
    pub(crate) fn index(&mut self, index: &Index) -> Result<Text, EmitError> {
        if self.may_wrap(index) {
            return self.wrapping_index(index);
        }
        Ok(sum(self.summands(index)?))
    }

    /// The terms and the constant of an index.
    pub(crate) fn summands(&mut self, index: &Index) -> Result<Vec<Summand>, EmitError> {
        let mut summands = Vec::new();
        for term in index.terms() {
            summands.push(self.summand(term)?);
        }
        summands.extend(constant_summand(index.constant_term()));
        Ok(summands)
    }

    /// Whether an index is at least zero, as a comparison of its positive with its negative terms.
    pub(crate) fn condition(&mut self, index: &Index) -> Result<Text, EmitError> {
        let constant = index.constant_term();
        if self.may_wrap(index) || constant == i64::MAX {
            let index = self.index(index)?;
            return Ok(Text::binary(index, ">=", Text::primary("0"), Binding::Comparison));
        }
        let (mut added, mut subtracted) = (Vec::new(), Vec::new());
        for term in index.terms() {
            let summand = self.summand(term)?;
            let side = if summand.negative { &mut subtracted } else { &mut added };
            side.push(Summand { negative: false, ..summand });
        }
        if added.is_empty() {
            let limit = Text::primary((constant + 1).to_string());
            return Ok(Text::binary(sum(subtracted), "<", limit, Binding::Comparison));
        }
        let side = if constant < 0 { &mut subtracted } else { &mut added };
        side.extend(constant_summand(constant).map(|s| Summand { negative: false, ..s }));
        Ok(Text::binary(sum(added), ">=", sum(subtracted), Binding::Comparison))
    }

    /// A comparison of indices.
    pub(crate) fn compare_index(
        &mut self,
        op: CompareOp,
        lhs: &Index,
        rhs: &Index,
    ) -> Result<Text, EmitError> {
        let (mut left, mut right) = (self.index(lhs)?, self.index(rhs)?);
        let (a, b) = (self.bounds(lhs)?, self.bounds(rhs)?);
        if lhs == rhs || a.lo >= b.hi || b.lo >= a.hi {
            // Compilers warn about comparisons that their operands decide.
            let same = self.helper(Helper::Same(DType::Int64));
            (left, right) = (Text::call(&same, [left]), Text::call(&same, [right]));
        }
        Ok(Text::binary(left, op.symbol(), right, Binding::Comparison))
    }

    /// The conjunction of conditions.
    pub(crate) fn conditions(&mut self, conditions: &[Index]) -> Result<String, EmitError> {
        let mut all: Vec<String> = Vec::new();
        for condition in conditions {
            all.push(self.condition(condition)?.into_code());
        }
        Ok(if all.is_empty() { "1".to_owned() } else { all.join(" && ") })
    }

    fn summand(&mut self, term: &Term) -> Result<Summand, EmitError> {
        let atom = self.atom(&term.atom)?;
        let negative = term.coefficient < 0;
        let text = match term.coefficient.unsigned_abs() {
            1 => atom,
            times => Text::binary(Text::primary(times.to_string()), "*", atom, Binding::Product),
        };
        Ok(Summand { negative, text })
    }

    fn wrapping_index(&mut self, index: &Index) -> Result<Text, EmitError> {
        let unsigned = |value: i64| Text::primary(format!("UINT64_C({})", value as u64));
        let mut summands = Vec::new();
        for term in index.terms() {
            let atom = Text::cast("uint64_t", self.atom(&term.atom)?);
            let text = match term.coefficient {
                1 => atom,
                times => Text::binary(unsigned(times), "*", atom, Binding::Product),
            };
            summands.push(Summand { negative: false, text });
        }
        if index.constant_term() != 0 {
            summands.push(Summand { negative: false, text: unsigned(index.constant_term()) });
        }
        Ok(Text::cast("int64_t", sum(summands)))
    }

    /// The type of an atom's computation.
    fn width(&self, atom: &Atom) -> DType {
        if self.is_narrow && !is_of_data(atom) { DType::Int32 } else { DType::Int64 }
    }

    fn atom(&mut self, atom: &Atom) -> Result<Text, EmitError> {
        Ok(match atom {
            Atom::Axis(var) => Text::primary(self.variable(*var)?.name.clone()),
            Atom::Div(inner, by) => self.quotient(inner, *by, "/", Helper::FloorDiv)?,
            Atom::Mod(inner, by) => self.quotient(inner, *by, "%", Helper::FloorMod)?,
            Atom::Min(a, b) => {
                let args = [self.index(a)?, self.index(b)?];
                Text::call(&self.helper(Helper::Min(self.width(atom))), args)
            }
            Atom::Max(a, b) => {
                let args = [self.index(a)?, self.index(b)?];
                Text::call(&self.helper(Helper::Max(self.width(atom))), args)
            }
            Atom::Product(inner, factor) => {
                let factor = Text::primary(self.variable(*factor)?.name.clone());
                Text::binary(self.index(inner)?, "*", factor, Binding::Product)
            }
            Atom::Value(value) => {
                let value = self.expr(value)?;
                match value.dtype {
                    DType::Int64 => value.text,
                    _ => Text::cast("int64_t", value.text),
                }
            }
        })
    }

    /// A quotient or remainder by a positive constant. C rounds to zero, which is down for
    /// non-negative numbers.
    fn quotient(
        &mut self,
        inner: &Index,
        by: i64,
        symbol: &str,
        helper: Helper,
    ) -> Result<Text, EmitError> {
        let is_natural = self.bounds(inner)?.lo >= 0;
        let (text, by) = (self.index(inner)?, Text::primary(by.to_string()));
        Ok(match is_natural {
            true => Text::binary(text, symbol, by, Binding::Product),
            false => Text::call(&self.helper(helper), [text, by]),
        })
    }

    /// Whether some sum of terms of the index may not fit 64 bits.
    fn may_wrap(&self, index: &Index) -> bool {
        // A single value needs no arithmetic.
        let is_alone =
            index.constant_term() == 0 && matches!(index.terms(), [term] if term.coefficient == 1);
        self.magnitude(index).is_none_or(|most| most > i128::from(i64::MAX) && !is_alone)
    }

    /// The largest absolute value of a sum of terms of the index; `None` if a variable is unknown.
    pub(crate) fn magnitude(&self, index: &Index) -> Option<i128> {
        let mut magnitude = i128::from(index.constant_term()).abs();
        let mut without_data = magnitude;
        for term in index.terms() {
            let bounds = self.atom_bounds(&term.atom).ok()?;
            let coefficient = i128::from(term.coefficient).abs();
            let largest = bounds.magnitude().max(1).saturating_mul(coefficient);
            magnitude = magnitude.saturating_add(largest);
            if !is_of_data(&term.atom) {
                without_data = without_data.saturating_add(largest);
            }
        }
        self.widest.set(self.widest.get().max(without_data));
        Some(magnitude)
    }

    /// A range that contains all values of an index as computed.
    pub(crate) fn bounds(&self, index: &Index) -> Result<Interval, EmitError> {
        let mut bounds = Interval::point(i128::from(index.constant_term()));
        for term in index.terms() {
            let atom = self.atom_bounds(&term.atom)?;
            bounds = bounds.plus(atom.scale(i128::from(term.coefficient)));
        }
        let all = Interval::of_type(DType::Int64);
        Ok(if self.may_wrap(index) || !bounds.within(all.lo, all.hi + 1) { all } else { bounds })
    }

    fn atom_bounds(&self, atom: &Atom) -> Result<Interval, EmitError> {
        Ok(match atom {
            Atom::Axis(var) => self.variable(*var)?.range,
            Atom::Div(inner, by) => self.bounds(inner)?.floor_div(i128::from(*by).max(1)),
            Atom::Mod(_, by) => Interval { lo: 0, hi: i128::from(*by) - 1 },
            Atom::Min(a, b) => self.bounds(a)?.least(self.bounds(b)?),
            Atom::Max(a, b) => self.bounds(a)?.greatest(self.bounds(b)?),
            Atom::Product(inner, factor) => {
                self.bounds(inner)?.times(self.atom_bounds(&Atom::Axis(*factor))?)
            }
            // The upper half of `uint64` becomes negative.
            Atom::Value(value) => match value.dtype(&|id| self.nest.dtype(id)) {
                DType::UInt64 => Interval::of_type(DType::Int64),
                dtype => Interval::of_type(dtype),
            },
        })
    }
}

/// Whether an atom depends on data; it is then computed in 64 bits.
fn is_of_data(atom: &Atom) -> bool {
    !Index::atom(atom.clone()).outermost_values().is_empty()
}

fn constant_summand(constant: i64) -> Option<Summand> {
    let text = Text::primary(constant.unsigned_abs().to_string());
    (constant != 0).then_some(Summand { negative: constant < 0, text })
}
