//! Constants read at computed positions: `expand` stores them in reading order.

use tensorwright_lang::program::{Atom, Index};

use tensorwright_schedule::ScheduleState;
use tensorwright_schedule::access::Accesses;
use tensorwright_schedule::nest::Role;
use tensorwright_schedule::primitives::{Expand, stages};

/// The maximum growth of a constant by expansion.
const MOST_GROWTH: i64 = 64;

/// The minimum number of results that share an element: with fewer, memory reads dominate.
const LEAST_REUSE: i64 = 8;

/// Expands the constants of all sums where it is profitable.
pub(super) fn expand(draft: &mut ScheduleState) {
    for stage in stages(&draft.nest) {
        let Some(accesses) = Accesses::of(&draft.nest, &stage) else { continue };
        if accesses.of_role(Role::Reduce).next().is_none() {
            continue;
        }
        for read in &accesses.reads {
            let moved = |axis: &&tensorwright_schedule::access::Axis| {
                read.subscripts.iter().any(|index| index.coefficient_of(axis.var) != Some(0))
            };
            let full: i64 = accesses.axes.iter().filter(moved).map(|axis| axis.extent).product();
            let shared: i64 =
                accesses.axes.iter().filter(|axis| !moved(axis)).map(|axis| axis.extent).product();
            let buffer = draft.nest.buffer(read.buffer);
            let (name, elements) = (buffer.name.clone(), buffer.elements().max(1));
            if draft.nest.constants.contains(&read.buffer)
                && read.subscripts.iter().any(is_computed)
                && shared >= LEAST_REUSE
                && full / elements <= MOST_GROWTH
            {
                draft.step(&stage, Expand { tensor: name });
            }
        }
    }
}

/// Whether a subscript contains quotients or remainders.
fn is_computed(index: &Index) -> bool {
    index.terms().iter().any(|term| matches!(term.atom, Atom::Div(..) | Atom::Mod(..)))
}
