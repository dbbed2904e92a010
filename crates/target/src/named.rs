//! The names of targets: one line each.

use crate::{Cpu, Gpu, Target, TargetError};

/// A way to make a target, given what follows the colon of its name.
type Make = fn(&str) -> Result<Target, TargetError>;

/// A line: what people write, other words for it, and what it means.
struct Line {
    shown: &'static str,
    words: &'static [&'static str],
    make: Make,
}

const fn line(shown: &'static str, words: &'static [&'static str], make: Make) -> Line {
    Line { shown, words, make }
}

#[rustfmt::skip]
const LINES: &[Line] = &[
    line("native", &["native"], |_| Target::native()),
    line("sse", &["sse", "generic", "x86-64"], |_| Ok(Cpu::sse().into())),
    line("avx2", &["avx2"], |_| Ok(Cpu::avx2().into())),
    line("avx512", &["avx512"], |_| Ok(Cpu::avx512().into())),
    line("neon", &["neon"], |_| Ok(Cpu::neon().into())),
    line("opencl:N", &["opencl"], opencl),
    line("cuda:sm_70", &[], cuda),
    line("cuda:sm_80", &[], cuda),
    line("cuda:sm_90", &["cuda"], cuda),
];

/// The architectures of NVIDIA's that there are, with the shared memory of a block and of a multiprocessor in
/// KiB (CUDA C++ programming guide, "Technical specifications per compute capability").
const CUDA: &[(&str, i64, i64)] = &[("sm_70", 96, 96), ("sm_80", 163, 164), ("sm_90", 227, 228)];

/// The names, for people.
pub(crate) fn names() -> Vec<&'static str> {
    LINES.iter().map(|line| line.shown).collect()
}

/// The target of a name.
pub(crate) fn named(name: &str) -> Result<Target, TargetError> {
    let (word, rest) = name.split_once(':').unwrap_or((name, ""));
    let unknown = || TargetError::Unknown { name: name.to_owned() };
    let line = LINES.iter().find(|line| line.words.contains(&word)).ok_or_else(unknown)?;
    // A colon belongs to devices.
    if name.contains(':') != line.shown.contains(':') {
        return Err(unknown());
    }
    (line.make)(rest)
}

fn cuda(architecture: &str) -> Result<Target, TargetError> {
    let name = format!("cuda:{architecture}");
    match CUDA.iter().find(|(known, ..)| *known == architecture) {
        Some((_, block, unit)) => Ok(Target::Gpu(Gpu::cuda(&name, block << 10, unit << 10))),
        None => Err(TargetError::Unknown { name }),
    }
}

/// Devices are numbered by the runtime, which is not asked yet.
fn opencl(number: &str) -> Result<Target, TargetError> {
    let name = format!("opencl:{number}");
    match number.parse::<u32>() {
        Ok(_) => Err(TargetError::Unavailable { name }),
        Err(_) => Err(TargetError::Unknown { name }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_that_is_shown_is_one() {
        for name in names() {
            let name = name.replace('N', "0");
            match named(&name) {
                Ok(target) => assert_eq!(target.name(), name),
                Err(error) => assert_eq!(error, TargetError::Unavailable { name }),
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
        for name in ["", "vax", "native:1", "avx2:", "cuda", "cuda:", "cuda:sm_1", "opencl:x", ":"]
        {
            assert!(matches!(named(name), Err(TargetError::Unknown { .. })), "{name}");
        }
        let error = named("vax").unwrap_err();
        assert_eq!(error.to_string(), "there is no target `vax`");
        assert_eq!(
            error.help(),
            "the targets are native, sse, avx2, avx512, neon; not available yet are opencl:N, cuda:sm_70, \
             cuda:sm_80, cuda:sm_90"
        );
    }

    #[test]
    fn other_words_mean_the_same() {
        assert_eq!(named("x86-64"), named("sse"));
        assert_eq!(named("generic").map(|t| t.name().to_owned()), Ok("sse".to_owned()));
    }
}
