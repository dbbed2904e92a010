//! [`StageMap`]: where each stage is computed, and its memory use.
//!
//! ```text
//! out    moves 30.00 MiB
//! ├ p    in loop y.block, 1.25 times, keeps 120.31 KiB, moves 15.00 MiB
//! └ gx   in loop y.block, 1.13 times, keeps 108.14 KiB
//! ```

use std::collections::{BTreeSet, HashMap, HashSet};
use std::fmt;

use serde::Serialize;
use tensorwright_lang::program::{Atom, Index, Term};
use tensorwright_lang::text::quantity;

use crate::nest::{BufferId, Loop, LoopNest, Node, Ranges, StageId, Store, for_each_loop};
use crate::primitives::stages;

/// The placement of each stage.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct StageMap {
    /// The stages, in the order of the program.
    pub stages: Vec<MappedStage>,
}

/// A stage of a scheduled program.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct MappedStage {
    /// The stage.
    pub name: String,
    /// The placement.
    pub place: StagePlace,
    /// The number of times that its elements are computed, on average, including iterations beyond
    /// the end of a tile.
    pub times: f64,
    /// The bytes of it that are live at a time, in each worker that computes it. Results are not
    /// counted here, but in [`moved_bytes`](Self::moved_bytes).
    pub kept_bytes: i64,
    /// The bytes of inputs, results and whole intermediate tensors that it reads and writes, each
    /// counted once.
    pub moved_bytes: i64,
}

/// The placement of a stage.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum StagePlace {
    /// In its own loops at the top level.
    Root,
    /// Inside a loop of another stage.
    Inside {
        /// The stage.
        stage: String,
        /// The loop.
        target: String,
    },
    /// Inlined into its readers.
    Inlined,
}

impl StageMap {
    /// Compares a scheduled nest with the canonical one.
    #[must_use]
    pub fn of(canonical: &LoopNest, scheduled: &LoopNest) -> Self {
        let mut own = Vec::new();
        visit(&canonical.body, &mut Vec::new(), &mut |store, loops| {
            own.push((store.buffer, iterations(loops)));
        });
        let names = stages(canonical);
        let mut found = NestSummary {
            names: names.iter().map(String::as_str).collect(),
            ..NestSummary::default()
        };
        visit(&scheduled.body, &mut Vec::new(), &mut |store, loops| {
            found.add(scheduled, store, loops);
        });
        for_each_loop(&scheduled.body, &mut |l| found.locals.extend(&l.locals));
        let last: HashMap<BufferId, usize> =
            own.iter().enumerate().map(|(number, (id, _))| (*id, number)).collect();
        // The first of two stores to a buffer initializes the second one, and is not a stage of the
        // program.
        let is_first = |number: usize| last.get(&own[number].0).is_some_and(|last| *last > number);
        let stages = names.iter().zip(&own).enumerate().filter(|(number, _)| !is_first(*number));
        let stage = |(_, (name, (buffer, wanted))): (usize, (&String, &(BufferId, f64)))| {
            found.stage(canonical, scheduled, name, *buffer, *wanted)
        };
        let mut map = Self { stages: stages.map(stage).collect() };
        map.break_circles();
        map
    }

    /// Breaks cycles: if parts of two stages share loops, a stage may appear inside itself.
    fn break_circles(&mut self) {
        let numbers = self.stages.iter().enumerate().rev();
        let numbers: HashMap<String, usize> =
            numbers.map(|(number, stage)| (stage.name.clone(), number)).collect();
        for number in 0..self.stages.len() {
            let mut at = number;
            for _ in 0..self.stages.len() {
                let StagePlace::Inside { stage, .. } = &self.stages[at].place else { break };
                let Some(host) = numbers.get(stage) else { break };
                at = *host;
                if at == number {
                    self.stages[number].place = StagePlace::Root;
                    break;
                }
            }
        }
    }

    /// Groups stages by the stage whose loops contain them.
    fn tree(&self) -> Tree<'_> {
        let mut inside: HashMap<Option<&str>, Vec<&MappedStage>> = HashMap::new();
        for stage in &self.stages {
            let host = match &stage.place {
                StagePlace::Root => None,
                StagePlace::Inside { stage, .. } => Some(stage.as_str()),
                StagePlace::Inlined => continue,
            };
            inside.entry(host).or_default().push(stage);
        }
        Tree { inside }
    }
}

