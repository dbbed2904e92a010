//! Copies of the results of scatters, so that workers can share the terms.

use tensorwright_schedule::Draft;
use tensorwright_schedule::nest::{Loop, Role};
use tensorwright_schedule::placement::store_of;
use tensorwright_schedule::primitives::{Privatize, Split, loops_of, stages};

/// The most copies.
const MOST_COPIES: i64 = 16;

/// Fewer terms than this are not worth a second worker.
const FEWEST_TERMS: i64 = 1 << 17;

/// So many terms there are at least for every element of every copy, which is made and added up.
const TERMS_PER_ELEMENT: i64 = 16;

/// A loop over results of so many iterations is shared by workers as it is.
const RESULTS: i64 = 8;

/// A row of results of this length is taken in blocks.
const ROW: i64 = 256;

/// Gives workers copies of the results of scatters whose results are few and whose terms are many.
pub(super) fn privatize(draft: &mut Draft) {
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

/// The loop over terms that workers are to share, and how many of its iterations are one worker's.
fn worthwhile(draft: &Draft, stage: &str) -> Option<(String, i64)> {
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
    // The outermost loop that is long enough, so that a worker's terms follow each other.
    let of_terms = || loops.iter().filter(|l| l.role == Role::Reduce);
    let outermost = of_terms().find(|l| l.extent >= MOST_COPIES);
    let shared = outermost.or_else(|| of_terms().rev().max_by_key(|l| l.extent))?;
    let copies = shared.extent.min(MOST_COPIES);
    let elements = draft.nest.buffer(store.buffer).elements().saturating_mul(copies);
    let pays = elements.saturating_mul(TERMS_PER_ELEMENT) <= terms && terms >= FEWEST_TERMS;
    let chunk = (shared.extent + copies - 1) / copies;
    (pays && copies > 1 && !is_shared).then(|| (draft.nest.var_name(shared.var).to_owned(), chunk))
}
