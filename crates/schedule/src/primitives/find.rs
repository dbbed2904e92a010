//! Finds stages and loops in a nest by name.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use tensorwright_lang::program::Index;

use crate::nest::{
    BufferId, Loop, LoopKind, LoopNest, Node, Ranges, StageId, Store, Var, for_each_loop,
    for_each_store,
};
use crate::refusal::Refusal;
use crate::words::{OUTER, without_marks};

/// The path of a node: its position in the body of the nest, then in the body of each loop.
pub(crate) type Path = Vec<usize>;

/// The stages of a nest, in textual order: the name of the buffer and a suffix.
#[must_use]
pub fn stages(nest: &LoopNest) -> Vec<String> {
    let mut all: Vec<(BufferId, &str)> = Vec::new();
    let mut first: HashMap<BufferId, usize> = HashMap::new();
    for_each_store(&nest.body, &mut |store| {
        match first.entry(store.buffer) {
            Entry::Occupied(first) => all[*first.get()].1 = suffix_of_first(store),
            Entry::Vacant(first) => {
                first.insert(all.len());
            }
        }
        all.push((store.buffer, ""));
    });
    all.into_iter()
        .map(|(buffer, suffix)| format!("{}{suffix}", nest.buffer(buffer).name))
        .collect()
}

/// The suffix of the first of two stores to a buffer. It copies the earlier version of the tensor,
/// or initializes a scatter.
fn suffix_of_first(other: &Store) -> &'static str {
    if other.is_scatter() { ".start" } else { ".copy" }
}

/// The store of a stage and its position in textual order.
fn numbered_store<'a>(nest: &'a LoopNest, stage: &str) -> Option<(usize, &'a Store)> {
    // The stores to the buffers that the stage may be named after: one or two.
    let mut alike: Vec<(usize, &Store, &str)> = Vec::new();
    let mut number = 0;
    for_each_store(&nest.body, &mut |store| {
        let rest = stage.strip_prefix(nest.buffer(store.buffer).name.as_str());
        if let Some(rest @ ("" | ".copy" | ".start")) = rest {
            alike.push((number, store, rest));
        }
        number += 1;
    });
    let suffix = |place: usize| {
        let is_same =
            |(_, other, _): &&(usize, &Store, &str)| other.buffer == alike[place].1.buffer;
        let is_first = !alike[..place].iter().any(|other| is_same(&other));
        let last = alike[place + 1..].iter().rfind(is_same);
        last.filter(|_| is_first).map_or("", |(_, other, _)| suffix_of_first(other))
    };
    let place = (0..alike.len()).find(|place| alike[*place].2 == suffix(*place))?;
    Some((alike[place].0, alike[place].1))
}

/// The position of the store of a stage in textual order.
pub(crate) fn store_number(nest: &LoopNest, stage: &str) -> Option<usize> {
    Some(numbered_store(nest, stage)?.0)
}

/// The path of a store, given its position in textual order.
pub(crate) fn store_path(nest: &LoopNest, number: usize) -> Option<Path> {
    nth_store(&nest.body, number)
}

/// The store of a stage.
#[must_use]
pub fn store_of<'a>(nest: &'a LoopNest, stage: &str) -> Option<&'a Store> {
    Some(numbered_store(nest, stage)?.1)
}

/// The loops around the store of a stage, outermost first.
#[must_use]
pub fn loops_of<'a>(nest: &'a LoopNest, stage: &str) -> Vec<&'a Loop> {
    find_store(nest, stage).map(|path| loops_on(nest, &path)).unwrap_or_default()
}

/// The path of the store of a stage.
pub(crate) fn find_store(nest: &LoopNest, stage: &str) -> Result<Path, Refusal> {
    let path = numbered_store(nest, stage).and_then(|(number, _)| nth_store(&nest.body, number));
    path.ok_or_else(|| {
        let known: Vec<String> = stages(nest).iter().map(|name| format!("`{name}`")).collect();
        Refusal::new(format!("there is no stage `{stage}`"))
            .help(format!("the stages are {}", known.join(", ")))
    })
}