/// The stages, grouped by the stage whose loops contain them.
struct Tree<'a> {
    inside: HashMap<Option<&'a str>, Vec<&'a MappedStage>>,
}

impl Tree<'_> {
    fn inside<'s>(&'s self, host: Option<&'s str>) -> &'s [&'s MappedStage] {
        self.inside.get(&host).map_or(&[], Vec::as_slice)
    }

    /// The width of the stage names below a stage, or of all, including tree branches.
    fn width(&self, host: Option<&str>, indent: usize) -> usize {
        let one = |stage: &&MappedStage| {
            let below = if host.is_some() { indent + 2 } else { indent };
            (below + stage.name.chars().count()).max(self.width(Some(&stage.name), below))
        };
        self.inside(host).iter().map(one).max().unwrap_or(0)
    }

    fn draw(
        &self,
        f: &mut fmt::Formatter<'_>,
        host: Option<&str>,
        indent: &str,
        width: usize,
    ) -> fmt::Result {
        let inside = self.inside(host);
        for (number, stage) in inside.iter().enumerate() {
            let is_last = number + 1 == inside.len();
            let (branch, below) = match (host, is_last) {
                (None, _) => ("", ""),
                (Some(_), true) => ("└ ", "  "),
                (Some(_), false) => ("├ ", "│ "),
            };
            let name = format!("{indent}{branch}{}", stage.name);
            writeln!(f, "{name:width$}  {}", stage.text())?;
            self.draw(f, Some(&stage.name), &format!("{indent}{below}"), width)?;
        }
        Ok(())
    }
}

impl fmt::Display for StageMap {
    /// A tree: every stage, followed by the stages inside its loops.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let longest = self.stages.iter().map(|stage| stage.name.chars().count()).max();
        let tree = self.tree();
        tree.draw(f, None, "", tree.width(None, 0).max(longest.unwrap_or(0) + 4))?;
        let is_inlined = |stage: &&MappedStage| stage.place == StagePlace::Inlined;
        let inlined: Vec<&str> =
            self.stages.iter().filter(is_inlined).map(|stage| stage.name.as_str()).collect();
        if inlined.is_empty() {
            return Ok(());
        }
        writeln!(f, "computed where they are read: {}", inlined.join(", "))
    }
}

impl MappedStage {
    fn text(&self) -> String {
        let bytes = |count: i64| quantity(count as f64, "B", 1024.0);
        let mut parts = Vec::new();
        if let StagePlace::Inside { target, .. } = &self.place {
            parts.push(format!("in loop {target}"));
        }
        // Differences below a hundredth come from rounding up the last tile.
        if (self.times - 1.0).abs() > 0.01 {
            parts.push(format!("{:.2} times", self.times));
        }
        if self.kept_bytes > 0 {
            parts.push(format!("keeps {}", bytes(self.kept_bytes)));
        }
        if self.moved_bytes > 0 {
            parts.push(format!("moves {}", bytes(self.moved_bytes)));
        }
        parts.join(", ")
    }
}

/// A store in a scheduled nest.
struct StoreSummary {
    place: StagePlace,
    iterations: f64,
    /// The buffers that it reads and writes.
    touched: Vec<BufferId>,
    /// Whether it is a copy for another stage, and not a stage of the program.
    is_copy: bool,
}

/// The stores and locals of a scheduled nest.
#[derive(Default)]
struct NestSummary<'a> {
    /// The stages of the program.
    names: HashSet<&'a str>,
    stores: Vec<StoreSummary>,
    /// The first store of each name, and the stores of each stage, by number.
    first: HashMap<String, usize>,
    of_stage: HashMap<String, Vec<usize>>,
    /// The buffers that live inside loops.
    locals: BTreeSet<BufferId>,
}

