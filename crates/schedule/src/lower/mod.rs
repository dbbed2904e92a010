//! Lowering: from a scheduled nest to the form that emitters take.
//!
//! [`lower_with`] lists the passes in order. Each is a function from nest to nest in its own file;
//! [`lower_traced`] shows the nest after each pass.

mod borders;
mod device;
mod exact;
mod guards;
mod init;
mod layouts;
mod lowered;
mod masks;
mod memory;
mod padding;
mod peel;
mod simplify;
mod sizes;
mod slots;
mod unroll;
mod vectorize;

use std::fmt;

pub use device::{DeviceError, DeviceLimits};
pub use lowered::LoweredNest;
pub use memory::StackLimits;
pub(crate) use padding::{all_hold, zero};

use crate::limits::{MAX_STORES, MAX_TAILS};
use crate::nest::{Body, LoopNest};

/// Target-specific options of lowering.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LowerOptions {
    /// The limits of the stack.
    pub stack: StackLimits,
    /// The limits of a device; `None` for a CPU, which runs blocks and threads one after the other.
    pub device: Option<DeviceLimits>,
}

impl LowerOptions {
    /// For a device.
    #[must_use]
    pub fn device(limits: DeviceLimits) -> Self {
        Self { device: Some(limits), ..Self::default() }
    }
}

/// Lowers a scheduled nest.
///
/// # Errors
/// Where unrolling makes too much code, a vectorized loop holds other loops, or index arithmetic
/// overflows.
pub fn lower(nest: LoopNest) -> Result<LoweredNest, LowerError> {
    lower_traced(nest, &mut |_, _| {})
}

/// Lowers a scheduled nest and shows it after each pass, with the name of the pass.
///
/// # Errors
/// As [`lower`].
pub fn lower_traced(
    nest: LoopNest,
    show: &mut dyn FnMut(&str, &LoopNest),
) -> Result<LoweredNest, LowerError> {
    lower_with(nest, &LowerOptions::default(), show)
}

/// Lowers a scheduled nest with options, and shows it after each pass.
///
/// # Errors
/// As [`lower`].
pub fn lower_with(
    mut nest: LoopNest,
    options: &LowerOptions,
    show: &mut dyn FnMut(&str, &LoopNest),
) -> Result<LoweredNest, LowerError> {
    use When::{Always, OnDevice, Sized};
    let settle = |nest: &mut LoopNest| memory::run(nest, options);
    let cut = |nest: &mut LoopNest| match &options.device {
        Some(limits) => device::launches::run(nest, limits),
        None => Ok(()),
    };
    let passes: [(When, &str, &Pass<'_>); 20] = [
        (Always, "memory", &settle),
        (Always, "padding", &padding::run),
        (Always, "layouts", &layouts::run),
        (Always, "init", &init::run),
        (Always, "peel", &peel::run),
        (Always, "masks", &masks::run),
        (Always, "unroll", &unroll::run),
        (Always, "vectorize", &vectorize::run),
        (Always, "simplify", &simplify::run),
        (Always, "borders", &borders::run),
        (Sized, "sizes", &sizes::run),
        (OnDevice, "interior", &device::interior::run),
        (Always, "guards", &guards::run),
        (Always, "exact", &exact::run),
        (Sized, "slots", &slots::run),
        (OnDevice, "lives", &device::lives::run),
        (OnDevice, "tensors", &device::tensors::run),
        (OnDevice, "registers", &device::registers::run),
        (OnDevice, "barriers", &device::barriers::run),
        (OnDevice, "launches", &cut),
    ];
    let is_sized = !nest.numbers.is_empty();
    let runs = |when: When| match when {
        Always => true,
        Sized => is_sized,
        OnDevice => options.device.is_some(),
    };
    for (_, name, pass) in passes.into_iter().filter(|(when, ..)| runs(*when)) {
        pass(&mut nest)?;
        show(name, &nest);
    }
    LoweredNest::new(nest)
}

/// The nests for which a pass runs.
#[derive(Clone, Copy)]
enum When {
    /// All.
    Always,
    /// Those with numbers that are known at run time alone.
    Sized,
    /// Those for a device.
    OnDevice,
}

/// A pass.
type Pass<'a> = dyn Fn(&mut LoopNest) -> Result<(), LowerError> + 'a;

/// The reason why a nest cannot be lowered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LowerError {
    /// Unrolling makes more stores than [`MAX_STORES`].
    TooLarge,
    /// Peeled loops inside each other make more tails than [`MAX_TAILS`].
    TooManyTails,
    /// A vectorized loop that holds other loops.
    NotInnermost {
        /// The vectorized loop.
        vectorized: String,
        /// A loop in it.
        inner: String,
    },
    /// A nest that does not fit the device.
    Device(DeviceError),
    /// Index arithmetic overflows 64 bits.
    Overflow,
    /// The passes left the nest unfinished: a bug in one of them.
    Unfinished,
}

impl fmt::Display for LowerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LowerError::TooLarge => {
                write!(f, "unrolling makes more than {MAX_STORES} statements; unroll less")
            }
            LowerError::TooManyTails => write!(
                f,
                "peeled loops inside each other make more than {MAX_TAILS} tails; use the tail \
                 `guard` for some of them"
            ),
            LowerError::NotInnermost { vectorized, inner } => write!(
                f,
                "the vectorized loop `{vectorized}` holds the loop `{inner}`; reorder it to be \
                 innermost, or unroll `{inner}`"
            ),
            LowerError::Device(error) => error.fmt(f),
            LowerError::Overflow => f.write_str("index arithmetic leaves 64 bits"),
            LowerError::Unfinished => f.write_str("lowering is incomplete"),
        }
    }
}

impl std::error::Error for LowerError {}

/// Initializes reductions with explicit stores, as lowering does.
pub(crate) fn start_reductions(nest: &mut LoopNest) {
    init::start(nest);
}

/// Applies a pass to the preparation and to the body.
fn both(
    nest: &mut LoopNest,
    mut pass: impl FnMut(&LoopNest, Body) -> Result<Body, LowerError>,
) -> Result<(), LowerError> {
    let (prepare, body) = (std::mem::take(&mut nest.prepare), std::mem::take(&mut nest.body));
    nest.prepare = pass(nest, prepare)?;
    nest.body = pass(nest, body)?;
    Ok(())
}
