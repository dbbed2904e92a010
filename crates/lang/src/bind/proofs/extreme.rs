//! The least and the greatest value of an index, as functions of sizes.
//!
//! ```text
//! 2*i - j + 1     i in 0:N, j in 0:K        greatest: 2*(N-1) - 0 + 1 = 2*N - 1
//! ```
//!
//! Where an index variable occurs more than once, the result may not be reached.

use crate::program::{Atom, AxisId, Index, Rewrite};

/// The first value of an index variable and one past the last, if it is settled.
pub(in crate::bind) type Ends = Option<(Index, Index)>;

/// A bound of an index for these ranges of index variables.
pub(in crate::bind) fn extreme(index: &Index, ranges: &[Ends], greatest: bool) -> Option<Index> {
    let start = Index::constant(index.constant_term());
    index.terms().iter().try_fold(start, |sum, term| {
        let greatest = (term.coefficient > 0) == greatest;
        sum.add(&of_atom(&term.atom, ranges, greatest)?.scale(term.coefficient)?)
    })
}

fn of_atom(atom: &Atom, ranges: &[Ends], greatest: bool) -> Option<Index> {
    let inner = |index: &Index| extreme(index, ranges, greatest);
    let mut vars = false;
    Index::atom(atom.clone()).walk_axes(&mut |axis| vars |= axis.size().is_none());
    Some(match atom {
        Atom::Value(_) => return None,
        atom if !vars => Index::atom(atom.clone()),
        Atom::Axis(axis) => {
            let (lo, hi) = ranges.get(axis.0 as usize)?.as_ref()?;
            if greatest { hi.sub(&Index::constant(1))? } else { lo.clone() }
        }
        Atom::Div(index, divisor) => inner(index)?.div(*divisor)?,
        Atom::Mod(_, divisor) => Index::constant(if greatest { divisor - 1 } else { 0 }),
        Atom::Min(a, b) => inner(a)?.min(inner(b)?),
        Atom::Max(a, b) => inner(a)?.max(inner(b)?),
        Atom::Product(..) => return None,
    })
}

/// Replaces index variables.
pub(in crate::bind) struct Replace<'a> {
    /// Per index variable, what it is replaced by.
    pub(in crate::bind) with: &'a [Option<Index>],
}

impl Rewrite for Replace<'_> {
    fn axis(&mut self, axis: AxisId) -> Option<Index> {
        let number = axis.size().is_none().then_some(axis.0 as usize);
        let found = number.and_then(|number| self.with.get(number)?.clone());
        Some(found.unwrap_or_else(|| Index::axis(axis)))
    }
}
