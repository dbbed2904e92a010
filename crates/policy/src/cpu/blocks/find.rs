//! Which products and rows may be computed in blocks.

use tensorwright_schedule::Draft;
use tensorwright_schedule::access::{Accesses, Axis};
use tensorwright_schedule::nest::{BufferId, Owner, Role};
use tensorwright_schedule::placement::{reader_names, store_of, with_epilogues};
use tensorwright_schedule::primitives::{ComputeAt, Split, Tail};
use tensorwright_target::{Cpu, Goal};

use super::{Block, SIZES, START, Unit};
use crate::cpu::rows::{self, Chain, is_product};

/// How many second-level caches an operand may fill that every block reads again.
const PANELS: i64 = 4;

/// The blocks of a program whose stages are not scheduled yet. No stage is in two of them.
pub(crate) fn find(draft: &Draft, chains: &[Chain], goal: &Goal<Cpu>) -> Vec<Block> {
    if chains.is_empty() {
        return Vec::new();
    }
    let units = units(draft, chains);
    let mut taken: Vec<String> = Vec::new();
    let mut found = Vec::new();
    for last in (0..units.len()).rev() {
        let root = units[last].root(chains);
        if taken.contains(root) {
            continue;
        }
        if let Some(block) = block(draft, chains, &units[..=last], &taken, goal) {
            taken.extend(block.stages.iter().cloned());
            found.push(block);
        }
    }
    found.reverse();
    found
}

/// The chains and the other stages, in the order of the program.
fn units(draft: &Draft, chains: &[Chain]) -> Vec<Unit> {
    let mut found = Vec::new();
    for (root, reduction) in with_epilogues(&draft.nest) {
        match chains.iter().position(|chain| chain.has(&root)) {
            Some(place) if chains[place].root == root => found.push(Unit::Chain(place)),
            Some(_) => {}
            None => found.push(Unit::Group { root, reduction }),
        }
    }
    found
}

/// The block that ends with the last of some units, in the innermost loop over rows that holds others.
fn block(
    draft: &Draft,
    chains: &[Chain],
    units: &[Unit],
    taken: &[String],
    goal: &Goal<Cpu>,
) -> Option<Block> {
    let last = units.last()?;
    let root = last.root(chains);
    let accesses = Accesses::of(&draft.nest, root)?;
    let spatial: Vec<&Axis> = accesses.of_role(Role::Spatial).collect();
    let depths = match last {
        Unit::Chain(place) => {
            let row = spatial.iter().position(|axis| axis.name == chains[*place].row)?;
            row..row + 1
        }
        // The last loop over results becomes vectors.
        Unit::Group { .. } => 0..spatial.len().saturating_sub(1),
    };
    let try_at = |depth: usize| {
        let row = spatial.get(depth)?;
        let around: i64 = spatial[..depth].iter().map(|axis| axis.extent).product();
        let fits = |rows: &i64| {
            let host = Host { root, row: &row.name, extent: row.extent, around, rows: *rows };
            host.units(draft, chains, units, taken, goal)
        };
        // Every worker gets a block.
        let suits = |rows: &i64| {
            *rows <= row.extent && around * ((row.extent + rows - 1) / rows) >= goal.workers
        };
        let mut sizes: Vec<i64> = SIZES.into_iter().filter(suits).collect();
        sizes.retain(|rows| fits(rows).is_some());
        let units = fits(sizes.first()?)?;
        // The one to start with comes first.
        let start = sizes.iter().rposition(|rows| *rows <= START).unwrap_or(0);
        sizes.swap(0, start);
        let stages = units.iter().flat_map(|unit| unit.stages(chains)).cloned().collect();
        let (root, row) = (root.clone(), row.name.clone());
        Some(Block { root, row, units, stages, sizes, parameter: 0 })
    };
    depths.rev().find_map(try_at)
}

/// A loop of a root that is taken in blocks.
struct Host<'a> {
    root: &'a str,
    row: &'a str,
    extent: i64,
    /// The iterations of the loops around it.
    around: i64,
    rows: i64,
}