impl NestSummary<'_> {
    fn add(&mut self, nest: &LoopNest, store: &Store, loops: &[&Loop]) {
        let stages = &self.names;
        let name_of = |id: StageId| nest.buffer(id.0).name.as_str();
        let settled = |id: StageId| settled(stages, name_of(id)).unwrap_or(name_of(id));
        let (name, own) = (name_of(store.stage()), settled(store.stage()));
        // The innermost enclosing loop of another stage.
        let mut hosts = loops.iter().rev().filter_map(|l| Some((l, settled(l.stage?))));
        let around = hosts.find(|(_, stage)| *stage != own && *stage != name);
        let place = match around {
            Some((l, stage)) => StagePlace::Inside {
                stage: stage.to_owned(),
                target: nest.var_name(l.var).to_owned(),
            },
            None => StagePlace::Root,
        };
        let mut touched = vec![store.buffer];
        touched.extend(store.reads().into_iter().map(|(_, read)| read.tensor));
        let iterations = iterations(loops) * new_share(store, loops);
        // A store without a stage copies data for the stage around it.
        let is_copy = self::settled(stages, name).is_none();
        let stage = if is_copy { around.map_or("", |(_, stage)| stage) } else { own };
        let (name, stage) = (name.to_owned(), stage.to_owned());
        let number = self.stores.len();
        self.first.entry(name.clone()).or_insert(number);
        self.of_stage.entry(stage.clone()).or_default().push(number);
        self.stores.push(StoreSummary { place, iterations, touched, is_copy });
    }

    /// The placement of a stage that has `wanted` iterations in the canonical nest.
    fn stage(
        &self,
        canonical: &LoopNest,
        scheduled: &LoopNest,
        name: &str,
        buffer: BufferId,
        wanted: f64,
    ) -> MappedStage {
        let Some(own) = self.first.get(name).and_then(|first| self.stores.get(*first)) else {
            let (place, times) = (StagePlace::Inlined, 1.0);
            return MappedStage { name: name.into(), place, times, kept_bytes: 0, moved_bytes: 0 };
        };
        let of_stage = self.of_stage.get(name);
        let stores = || of_stage.into_iter().flatten().filter_map(|at| self.stores.get(*at));
        let computed = stores().filter(|store| !store.is_copy).map(|store| store.iterations);
        let computed = computed.fold(0.0, f64::max);
        let touched: BTreeSet<BufferId> =
            stores().flat_map(|store| store.touched.iter().copied()).collect();
        let is_whole =
            |id: &BufferId| (id.0 as usize) < canonical.buffers.len() && !self.locals.contains(id);
        let bytes = |id: BufferId| scheduled.buffer(id).bytes();
        let whole = touched.iter().copied().filter(is_whole);
        MappedStage {
            name: name.to_owned(),
            place: own.place.clone(),
            times: computed / wanted.max(1.0),
            kept_bytes: if self.locals.contains(&buffer) { bytes(buffer) } else { 0 },
            moved_bytes: whole.map(bytes).fold(0, i64::saturating_add),
        }
    }
}

/// The program's stage that a stage was derived from. Partial results, register tiles and rewritten
/// stages are named after their stage, with a suffix.
fn settled<'a>(stages: &HashSet<&'a str>, name: &str) -> Option<&'a str> {
    let ends = name.rmatch_indices('.').map(|(end, _)| &name[..end]);
    std::iter::once(name).chain(ends).find_map(|stage| stages.get(stage).copied())
}

/// Calls `visit` with every store and the loops around it.
fn visit<'n>(
    nodes: &'n [Node],
    loops: &mut Vec<&'n Loop>,
    see: &mut impl FnMut(&'n Store, &[&'n Loop]),
) {
    for node in nodes {
        match node {
            Node::Loop(l) => {
                loops.push(l);
                visit(&l.body, loops, see);
                loops.pop();
            }
            Node::Guard(guard) => visit(&guard.body, loops, see),
            Node::Store(store) => see(store, loops),
            Node::Prefetch(_) | Node::Barrier => {}
        }
    }
}

