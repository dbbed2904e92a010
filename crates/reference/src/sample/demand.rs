//! Lazy evaluation of elements.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;

use tensorwright_lang::dtype::DType;
use tensorwright_lang::program::{Program, Stage, TensorId};

use super::{OutputElement, SampledElement, element_work};
use crate::buffer::index_in;
use crate::eval::{Contents, Failure, Tensors, defect};
use crate::interpret::element;
use crate::number::Number;
use crate::reduce::Accumulator;
use crate::running::RunningStage;

/// The deepest nesting of stages. An element that needs more is not computed.
pub(super) const MOST_STAGES: u32 = 64;

/// The least work charged per element: it is cached, which takes memory.
const LEAST_WORK: u64 = 4;

/// One element may use this fraction of the remaining budget, so that expensive elements leave some
/// for the others.
const ELEMENT_SHARE: u64 = 4;

/// The tensors of a program, with elements computed when they are read.
pub(super) struct Demand<'a> {
    program: &'a Program,
    /// Tensors computed as a whole.
    whole: &'a [Option<Contents<'a>>],
    /// Cached elements of the others.
    known: Vec<RefCell<HashMap<usize, Number>>>,
    /// The tensors that are running sums, with their cached elements.
    running: Vec<Option<RunningStage<'a>>>,
    sums: Vec<RefCell<HashMap<usize, Accumulator>>>,
    /// The remaining iterations.
    left: Cell<u64>,
    /// The value of `left` at which the current element gives up.
    floor: Cell<u64>,
    /// Whether the current element gave up.
    gave_up: Cell<bool>,
    depth: Cell<u32>,
}

