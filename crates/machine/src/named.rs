//! The registry of target names, one line each.

use crate::gpu::{ComputeUnits, Flagship};
use crate::{Cpu, Gpu, Target, TargetError};

/// Creates the target of a name.
type Make = fn(&str) -> Result<Target, TargetError>;

/// A registry line: the name, its aliases and the target.
struct Line {
    shown: &'static str,
    words: &'static [&'static str],
    make: Make,
}

const fn line(shown: &'static str, words: &'static [&'static str], make: Make) -> Line {
    Line { shown, words, make }
}

/// Shared memory sizes are from the CUDA C++ programming guide, "Technical specifications per
/// compute capability"; all other values from NVIDIA's data sheets.
const VOLTA: Flagship = Flagship {
    model: "Tesla V100-SXM2-16GB",
    shared_per_block: 96,
    shared_per_unit: 96,
    units: 80,
    l2: 6,
    bandwidth: 900,
    clock: 1530,
};

const AMPERE: Flagship = Flagship {
    model: "NVIDIA A100-SXM4-40GB",
    shared_per_block: 163,
    shared_per_unit: 164,
    units: 108,
    l2: 40,
    bandwidth: 1555,
    clock: 1410,
};

const HOPPER: Flagship = Flagship {
    model: "NVIDIA H100 80GB HBM3",
    shared_per_block: 227,
    shared_per_unit: 228,
    units: 132,
    l2: 50,
    bandwidth: 3350,
    clock: 1980,
};

/// Sizes are from "AMD GPU specifications" in the ROCm documentation (compute units, LDS, L2 cache,
/// VGPR file); bandwidths and clocks from AMD's data sheets. A thread has 256 registers, and as
/// many accumulation registers if there are matrix instructions ("User Guide for AMDGPU Backend" of
/// LLVM).
const VEGA: Flagship = Flagship {
    model: "AMD Radeon Instinct MI50",
    shared_per_block: 64,
    shared_per_unit: 64,
    units: 60,
    l2: 4,
    bandwidth: 1024,
    clock: 1725,
};

const VEGA_UNITS: ComputeUnits =
    ComputeUnits { registers: 64, registers_per_thread: 256, tensor: false };

/// One of the two dies of an MI250, which is a separate device; an MI210 is one such die.
const CDNA2: Flagship = Flagship {
    model: "AMD Instinct MI250, one die",
    shared_per_block: 64,
    shared_per_unit: 64,
    units: 104,
    l2: 8,
    bandwidth: 1638,
    clock: 1700,
};

const CDNA2_UNITS: ComputeUnits =
    ComputeUnits { registers: 128, registers_per_thread: 512, tensor: true };

#[rustfmt::skip]
const LINES: &[Line] = &[
    line("native", &[], |_| Target::native()),
    line("sse", &["generic", "x86-64"], |_| Ok(Cpu::sse().into())),
    line("avx2", &[], |_| Ok(Cpu::avx2().into())),
    line("avx512", &[], |_| Ok(Cpu::avx512().into())),
    line("neon", &[], |_| Ok(Cpu::neon().into())),
    line("opencl:N", &[], device),
    line("cuda:sm_70", &[], |name| Ok(Target::Gpu(Gpu::cuda(name, &VOLTA)))),
    line("cuda:sm_80", &[], |name| Ok(Target::Gpu(Gpu::cuda(name, &AMPERE)))),
    line("cuda:sm_90", &[], |name| Ok(Target::Gpu(Gpu::cuda(name, &HOPPER)))),
    line("hip:gfx906", &[], |name| Ok(Target::Gpu(Gpu::hip(name, &VEGA_UNITS, &VEGA)))),
    line("hip:gfx90a", &[], |name| Ok(Target::Gpu(Gpu::hip(name, &CDNA2_UNITS, &CDNA2)))),
    line("cuda:N", &[], device),
];

impl Line {
    /// Whether the line matches a name. An `N` stands for a number.
    fn is_for(&self, name: &str) -> bool {
        match self.shown.strip_suffix(":N") {
            Some(device) => {
                let number = name.strip_prefix(device).and_then(|rest| rest.strip_prefix(':'));
                number.is_some_and(|number| number.parse::<u32>().is_ok())
            }
            None => self.shown == name || self.words.contains(&name),
        }
    }
}

/// The names, for display.
pub(crate) fn names() -> Vec<&'static str> {
    LINES.iter().map(|line| line.shown).collect()
}

/// The target of a name.
pub(crate) fn named(name: &str) -> Result<Target, TargetError> {
    match LINES.iter().find(|line| line.is_for(name)) {
        Some(line) => (line.make)(name),
        None => Err(TargetError::Unknown { name: name.to_owned() }),
    }
}

/// Runtimes number the devices, and this crate does not load runtimes.
fn device(name: &str) -> Result<Target, TargetError> {
    let reason = "only its runtime knows what it is".to_owned();
    let help = "ask `tensorwright::target`, which loads the runtimes of devices".to_owned();
    Err(TargetError::NoDevice { name: name.to_owned(), reason, help })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::GpuApi;

    #[test]
    fn every_name_that_is_shown_is_one() {
        for name in names() {
            let name = name.replace('N', "0");
            match named(&name) {
                Ok(target) => assert_eq!(target.name(), name),
                Err(error) => {
                    assert!(matches!(error, TargetError::NoDevice { name: n, .. } if n == name))
                }
            }
        }
    }

    #[test]
    fn the_names_of_processors_are_names_of_targets() {
        let processors =
            names().into_iter().filter(|name| named(name).is_ok_and(|t| t.cpu().is_some()));
        assert!(processors.eq(Cpu::NAMES));
    }

    #[test]
    fn names_that_nothing_has_are_unknown() {
        for name in [
            "",
            "vax",
            "native:1",
            "avx2:",
            "cuda",
            "cuda:",
            "cuda:sm_1",
            "hip:gfx1",
            "opencl:x",
            ":",
        ] {
            assert!(matches!(named(name), Err(TargetError::Unknown { .. })), "{name}");
        }
        let error = named("vax").unwrap_err();
        assert_eq!(error.to_string(), "there is no target `vax`");
        assert_eq!(
            error.help(),
            "the targets are native, sse, avx2, avx512, neon, opencl:N, cuda:sm_70, cuda:sm_80, cuda:sm_90, hip:gfx906, \
             hip:gfx90a, cuda:N; `tensorwright machine` lists the devices"
        );
    }

    #[test]
    fn wavefronts_of_amd_are_twice_a_warp() {
        for (name, tensor) in [("hip:gfx906", false), ("hip:gfx90a", true)] {
            let Ok(Target::Gpu(gpu)) = named(name) else { panic!("{name} is no processor") };
            assert_eq!((gpu.api, gpu.warp, gpu.tensor), (GpuApi::Hip, 64, tensor));
            assert_eq!((gpu.threads_per_block, gpu.shared_per_block), (1024, 65536));
        }
    }

    #[test]
    fn other_words_mean_the_same() {
        assert_eq!(named("x86-64"), named("sse"));
        assert_eq!(named("generic").map(|t| t.name().to_owned()), Ok("sse".to_owned()));
    }
}