/// The fraction of iterations in which a store of a sliding window computes new elements.
fn new_share(store: &Store, loops: &[&Loop]) -> f64 {
    let mut ranges = Ranges::default();
    loops.iter().for_each(|l| ranges.insert(l.var, l.extent));
    let share = |index: &Index, term: &Term| {
        let Atom::Min(a, b) = &term.atom else { return None };
        let slides = |l: &&&Loop| l.slides && [a, b].iter().any(|i| i.as_axis() == Some(l.var));
        let times = loops.iter().find(slides)?.extent as f64;
        let rest = index.sub(&Index::atom(term.atom.clone()).scale(term.coefficient)?)?;
        let all = ranges.interval(&rest).hi as f64 + 1.0;
        let new = all + term.coefficient as f64;
        Some((all + (times - 1.0) * new) / (times * all))
    };
    let bounds = store.domain.iter().map(|bound| &bound.index);
    bounds.flat_map(|index| index.terms().iter().filter_map(|term| share(index, term))).product()
}

fn iterations(loops: &[&Loop]) -> f64 {
    loops.iter().map(|l| l.extent as f64).product()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

    use tensorwright_lang::Module;

    use super::*;
    use crate::{Schedule, canonical};

    #[test]
    fn a_window_computes_every_row_about_once() {
        let text = "def blur(float(H,W) in) -> (out) {
            bx(y,x) = in(y,x) + in(y,x+1)
            out(y,x) = bx(y,x) + bx(y+1,x) + bx(y+2,x)
        }";
        let module = Module::parse("t", text).unwrap();
        let program = module.def("blur").unwrap().bind([("H", 66), ("W", 33)]).unwrap();
        let map = |schedule: &str| {
            let scheduled = Schedule::parse(schedule).unwrap().apply(canonical(&program)).unwrap();
            StageMap::of(&canonical(&program), &scheduled).to_string()
        };
        let inside = map("out: split y 16\nbx: compute_at out y.1\n");
        assert!(inside.contains("└ bx     in loop y.1, 2.91 times, keeps 384 B"), "{inside}");
        let slid = map("out: split y 16\nbx: slide out y.1\n");
        assert!(slid.contains("└ bx     in loop y.1, 1.09 times, keeps 512 B"), "{slid}");
    }

    #[test]
    fn stages_of_which_parts_are_inside_each_other_are_drawn() {
        let text = "def f(float(N,K) X, float(N,M) c, float(N,M) Y) -> (A, B) {
            A(n,m) +=! c(n,m) * X(n,k)
            B(n,m) = Y(n,m) + 1
        }";
        let module = Module::parse("t", text).unwrap();
        let program = module.def("f").unwrap().bind([("N", 4), ("K", 8), ("M", 2)]).unwrap();
        let schedule = "A: factor k\nA: compute_with A.factor n\nB: compute_with A.factor n\nA: compute_with B m\n";
        let scheduled = Schedule::parse(schedule).unwrap().apply(canonical(&program)).unwrap();
        let map = StageMap::of(&canonical(&program), &scheduled).to_string();
        assert!(map.contains("A ") && map.contains("B "), "{map}");
    }

    /// Stages that a rewriting creates count as the original stage.
    #[test]
    fn stages_are_drawn_in_what_became_of_others() {
        let text = "def log_sum(float(N,D) x) -> (y) {
            a(n,d) = 2 * x(n,d)
            top(n) max=! a(n,d)
            total(n) +=! exp(a(n,d) - top(n))
            y(n) = log(total(n)) + top(n)
        }";
        let module = Module::parse("t", text).unwrap();
        let program = module.def("log_sum").unwrap().bind([("N", 4), ("D", 64)]).unwrap();
        let schedule = "top: rebase d 16\ntotal: split d 16\ntotal: factor d.1\n\
                        total.factor: compute_with top.block d.block\na: compute_at top.block d.block\n";
        let scheduled = Schedule::parse(schedule).unwrap().apply(canonical(&program)).unwrap();
        let map = StageMap::of(&canonical(&program), &scheduled).to_string();
        let lines: Vec<&str> = map.lines().map(str::trim_end).collect();
        assert_eq!(
            lines,
            [
                "top        moves 16 B",
                "└ a        in loop d.block, keeps 64 B, moves 1.00 KiB",
                "total      moves 16 B",
                "y          moves 48 B",
            ],
            "{map}"
        );
    }
}
