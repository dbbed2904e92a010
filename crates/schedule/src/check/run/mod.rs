//! Interprets a nest node by node.

mod access;
mod eval;
mod value;

use std::collections::HashMap;

use tensorwright_lang::dtype::DType;
use tensorwright_lang::program::{Expr, Index, TensorId};

use super::memory::Memory;
use super::turn::Turn;
use super::{Flaw, Verdict};
use crate::nest::{
    BufferId, Loop, LoopKind, LoopNest, Memory as MemorySpace, Node, Owner, StageId, Store, Var,
    for_each_loop,
};
use value::Value;

/// The state of the interpreter.
pub(super) struct Run<'a> {
    nest: &'a LoopNest,
    memory: Vec<Memory>,
    vars: Vec<i64>,
    left: u64,
    limit: u64,
    turn: Turn,
    turns: u32,
    /// Whether only barriers synchronize threads; otherwise, the end of a thread loop does.
    has_barriers: bool,
    /// Whether the preparation (ahead of all calls) is running.
    preparing: bool,
    /// The stage of the current store.
    stage: StageId,
    /// The number of enclosing conditions that depend on data.
    guesses: u32,
    /// Whether the set of elements that are ever written is known.
    knows_ever: bool,
    /// Whether an access depended on data.
    met_data: bool,
    /// The last undefined element that was read.
    blame: Option<Box<Flaw>>,
    /// The reasons why written elements are undefined.
    blames: HashMap<(BufferId, usize), Box<Flaw>>,
    /// The values of the lanes of a store, empty between stores: kept to reuse the allocation.
    made: Vec<LaneWrite>,
}

/// The position and value of one lane of a store, and the reason if the value is undefined.
type LaneWrite = (usize, Value, Option<Box<Flaw>>);

impl<'a> Run<'a> {
    /// A new run; `None` if the nest needs too much memory.
    pub(super) fn new(nest: &'a LoopNest, limit: u64) -> Option<Self> {
        let memory = Memory::of(nest, limit)?;
        Some(Self::on(nest, memory, limit))
    }

    fn on(nest: &'a LoopNest, memory: Vec<Memory>, limit: u64) -> Self {
        Self {
            nest,
            memory,
            vars: vec![0; nest.vars.len()],
            left: limit,
            limit,
            turn: Turn::default(),
            turns: 0,
            has_barriers: nest.launches.is_some(),
            preparing: false,
            stage: StageId(TensorId(0)),
            guesses: 0,
            knows_ever: false,
            met_data: false,
            blame: None,
            blames: HashMap::new(),
            made: Vec::new(),
        }
    }

    /// A second run that knows which elements the first one wrote; `None` if no access depended on
    /// data.
    pub(super) fn again(&self) -> Option<Self> {
        let memory = self.memory.iter().zip(&self.nest.buffers);
        let memory = memory.map(|(memory, buffer)| memory.anew(buffer.owner)).collect();
        let again = Self { knows_ever: true, ..Self::on(self.nest, memory, self.limit) };
        self.met_data.then_some(again)
    }

    /// Interprets the preparation, then one call.
    pub(super) fn all(&mut self) -> Result<Verdict, Box<Flaw>> {
        self.preparing = true;
        self.trees(&self.nest.prepare)?;
        self.preparing = false;
        for (memory, buffer) in self.memory.iter_mut().zip(&self.nest.buffers) {
            if buffer.owner.is_kernel() {
                memory.forget(Turn::default());
            }
        }
        self.trees(&self.nest.body)?;
        if self.left == 0 {
            return Ok(Verdict::TooLong);
        }
        let outputs = self.nest.parameters.iter();
        for id in outputs.filter(|id| self.nest.buffer(**id).owner == Owner::Output) {
            let memory = &self.memory[id.0 as usize];
            if let Some(place) = memory.first_undefined() {
                let never = || self.undefined(None, *id, place);
                return Err(self.blames.get(&(*id, place)).cloned().unwrap_or_else(never));
            }
        }
        Ok(Verdict::Sound)
    }

    /// The value of a variable.
    fn var(&self, var: Var) -> i64 {
        self.vars[var.0 as usize]
    }

    /// The type of an expression.
    fn dtype(&self, expr: &Expr) -> DType {
        expr.dtype(&|id| self.nest.dtype(id))
    }

    /// Interprets the top-level nodes in order. With bound loops, each is a launch.
    fn trees(&mut self, nodes: &[Node]) -> Result<(), Box<Flaw>> {
        for node in nodes {
            let mut is_bound = false;
            let own = std::slice::from_ref(node);
            for_each_loop(own, &mut |l| is_bound |= l.kind.is_bound());
            if self.has_barriers {
                self.begin_launch();
            }
            self.turn = if is_bound { Turn::launch(self.next_turn()) } else { Turn::default() };
            self.nodes(own)?;
        }
        self.turn = Turn::default();
        Ok(())
    }

    /// Invalidates shared memory and registers at the start of a launch.
    fn begin_launch(&mut self) {
        for (memory, buffer) in self.memory.iter_mut().zip(&self.nest.buffers) {
            if matches!(buffer.memory, Some(MemorySpace::Shared | MemorySpace::Stack)) {
                memory.forget(Turn::default());
            }
        }
    }

    /// The number of the next turn.
    fn next_turn(&mut self) -> u32 {
        self.turns += 1;
        self.turns
    }

    fn nodes(&mut self, nodes: &[Node]) -> Result<(), Box<Flaw>> {
        for node in nodes {
            match node {
                Node::Loop(l) => self.iterate(l)?,
                Node::Guard(guard) => {
                    let mut holds = true;
                    for condition in &guard.conditions {
                        holds = holds && self.holds(condition)?;
                    }
                    if holds {
                        self.nodes(&guard.body)?;
                    }
                }
                Node::Store(store) => self.store(store)?,
                Node::Prefetch(_) => {}
                Node::Barrier => {
                    let turn = self.next_turn();
                    self.turn = self.turn.next(turn).epoch(turn);
                }
            }
        }
        Ok(())
    }

