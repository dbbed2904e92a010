//! Schedules: lists of primitives to apply to a program's loop nest.
//!
//! A schedule is data. Its text has one primitive per line, preceded by the stage:
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
//! A primitive that would change the result is refused with the reason; the returned nest is always
//! equivalent to the program.

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
    /// The primitive.
    pub primitive: Primitive,
    /// Its location in the text; empty if the step was not parsed.
    pub span: ByteRange,
}

/// A syntax error in a schedule, or a primitive that was refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScheduleError {
    /// The location in the text.
    pub span: ByteRange,
    /// The step that was refused; `None` for a syntax error.
    pub step: Option<Box<Step>>,
    /// The reason.
    pub refusal: Refusal,
}

impl ScheduleError {
    /// The stage whose step was refused; `None` for a syntax error.
    #[must_use]
    pub fn stage(&self) -> Option<&str> {
        self.step.as_ref().map(|step| step.stage.as_str())
    }

    /// The keyword of the primitive that was refused; `None` for a syntax error.
    #[must_use]
    pub fn keyword(&self) -> Option<&'static str> {
        self.step.as_ref().map(|step| step.primitive.keyword())
    }

    /// The problem.
    #[must_use]
    pub fn reason(&self) -> &str {
        &self.refusal.message
    }
}

impl Schedule {
    /// Whether sums stay those of the program, up to their order.
    #[must_use]
    pub fn is_exact(&self) -> bool {
        self.steps.iter().all(|step| step.primitive.is_exact())
    }

    /// The precision of its sums. [`Precision::allows`] decides where it may be used; a record's
    /// own claim does not count.
    #[must_use]
    pub fn precision(&self) -> Precision {
        if self.is_exact() { Precision::Exact } else { Precision::Fast }
    }

    /// Parses a schedule.
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

    /// Writes the schedule as text and sets the location of every step, as if it were parsed from
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

    /// Applies all steps to a nest, usually the [canonical](crate::canonical()) one.
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
            // On an error the nest is dropped, so it need not stay intact.
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
    /// Applies the step to a nest. After a refusal the nest is unchanged.
    ///
    /// # Errors
    /// Where the step would change the result or does not fit the nest.
    pub fn apply(&self, nest: &mut LoopNest) -> Result<(), ScheduleError> {
        let mut changed = nest.clone();
        self.rewrite(&mut changed)?;
        *nest = changed;
        Ok(())
    }

    /// Applies the step to a nest; a refusal may leave it half rewritten.
    pub(crate) fn rewrite(&self, nest: &mut LoopNest) -> Result<(), ScheduleError> {
        let applied = refuse_hidden(nest, &self.stage, &self.primitive)
            .and_then(|()| self.primitive.apply(&self.stage, nest));
        let checked = applied
            .and_then(|()| limits::check(nest))
            .and_then(|()| bound::check(nest))
            .and_then(|()| tensors::check(nest));
        checked.map_err(|refusal| self.refused(refusal))
    }

    /// The error of a refused step.
    pub(crate) fn refused(&self, refusal: Refusal) -> ScheduleError {
        ScheduleError { span: self.span, step: Some(Box::new(self.clone())), refusal }
    }
}

impl From<Refusal> for ScheduleError {
    /// The error of a decision that is no step.
    fn from(refusal: Refusal) -> Self {
        syntax(ByteRange::default(), refusal)
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