/// The path of a store, given its position in textual order.
fn nth_store(nodes: &[Node], number: usize) -> Option<Path> {
    fn go(nodes: &[Node], left: &mut usize, at: &mut Path) -> bool {
        for (number, node) in nodes.iter().enumerate() {
            at.push(number);
            let found = match node {
                Node::Loop(l) => go(&l.body, left, at),
                Node::Store(_) if *left == 0 => true,
                Node::Store(_) => {
                    *left -= 1;
                    false
                }
                Node::Guard(_) | Node::Prefetch(_) | Node::Barrier => false,
            };
            if found {
                return true;
            }
            at.pop();
        }
        false
    }
    let (mut left, mut at) = (number, Path::new());
    go(nodes, &mut left, &mut at).then_some(at)
}

/// The paths of all stores, in textual order.
pub(crate) fn store_paths(nodes: &[Node]) -> Vec<Path> {
    fn go(nodes: &[Node], at: &mut Path, found: &mut Vec<Path>) {
        for (number, node) in nodes.iter().enumerate() {
            at.push(number);
            match node {
                Node::Loop(l) => go(&l.body, at, found),
                Node::Store(_) => found.push(at.clone()),
                Node::Guard(_) | Node::Prefetch(_) | Node::Barrier => {}
            }
            at.pop();
        }
    }
    let mut found = Vec::new();
    go(nodes, &mut Vec::new(), &mut found);
    found
}

/// The path of a loop of a stage.
pub(crate) fn find_loop(nest: &LoopNest, stage: &str, name: &str) -> Result<Path, Refusal> {
    let path = find_store(nest, stage)?;
    let loops = loops_on(nest, &path);
    let (plain, inside) = without_marks(name);
    let mut named =
        (0..loops.len()).rev().filter(|depth| nest.var_name(loops[*depth].var) == plain);
    let depth = named.nth(inside);
    match depth {
        Some(depth) => Ok(path[..=depth].to_vec()),
        None => {
            let known: Vec<String> =
                loops.iter().map(|l| format!("`{}`", nest.var_name(l.var))).collect();
            let help = if known.is_empty() {
                "it has no loops".to_owned()
            } else {
                format!("its loops are {}", known.join(", "))
            };
            Err(Refusal::new(format!("`{stage}` has no loop `{name}`")).help(help))
        }
    }
}

/// The loops on the path to a node, outermost first, including the node if it is a loop.
pub(crate) fn loops_on<'a>(nest: &'a LoopNest, path: &[usize]) -> Vec<&'a Loop> {
    let mut loops = Vec::new();
    let mut nodes = &nest.body;
    for step in path {
        let Some(Node::Loop(l)) = nodes.get(*step) else { break };
        loops.push(l);
        nodes = &l.body;
    }
    loops
}

/// The loop at a path.
pub(crate) fn loop_at<'a>(nest: &'a LoopNest, path: &[usize]) -> Result<&'a Loop, Refusal> {
    loops_on(nest, path).pop().ok_or_else(lost)
}

/// The loop at a path, mutable.
pub(crate) fn loop_at_mut<'a>(
    nest: &'a mut LoopNest,
    path: &[usize],
) -> Result<&'a mut Loop, Refusal> {
    match node_at_mut(&mut nest.body, path) {
        Some(Node::Loop(l)) => Ok(l),
        _ => Err(lost()),
    }
}

/// The store at a path.
pub(crate) fn store_at<'a>(nest: &'a LoopNest, path: &[usize]) -> Result<&'a Store, Refusal> {
    let (last, outer) = path.split_last().ok_or_else(lost)?;
    let body = loops_on(nest, outer).pop().map_or(&nest.body, |l| &l.body);
    match body.get(*last) {
        Some(Node::Store(store)) => Ok(store),
        _ => Err(lost()),
    }
}

/// The node at a path, mutable.
pub(crate) fn node_at_mut<'a>(nodes: &'a mut [Node], path: &[usize]) -> Option<&'a mut Node> {
    let (first, rest) = path.split_first()?;
    let node = nodes.get_mut(*first)?;
    if rest.is_empty() {
        return Some(node);
    }
    match node {
        Node::Loop(l) => node_at_mut(&mut l.body, rest),
        _ => None,
    }
}

/// Removes a node and the enclosing loops that become empty.
pub(crate) fn remove(nodes: &mut Vec<Node>, path: &[usize]) {
    let Some((first, rest)) = path.split_first() else { return };
    let empty = match nodes.get_mut(*first) {
        Some(Node::Loop(l)) if !rest.is_empty() => {
            remove(&mut l.body, rest);
            l.body.is_empty()
        }
        Some(_) => true,
        None => false,
    };
    if empty {
        nodes.remove(*first);
    }
}

