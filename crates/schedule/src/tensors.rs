//! Placement rules for [tensor operations](crate::nest::TensorOp).
//!
//! ```text
//! block.x for n.0 {
//!   thread.y for m.1 {                 a warp
//!     float C.tile[16][16];
//!     for k.0 {                        the sum begins before a loop around the operation
//!       tensor for m.2 { tensor for n.2 { tensor for k.1 { C.tile(m.2, n.2) += ..; } } }
//!     }
//!     tensor for m.2 { tensor for n.2 { C(..) = C.tile(m.2, n.2); } }
//! ```
//!
//! So the initialization is an operation on a whole tile too. [`check`] runs after every step of a
//! schedule. Requirements of devices (the thread loops around, the layout of operands) are checked
//! in lowering (`lower/device/tensors.rs`).

use crate::nest::{Loop, LoopKind, LoopNest, Node, TensorOp, TensorWork};
use crate::refusal::Refusal;

/// Checks the tensor operations of a nest.
///
/// # Errors
/// The first invalid operation: which and why.
pub(crate) fn check(nest: &LoopNest) -> Result<(), Refusal> {
    nodes(nest, &nest.body, &mut Vec::new())
}

fn nodes<'a>(
    nest: &'a LoopNest,
    all: &'a [Node],
    around: &mut Vec<&'a Loop>,
) -> Result<(), Refusal> {
    for node in all {
        match node {
            Node::Loop(l) if l.kind == LoopKind::Tensor => operation(nest, l, around)?,
            Node::Loop(l) => {
                around.push(l);
                nodes(nest, &l.body, around)?;
                around.pop();
            }
            _ => {}
        }
    }
    Ok(())
}

fn operation(nest: &LoopNest, l: &Loop, around: &[&Loop]) -> Result<(), Refusal> {
    let stage = l.stage.map_or("", |stage| nest.buffer(stage.0).name.as_str());
    let refuse = |why: &str| {
        let name = nest.var_name(l.var);
        Refusal::new(format!("loop `{name}` of `{stage}` is no tensor operation: {why}"))
    };
    let op = TensorOp::of(nest, l).map_err(|why| refuse(&why))?;
    let mut tile = vec![op.m, op.n];
    if let TensorWork::MultiplyAdd { k, .. } = op.work {
        tile.push(k);
        if !around.iter().any(|outer| outer.reduces(op.store.stage())) {
            let name = nest.var_name(k);
            return Err(refuse(&format!("its sum begins inside of the tile, at `{name}`")).help(
                "split the loop over terms by 16 before, and keep the outer part around the tile",
            ));
        }
    }
    let is_cut =
        op.store.domain.iter().any(|bound| bound.index.mentions(&|var| tile.contains(&var)));
    if is_cut {
        return Err(refuse("the tail of a loop cuts it, and tiles are whole").help(
            "split by 16 first, which has to divide the extent, and then split the outer part",
        ));
    }
    Ok(())
}