impl<'a> Demand<'a> {
    pub(super) fn new(
        program: &'a Program,
        whole: &'a [Option<Contents<'a>>],
        iterations: u64,
    ) -> Self {
        let tensors = (0..program.tensors.len() as u32).map(TensorId);
        let running = tensors.map(|id| RunningStage::of(program, program.stage_of(id)?));
        Self {
            program,
            whole,
            known: program.tensors.iter().map(|_| RefCell::default()).collect(),
            running: running.collect(),
            sums: program.tensors.iter().map(|_| RefCell::default()).collect(),
            left: Cell::new(iterations),
            floor: Cell::new(0),
            gave_up: Cell::new(false),
            depth: Cell::new(0),
        }
    }

    /// Computes as many of the elements as the budget allows.
    pub(super) fn elements(
        &self,
        places: &[OutputElement],
    ) -> Result<Vec<SampledElement>, Failure> {
        let mut sampled = Vec::with_capacity(places.len());
        for place in places {
            let Some(id) = self.program.outputs.get(place.output) else { continue };
            let left = self.left.get();
            self.floor.set(left - left / ELEMENT_SHARE);
            self.gave_up.set(false);
            let number = match self.number(*id, place.position) {
                // Errors after giving up are not meaningful.
                _ if self.gave_up.get() => continue,
                number => number?,
            };
            let Some(number) = number else { continue };
            let (value, tolerance) = (number.value(), number.error());
            sampled.push(SampledElement { place: *place, value, tolerance });
        }
        Ok(sampled)
    }

    /// Charges the iterations of an element, or gives up.
    fn charge(&self, stage: &Stage) -> Result<(), Failure> {
        let cost = element_work(stage).max(LEAST_WORK);
        match self.left.get().checked_sub(cost) {
            Some(left) if left >= self.floor.get() && !self.gave_up.get() => {
                self.left.set(left);
                Ok(())
            }
            _ => Err(self.give_up(stage)),
        }
    }

    /// Aborts the current element. The caller checks the flag and ignores the error.
    fn give_up(&self, stage: &Stage) -> Failure {
        self.gave_up.set(true);
        defect(stage, "an element needs more than may be spent on it")
    }

    /// Computes an element, and in a recurrence all uncached elements before it on its line. The
    /// cached elements of a line are always a prefix, so no element is computed inside another of
    /// its line.
    fn compute_line(
        &self,
        stage: &Stage,
        dtype: DType,
        position: usize,
        known: &RefCell<HashMap<usize, Number>>,
    ) -> Result<Number, Failure> {
        for earlier in self.line_before(stage, position, known) {
            let made = self.compute(stage, dtype, earlier)?;
            self.cache(stage, known, earlier, made);
        }
        let made = self.compute(stage, dtype, position)?;
        self.cache(stage, known, position, made);
        Ok(made.0)
    }

    /// Caches an element. A selection may have continued without an operand that was given up.
    fn cache(
        &self,
        stage: &Stage,
        known: &RefCell<HashMap<usize, Number>>,
        position: usize,
        (number, sum): (Number, Option<Accumulator>),
    ) {
        if !self.gave_up.get() {
            known.borrow_mut().insert(position, number);
            if let (Some(sum), Some(sums)) = (sum, self.sums.get(stage.output.0 as usize)) {
                sums.borrow_mut().insert(position, sum);
            }
        }
    }

    /// The uncached positions before one on its line of a recurrence, in order.
    fn line_before(
        &self,
        stage: &Stage,
        position: usize,
        known: &RefCell<HashMap<usize, Number>>,
    ) -> impl Iterator<Item = usize> + use<> {
        let before = stage.scan.as_ref().and_then(|scan| {
            let shape = &self.program.tensor(stage.output).shape;
            let number = scan.axis.0 as usize;
            let (axis, at) = (stage.axes.get(number)?, *index_in(shape, position).get(number)?);
            let stride: usize = shape
                .iter()
                .skip(number + 1)
                .map(|extent| extent.unsigned_abs() as usize)
                .product();
            let steps = if scan.backwards { axis.hi - 1 - at } else { at - axis.lo };
            Some((usize::try_from(steps).ok()?, stride, scan.backwards))
        });
        let (steps, stride, backwards) = before.unwrap_or((0, 0, false));
        let back = move |steps: usize| match backwards {
            true => position + steps * stride,
            false => position - steps * stride,
        };
        let known = known.borrow();
        let unknown = (1..=steps).take_while(|steps| !known.contains_key(&back(*steps))).count();
        (1..=unknown).rev().map(back)
    }

    /// Computes an element of a stage's tensor, and the terms of a running sum up to it.
    fn compute(
        &self,
        stage: &Stage,
        dtype: DType,
        position: usize,
    ) -> Result<(Number, Option<Accumulator>), Failure> {
        let shape = &self.program.tensor(stage.output).shape;
        let rank = shape.len();
        let mut point = index_in(shape, position);
        let base = match stage.base {
            Some(base) => self.number(base, position)?,
            None => None,
        };
        let is_made = point.iter().zip(&stage.axes).all(|(i, axis)| (axis.lo..axis.hi).contains(i));
        if !is_made {
            return Ok((base.unwrap_or(Number::integer(DType::Int64, 0).cast(dtype)), None));
        }
        self.charge(stage)?;
        let place = stage.output.0 as usize;
        if let (Some(Some(running)), Some(sums)) = (self.running.get(place), self.sums.get(place)) {
            let before = running.before(&point, position);
            let known = before.map(|before| sums.borrow().get(&before).copied());
            let before = known.map(|sum| sum.ok_or_else(|| self.give_up(stage))).transpose()?;
            let sum = running.next(self.program, self, &point, before)?;
            return Ok((sum.finish().store(dtype), Some(sum)));
        }
        point.extend(stage.axes.iter().skip(rank).map(|axis| axis.lo));
        let number = element(self.program, stage, self, rank, &mut point, base)?;
        Ok((number.store(dtype), None))
    }
}

impl Tensors for Demand<'_> {
    fn shape(&self, id: TensorId) -> Option<&[i64]> {
        Some(&self.program.tensors.get(id.0 as usize)?.shape)
    }

    fn number(&self, id: TensorId, position: usize) -> Result<Option<Number>, Failure> {
        let place = id.0 as usize;
        if let Some(contents) = self.whole.get(place).and_then(Option::as_ref) {
            return Ok(contents.number(position));
        }
        let (Some(known), Some(stage)) = (self.known.get(place), self.program.stage_of(id)) else {
            return Ok(None);
        };
        let found = known.borrow().get(&position).copied();
        if found.is_some() {
            return Ok(found);
        }
        let dtype = self.program.tensor(id).dtype;
        let depth = self.depth.get() + 1;
        if depth > MOST_STAGES || self.gave_up.get() {
            return Err(self.give_up(stage));
        }
        self.depth.set(depth);
        let number = self.compute_line(stage, dtype, position, known);
        self.depth.set(depth - 1);
        number.map(Some)
    }
}
