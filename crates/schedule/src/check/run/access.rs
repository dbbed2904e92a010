//! Memory accesses of the interpreter, and their flaws.

use super::Run;
use super::value::Value;
use crate::check::Flaw;
use crate::check::memory::Memory;
use crate::nest::{BufferId, Owner, StageId};

impl Run<'_> {
    /// The flaw that explains the undefined value in use.
    pub(super) fn blamed(&mut self) -> Box<Flaw> {
        let blame = self.blame.take();
        blame.unwrap_or_else(|| self.undefined(Some(self.stage), self.stage.0, 0))
    }

    fn name(&self, id: BufferId) -> String {
        self.nest.buffer(id).name.clone()
    }

    pub(super) fn undefined(
        &self,
        reader: Option<StageId>,
        id: BufferId,
        place: usize,
    ) -> Box<Flaw> {
        Box::new(Flaw::Undefined {
            reader: reader.map(|reader| self.name(reader.0)),
            buffer: self.name(id),
            element: self.memory[id.0 as usize].subscripts(place),
        })
    }

    pub(super) fn race(&self, id: BufferId, place: usize) -> Box<Flaw> {
        Box::new(Flaw::Race {
            stage: self.name(self.stage.0),
            buffer: self.name(id),
            element: self.memory[id.0 as usize].subscripts(place),
        })
    }

    pub(super) fn memory_of(&self, id: BufferId) -> &Memory {
        &self.memory[id.0 as usize]
    }

    pub(super) fn memory_mut(&mut self, id: BufferId) -> &mut Memory {
        &mut self.memory[id.0 as usize]
    }

    pub(super) fn out_of_bounds(&self, id: BufferId, element: &[i128]) -> Box<Flaw> {
        let (stage, buffer) = (self.name(self.stage.0), self.name(id));
        Box::new(Flaw::OutOfBounds { stage, buffer, element: element.to_vec() })
    }

    /// Reads an element.
    pub(super) fn read_at(
        &mut self,
        id: BufferId,
        subscripts: &[i128],
    ) -> Result<Value, Box<Flaw>> {
        let Some(place) = self.memory_of(id).place(subscripts) else {
            // A condition on data may guard this read.
            return if self.guesses > 0 {
                Ok(Value::Data)
            } else {
                Err(self.out_of_bounds(id, subscripts))
            };
        };
        self.read_place(id, place)
    }

    /// Reads the element at a linear position.
    pub(super) fn read_place(&mut self, id: BufferId, place: usize) -> Result<Value, Box<Flaw>> {
        let turn = self.turn;
        if self.memory_mut(id).read(place, turn) {
            return Err(self.race(id, place));
        }
        let changes = self.preparing
            && self.nest.buffer(id).owner == Owner::Input
            && !self.nest.constants.contains(&id);
        if self.memory_of(id).is_defined(place) && !changes {
            return Ok(Value::Data);
        }
        if self.blame.is_none() {
            let earlier = self.blames.get(&(id, place)).cloned();
            self.blame =
                Some(earlier.unwrap_or_else(|| self.undefined(Some(self.stage), id, place)));
        }
        Ok(Value::Undefined)
    }

    /// Reads an element with some subscripts from data: any element that is ever written.
    pub(super) fn read_some(
        &mut self,
        id: BufferId,
        subscripts: &[Option<i128>],
    ) -> Result<Value, Box<Flaw>> {
        self.met_data = true;
        if !self.knows_ever || self.nest.buffer(id).owner == Owner::Input {
            return Ok(Value::Data);
        }
        let extents = self.memory_of(id).extents().to_vec();
        let mut at: Vec<i128> = subscripts.iter().map(|known| known.unwrap_or(0)).collect();
        let mut value = Value::Data;
        loop {
            self.left = self.left.saturating_sub(1);
            let place = self.memory_of(id).place(&at);
            if self.left == 0 || value == Value::Undefined {
                return Ok(value);
            }
            if place.is_some_and(|place| self.memory_of(id).is_ever(place)) {
                value = self.read_at(id, &at)?;
            }
            let open = (0..at.len()).rev().filter(|d| subscripts[*d].is_none());
            let mut carried = true;
            for dimension in open {
                at[dimension] += 1;
                carried = at[dimension] >= i128::from(extents[dimension]);
                if !carried {
                    break;
                }
                at[dimension] = 0;
            }
            if carried {
                return Ok(value);
            }
        }
    }
}
