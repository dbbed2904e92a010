//! Prints functions of sizes and conditions on them, with the names of the sizes.

use super::{Size, SizeCondition, SizedProgram};
use crate::program::{Atom, AxisId, Index, TensorId, Term, index_text};

impl SizedProgram {
    /// Prints a condition: `N >= K + 1`.
    #[must_use]
    pub fn condition_text(&self, condition: &SizeCondition) -> String {
        let (SizeCondition::AtLeastZero(index) | SizeCondition::Zero(index)) = condition;
        let of = |positive: bool| {
            let terms = index.terms().iter().filter(|term| (term.coefficient > 0) == positive);
            sum(terms, if positive { 1 } else { -1 })
        };
        let constant = index.constant_term();
        let text = |index: &Index| self.index_text(index);
        let (more, less) = (of(true), of(false));
        let with = |side: &Index, by: i64| side.add(&Index::constant(by)).unwrap_or_default();
        let equal = matches!(condition, SizeCondition::Zero(_));
        match constant.checked_neg() {
            Some(end) if more.terms().is_empty() => {
                let op = if equal { "==" } else { "<=" };
                format!("{} {op} {}", text(&less), -end)
            }
            Some(end) => {
                let op = if equal { "==" } else { ">=" };
                let (left, right) =
                    if end >= 0 { (more, with(&less, end)) } else { (with(&more, constant), less) };
                format!("{} {op} {}", text(&left), text(&right))
            }
            None => format!("{} {} 0", text(index), if equal { "==" } else { ">=" }),
        }
    }

    /// Prints all conditions.
    #[must_use]
    pub fn conditions_text(&self) -> Vec<String> {
        self.conditions.iter().map(|condition| self.condition_text(condition)).collect()
    }

    /// Prints a function of sizes: `(N + 1) / 2`.
    #[must_use]
    pub fn index_text(&self, index: &Index) -> String {
        sized_text(index, &self.sizes, &|axis| format!("i{}", axis.0), &|id| format!("t{}", id.0))
    }
}

/// The sum of terms, times 1 or -1.
fn sum<'a>(terms: impl Iterator<Item = &'a Term>, sign: i64) -> Index {
    let scaled =
        |term: &Term| Index::atom(term.atom.clone()).scale(term.coefficient.checked_mul(sign)?);
    let start = Some(Index::constant(0));
    terms.fold(start, |sum, term| sum?.add(&scaled(term)?)).unwrap_or_default()
}

/// Prints an index with the names of sizes. A variable of a size counts multiples: `8*n` is `N`.
pub(crate) fn sized_text(
    index: &Index,
    sizes: &[Size],
    axis: &impl Fn(AxisId) -> String,
    tensor: &impl Fn(TensorId) -> String,
) -> String {
    let size = |id: AxisId| id.size().and_then(|number| sizes.get(number));
    // A multiple of all that the variable counts is a multiple of the size.
    let whole = |term: &Term| match term.atom {
        Atom::Axis(id) => {
            let multiple = size(id)?.range.multiple;
            let number = id.size()? + sizes.len();
            let of_size = Index::axis(AxisId::of_size(u32::try_from(number).ok()?));
            (term.coefficient % multiple == 0)
                .then(|| of_size.scale(term.coefficient / multiple))?
        }
        _ => None,
    };
    let start = Some(Index::constant(index.constant_term()));
    let named = index.terms().iter().fold(start, |sum, term| {
        let same = || Index::atom(term.atom.clone()).scale(term.coefficient);
        sum?.add(&whole(term).or_else(same)?)
    });
    let name = |id: AxisId| match (size(id), id.size()) {
        (Some(size), _) if size.range.multiple == 1 => size.name.clone(),
        (Some(size), _) => format!("({}/{})", size.name, size.range.multiple),
        (None, Some(number)) => {
            let size = number.checked_sub(sizes.len()).and_then(|number| sizes.get(number));
            size.map_or_else(String::new, |size| size.name.clone())
        }
        (None, None) => axis(id),
    };
    index_text(named.as_ref().unwrap_or(index), &name, tensor)
}
