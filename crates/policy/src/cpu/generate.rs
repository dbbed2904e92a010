//! From a program to groups of stages and their parameters. No operator is known by name: what a
//! parameter can be follows from how accesses move with loops.

use std::collections::BTreeMap;

use crate::cpu::rules::{is_movement, is_written_out};
use tensorwright_lang::program::Index;
use tensorwright_schedule::Draft;
use tensorwright_schedule::access::{Access, Accesses, Axis};
use tensorwright_schedule::nest::{LoopNest, Owner, Role};
use tensorwright_schedule::placement::{
    epilogue_of, is_cheap, only_reader, reader_wants_inlined, store_of,
};
use tensorwright_schedule::primitives::{ComputeAt, Inline, stages};
use tensorwright_target::{Cpu, Goal};

use crate::Options;
use crate::cpu::cost::Operand;
use crate::cpu::group::{Group, Mover, Pack, Slots, Split, Vector};
use tensorwright_space::Parameter;
use tensorwright_space::parameter::{Categorical, Discrete, Factorization, Permutation};

/// Loops with fewer iterations are not split.
const FEWEST: i64 = 4;

/// The most loops whose order is a parameter; the others stay where they are.
const MOST_ORDERED: usize = 5;

/// The largest register tile along a loop that is not vectorized.
const MOST_ROWS: u64 = 32;

/// The most vectors of a register tile along the vectorized loop.
const MOST_VECTORS: u64 = 8;

/// Where a stage that another one reads may be computed.
#[derive(Debug, Clone)]
pub(crate) struct Placement {
    pub(crate) stage: String,
    /// The stage that reads it, if it is one alone.
    pub(crate) reader: Option<String>,
    pub(crate) slot: usize,
}

/// Everything that is generated for a program.
#[derive(Debug, Clone, Default)]
pub(crate) struct Generated {
    pub(crate) parameters: Vec<Parameter>,
    /// Groups in the order of the program.
    pub(crate) groups: Vec<Group>,
    /// Stages whose place is a parameter, in the order of the program.
    pub(crate) placements: Vec<Placement>,
    /// Stages that rules schedule.
    pub(crate) fixed: Vec<String>,
}

pub(crate) fn generate(begun: &Draft, goal: &Goal<Cpu>, options: &Options) -> Generated {
    let nest = &begun.nest;
    let mut generator = Generator {
        goal,
        options,
        made: Generated::default(),
        is_alone: stages(nest).len() == 1,
        is_rewritten: !begun.schedule.steps.is_empty(),
    };
    let draft = generator.placements(begun);
    generator.groups(&draft);
    generator.made
}

struct Generator<'a> {
    goal: &'a Goal<Cpu>,
    options: &'a Options,
    made: Generated,
    /// Whether the program has one stage, whose name then needs no mention.
    is_alone: bool,
    /// Whether stages were rewritten: what only moves data for them is scheduled by rules.
    is_rewritten: bool,
}

