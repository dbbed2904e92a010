//! Lowering for GPUs, and its limits.

use tensorwright_machine::Gpu;
use tensorwright_schedule::nest::LoopNest;
use tensorwright_schedule::{DeviceLimits, LowerOptions, lower_with};

/// The device limits for lowering.
pub(crate) fn limits(gpu: &Gpu) -> DeviceLimits {
    DeviceLimits {
        threads: gpu.threads_per_block,
        shared_bytes: gpu.declared_shared(),
        ..DeviceLimits::default()
    }
}

/// Lowers a nest for a device and discards the result.
///
/// # Errors
/// Why the nest cannot be lowered.
pub(crate) fn lower(nest: &LoopNest, gpu: &Gpu) -> Result<(), String> {
    let options = LowerOptions::device(limits(gpu));
    let lowered = lower_with(nest.clone(), &options, &mut |_, _| {});
    lowered.map(|_| ()).map_err(|error| error.to_string())
}

/// Whether a nest can be lowered for a device.
pub(crate) fn lowers(nest: &LoopNest, gpu: &Gpu) -> bool {
    lower(nest, gpu).is_ok()
}