/// A path that no longer exists: cannot happen, but must not panic.
fn lost() -> Refusal {
    Refusal::new("the loop nest changed while it was being rewritten")
}

/// Whether a loop belongs to a scatter.
pub(crate) fn holds_scatter(l: &Loop) -> bool {
    let mut found = false;
    for_each_store(&l.body, &mut |store| {
        found |= store.is_scatter() && l.stage == Some(store.stage());
    });
    found
}

/// Refuses a loop whose number of iterations depends on sizes.
pub(crate) fn refuse_sized(stage: &str, target: &str, l: &Loop, what: &str) -> Result<(), Refusal> {
    if !l.is_sized {
        return Ok(());
    }
    Err(Refusal::new(format!(
        "the iterations of loop `{target}` of `{stage}` depend on sizes, and it cannot be {what}"
    ))
    .help("split it: the inner loop has a fixed number of iterations"))
}

/// The other stages for which a loop is a reduction loop, for a message.
pub(crate) fn sums_of(nest: &LoopNest, l: &Loop) -> String {
    let quoted = |stage: &StageId| format!("`{}`", nest.buffer(stage.0).name);
    l.terms_of.iter().map(quoted).collect::<Vec<_>>().join(" and ")
}

/// The extents of the loops on a path.
pub(crate) fn ranges_on(nest: &LoopNest, path: &[usize]) -> Ranges {
    let mut ranges = nest.ranges();
    for l in loops_on(nest, path) {
        ranges.insert(l.var, l.extent);
    }
    ranges
}

/// The buffer of this name.
pub(crate) fn find_buffer(nest: &LoopNest, name: &str) -> Result<BufferId, Refusal> {
    let number = nest.buffer_number(name);
    number.map(|number| tensorwright_lang::program::TensorId(number as u32)).ok_or_else(|| {
        let known: Vec<String> =
            nest.buffers.iter().map(|buffer| format!("`{}`", buffer.name)).collect();
        Refusal::new(format!("there is no tensor `{name}`"))
            .help(format!("the tensors are {}", known.join(", ")))
    })
}

/// An unused buffer name.
pub(crate) fn fresh_name(nest: &LoopNest, wanted: &str) -> String {
    let taken = |name: &str| nest.buffer_number(name).is_some();
    if !taken(wanted) {
        return wanted.to_owned();
    }
    (2..).map(|n| format!("{wanted}{n}")).find(|name| !taken(name)).unwrap_or_default()
}

/// Refuses overlapping tails in two places. Inside a reduction loop, elements that are computed
/// twice would be added twice. Inside a parallel loop, two workers would write the same elements.
pub(crate) fn check_overlaps(nest: &LoopNest) -> Result<(), Refusal> {
    let mut shifted = false;
    for_each_loop(&nest.body, &mut |l| shifted |= l.overlaps);
    if !shifted {
        return Ok(());
    }
    for path in store_paths(&nest.body) {
        let store = store_at(nest, &path)?;
        check_workers(nest, store, &loops_on(nest, &path), &ranges_on(nest, &path))?;
        if store.combine.is_none() {
            continue;
        }
        let mut reduce: Option<&Loop> = None;
        for l in loops_on(nest, &path) {
            if l.overlaps && store.is_scatter() {
                let (stage, name) = (&nest.buffer(store.buffer).name, nest.var_name(l.var));
                return Err(Refusal::new(format!(
                    "loop `{name}` of the scatter `{stage}` cannot have its tail shifted inwards: \
                     terms would be added twice"
                ))
                .help("use the tail `guard` or `peel`"));
            }
            if l.reduces(store.stage()) {
                if l.overlaps {
                    let (stage, name) = (&nest.buffer(store.buffer).name, nest.var_name(l.var));
                    return Err(Refusal::new(format!(
                        "loop `{name}` has its tail shifted inwards, so that terms of `{stage}` would be added twice"
                    ))
                    .help("use the tail `guard` or `peel`"));
                }
                reduce = reduce.or(Some(l));
            } else if let (true, Some(reduce)) = (l.overlaps, reduce) {
                let (outer, inner) = (nest.var_name(reduce.var), nest.var_name(l.var));
                return Err(Refusal::new(format!(
                    "loop `{inner}` of `{}` makes some elements twice because its tail is shifted \
                     inwards, so it must not run inside the reduction loop `{outer}`",
                    nest.buffer(store.buffer).name
                ))
                .help("use the tail `guard` or `peel`, or keep the reduction inside"));
            }
        }
    }
    Ok(())
}

