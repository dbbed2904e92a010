//! `bind`: maps the iterations of a loop to GPU blocks or threads.
//!
//! ```text
//! C: bind m.0 block.x
//! C: bind m.1 thread.x
//! for m.0 in 0..M/64 {                     block.x for m.0 in 0..M/64 {
//!   for m.1 in 0..64 { S(m.0, m.1); }  ->    thread.x for m.1 in 0..64 { S(m.0, m.1); }
//! }                                        }
//! ```
//!
//! The iterations must be as independent as those of a parallel loop. Run sequentially, they still
//! compute the program: thread loops of different stages are next to each other in a block, and
//! lowering inserts the barriers. [`bound`](crate::bound) has the rules about the positions of
//! bound loops.

use std::fmt;

use super::find::{check_overlaps, expect_serial, find_loop, loop_at, loop_at_mut};
use super::independent::IterationMode;
use super::{Reach, Rule};
use crate::nest::{Dim, LoopKind, LoopNest};
use crate::primitives::renaming::Renaming;
use crate::refusal::Refusal;
use crate::words::Words;

/// Binds a loop to blocks or threads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bind {
    /// The loop.
    pub target: String,
    /// The grid or block dimension.
    pub to: ThreadAxis,
}

/// A dimension of the grid or of a block (TVM's thread axis).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ThreadAxis {
    /// The blocks of a grid, in a direction.
    Block(Dim),
    /// The threads of a block, in a direction.
    Thread(Dim),
}

impl ThreadAxis {
    /// All axes, in the order of messages.
    fn all() -> impl Iterator<Item = ThreadAxis> {
        let blocks = Dim::ALL.into_iter().map(|(_, dim)| ThreadAxis::Block(dim));
        blocks.chain(Dim::ALL.into_iter().map(|(_, dim)| ThreadAxis::Thread(dim)))
    }

    /// The kind of loop.
    fn kind(self) -> LoopKind {
        match self {
            ThreadAxis::Block(dim) => LoopKind::Block(dim),
            ThreadAxis::Thread(dim) => LoopKind::Thread(dim),
        }
    }
}

impl fmt::Display for ThreadAxis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.kind().fmt(f)
    }
}

impl fmt::Display for Bind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "bind {} {}", self.target, self.to)
    }
}

impl Rule for Bind {
    fn reach(&self) -> Reach {
        Reach::Stage
    }

    fn parse(words: &mut Words<'_>) -> Result<Self, Refusal> {
        let target = words.name("the name of a loop")?;
        let word = words.name("a thread axis")?;
        let to = ThreadAxis::all().find(|place| place.to_string() == word).ok_or_else(|| {
            let known: Vec<String> = ThreadAxis::all().map(|place| place.to_string()).collect();
            Refusal::new(format!("unknown thread axis `{word}`"))
                .help(format!("the axes are {}", known.join(", ")))
        })?;
        Ok(Bind { target, to })
    }

    fn apply(&self, stage: &str, nest: &mut LoopNest) -> Result<(), Refusal> {
        let path = find_loop(nest, stage, &self.target)?;
        let l = loop_at(nest, &path)?;
        expect_serial(nest, l, "bind")?;
        let (kind, who) = match self.to {
            ThreadAxis::Block(_) => (self.to.kind(), "blocks"),
            ThreadAxis::Thread(_) => (self.to.kind(), "threads"),
        };
        let state = format!("bound to {kind}");
        let mode = IterationMode { state, who, verb: "bind", tails: "`guard`" };
        mode.expect_independent(nest, stage, l)?;
        loop_at_mut(nest, &path)?.kind = kind;
        check_overlaps(nest)
    }

    fn renamed(&self, names: &Renaming<'_>) -> Result<Self, Refusal> {
        Ok(Self { target: names.own_loop(&self.target)?, ..self.clone() })
    }
}
