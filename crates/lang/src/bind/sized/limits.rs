//! Infers ranges as functions of sizes, in the rounds of the concrete inference.
//!
//! ```text
//! x(2*i + k)   k in 0:K, extent N     i below (N - K + 2) / 2, the quotient rounded down
//! i > 0 ? x(i-1) : 0                  i below N + 1
//! ```
//!
//! A limit without guards is exact. One with guards is a guess: the limit without them. It is right
//! if the access stays inside below it, and if at the limit there is a point where the access
//! happens and is outside.

use super::witness::{Witness, quotient_up};
use crate::bind::proofs::{Ends, Proofs, extreme};
use crate::infer::{self, Access, Claim, Mentions};
use crate::ops::CompareOp;
use crate::program::{Atom, AxisId, Index};

/// An access that limits an index variable in a way that is not known for all sizes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Unlimited {
    pub(super) access: usize,
    pub(super) var: usize,
}

/// The ranges of a statement, as far as they are found.
pub(super) struct Limits<'a> {
    pub(super) proofs: &'a Proofs<'a>,
    pub(super) accesses: &'a [Access<'a, Index>],
    pub(super) ranges: Vec<Ends>,
}

impl Limits<'_> {
    /// Settles all ranges that accesses determine.
    pub(super) fn infer(&mut self) -> Result<(), Unlimited> {
        let mentions: Vec<Mentions> = self.accesses.iter().map(infer::mentions).collect();
        loop {
            let mut found = self.one_round(&mentions, true)?;
            if found.is_empty() {
                found = self.one_round(&mentions, false)?;
            }
            if found.is_empty() {
                return Ok(());
            }
            for (var, hi) in found {
                self.ranges[var] = Some((Index::constant(0), hi));
            }
        }
    }

    fn one_round(
        &self,
        mentions: &[Mentions],
        wait_for_guards: bool,
    ) -> Result<Vec<(usize, Index)>, Unlimited> {
        let open = self.ranges.iter().enumerate().filter(|(_, range)| range.is_none());
        let unsettled: u64 = open.map(|(var, _)| 1 << var).sum();
        let mut numbers: Vec<Vec<usize>> = vec![Vec::new(); self.ranges.len()];
        for (number, var) in infer::of_round(mentions, unsettled, wait_for_guards) {
            numbers[var.0 as usize].push(number);
        }
        let mut found = Vec::new();
        for (var, numbers) in numbers.into_iter().enumerate() {
            if let Some(hi) = self.least(var, &numbers)? {
                found.push((var, hi));
            }
        }
        Ok(found)
    }

    /// The least of the limits of a variable; the others are at least as large for all sizes.
    fn least(&self, var: usize, numbers: &[usize]) -> Result<Option<Index>, Unlimited> {
        let unlimited = |number: usize| Unlimited { access: number, var };
        let least = |known: &[(usize, Index)]| {
            let found = known.iter().min_by_key(|(_, limit)| self.proofs.at_likely(limit));
            found.map(|(_, limit)| limit.clone())
        };
        let mut known: Vec<(usize, Index)> = Vec::new();
        let mut others = Vec::new();
        for number in numbers {
            match self.is_simple(&self.accesses[*number]) {
                true => {
                    let limit = self.simple(&self.accesses[*number], var);
                    known.push((*number, limit.ok_or_else(|| unlimited(*number))?));
                }
                false => others.push(*number),
            }
        }
        let simple = least(&known);
        let mut unknown = Vec::new();
        for number in others {
            let access = &self.accesses[number];
            if simple.as_ref().is_some_and(|limit| self.is_inside_below(access, var, limit))
                || self.is_always_inside(access)
            {
                continue;
            }
            let guess = self.guess(access, var);
            match guess.filter(|limit| self.is_limit(access, var, limit, false)) {
                Some(limit) => known.push((number, limit)),
                None => unknown.push(number),
            }
        }
        // Conditions only where nothing can be proven.
        for number in unknown {
            let access = &self.accesses[number];
            let below = least(&known).map(|best| self.with(var, best));
            if below.as_ref().is_some_and(|below| self.proofs.is_inside(access, below)) {
                continue;
            }
            let guess = self.guess(access, var);
            match guess.filter(|limit| self.is_limit(access, var, limit, true)) {
                Some(limit) => known.push((number, limit)),
                None if below.is_some_and(|it| self.proofs.require_inside(access, &it)) => {}
                None => return Err(unlimited(number)),
            }
        }
        let Some(best) = least(&known) else { return Ok(None) };
        for (number, other) in &known {
            let longer = other.sub(&best).filter(|by| self.proofs.require(by));
            longer.ok_or_else(|| unlimited(*number))?;
        }
        // Another limit would make the range empty, which is an error for known sizes.
        let last = best.sub(&Index::constant(1)).filter(|last| self.proofs.require(last));
        last.map(|_| Some(best)).ok_or_else(|| unlimited(known[0].0))
    }

    /// Whether a guess is right, for all sizes or by new conditions.
    fn is_limit(
        &self,
        access: &Access<'_, Index>,
        var: usize,
        limit: &Index,
        conditions: bool,
    ) -> bool {
        let witness = Witness { proofs: self.proofs, ranges: &self.ranges, access, conditions };
        self.is_inside_below(access, var, limit) && witness.is_at(var, limit)
    }

    /// An unguarded sum of multiples of index variables and of functions of sizes.
    fn is_simple(&self, access: &Access<'_, Index>) -> bool {
        let is_simple = |atom: &Atom| {
            matches!(atom, Atom::Axis(_)) || self.proofs.is_of_sizes(&Index::atom(atom.clone()))
        };
        access.guards.is_empty() && access.index.terms().iter().all(|term| is_simple(&term.atom))
    }

    /// The limit of a simple access, which has to be inside at zero.
    fn simple(&self, access: &Access<'_, Index>, var: usize) -> Option<Index> {
        let limit = self.guess(access, var)?;
        let at_zero = self.with(var, Index::constant(1));
        self.proofs.require_inside(access, &at_zero).then_some(limit)
    }

    /// The ranges, with one from zero on for a variable.
    fn with(&self, var: usize, hi: Index) -> Vec<Ends> {
        let mut ranges = self.ranges.clone();
        ranges[var] = Some((Index::constant(0), hi));
        ranges
    }

    fn is_inside_below(&self, access: &Access<'_, Index>, var: usize, limit: &Index) -> bool {
        self.proofs.is_inside(access, &self.with(var, limit.clone()))
    }

    fn is_always_inside(&self, access: &Access<'_, Index>) -> bool {
        self.proofs.is_inside(access, &self.ranges)
    }

    /// The least value of a variable at which an access leaves its tensor, ignoring guards.
    fn guess(&self, access: &Access<'_, Index>, var: usize) -> Option<Index> {
        let var = AxisId(var as u32);
        self.reaching(&access.index, var, &access.extent)
            .or_else(|| self.falling(&access.index, var))
    }

    /// The least value of a variable at which an index, which grows with it, may reach a value.
    fn reaching(&self, index: &Index, var: AxisId, value: &Index) -> Option<Index> {
        let (atom, factor, rest) = parts(index, var)?;
        if factor < 0 {
            return None;
        }
        let rest = extreme(&rest, &self.ranges, true)?;
        let value = quotient_up(&value.sub(&rest)?, factor)?;
        match atom {
            Atom::Axis(_) => Some(value),
            Atom::Div(inner, divisor) => self.reaching(inner, var, &value.scale(*divisor)?),
            Atom::Min(a, b) | Atom::Max(a, b) => match (mentions(a, var), mentions(b, var)) {
                (true, false) => self.reaching(a, var, &value),
                (false, true) => self.reaching(b, var, &value),
                _ => None,
            },
            Atom::Mod(..) | Atom::Product(..) | Atom::Value(_) => None,
        }
    }

    /// The least value of a variable at which an index, which falls with it, may be below zero.
    fn falling(&self, index: &Index, var: AxisId) -> Option<Index> {
        let (atom, factor, rest) = parts(index, var)?;
        let is_var = matches!(atom, Atom::Axis(_)) && factor < 0;
        let rest = extreme(&rest, &self.ranges, false).filter(|_| is_var)?;
        quotient_up(&rest.add(&Index::constant(1))?, factor.checked_neg()?)
    }

    /// Whether a plain access of a variable does not limit it to its extent: the others are settled.
    pub(super) fn is_no_limit(&self, access: &Access<'_, Index>, var: usize) -> bool {
        let mut ranges = self.ranges.clone();
        ranges[var] = None;
        let at = Claim::new(CompareOp::Eq, &access.index, &access.extent);
        !access.guards.is_empty() && self.proofs.refute(&[at], &access.guards, &ranges)
    }
}

/// The only term with a variable: the atom and its coefficient; and the rest of the index.
fn parts(index: &Index, var: AxisId) -> Option<(&Atom, i64, Index)> {
    let is_it = |atom: &Atom| mentions(&Index::atom(atom.clone()), var);
    let mut with = index.terms().iter().filter(|term| is_it(&term.atom));
    let term = with.next().filter(|_| with.next().is_none())?;
    Some((&term.atom, term.coefficient, index.without(&term.atom)))
}

fn mentions(index: &Index, var: AxisId) -> bool {
    index.mentions(&|axis| axis == var)
}