impl Host<'_> {
    /// What can be computed in a block without anything being computed twice; `None` if that saves nothing or no
    /// cache holds it.
    fn units(
        &self,
        draft: &Draft,
        chains: &[Chain],
        units: &[Unit],
        taken: &[String],
        goal: &Goal<Cpu>,
    ) -> Option<Vec<Unit>> {
        let (last, before) = units.split_last()?;
        let mut fused = draft.clone();
        let mut split = Split::new(self.row, &[self.rows]).tail(Tail::Peel);
        let at = format!("{}.block", self.row);
        split.names = vec![at.clone(), format!("{}.row", self.row)];
        if !fused.step(self.root, split) {
            return None;
        }
        if let Unit::Chain(place) = last
            && rows::place(&mut fused, &chains[*place], &format!("{}.row", self.row)).is_err()
        {
            return None;
        }
        let mut inside: Vec<&Unit> = vec![last];
        let mut bytes = 0;
        for unit in before.iter().rev() {
            let root = unit.root(chains);
            let Some(buffer) = store_of(&draft.nest, root).map(|store| store.buffer) else {
                continue;
            };
            let readers = reader_names(&fused.nest, buffer);
            let own: Vec<&String> = inside.iter().flat_map(|unit| unit.stages(chains)).collect();
            let is_ours = !readers.is_empty() && readers.iter().all(|reader| own.contains(&reader));
            let owner = draft.nest.buffer(buffer).owner;
            if !is_ours || taken.contains(root) || owner != Owner::Intermediate {
                continue;
            }
            let mut trial = fused.clone();
            let place = ComputeAt { consumer: self.root.to_owned(), at: at.clone() };
            if !trial.step(root, place) || self.repeats(draft, &trial, buffer) {
                continue;
            }
            if let Unit::Chain(place) = unit
                && rows::place(&mut trial, &chains[*place], &chains[*place].row).is_err()
            {
                continue;
            }
            bytes = trial.nest.buffer(buffer).bytes().saturating_add(bytes);
            inside.push(unit);
            fused = trial;
        }
        let panels =
            inside.iter().map(|unit| panel_bytes(draft, unit, self.row)).max().unwrap_or(0);
        if panels > PANELS * goal.target.caches().l2 {
            return None;
        }
        let has_chain = inside.iter().any(|unit| matches!(unit, Unit::Chain(_)));
        let has_product = inside.iter().any(|unit| is_product_unit(draft, unit));
        let fits = bytes <= goal.target.caches().l2 / 2;
        (inside.len() > 1 && has_chain && has_product && fits)
            .then(|| inside.into_iter().rev().cloned().collect())
    }

    /// Whether elements are computed more than once, but for the last block.
    fn repeats(&self, draft: &Draft, trial: &Draft, buffer: BufferId) -> bool {
        let blocks = (self.extent + self.rows - 1) / self.rows;
        let elements = |draft: &Draft| draft.nest.buffer(buffer).elements();
        let rounded = (elements(draft) / self.extent).saturating_mul(blocks * self.rows);
        elements(trial).saturating_mul(self.around).saturating_mul(blocks) > rounded
    }
}

/// The bytes that a product reads again for every block: operands that do not move with its rows.
fn panel_bytes(draft: &Draft, unit: &Unit, row: &str) -> i64 {
    let Unit::Group { root, reduction } = unit else { return 0 };
    let stage = reduction.as_ref().unwrap_or(root);
    let Some(accesses) = Accesses::of(&draft.nest, stage) else { return 0 };
    // Another stage may call its rows something else; then the first loop over results counts.
    let spatial = || accesses.of_role(Role::Spatial);
    let Some(row) = spatial().find(|axis| axis.name == row).or_else(|| spatial().next()) else {
        return 0;
    };
    let still = accesses.reads.iter().filter(|read| read.stride(row) == Some(0));
    still.map(|read| draft.nest.buffer(read.buffer).bytes()).max().unwrap_or(0)
}

fn is_product_unit(draft: &Draft, unit: &Unit) -> bool {
    let Unit::Group { root, reduction } = unit else { return false };
    let stage = reduction.as_ref().unwrap_or(root);
    Accesses::of(&draft.nest, stage).is_some_and(|accesses| is_product(&accesses))
}
