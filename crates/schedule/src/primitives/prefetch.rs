//! `prefetch`: prefetches the data of a later iteration.
//!
//! ```text
//! C: prefetch B at k 8
//! for k { for n { C(m, n) += A(m, k) * B(k, n); } }
//! ->
//! for k { prefetch B(k + 8, 0); for n { C(m, n) += A(m, k) * B(k, n); } }
//! ```
//!
//! The step prefetches one element per read of the tensor in the loop: the one that the first
//! iteration of all inner loops reads. Unrolled inner loops get one prefetch per iteration. A
//! prefetch never changes a result, even beyond the end of the tensor.

use std::fmt;

use tensorwright_lang::program::{Index, Read, Rewrite};

use super::find::{find_buffer, loop_at, loop_at_mut, loops_on, store_at, store_paths};
use super::footprint::find_host;
use super::reduction_init::OpenReductions;
use super::{Reach, Rule};
use crate::nest::{Loop, LoopKind, LoopNest, Node, Prefetch, Var, for_each_loop};
use crate::primitives::renaming::Renaming;
use crate::refusal::Refusal;
use crate::words::Words;

/// The most prefetches of one step.
const MAX_HINTS: usize = 32;

/// Prefetches a tensor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SetPrefetch {
    /// The tensor.
    pub tensor: String,
    /// The loop whose later iteration needs it, of the step's stage.
    pub at: String,
    /// The distance in iterations.
    pub distance: i64,
}

impl fmt::Display for SetPrefetch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "prefetch {} at {} {}", self.tensor, self.at, self.distance)
    }
}

impl Rule for SetPrefetch {
    fn reach(&self) -> Reach {
        Reach::Stage
    }

    fn parse(words: &mut Words<'_>) -> Result<Self, Refusal> {
        let tensor = words.name("the name of a tensor")?;
        words.symbol("at")?;
        let at = words.name("the name of a loop")?;
        Ok(SetPrefetch { tensor, at, distance: words.number("the number of iterations ahead")? })
    }

    fn apply(&self, stage: &str, nest: &mut LoopNest) -> Result<(), Refusal> {
        let buffer = find_buffer(nest, &self.tensor)?;
        let host = find_host(nest, stage, &self.at)?;
        let mut is_made_here = false;
        for_each_loop(&loop_at(nest, &host)?.body, &mut |l| {
            is_made_here |= l.locals.contains(&buffer);
        });
        if is_made_here {
            return Err(Refusal::new(format!(
                "`{}` lives inside of loop `{}`, so it is not there ahead of it",
                self.tensor, self.at
            )));
        }
        let around: Vec<Var> = loops_on(nest, &host).iter().map(|l| l.var).collect();
        let var = loop_at(nest, &host)?.var;
        let open = OpenReductions::at(nest, &host);
        let mut places: Vec<Vec<Index>> = Vec::new();
        for path in store_paths(&nest.body).iter().filter(|path| path.starts_with(&host)) {
            let inside = &loops_on(nest, path)[host.len()..];
            let store = store_at(nest, path)?;
            for read in open.inside(store) {
                if read.tensor != buffer || read.subscripts.iter().any(Index::has_value) {
                    continue;
                }
                for fixed in iterations(inside, read) {
                    let (distance, around) = (self.distance, around.as_slice());
                    let mut later = Later { var, distance, around, fixed: &fixed };
                    let place: Option<Vec<Index>> =
                        read.subscripts.iter().map(|index| index.rewrite(&mut later)).collect();
                    places.extend(place.filter(|place| !places.contains(place)));
                }
            }
        }
        places.truncate(MAX_HINTS);
        if places.is_empty() {
            return Err(Refusal::new(format!(
                "nothing in loop `{}` reads `{}` at positions that are known ahead",
                self.at, self.tensor
            )));
        }
        let hints =
            places.into_iter().map(|subscripts| Node::Prefetch(Prefetch { buffer, subscripts }));
        loop_at_mut(nest, &host)?.body.splice(0..0, hints);
        Ok(())
    }

    fn renamed(&self, names: &Renaming<'_>) -> Result<Self, Refusal> {
        let (tensor, at) = (names.tensor(&self.tensor)?, names.own_loop(&self.at)?);
        Ok(Self { tensor, at, ..self.clone() })
    }
}

/// The iterations of the unrolled loops that a read depends on, as values of their variables.
fn iterations(inside: &[&Loop], read: &Read) -> Vec<Vec<(Var, i64)>> {
    let mut all = vec![Vec::new()];
    for l in inside.iter().filter(|l| l.kind == LoopKind::Unrolled) {
        let moves = read.subscripts.iter().any(|index| index.mentions(&|var| var == l.var));
        if moves && all.len() as i64 * l.extent <= MAX_HINTS as i64 {
            let with = |fixed: &Vec<(Var, i64)>, value| {
                let mut fixed = fixed.clone();
                fixed.push((l.var, value));
                fixed
            };
            all = all.iter().flat_map(|f| (0..l.extent).map(move |v| with(f, v))).collect();
        }
    }
    all
}

/// The position that a later iteration reads first.
struct Later<'a> {
    var: Var,
    distance: i64,
    around: &'a [Var],
    fixed: &'a [(Var, i64)],
}

impl Rewrite for Later<'_> {
    fn axis(&mut self, axis: Var) -> Option<Index> {
        if axis == self.var {
            Index::axis(axis).add(&Index::constant(self.distance))
        } else if self.around.contains(&axis) {
            Some(Index::axis(axis))
        } else {
            let fixed = self.fixed.iter().find(|(var, _)| *var == axis);
            Some(Index::constant(fixed.map_or(0, |(_, value)| *value)))
        }
    }
}

#[cfg(test)]
mod tests {
    use tensorwright_lang::Module;

    use crate::{Schedule, canonical};

    #[test]
    fn what_lives_inside_of_the_loop_is_not_there_yet() {
        let text = "def f(float(M,N) A, float(N) b) -> (y) { y(i) +=! A(i,j) * b(j) }";
        let program = Module::parse("f.tc", text).unwrap().bind("f", [("M", 8), ("N", 8)]).unwrap();
        let apply = |steps: &str| Schedule::parse(steps).unwrap().apply(canonical(&program));
        let tile =
            "y: split i 4\ny: split j 4\ny: reorder i.0 j.0 i.1 j.1\ny: cache_write at i.1\n";
        let refused = apply(&format!("{tile}y: prefetch y.tile at j.0 1")).unwrap_err();
        assert_eq!(
            refused.reason(),
            "`y.tile` lives inside of loop `j.0`, so it is not there ahead of it"
        );
        assert!(apply(&format!("{tile}y: prefetch A at j.0 1")).is_ok());
    }
}
