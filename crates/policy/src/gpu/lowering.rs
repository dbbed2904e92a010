//! What can be lowered for a device.

use tensorwright_schedule::nest::LoopNest;
use tensorwright_schedule::{DeviceLimits, LowerOptions, lower_with};
use tensorwright_target::Gpu;

/// What lowering has to know of a device.
pub(crate) fn limits(gpu: &Gpu) -> DeviceLimits {
    DeviceLimits {
        threads: gpu.threads_per_block,
        shared_bytes: gpu.declared_shared(),
        ..DeviceLimits::default()
    }
}

/// Whether a nest can be lowered for a device.
pub(crate) fn lowers(nest: &LoopNest, gpu: &Gpu) -> bool {
    let options = LowerOptions::device(limits(gpu));
    lower_with(nest.clone(), &options, &mut |_, _| {}).is_ok()
}
