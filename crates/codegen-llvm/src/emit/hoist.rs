//! Hoists loop-invariant computations.
//!
//! No LLVM pass hoists code out of loops here. Every loop body starts with an insertion point for
//! values that depend only on its variable and on those further out, and caches the values computed
//! there:
//!
//! ```text
//! i:  base = A + i*512        // asked for by the access A[i*512 + k + 3] in the loop over k
//! k:    row = base + k
//!       load row + 3          // the constant fits into the instruction
//! ```

use std::collections::HashMap;

use inkwell::values::InstructionValue;
use tensorwright_lang::program::{Atom, Index, Term};
use tensorwright_schedule::nest::{BufferId, Lanes};

use super::Emitter;
use super::ir::{Value, defect};
use crate::error::{Error, Result};

/// The start of a loop body or of a function.
pub(super) struct Level<'ctx> {
    /// Hoisted instructions go in front of this one.
    anchor: InstructionValue<'ctx>,
    /// The values that were computed here.
    cache: HashMap<Key, Value<'ctx>>,
}

/// A value that is computed once.
#[derive(PartialEq, Eq, Hash, Clone)]
pub(super) enum Key {
    /// The address of an element.
    Pointer(BufferId, Vec<Term>),
    /// A sum of index terms.
    Sum(Vec<Term>),
    /// The active lanes of conditions.
    Mask(Vec<Index>, u32, i64),
}

impl Key {
    pub(super) fn mask(conditions: &[Index], lanes: Lanes) -> Self {
        Key::Mask(conditions.to_vec(), lanes.var.0, lanes.count)
    }
}

/// The terms of an index, grouped by the loop that determines their value.
pub(super) struct Split {
    /// For each level that has some: the terms that are known there. Outer levels first.
    pub(super) levels: Vec<(usize, Vec<Term>)>,
    /// Terms with values from data.
    pub(super) here: Vec<Term>,
}

impl<'ctx> Emitter<'_, 'ctx> {
    /// Opens a level at the end of the current block.
    pub(super) fn open_level(&mut self) -> Result<()> {
        // Any instruction can mark the position; it is removed when the level closes.
        let mark = self.ir.builder.build_alloca(self.ir.context.i8_type(), "")?;
        let anchor = mark.as_instruction().ok_or_else(|| defect("an alloca is an instruction"))?;
        self.frame.levels.push(Level { anchor, cache: HashMap::new() });
        Ok(())
    }

    pub(super) fn close_level(&mut self) {
        if let Some(level) = self.frame.levels.pop() {
            level.anchor.erase_from_basic_block();
        }
    }

    /// The index of the innermost level.
    pub(super) fn innermost(&self) -> usize {
        self.frame.levels.len().saturating_sub(1)
    }

    /// A value that is computed at the start of a level, now or earlier. It must be straight-line
    /// code over values that are known there.
    pub(super) fn once(
        &mut self,
        level: usize,
        key: Key,
        compute: impl FnOnce(&mut Self) -> Result<Value<'ctx>>,
    ) -> Result<Value<'ctx>> {
        if let Some(value) = self.level(level)?.cache.get(&key) {
            return Ok(*value);
        }
        let value = self.at_level(level, compute)?;
        self.level(level)?.cache.insert(key, value);
        Ok(value)
    }

    /// Emits instructions at the start of a level.
    pub(super) fn at_level<T>(
        &mut self,
        level: usize,
        emit: impl FnOnce(&mut Self) -> Result<T>,
    ) -> Result<T> {
        let anchor = self.level(level)?.anchor;
        let outer = self.frame.hoisting.replace(level);
        let block =
            self.ir.builder.get_insert_block().ok_or_else(|| defect("no insertion point"))?;
        self.ir.builder.position_before(&anchor);
        let value = emit(self)?;
        self.frame.hoisting = outer;
        match outer {
            Some(outer) => {
                let anchor = self.level(outer)?.anchor;
                self.ir.builder.position_before(&anchor);
            }
            None => self.ir.builder.position_at_end(block),
        }
        Ok(value)
    }

    fn level(&mut self, level: usize) -> Result<&mut Level<'ctx>> {
        self.frame.levels.get_mut(level).ok_or_else(|| defect("no such loop level"))
    }

    /// Groups terms by the level that determines them.
    pub(super) fn split(&self, terms: &[Term]) -> Result<Split> {
        let mut split = Split { levels: Vec::new(), here: Vec::new() };
        for term in terms {
            match self.atom_level(&term.atom)? {
                Some(level) => match split.levels.iter_mut().find(|(found, _)| *found == level) {
                    Some((_, terms)) => terms.push(term.clone()),
                    None => split.levels.push((level, vec![term.clone()])),
                },
                None => split.here.push(term.clone()),
            }
        }
        split.levels.sort_by_key(|(level, _)| *level);
        Ok(split)
    }

    /// The level that determines an index; `None` if it contains values from data.
    pub(super) fn index_level(&self, index: &Index) -> Result<Option<usize>> {
        let mut deepest = Some(0);
        for term in index.terms() {
            let level = self.atom_level(&term.atom)?;
            deepest = deepest.zip(level).map(|(a, b)| a.max(b));
        }
        Ok(deepest)
    }

    fn atom_level(&self, atom: &Atom) -> Result<Option<usize>> {
        match atom {
            Atom::Axis(var) => match self.frame.vars.get(var) {
                Some(variable) => Ok(Some(variable.level)),
                None => Err(Error::Build("a loop variable is used outside of its loop".into())),
            },
            Atom::Div(inner, _) | Atom::Mod(inner, _) => self.index_level(inner),
            Atom::Min(a, b) | Atom::Max(a, b) => {
                Ok(self.index_level(a)?.zip(self.index_level(b)?).map(|(a, b)| a.max(b)))
            }
            Atom::Product(inner, factor) => {
                let factor = self.atom_level(&Atom::Axis(*factor))?;
                Ok(self.index_level(inner)?.zip(factor).map(|(a, b)| a.max(b)))
            }
            Atom::Value(_) => Ok(None),
        }
    }
}