impl Generator<'_> {
    /// Adds a parameter of a stage, unless it has only one value.
    fn add(
        &mut self,
        stage: &str,
        name: &str,
        domain: impl Into<tensorwright_space::Domain>,
    ) -> Option<usize> {
        let name = if self.is_alone { name.to_owned() } else { format!("{stage}:{name}") };
        let parameter = Parameter::new(name, domain);
        (parameter.count() > 1).then(|| {
            self.made.parameters.push(parameter);
            self.made.parameters.len() - 1
        })
    }

    /// The places of stages that others read. The draft inlines what the default schedule would.
    fn placements(&mut self, begun: &Draft) -> Draft {
        let mut draft = begun.clone();
        for stage in stages(&begun.nest) {
            let Some(store) = store_of(&draft.nest, &stage) else { continue };
            let buffer = store.buffer;
            if draft.nest.buffer(buffer).owner != Owner::Intermediate || store.combine.is_some() {
                continue;
            }
            if is_written_out(&draft, &stage) {
                continue;
            }
            let wanted = is_cheap(store) && reader_wants_inlined(&draft.nest, store);
            let mut inlined = draft.clone();
            let can_inline = inlined.step(&stage, Inline);
            let reader = only_reader(&draft.nest, buffer);
            let reader = reader.filter(|reader| can_be_inside(&draft, &stage, reader));
            // The default comes first: searches that start from nothing start there.
            let mut choices = vec!["root"];
            if can_inline {
                choices.insert(usize::from(!wanted), "inline");
            }
            if reader.is_some() {
                choices.extend(["outer", "middle"]);
            }
            if wanted && can_inline {
                draft = inlined;
            }
            if let Some(slot) = self.add(&stage, "place", Categorical::new(choices)) {
                self.made.placements.push(Placement { stage, reader, slot });
            }
        }
        draft
    }

    fn groups(&mut self, draft: &Draft) {
        let nest = &draft.nest;
        let mut taken: Vec<String> = Vec::new();
        let mut groups = Vec::new();
        for root in stages(nest).into_iter().rev() {
            if taken.contains(&root) {
                continue;
            }
            let reduction = epilogue_of(nest, &root);
            if self.is_rewritten && reduction.is_none() && is_movement(draft, &root) {
                self.made.fixed.push(root);
                continue;
            }
            taken.extend(reduction.clone());
            groups.push((root, reduction));
        }
        for (root, reduction) in groups.into_iter().rev() {
            let group = self.group(nest, root, reduction);
            self.made.groups.extend(group);
        }
    }

    fn group(&mut self, nest: &LoopNest, root: String, epilogue: Option<String>) -> Option<Group> {
        let stage = epilogue.clone().unwrap_or_else(|| root.clone());
        let accesses = Accesses::of(nest, &stage)?;
        let root_axes = Accesses::of(nest, &root)?.axes;
        let of_role = |role| accesses.of_role(role).cloned().collect::<Vec<Axis>>();
        let (spatial, reduce) = (of_role(Role::Spatial), of_role(Role::Reduce));
        let root_loops: Vec<String> =
            root_axes.into_iter().filter(|a| a.role == Role::Spatial).map(|a| a.name).collect();
        let element_bytes = nest.dtype(accesses.write.buffer).bytes() as i64;
        let lanes = self.goal.target.lanes(element_bytes);
        let vectors = vectors(&accesses, &spatial, &reduce, lanes);
        let packs = self.packs(nest, &stage, &accesses, &spatial, &reduce);
        let slots = Slots::default();
        let operand = |access: &Access| Operand::new(nest, access, &spatial, &reduce);
        let reads = accesses.reads.iter().map(operand).collect();
        let write = operand(&accesses.write);
        let mut group = Group {
            root,
            epilogue_of: epilogue,
            contiguous: written_along(&accesses, &spatial),
            spatial: Vec::new(),
            root_loops,
            reduce: Vec::new(),
            vectors,
            packs,
            element_bytes,
            operands: operands(&accesses),
            reads,
            write,
            slots,
        };
        self.splits(&stage, &mut group, spatial, reduce, lanes);
        self.orders(&stage, &mut group);
        self.kinds(&stage, &mut group, &accesses);
        Some(group)
    }

    /// The factorizations of the loops.
    fn splits(
        &mut self,
        stage: &str,
        group: &mut Group,
        spatial: Vec<Axis>,
        reduce: Vec<Axis>,
        lanes: i64,
    ) {
        let is_vector = |place: usize| {
            group
                .vectors
                .iter()
                .any(|v| matches!(v, Vector::Spatial { axis, .. } if *axis == place))
        };
        let levels = self.options.spatial_levels;
        let splits = self.options.splits;
        let tiles_only = self.options.only.is_some();
        let rows = |place: usize| {
            let most = if is_vector(place) { MOST_VECTORS * lanes as u64 } else { MOST_ROWS };
            // A space of tiles alone is the papers': nothing is left out.
            move |parts: &[u64]| tiles_only || parts.last().is_none_or(|last| *last <= most)
        };
        let split = |generator: &mut Self, axis: Axis, domain: Factorization| {
            let tile = (axis.extent >= FEWEST)
                .then(|| generator.add(stage, &format!("tile.{}", axis.name), domain))
                .flatten();
            Split { axis, tile }
        };
        let mut made = Vec::new();
        for (place, axis) in spatial.into_iter().enumerate() {
            let extent = axis.extent.max(1) as u64;
            let domain = Factorization::filtered(extent, levels, splits, rows(place));
            made.push(split(self, axis, domain));
        }
        group.spatial = made;
        let levels = self.options.reduce_levels;
        let mut made = Vec::new();
        for axis in reduce {
            let domain = Factorization::new(axis.extent.max(1) as u64, levels, splits);
            // Windows are walked through whole.
            let few = axis.extent < 4 * FEWEST;
            made.push(if few { Split { axis, tile: None } } else { split(self, axis, domain) });
        }
        group.reduce = made;
    }

    /// The orders of loops at every level.
    fn orders(&mut self, stage: &str, group: &mut Group) {
        let names = |splits: &[Split], level: &str| -> Vec<String> {
            splits.iter().map(|s| format!("{}{level}", s.axis.name)).collect()
        };
        // Loops of one iteration have no place; more than a few orders are not worth exploring.
        let many = |splits: &[Split]| splits.iter().filter(|s| s.axis.extent > 1).count();
        if many(&group.spatial) <= MOST_ORDERED && group.spatial.len() <= MOST_ORDERED {
            let items = names(&group.spatial, ".0");
            group.slots.outer_order = self.add(stage, "order.outer", Permutation::new(items));
        }
        let split = |splits: &[Split]| -> Vec<String> {
            let split = splits.iter().filter(|s| s.tile.is_some());
            split.map(|s| s.axis.name.clone()).collect()
        };
        let mut items = split(&group.spatial);
        items.extend(split(&group.reduce));
        if items.len() <= MOST_ORDERED && self.options.spatial_levels > 2 {
            group.slots.middle_order = self.add(stage, "order.middle", Permutation::new(items));
        }
        if group.reduce.len() <= MOST_ORDERED {
            let items = names(&group.reduce, "");
            group.slots.reduce_order = self.add(stage, "order.reduce", Permutation::new(items));
        }
    }

    /// How loops run.
    fn kinds(&mut self, stage: &str, group: &mut Group, accesses: &Accesses) {
        let texts: Vec<String> = group.vectors.iter().map(|v| vector_text(*v, group)).collect();
        group.slots.vector = self.add(stage, "vector", Categorical::new(texts));
        let is_reduction = !group.reduce.is_empty();
        if is_reduction {
            let longest = group.reduce.iter().map(|s| s.axis.extent).max().unwrap_or(1);
            let factors = [1, 2, 3, 4, 8].into_iter().filter(|factor| *factor <= longest);
            group.slots.unroll = self.add(stage, "unroll", Discrete::new(factors));
        }
        if self.options.splits == tensorwright_space::parameter::Splits::Covering {
            let tails: &[&str] = if is_reduction {
                &["peel", "guard", "round_up"]
            } else {
                &["peel", "guard", "shift", "round_up"]
            };
            group.slots.tail = self.add(stage, "tail", Categorical::new(tails.iter().copied()));
            if group.vectors.len() > 1 {
                let domain = Categorical::new(tails.iter().copied());
                group.slots.vector_tail = self.add(stage, "tail.vector", domain);
            }
        }
        if is_reduction && group.epilogue_of.is_none() {
            let turned = group.vectors.iter().any(|vector| match vector {
                Vector::Spatial { axis, .. } => {
                    accesses.write.stride(&group.spatial[*axis].axis) != Some(1)
                }
                _ => false,
            });
            if turned && group.contiguous.is_some() {
                let domain = Categorical::new(["direct", "transposed"]);
                group.slots.store = self.add(stage, "store", domain);
            }
        }
        if group.epilogue_of.is_some() {
            group.slots.fuse = self.add(stage, "fuse", Categorical::new(["tile", "apart"]));
        }
        if self.goal.workers > 1 {
            let loops = group.spatial.len().min(3) as i64;
            group.slots.parallel = self.add(stage, "parallel", Discrete::new(0..=loops));
        }
    }

    /// The tensors that are worth packing: those that some loop over results does not move.
    fn packs(
        &mut self,
        nest: &LoopNest,
        stage: &str,
        accesses: &Accesses,
        spatial: &[Axis],
        reduce: &[Axis],
    ) -> Vec<Pack> {
        if reduce.is_empty() {
            return Vec::new();
        }
        let mut by_tensor: BTreeMap<_, Vec<&Access>> = BTreeMap::new();
        for read in &accesses.reads {
            by_tensor.entry(read.buffer).or_default().push(read);
        }
        let mut packs = Vec::new();
        for (id, reads) in by_tensor {
            let buffer = nest.buffer(id);
            let [read] = reads.as_slice() else { continue };
            let reused = spatial.iter().any(|a| a.extent > 1 && read.stride(a) == Some(0));
            if buffer.shape.len() < 2 || !reused {
                continue;
            }
            let mut choices = vec!["none", "outer", "middle", "inner"];
            if nest.constants.contains(&id) || buffer.owner == Owner::Prepared {
                choices.insert(0, "laid");
            }
            let domain = Categorical::new(choices);
            let Some(slot) = self.add(stage, &format!("pack.{}", buffer.name), domain) else {
                continue;
            };
            packs.push(Pack {
                tensor: buffer.name.clone(),
                rank: buffer.shape.len(),
                shape: buffer.shape.clone(),
                element_bytes: buffer.dtype.bytes() as i64,
                dimension_of: spatial.iter().map(|axis| read.dimension_of(axis)).collect(),
                moved_by: read.subscripts.iter().map(|s| movers(s, spatial, reduce)).collect(),
                slot,
            });
        }
        packs
    }
}

