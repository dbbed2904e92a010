//! Emits run-time numbers: sizes, strides, and what follows from them.
//!
//! ```c
//! const int64_t *const tw_numbers = buffers[2];
//! const int64_t N = tw_numbers[0];
//! const int64_t x_stride0 = tw_numbers[1];
//! const int64_t end0 = (4 * N + 63) / 64 * 64;
//! ```
//!
//! A function declares those that it uses. Tasks of parallel loops capture them.
//!
//! Callers refuse sizes and strides for which a tensor or the workspace has more than
//! [`MAX_BYTES`], so products of extents and offsets of elements fit 64 bits.

use tensorwright_lang::program::Index;
use tensorwright_schedule::nest::{Buffer, BufferId, MAX_BYTES, Memory, NumberSource};
use tensorwright_schedule::workspace::ALIGNMENT;

use crate::emitter::Emitter;
use crate::error::EmitError;
use crate::index::{Summand, sum};
use crate::nodes::overflow;
use crate::text::{Binding, InsertPoint, Text};

/// The pointer to the numbers that callers pass.
const NUMBERS: &str = "tw_numbers";

impl Emitter<'_> {
    /// Enters the scope of all run-time numbers.
    pub(crate) fn enter_numbers(&mut self) {
        for number in &self.nest.numbers {
            self.enter(number.var, number.range);
        }
    }

    /// Declares the numbers that the text after a position mentions.
    pub(crate) fn declare_numbers(&mut self, place: InsertPoint) -> Result<(), EmitError> {
        let passed: Vec<_> = self.nest.passed_numbers().collect();
        // Each may depend on earlier ones.
        for number in self.nest.numbers.iter().rev() {
            let name = self.variable(number.var)?.name.clone();
            if !self.lines.mentions(place, &name) {
                continue;
            }
            let value = match &number.source {
                NumberSource::Size(_) | NumberSource::Stride(..) => {
                    let position = passed.iter().position(|var| *var == number.var);
                    format!("{NUMBERS}[{}]", position.unwrap_or(0))
                }
                NumberSource::Product(factors) => self.product(factors, Vec::new())?.into_code(),
                NumberSource::End { start, bytes, extents } => self.end(start, *bytes, extents)?,
            };
            self.lines.declare(place, &name, &format!("const int64_t {name} = {value};"));
        }
        let last = self.interface.parameters.len();
        let line = format!("const int64_t *const {NUMBERS} = buffers[{last}];");
        self.lines.declare(place, NUMBERS, &line);
        Ok(())
    }

    /// The numbers that the text after a position mentions. Inserts lines there that load them from
    /// the structure of a task.
    pub(crate) fn captured_numbers(&mut self, place: InsertPoint) -> Vec<String> {
        let is_number = |name: &&crate::emitter::Variable| self.nest.is_number(name.var);
        let all = self.scope.iter().filter(is_number).map(|variable| variable.name.clone());
        let all: Vec<String> = all.filter(|name| self.lines.mentions(place, name)).collect();
        for name in all.iter().rev() {
            self.lines.declare(place, name, &format!("int64_t {name} = task->{name};"));
        }
        all
    }

    /// A product of indices, and of other factors.
    fn product(&mut self, factors: &[Index], first: Vec<Text>) -> Result<Text, EmitError> {
        let mut all = first;
        for factor in factors {
            all.push(self.index(factor)?);
        }
        let product = all.into_iter().reduce(|a, b| Text::binary(a, "*", b, Binding::Product));
        Ok(product.unwrap_or_else(|| Text::primary("1")))
    }

    /// The end of a buffer in the workspace, rounded up.
    fn end(&mut self, start: &Index, bytes: i64, extents: &[Index]) -> Result<String, EmitError> {
        let bytes = self.product(extents, vec![Text::primary(bytes.to_string())])?;
        let mut summands = Vec::new();
        if start.as_constant() != Some(0) {
            summands.push(Summand { negative: false, text: self.index(start)? });
        }
        summands.push(Summand { negative: false, text: bytes });
        let above = Text::primary((ALIGNMENT - 1).to_string());
        summands.push(Summand { negative: false, text: above });
        Ok(format!("({}) / {ALIGNMENT} * {ALIGNMENT}", sum(summands).into_code()))
    }

    /// Whether a buffer is in the workspace.
    pub(crate) fn has_place(&self, id: BufferId) -> bool {
        let is_sized =
            |buffer: &Buffer| buffer.memory == Some(Memory::Workspace) && buffer.run_time.is_some();
        self.plan.offset(id).is_some() || self.buffer(id).is_ok_and(is_sized)
    }

    /// Whether no other buffer ever has the same bytes of the workspace.
    pub(crate) fn is_alone(&self, id: BufferId, buffer: &Buffer) -> bool {
        let start =
            |buffer: &Buffer| buffer.run_time.as_ref().and_then(|shape| shape.start.clone());
        match start(buffer) {
            Some(own) => {
                self.nest.buffers.iter().filter(|b| start(b).as_ref() == Some(&own)).count() == 1
            }
            None => self.plan.is_alone(id),
        }
    }

    /// The address of a buffer in the part of the workspace whose size depends on sizes.
    pub(crate) fn run_time_place(&mut self, buffer: &Buffer) -> Result<String, EmitError> {
        let start = buffer.run_time.as_ref().and_then(|shape| shape.start.clone());
        let start =
            start.and_then(|start| start.add(&Index::constant(self.plan.size.shared_bytes)));
        let start = start.ok_or_else(|| {
            EmitError::malformed(format!("`{}` has no place in the workspace", buffer.name))
        })?;
        Ok(match start.as_constant() {
            Some(0) => "workspace".to_owned(),
            _ => format!("(char *)workspace + {}", self.index(&start)?.at(Binding::Product)),
        })
    }

    /// The name of the number of bytes in that part; `None` if there is no such part.
    pub(crate) fn run_time_end(&self) -> Option<&str> {
        let is_end = |source: &NumberSource| matches!(source, NumberSource::End { .. });
        let end = self.nest.numbers.iter().rfind(|number| is_end(&number.source))?;
        self.variable(end.var).ok().map(|variable| variable.name.as_str())
    }

    /// The number of bytes of a buffer at the sizes of the call.
    pub(crate) fn run_time_bytes(&mut self, buffer: &Buffer) -> Result<String, EmitError> {
        let extents = buffer.run_time.as_ref().map_or(&[][..], |shape| &shape.extents);
        let bytes = Text::cast("size_t", Text::primary(buffer.dtype.bytes().to_string()));
        Ok(self.product(extents, vec![bytes])?.into_code())
    }

    /// The position of an element in a buffer with run-time strides.
    pub(crate) fn strided_offset(
        &mut self,
        buffer: &Buffer,
        subscripts: &[Index],
    ) -> Result<Text, EmitError> {
        // Subscripts with known strides, together.
        let mut known = Index::constant(0);
        let mut summands = Vec::new();
        for (dimension, subscript) in subscripts.iter().enumerate() {
            let stride = buffer.stride(dimension);
            if let Some(stride) = stride.as_constant() {
                let scaled = subscript.scale(stride).and_then(|scaled| known.add(&scaled));
                known = scaled.ok_or_else(|| overflow(buffer))?;
                continue;
            }
            let text = match (subscript.as_constant(), self.index(&stride)?) {
                (Some(0), _) => continue,
                (Some(1), stride) => stride,
                (_, stride) => Text::binary(self.index(subscript)?, "*", stride, Binding::Product),
            };
            summands.push(Summand { negative: false, text });
        }
        // The other summands together are at most `MAX_BYTES`.
        let fits = self.magnitude(&known).is_some_and(|most| most <= i128::from(MAX_BYTES));
        match fits {
            true => summands.extend(self.summands(&known)?),
            false => summands.push(Summand { negative: false, text: self.index(&known)? }),
        }
        Ok(sum(summands))
    }
}
