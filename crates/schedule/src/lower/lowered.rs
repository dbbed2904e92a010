//! [`LoweredNest`]: the output of lowering and the input of emitters.

use std::fmt;

use super::LowerError;
use crate::nest::LoopNest;

/// A fully lowered nest: serial and parallel loops, explicit initialization of reductions, guards
/// and masks instead of domains, dense buffers with a known memory space.
///
/// Only [lowering](crate::lower()) creates one, so emitters cannot receive anything else:
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
    /// Wraps the nest after the last pass.
    pub(super) fn new(nest: LoopNest) -> Result<Self, LowerError> {
        if nest.is_lowered() { Ok(Self(nest)) } else { Err(LowerError::Unfinished) }
    }

    /// The loops, read-only.
    #[must_use]
    pub fn as_nest(&self) -> &LoopNest {
        &self.0
    }

    /// Renames the nest.
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