/// The loop along which results are next to each other in memory, or nearly so: a vector of them then
/// goes to a few lines.
fn written_along(accesses: &Accesses, spatial: &[Axis]) -> Option<usize> {
    let stride =
        |axis: &Axis| accesses.write.stride(axis).filter(|stride| (1..=4).contains(stride));
    let near = spatial.iter().enumerate().filter(|(_, axis)| axis.extent >= FEWEST);
    let nearest = near.filter_map(|(place, axis)| Some((stride(axis)?, place))).min();
    let next = || spatial.iter().position(|axis| accesses.write.stride(axis) == Some(1));
    nearest.map(|(_, place)| place).or_else(next)
}

/// The loops that move a subscript.
pub(crate) fn movers(subscript: &Index, spatial: &[Axis], reduce: &[Axis]) -> Vec<Mover> {
    // A loop that moves it in a way that is no multiple counts as far as it goes.
    let distance = |axis: &Axis| subscript.coefficient_of(axis.var).unwrap_or(1);
    let mut all = Vec::new();
    for (place, axis) in spatial.iter().enumerate() {
        all.push(Mover::Spatial(place, distance(axis)));
    }
    for (place, axis) in reduce.iter().enumerate() {
        all.push(Mover::Reduce(place, distance(axis)));
    }
    all.retain(|m| !matches!(m, Mover::Spatial(_, 0) | Mover::Reduce(_, 0)));
    all
}

