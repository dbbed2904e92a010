//! Privatized scatter results, so that reduction loops can run in parallel.

use tensorwright_schedule::ScheduleState;
use tensorwright_schedule::nest::{Loop, Role};
use tensorwright_schedule::placement::store_of;
use tensorwright_schedule::primitives::{Privatize, Split, loops_of, stages};

/// The maximum number of copies.
const MOST_COPIES: i64 = 16;

/// The minimum number of terms for parallel execution.
const FEWEST_TERMS: i64 = 1 << 17;

/// The minimum number of terms per element of each copy, which must be initialized and summed.
const TERMS_PER_ELEMENT: i64 = 16;

/// A spatial loop with this many iterations is parallel without copies.
const RESULTS: i64 = 8;

/// Rows of results of this length are computed in blocks.
const ROW: i64 = 256;

/// Privatizes the results of scatters with few results and many terms.
pub(super) fn privatize(draft: &mut ScheduleState) {
    for stage in stages(&draft.nest) {
        let Some((target, chunk)) = worthwhile(draft, &stage) else { continue };
        draft.steps(|draft| match chunk {
            1 => draft.step(&stage, Privatize { target }),
            chunk => {
                let outer = format!("{target}.0");
                draft.step(&stage, Split::new(target, &[chunk]))
                    && draft.step(&stage, Privatize { target: outer })
            }
        });
    }
}

/// The reduction loop to run in parallel, and the iterations per worker.
fn worthwhile(draft: &ScheduleState, stage: &str) -> Option<(String, i64)> {
    let store = store_of(&draft.nest, stage).filter(|store| store.is_scatter())?;
    let loops = loops_of(&draft.nest, stage);
    let of_results = || loops.iter().filter(|l| l.role == Role::Spatial);
    let is_row =
        |l: &&Loop| store.subscripts.last().is_some_and(|last| last.as_axis() == Some(l.var));
    let is_shared = of_results().any(|l| match is_row(l) {
        true => l.extent >= ROW,
        false => l.extent >= RESULTS,
    });
    let terms = loops.iter().fold(1i64, |product, l| product.saturating_mul(l.extent));
    // The outermost long enough loop, so that a worker's terms are contiguous.
    let of_terms = || loops.iter().filter(|l| l.role == Role::Reduce);
    let outermost = of_terms().find(|l| l.extent >= MOST_COPIES);
    let shared = outermost.or_else(|| of_terms().rev().max_by_key(|l| l.extent))?;
    let copies = shared.extent.min(MOST_COPIES);
    let elements = draft.nest.buffer(store.buffer).elements().saturating_mul(copies);
    let pays = elements.saturating_mul(TERMS_PER_ELEMENT) <= terms && terms >= FEWEST_TERMS;
    let chunk = (shared.extent + copies - 1) / copies;
    (pays && copies > 1 && !is_shared).then(|| (draft.nest.var_name(shared.var).to_owned(), chunk))
}
