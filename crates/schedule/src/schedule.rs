//! A schedule: a list of primitives that is applied to the canonical loop nest of a program.
//!
//! A schedule is data. Its text has one primitive per line, the stage it acts on first:
//!
//! ```text
//! # C(m,n) +=! A(m,k) * B(k,n), 6x32 register tiles
//! C: split m 6 [peel]
//! C: split n 2 16
//! C: reorder m.0 n.0 k m.1 n.1 n.2
//! C: unroll m.1
//! C: unroll n.1
//! C: vectorize n.2
//! C: cache_write at n.0
//! ```
//!
//! [`Schedule::parse`] reads it, `Display` writes it, and [`Schedule::apply`] replays it on a nest.
//! A primitive that would change the result is refused with the reason; the nest that is returned
//! is always equivalent to the program.

use std::fmt;

use tensorwright_lang::precision::Precision;

pub use crate::words::ByteRange;

use crate::bound;
use crate::limits::{self, MAX_BYTES};
use crate::nest::LoopNest;
use crate::primitives::Primitive;
use crate::refusal::Refusal;
use crate::tensors;
use crate::window::{Window, refuse_hidden};
use crate::words::Words;

/// A list of primitives to apply in order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Schedule {
    /// The steps, first to last.
    pub steps: Vec<Step>,
}

/// One primitive, applied to one stage.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// The name of the stage.
    pub stage: String,
    /// What is done.
    pub primitive: Primitive,
    /// Where the text has it; empty for a step that was not read from text.
    pub span: ByteRange,
}

/// A mistake in the text of a schedule, or a primitive that was refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScheduleError {
    /// Where in the text.
    pub span: ByteRange,
    /// The step that was refused; `None` for a mistake in the text.
    pub step: Option<Box<Step>>,
    /// What and why.
    pub refusal: Refusal,
}

impl ScheduleError {
    /// The name of the stage whose step was refused; `None` for a mistake in the text.
    #[must_use]
    pub fn stage(&self) -> Option<&str> {
        self.step.as_ref().map(|step| step.stage.as_str())
    }

    /// The keyword of the primitive that refuses; `None` for a mistake in the text.
    #[must_use]
    pub fn keyword(&self) -> Option<&'static str> {
        self.step.as_ref().map(|step| step.primitive.keyword())
    }

    /// What is wrong.
    #[must_use]
    pub fn reason(&self) -> &str {
        &self.refusal.message
    }
}

impl Schedule {
    /// Whether sums stay those that the program names, up to their order.
    #[must_use]
    pub fn is_exact(&self) -> bool {
        self.steps.iter().all(|step| step.primitive.is_exact())
    }

    /// With which numbers it computes sums. [`Precision::allows`] says where that may be used; what a record
    /// says of its schedule does not count.
    #[must_use]
    pub fn precision(&self) -> Precision {
        if self.is_exact() { Precision::Exact } else { Precision::Fast }
    }

    /// Reads a schedule from text.
    ///
    /// # Errors
    /// The first line that is not a step.
    pub fn parse(text: &str) -> Result<Self, ScheduleError> {
        if text.len() > MAX_BYTES {
            return Err(syntax(
                ByteRange::default(),
                limits::exceeded("has", text.len(), "bytes", MAX_BYTES)
                    .help("leave out comments and steps without effect"),
            ));
        }
        let mut steps = Vec::new();
        let mut start = 0;
        for line in text.split_inclusive('\n') {
            let code = line.split('#').next().unwrap_or_default();
            if !code.trim().is_empty() {
                steps.push(parse_step(code, start)?);
            }
            start += line.len();
        }
        Ok(Self { steps })
    }

    /// Writes the schedule as text, and says of every step where the text has it: as if it were read from
    /// that text.
    #[must_use]
    pub fn spelled(mut self) -> (Self, String) {
        let mut text = String::new();
        for step in &mut self.steps {
            let start = text.len();
            text += &step.to_string();
            step.span = ByteRange { start, end: text.len() };
            text.push('\n');
        }
        (self, text)
    }

    /// Applies all steps to a nest, which is [canonical](crate::canonical()) at first.
    ///
    /// # Errors
    /// The first step that would change the result or does not fit the nest.
    pub fn apply(&self, mut nest: LoopNest) -> Result<LoopNest, ScheduleError> {
        let most = limits::most_steps(&nest);
        if self.steps.len() > most {
            return Err(syntax(ByteRange::default(), too_many_steps(most)));
        }
        if Window::suits(&nest) {
            let mut window = Window::new(nest);
            for step in &self.steps {
                step.rewrite(window.show(&step.stage, &step.primitive))?;
            }
            return Ok(window.whole());
        }
        for step in &self.steps {
            // A nest that refuses goes with the error, so there is no need to keep it whole.
            step.rewrite(&mut nest)?;
        }
        Ok(nest)
    }

    /// Adds a step.
    pub fn push(&mut self, stage: impl Into<String>, primitive: impl Into<Primitive>) {
        let (stage, primitive) = (stage.into(), primitive.into());
        self.steps.push(Step { stage, primitive, span: ByteRange::default() });
    }
}

impl Step {
    /// Applies the step to a nest. A nest that refuses is as it was.
    ///
    /// # Errors
    /// Where the step would change the result or does not fit the nest.
    pub fn apply(&self, nest: &mut LoopNest) -> Result<(), ScheduleError> {
        let mut changed = nest.clone();
        self.rewrite(&mut changed)?;
        *nest = changed;
        Ok(())
    }

    /// Applies the step to a nest; one that refuses may be left half rewritten.
    pub(crate) fn rewrite(&self, nest: &mut LoopNest) -> Result<(), ScheduleError> {
        let applied = refuse_hidden(nest, &self.stage, &self.primitive)
            .and_then(|()| self.primitive.apply(&self.stage, nest));
        let checked = applied
            .and_then(|()| limits::check(nest))
            .and_then(|()| bound::check(nest))
            .and_then(|()| tensors::check(nest));
        checked.map_err(|refusal| self.refused(refusal))
    }

    /// That the step is refused.
    pub(crate) fn refused(&self, refusal: Refusal) -> ScheduleError {
        ScheduleError { span: self.span, step: Some(Box::new(self.clone())), refusal }
    }
}

fn parse_step(line: &str, start: usize) -> Result<Step, ScheduleError> {
    let mut words = Words::new(line, start).map_err(|(span, why)| syntax(span, why))?;
    let whole = words.span();
    let parse = |words: &mut Words<'_>| {
        let stage = words.name("the name of a stage")?;
        words.symbol(":")?;
        let primitive = Primitive::parse(words)?;
        words.end()?;
        Ok(Step { stage, primitive, span: whole })
    };
    parse(&mut words).map_err(|why| syntax(words.last_span(), why))
}

fn too_many_steps(most: usize) -> Refusal {
    limits::exceeded("has", format_args!("more than {most}"), "steps", most)
        .help("leave out steps without effect")
}

fn syntax(span: ByteRange, refusal: Refusal) -> ScheduleError {
    ScheduleError { span, step: None, refusal }
}

impl fmt::Display for Schedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.steps.iter().try_for_each(|step| writeln!(f, "{step}"))
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.stage, self.primitive)
    }
}

impl fmt::Display for ScheduleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.step {
            Some(step) => write!(f, "`{step}`: {}", self.refusal),
            None => self.refusal.fmt(f),
        }
    }
}

impl std::error::Error for ScheduleError {}