/// The loops that may become the lanes of vectors: first the one that the default would take.
fn vectors(accesses: &Accesses, spatial: &[Axis], reduce: &[Axis], lanes: i64) -> Vec<Vector> {
    let mut found: Vec<((bool, bool, i64), Vector)> = Vec::new();
    for (place, axis) in spatial.iter().enumerate() {
        let strided = accesses.strided(axis);
        // One tensor may be brought into order by packing it.
        if axis.extent < 2 || strided.len() > 1 {
            continue;
        }
        let contiguous = accesses.write.stride(axis) == Some(1);
        let score = (strided.is_empty(), contiguous, axis.extent.min(lanes));
        let widest = lanes.min(axis.extent.max(2).cast_unsigned().next_power_of_two() as i64);
        for lanes in [widest, widest / 2] {
            if lanes > 1 {
                found.push((score, Vector::Spatial { axis: place, lanes }));
            }
        }
    }
    for (place, axis) in reduce.iter().enumerate() {
        if axis.extent >= lanes && lanes > 1 && accesses.strided(axis).is_empty() {
            let score = (true, false, 0);
            found.push((score, Vector::Reduce { axis: place, lanes }));
        }
    }
    // The sort is stable: of equal ones the wider stays first.
    found.sort_by_key(|(score, _)| std::cmp::Reverse(*score));
    let mut vectors: Vec<Vector> = found.into_iter().map(|(_, vector)| vector).collect();
    vectors.push(Vector::Scalar);
    vectors
}

fn vector_text(vector: Vector, group: &Group) -> String {
    match vector {
        Vector::Scalar => "none".to_owned(),
        Vector::Spatial { axis, lanes } => format!("{}:{lanes}", group.spatial[axis].axis.name),
        Vector::Reduce { axis, lanes } => format!("{}:{lanes}", group.reduce[axis].axis.name),
    }
}

/// How many different tensors a stage reads.
fn operands(accesses: &Accesses) -> i64 {
    let mut tensors: Vec<_> = accesses.reads.iter().map(|read| read.buffer).collect();
    tensors.sort_unstable();
    tensors.dedup();
    tensors.len() as i64
}

/// Whether a stage can be computed inside the loops of its reader.
fn can_be_inside(draft: &Draft, stage: &str, reader: &str) -> bool {
    let Some(at) = draft.loop_names(reader).into_iter().next() else { return false };
    draft.clone().step(stage, ComputeAt { consumer: reader.to_owned(), at })
}
