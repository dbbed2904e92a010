//! [`LoweredNest`]: what lowering makes and emitters take.

use std::fmt;

use super::LowerError;
use crate::nest::LoopNest;

/// A nest in the form that emitters take: serial and parallel loops, reductions with a store of their
/// start, guards and masks in the place of domains, dense buffers of which it is known where they live.
///
/// Only [lowering](crate::lower()) makes one, so nothing else can be handed to an emitter:
///
/// ```compile_fail
/// use tensorwright_schedule::{Interface, canonical};
///
/// let module = tensorwright_lang::Module::parse("f.tc", "def f(float(N) A) -> (B) { B(i) = A(i) }").unwrap();
/// let program = module.bind("f", [("N", 4)]).unwrap();
/// Interface::of(&canonical(&program));
/// ```
///
/// ```
/// # use tensorwright_schedule::{Interface, canonical};
/// # let module = tensorwright_lang::Module::parse("f.tc", "def f(float(N) A) -> (B) { B(i) = A(i) }").unwrap();
/// # let program = module.bind("f", [("N", 4)]).unwrap();
/// let lowered = tensorwright_schedule::lower(canonical(&program)).unwrap();
/// assert_eq!(Interface::of(&lowered).symbol, "f");
/// ```
#[derive(Debug, Clone)]
pub struct LoweredNest(LoopNest);

impl LoweredNest {
    /// Takes the nest that passes have left.
    pub(super) fn new(nest: LoopNest) -> Result<Self, LowerError> {
        if nest.is_lowered() { Ok(Self(nest)) } else { Err(LowerError::Unfinished) }
    }

    /// The loops, to look at.
    #[must_use]
    pub fn as_nest(&self) -> &LoopNest {
        &self.0
    }

    /// The same under another name.
    #[must_use]
    pub fn named(mut self, name: &str) -> Self {
        name.clone_into(&mut self.0.name);
        self
    }
}

impl fmt::Display for LoweredNest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