/// Refuses a parallel or bound loop around a loop with a shifted tail if its iterations may share
/// elements.
fn check_workers(
    nest: &LoopNest,
    store: &Store,
    loops: &[&Loop],
    ranges: &Ranges,
) -> Result<(), Refusal> {
    let is_shared = |l: &Loop| l.kind == LoopKind::Parallel || l.kind.is_bound();
    let pairs =
        loops.iter().enumerate().filter(|(_, l)| is_shared(l)).flat_map(|(outer, around)| {
            loops[outer + 1..].iter().filter(|l| l.overlaps).map(move |l| (around, l))
        });
    for (around, l) in pairs {
        let shared = around.var;
        let mentions = |index: &Index, var: Var| index.mentions(&|other| other == var);
        let both = |index: &&Index| mentions(index, l.var) && mentions(index, shared);
        if store.subscripts.iter().filter(both).any(|index| !is_apart(index, shared, ranges)) {
            let (workers, inner) = (nest.var_name(shared), nest.var_name(l.var));
            let (who, kind) = match around.kind {
                LoopKind::Block(_) => ("blocks", "bound"),
                LoopKind::Thread(_) => ("threads", "bound"),
                _ => ("workers", "parallel"),
            };
            return Err(Refusal::new(format!(
                "the tail of loop `{inner}` of `{}` is shifted inwards, so two {who} of the {kind} \
                 loop `{workers}` around it would make the same elements",
                nest.buffer(store.buffer).name
            ))
            .help(format!("use the tail `guard` or `peel`, or keep the {kind} loop inside")));
        }
    }
    Ok(())
}

/// Whether an iteration of a loop moves an index beyond the range of all other loops.
fn is_apart(index: &Index, var: Var, ranges: &Ranges) -> bool {
    let rest = || {
        let step = index.coefficient_of(var)?;
        Some((step, index.sub(&Index::axis(var).scale(step)?)?))
    };
    rest().is_some_and(|(step, rest)| {
        let reach = ranges.interval(&rest);
        reach.hi - reach.lo < i128::from(step.unsigned_abs())
    })
}

/// Refuses a loop that is no longer sequential.
pub(crate) fn expect_serial(nest: &LoopNest, l: &Loop, what: &str) -> Result<(), Refusal> {
    let state = match l.kind {
        LoopKind::Serial => return Ok(()),
        LoopKind::Block(_) | LoopKind::Thread(_) => format!("bound to {}", l.kind),
        LoopKind::Tensor => "part of a tensor operation".to_owned(),
        kind => kind.to_string(),
    };
    let name = nest.var_name(l.var);
    Err(Refusal::new(format!("loop `{name}` is {state} already"))
        .help(format!("{what} it before that")))
}

/// Refuses the loop of a sliding window: its iterations depend on each other, in order.
pub(crate) fn refuse_window(
    nest: &LoopNest,
    stage: &str,
    l: &Loop,
    what: &str,
) -> Result<(), Refusal> {
    if !l.slides {
        return Ok(());
    }
    let name = nest.var_name(l.var);
    Err(Refusal::new(format!(
        "loop `{name}` of `{stage}` cannot be {what}: a window slides along it, so that its iterations need each other"
    ))
    .help("split it before, and let the window slide along the inner loop"))
}

/// Refuses names that loops of the stage already have. Enclosing loops of other stages may have
/// them: the name then refers to the inner loop.
pub(crate) fn expect_fresh(nest: &LoopNest, stage: &str, names: &[String]) -> Result<(), Refusal> {
    let path = find_store(nest, stage)?;
    let own = Some(store_at(nest, &path)?.stage());
    let taken: Vec<&Loop> = loops_on(nest, &path).into_iter().filter(|l| l.stage == own).collect();
    for (number, name) in names.iter().enumerate() {
        if name.ends_with(OUTER) {
            return Err(Refusal::new(format!("a new loop cannot be called `{name}`"))
                .help(format!("a `{OUTER}` stands for the next loop of that name further out")));
        }
        let twice = names[..number].contains(name);
        if twice || taken.iter().any(|l| nest.var_name(l.var) == name) {
            return Err(Refusal::new(format!("`{stage}` has a loop `{name}` already"))
                .help("name the new loops with `->`"));
        }
    }
    Ok(())
}