    fn iterate(&mut self, l: &Loop) -> Result<(), Box<Flaw>> {
        let outside = self.turn;
        let inside = self.enter(l.kind);
        let (begin, end) = self.span(l)?;
        for value in begin..end {
            self.left = self.left.saturating_sub(1);
            if self.left == 0 {
                break;
            }
            match l.kind {
                LoopKind::Parallel | LoopKind::Block(_) => {
                    self.turn = inside.block(self.next_turn());
                }
                LoopKind::Thread(dim) => self.turn = inside.thread(self.next_turn(), dim, value),
                LoopKind::Serial | LoopKind::Unrolled | LoopKind::Vectorized | LoopKind::Tensor => {
                }
            }
            self.vars[l.var.0 as usize] = value;
            for local in &l.locals {
                self.memory[local.0 as usize].forget(self.turn);
            }
            self.nodes(&l.body)?;
        }
        match l.kind {
            LoopKind::Parallel => self.turn = outside,
            LoopKind::Thread(_) if !outside.in_thread() => {
                let turn = self.next_turn();
                let after = outside.next(turn);
                self.turn = if self.has_barriers { after } else { after.epoch(turn) };
            }
            LoopKind::Thread(_) | LoopKind::Tensor => self.turn = outside,
            LoopKind::Serial | LoopKind::Unrolled | LoopKind::Vectorized | LoopKind::Block(_) => {}
        }
        Ok(())
    }

    /// The first value of a loop's variable, and one past the last.
    fn span(&mut self, l: &Loop) -> Result<(i64, i64), Box<Flaw>> {
        let Some(span) = &l.span else { return Ok((0, l.extent)) };
        let mut number = |index: &Index| match self.index(index)? {
            Value::Known(value) => Ok(i64::try_from(value).unwrap_or(0)),
            Value::Data | Value::Undefined => Err(self.blamed()),
        };
        Ok((number(&span.begin)?, number(&span.end)?))
    }

    /// The turn that the iterations of a loop start from.
    fn enter(&mut self, kind: LoopKind) -> Turn {
        match kind {
            LoopKind::Parallel => Turn::launch(self.turns + 1),
            LoopKind::Thread(_) if !self.turn.in_thread() && !self.has_barriers => {
                self.turn.epoch(self.turns + 1)
            }
            LoopKind::Tensor if self.has_barriers => {
                self.turn = self.turn.warp();
                self.turn
            }
            _ => self.turn,
        }
    }

    /// Whether a condition holds; a condition that depends on data is assumed to hold.
    fn holds(&mut self, condition: &Index) -> Result<bool, Box<Flaw>> {
        match self.index(condition)? {
            Value::Known(value) => Ok(value >= 0),
            Value::Data => Ok(true),
            Value::Undefined => Err(self.blamed()),
        }
    }

    fn store(&mut self, store: &Store) -> Result<(), Box<Flaw>> {
        self.stage = store.stage();
        let count = store.lanes.map_or(1, |lanes| lanes.count);
        self.left = self.left.saturating_sub(count.unsigned_abs());
        if self.left == 0 {
            return Ok(());
        }
        let mut made = std::mem::take(&mut self.made);
        // All lanes read before any of them writes, except in a recurrence.
        let in_order = store.lanes.is_some_and(|lanes| lanes.in_order);
        for lane in 0..count {
            if let Some(lanes) = store.lanes {
                self.vars[lanes.var.0 as usize] = lane;
            }
            let mut takes_part = true;
            for condition in store.domain.iter().map(|bound| &bound.index).chain(&store.mask) {
                takes_part = takes_part && self.holds(condition)?;
            }
            if takes_part {
                made.extend(self.term(store)?);
            }
            if in_order {
                self.write(store, &mut made)?;
            }
        }
        self.write(store, &mut made)?;
        self.made = made;
        Ok(())
    }

    /// Writes the values of the lanes of a store.
    fn write(&mut self, store: &Store, made: &mut Vec<LaneWrite>) -> Result<(), Box<Flaw>> {
        for (place, value, blame) in made.drain(..) {
            let defined = value != Value::Undefined
                && (store.combine.is_none() || self.memory_of(store.buffer).is_defined(place));
            match blame {
                Some(blame) => drop(self.blames.entry((store.buffer, place)).or_insert(blame)),
                None if self.blames.is_empty() => {}
                None => drop(self.blames.remove(&(store.buffer, place))),
            }
            let turn = self.turn;
            if self.memory_mut(store.buffer).write(place, defined, turn) {
                return Err(self.race(store.buffer, place));
            }
        }
        Ok(())
    }

    /// The position and value of a store; `None` if the position depends on data.
    fn term(&mut self, store: &Store) -> Result<Option<LaneWrite>, Box<Flaw>> {
        self.blame = None;
        let mut value = self.expr(&store.value)?;
        let Some(place) = self.place(store.buffer, &store.subscripts)? else {
            let subscripts = self.subscripts(&store.subscripts)?;
            let known: Option<Vec<i128>> = subscripts.into_iter().collect();
            return known.map_or(Ok(None), |known| Err(self.out_of_bounds(store.buffer, &known)));
        };
        if store.combine.is_some() && self.read_place(store.buffer, place)? == Value::Undefined {
            value = Value::Undefined;
        }
        let blame = if value == Value::Undefined { self.blame.take() } else { None };
        Ok(Some((place, value, blame)))
    }
}
