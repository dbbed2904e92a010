//! Shadow memory: records which elements were written, and by whom.

use super::turn::{Stamp, Turn};
use crate::nest::{Buffer, LoopNest, Owner};

/// The state of an element.
#[derive(Clone, Copy, Default)]
struct Element {
    /// The lifetime of the buffer in which it was written.
    life: u32,
    /// The last turn that wrote it.
    writer: Stamp,
    /// The last turn that read it.
    reader: Stamp,
    /// The last turn of another thread that read it before that.
    before: Stamp,
    /// The last turn of another worker or block that read it.
    elsewhere: Stamp,
    /// Whether it is ever written, now or later.
    ever: bool,
}

/// The elements of a buffer.
#[derive(Clone)]
pub(super) struct Memory {
    extents: Vec<i64>,
    elements: Vec<Element>,
    /// The current lifetime: values of earlier lifetimes are lost.
    life: u32,
    /// The first turn that uses the current copy: earlier turns used other copies.
    since: u32,
}

impl Memory {
    /// The memory of all buffers of a nest; `None` if it has more than `limit` elements.
    pub(super) fn of(nest: &LoopNest, limit: u64) -> Option<Vec<Self>> {
        let mut total = 0u64;
        let one = |buffer: &Buffer| {
            let extents: Vec<i64> = (0..buffer.shape.len()).map(|d| buffer.padded(d)).collect();
            let elements = extents.iter().try_fold(1i64, |n, extent| n.checked_mul(*extent))?;
            let elements = u64::try_from(elements).ok()?;
            total = total.saturating_add(elements);
            if total > limit {
                return None;
            }
            let written = buffer.owner == Owner::Input;
            let element = Element { life: u32::from(written), ever: written, ..Element::default() };
            Some(Self { extents, elements: vec![element; elements as usize], life: 1, since: 0 })
        };
        nest.buffers.iter().map(one).collect()
    }

    /// The extents, padding included.
    pub(super) fn extents(&self) -> &[i64] {
        &self.extents
    }

    /// Forgets all values, as at the start of an iteration to which the buffer is local.
    pub(super) fn forget(&mut self, by: Turn) {
        self.life += 1;
        self.since = by.copy();
    }

    /// The linear position of an element; `None` out of bounds.
    pub(super) fn place(&self, subscripts: &[i128]) -> Option<usize> {
        let mut subscripts = subscripts.iter().enumerate();
        subscripts.try_fold(0, |place, (dimension, at)| self.step(place, dimension, *at))
    }

    /// The linear position of an element, given that of its row; `None` out of bounds.
    pub(super) fn step(&self, row: usize, dimension: usize, subscript: i128) -> Option<usize> {
        let extent = usize::try_from(*self.extents.get(dimension)?).ok()?;
        let subscript = usize::try_from(subscript).ok().filter(|at| *at < extent)?;
        Some(row * extent + subscript)
    }

    /// The subscripts of a linear position.
    pub(super) fn subscripts(&self, mut place: usize) -> Vec<i64> {
        let mut all: Vec<i64> = Vec::with_capacity(self.extents.len());
        for extent in self.extents.iter().rev() {
            let extent = (*extent).max(1) as usize;
            all.push((place % extent) as i64);
            place /= extent;
        }
        all.reverse();
        all
    }

    /// Whether an element is defined.
    pub(super) fn is_defined(&self, place: usize) -> bool {
        self.elements[place].life == self.life
    }

    /// Whether an element is ever written.
    pub(super) fn is_ever(&self, place: usize) -> bool {
        self.elements[place].ever
    }

    /// The first element that is not defined.
    pub(super) fn first_undefined(&self) -> Option<usize> {
        self.elements.iter().position(|element| element.life != self.life)
    }

    /// Records a read; returns whether it races with a write of another turn.
    pub(super) fn read(&mut self, place: usize, by: Turn) -> bool {
        let by = by.since(self.since);
        let element = &mut self.elements[place];
        if by.is_shared() {
            if by.is_elsewhere(element.reader) {
                element.elsewhere = element.reader;
            }
            if by.meets(element.reader) {
                element.before = element.reader;
            }
            element.reader = by.stamp();
        }
        by.meets(element.writer)
    }

    /// Records a write of a defined or undefined value; returns whether it races with another turn.
    pub(super) fn write(&mut self, place: usize, defined: bool, by: Turn) -> bool {
        let (life, by) = (self.life, by.since(self.since));
        let element = &mut self.elements[place];
        let others = [element.writer, element.reader, element.before, element.elsewhere];
        let races = others.into_iter().any(|other| by.meets(other));
        element.writer = by.stamp();
        element.life = if defined { life } else { 0 };
        element.ever |= defined;
        races
    }

    /// Fresh memory that keeps which elements are ever written.
    pub(super) fn anew(&self, owner: Owner) -> Self {
        let mut anew = self.clone();
        (anew.life, anew.since) = (1, 0);
        for element in &mut anew.elements {
            let life = u32::from(owner == Owner::Input);
            *element = Element { life, ever: element.ever, ..Element::default() };
        }
        anew
    }
}
