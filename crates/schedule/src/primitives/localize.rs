//! Accumulates a reduction in a local tile below a loop.
//!
//! [`cache_write`](super::CacheWrite) and [`rfactor`](super::Rfactor) share this; the tile is then
//! added to the result.

use tensorwright_lang::program::Index;

use super::find::{
    check_overlaps, find_loop, find_store, fresh_name, loop_at, loop_at_mut, loops_on, store_at,
    store_paths,
};
use super::footprint::{find_host, refuse_recurrence, refuse_scatter};
use crate::canonical::{element, neutral};
use crate::nest::{
    Buffer, BufferId, Loop, LoopNest, Node, Owner, Role, StageId, Store, Use, for_each_store,
    substitute,
};
use crate::refusal::Refusal;

/// Accumulates a stage in its own tile below loop `at`. The tile has one dimension per spatial loop
/// below and, if `kept` names a reduction loop, a last one for it: terms of different iterations of
/// that loop are accumulated separately and added with the tile.
pub(super) fn localize(
    nest: &mut LoopNest,
    stage: &str,
    at: &str,
    kept: Option<&str>,
    suffix: &str,
) -> Result<(), Refusal> {
    let host = find_host(nest, stage, at)?;
    let path = find_store(nest, stage)?;
    let store = store_at(nest, &path)?.clone();
    refuse_recurrence(stage, &store, "held back in a tile")?;
    refuse_scatter(stage, &store, "held back in a tile")?;
    let loops: Vec<Loop> = loops_on(nest, &path).into_iter().cloned().collect();
    let (outer, inner) = loops.split_at(host.len());
    check_alone(nest, stage, at, store.buffer, &host)?;
    check_unread(nest, stage, at, store.buffer, &path[..=host.len()])?;
    let foreign = |l: &&Loop| l.stage != Some(store.stage()) || l.locals.contains(&store.buffer);
    if let Some(l) = inner.iter().find(foreign) {
        return Err(Refusal::new(format!(
            "loop `{}` inside of loop `{at}` is not one of `{stage}` alone",
            nest.var_name(l.var)
        )));
    }
    let kept = match kept {
        Some(name) => Some(kept_loop(nest, stage, at, name, &host)?),
        None => None,
    };
    let is_reduce = |l: &Loop| l.reduces(store.stage());
    let in_tile: Vec<&Loop> = inner
        .iter()
        .filter(|l| !is_reduce(l))
        .chain(inner.iter().filter(|l| Some(l.var) == kept))
        .collect();
    let shape: Vec<i64> = in_tile.iter().map(|l| l.extent).collect();
    if shape.iter().try_fold(1i64, |n, e| n.checked_mul(*e)).is_none_or(|n| n > 1 << 32) {
        return Err(Refusal::overflow());
    }
    let target = nest.buffer(store.buffer).clone();
    let name = fresh_name(nest, &format!("{}.{suffix}", target.name));
    let tile = nest.add_buffer(Buffer::new(name, target.dtype, shape, Owner::Local));
    let subscripts: Vec<Index> = in_tile.iter().map(|l| Index::axis(l.var)).collect();

    // The result is updated if enclosing loops or separate accumulators contribute terms.
    let mut result =
        Store::new(store.buffer, store.subscripts.clone(), element(tile, subscripts.clone()));
    result.domain = store.domain.clone();
    // Masked terms are neutral in the tile.
    result.domain.retain(|bound| !bound.term);
    let has_terms = kept.is_some() || outer.iter().any(is_reduce);
    if has_terms {
        check_start(nest, stage, at, &store, inner)?;
    }
    let mut partial = Store { buffer: tile, subscripts, ..store.clone() };
    match store.combine {
        Some(op) if has_terms => {
            result.combine = Some(op);
            result.init = store.init.clone();
            partial.init = Some(neutral(op, target.dtype));
        }
        _ => {}
    }
    let write_back = write_back(nest, &in_tile, kept, result)?;
    let host_loop = loop_at_mut(nest, &host)?;
    retarget(&mut host_loop.body, store.stage(), &partial, kept);
    // Directly after the loops that computed it: later nodes may read it.
    let position = path.get(host.len()).map_or(host_loop.body.len(), |at| at + 1);
    host_loop.body.insert(position, write_back);
    host_loop.locals.push(tile);
    check_overlaps(nest)
}

/// Refuses a loop in which the result is written more than once.
fn check_alone(
    nest: &LoopNest,
    stage: &str,
    at: &str,
    buffer: BufferId,
    host: &[usize],
) -> Result<(), Refusal> {
    let mut stores = 0;
    for_each_store(&loop_at(nest, host)?.body, &mut |store| {
        stores += usize::from(store.buffer == buffer);
    });
    if stores != 1 {
        return Err(Refusal::new(format!(
            "loop `{at}` holds {stores} statements that write `{stage}`, so its results cannot be \
             held back there"
        )));
    }
    Ok(())
}

/// Refuses results that the node at a path reads before they are written back.
fn check_unread(
    nest: &LoopNest,
    stage: &str,
    at: &str,
    buffer: BufferId,
    node: &[usize],
) -> Result<(), Refusal> {
    for path in store_paths(&nest.body).iter().filter(|path| path.starts_with(node)) {
        let store = store_at(nest, path)?;
        if store.buffer != buffer && store.does_read(buffer) {
            return Err(Refusal::new(format!(
                "`{}` shares loops with `{stage}` inside of loop `{at}` and reads its results there, so they cannot be held back",
                nest.buffer(store.buffer).name
            ))
            .help("hold results back in a loop further in, or before stages share loops"));
        }
    }
    Ok(())
}

/// Refuses a reduction whose initial value lives in a loop below: its initialization leaves that
/// loop with the result.
fn check_start(
    nest: &LoopNest,
    stage: &str,
    at: &str,
    store: &Store,
    inner: &[Loop],
) -> Result<(), Refusal> {
    let reads = store.reads();
    let starts_from =
        |id: &BufferId| reads.iter().any(|(what, read)| *what != Use::Value && read.tensor == *id);
    for l in inner {
        if let Some(id) = l.locals.iter().find(|id| starts_from(id)) {
            let (tensor, name) = (&nest.buffer(*id).name, nest.var_name(l.var));
            return Err(Refusal::new(format!(
                "`{stage}` starts from `{tensor}`, which lives in loop `{name}` inside of `{at}`, so \
                 its results cannot be written in `{at}`"
            ))
            .help(format!("write them in `{name}`, or compute `{tensor}` in `{at}` or around it")));
        }
    }
    Ok(())
}

fn kept_loop(
    nest: &LoopNest,
    stage: &str,
    at: &str,
    name: &str,
    host: &[usize],
) -> Result<crate::nest::Var, Refusal> {
    let path = find_loop(nest, stage, name)?;
    let l = loop_at(nest, &path)?;
    let own = store_at(nest, &find_store(nest, stage)?)?.stage();
    if l.stage != Some(own) {
        return Err(Refusal::new(format!("loop `{name}` is not one of `{stage}` alone"))
            .help("split it before stages share it, and keep the terms of the inner part apart"));
    }
    if l.role != Role::Reduce {
        return Err(Refusal::new(format!("loop `{name}` of `{stage}` is not a reduction")));
    }
    if path.len() <= host.len() {
        return Err(Refusal::new(format!(
            "loop `{name}` of `{stage}` is not inside of loop `{at}`"
        ))
        .help("reorder it to the inside first"));
    }
    Ok(l.var)
}

/// The loops that add the tile to the result, with their own variables.
fn write_back(
    nest: &mut LoopNest,
    in_tile: &[&Loop],
    kept: Option<crate::nest::Var>,
    result: Store,
) -> Result<Node, Refusal> {
    let stage = result.stage();
    let mut nodes = vec![Node::Store(result)];
    for l in in_tile.iter().rev() {
        let var = nest.add_var(nest.var_name(l.var).to_owned());
        substitute(&mut nodes, l.var, &Index::axis(var)).ok_or_else(Refusal::overflow)?;
        let role = if Some(l.var) == kept { Role::Reduce } else { Role::Spatial };
        let mut copy =
            Loop { var, role, body: nodes.into(), locals: Vec::new(), ..(*l).clone() }.of(stage);
        if Some(l.var) == kept {
            copy.kind = crate::nest::LoopKind::Serial;
        }
        nodes = vec![Node::Loop(copy)];
    }
    nodes.pop().ok_or_else(|| Refusal::new("there is nothing to write back"))
}

/// Assigns the loops and the store of a stage to its tile.
fn retarget(nodes: &mut [Node], stage: StageId, partial: &Store, kept: Option<crate::nest::Var>) {
    for node in nodes {
        match node {
            Node::Loop(l) => {
                if l.stage == Some(stage) {
                    l.stage = Some(partial.stage());
                    if Some(l.var) == kept {
                        l.role = Role::Spatial;
                    }
                }
                retarget(&mut l.body, stage, partial, kept);
            }
            Node::Store(store) if store.stage() == stage => *store = partial.clone(),
            _ => {}
        }
    }
}
