//! Detects the CPU of this machine.
//!
//! Everything is queried from the system; a common and safe default replaces missing values.

use std::fs;
use std::path::Path;
use std::sync::OnceLock;

/// Sizes of data caches in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Caches {
    /// The size of a cache line.
    pub line: usize,
    /// The L1 cache, per core.
    pub l1d: usize,
    /// The L2 cache.
    pub l2: usize,
    /// The L3 cache, if there is one.
    pub l3: Option<usize>,
}

/// The defaults if the system does not say: small values, because a tile for too small a cache
/// costs little.
const TYPICAL: Caches = Caches { line: 64, l1d: 32 << 10, l2: 256 << 10, l3: None };

impl Caches {
    /// The caches of the first CPU that this process may use.
    #[must_use]
    pub fn detect() -> Self {
        let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
        let first = first_allowed(&status).unwrap_or(0);
        Self::read(&Path::new("/sys/devices/system/cpu").join(format!("cpu{first}/cache")))
    }

    /// Reads the `cache` directory of a CPU in sysfs.
    fn read(directory: &Path) -> Self {
        let mut caches = TYPICAL;
        for number in 0..8 {
            let index = directory.join(format!("index{number}"));
            let text = |name| fs::read_to_string(index.join(name)).ok();
            let (Some(level), Some(kind)) = (text("level"), text("type")) else { continue };
            let Some(size) = text("size").as_deref().and_then(parse_size) else { continue };
            if kind.trim() == "Instruction" {
                continue;
            }
            match level.trim() {
                "1" => caches.l1d = size,
                "2" => caches.l2 = size,
                "3" => caches.l3 = Some(size),
                _ => {}
            }
            let line = text("coherency_line_size").and_then(|text| text.trim().parse().ok());
            caches.line = line.unwrap_or(caches.line);
        }
        caches
    }
}

/// A size in sysfs format: `32K`, `2M`. Zero is invalid: some virtual machines report it.
fn parse_size(text: &str) -> Option<usize> {
    let text = text.trim();
    let digits = text.trim_end_matches(['K', 'M', 'G']);
    let unit = match &text[digits.len()..] {
        "" => 1,
        "K" => 1 << 10,
        "M" => 1 << 20,
        "G" => 1 << 30,
        _ => return None,
    };
    digits.parse::<usize>().ok()?.checked_mul(unit).filter(|&size| size > 0)
}

/// The first CPU of `Cpus_allowed_list` in `/proc/self/status`: `2-5,8`.
fn first_allowed(status: &str) -> Option<usize> {
    let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?;
    list.trim().split([',', '-']).next()?.parse().ok()
}

/// The CPU's model name, or the architecture if it has none.
#[must_use]
pub fn model() -> String {
    static MODEL: OnceLock<String> = OnceLock::new();
    MODEL.get_or_init(read_model).clone()
}

fn read_model() -> String {
    let text = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let arm = || parse_arm_model(&text);
    parse_model(&text)
        .map(str::to_owned)
        .or_else(arm)
        .unwrap_or_else(|| std::env::consts::ARCH.to_owned())
}

/// The AArch64 implementer and part numbers. Machines with several kinds of cores name all.
fn parse_arm_model(cpuinfo: &str) -> Option<String> {
    let values = |name: &str| -> Vec<&str> {
        let lines = cpuinfo.lines().filter_map(|line| line.split_once(':'));
        let mut values: Vec<&str> =
            lines.filter(|(key, _)| key.trim() == name).map(|(_, value)| value.trim()).collect();
        values.sort_unstable();
        values.dedup();
        values
    };
    let (makers, parts) = (values("CPU implementer"), values("CPU part"));
    let is_known = !makers.is_empty() && !parts.is_empty();
    is_known.then(|| format!("AArch64 {} {}", makers.join("+"), parts.join("+")))
}

fn parse_model(cpuinfo: &str) -> Option<&str> {
    let named = |line: &str| line.starts_with("model name") || line.starts_with("Hardware");
    let line = cpuinfo.lines().find(|line| named(line))?;
    line.split_once(':').map(|(_, name)| name.trim()).filter(|name| !name.is_empty())
}

/// The vector features of this CPU that matter for code generation, as LLVM spells them.
#[must_use]
pub fn features() -> Vec<&'static str> {
    detected().into_iter().filter(|(_, present)| *present).map(|(name, _)| name).collect()
}

/// The vector features that matter for code generation, and whether this CPU has them.
#[cfg(target_arch = "x86_64")]
pub(crate) fn detected() -> Vec<(&'static str, bool)> {
    macro_rules! detected {
        ($($name:tt),*) => { vec![$(($name, std::arch::is_x86_feature_detected!($name))),*] };
    }
    detected!(
        "sse4.2",
        "avx",
        "avx2",
        "fma",
        "f16c",
        "avx512f",
        "avx512dq",
        "avx512bw",
        "avx512vl",
        "avx512vnni",
        "avx512bf16"
    )
}

/// The vector features that matter for code generation, and whether this CPU has them.
#[cfg(target_arch = "aarch64")]
pub(crate) fn detected() -> Vec<(&'static str, bool)> {
    macro_rules! detected {
        ($($name:tt),*) => { vec![$(($name, std::arch::is_aarch64_feature_detected!($name))),*] };
    }
    detected!("neon", "dotprod", "fp16", "bf16", "i8mm", "sve")
}

/// This architecture is not supported.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
pub(crate) fn detected() -> Vec<(&'static str, bool)> {
    Vec::new()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_as_sysfs_writes_them() {
        assert_eq!(parse_size("36608K\n"), Some(36608 << 10));
        assert_eq!(parse_size("2M"), Some(2 << 20));
        assert_eq!(parse_size("64"), Some(64));
        for wrong in ["", "K", "0K", "12T", "-1K", "99999999999999999999K", "18446744073709551615K"]
        {
            assert_eq!(parse_size(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn the_model_is_found() {
        assert_eq!(
            parse_model("processor : 0\nmodel name\t: Some CPU @ 1GHz\n"),
            Some("Some CPU @ 1GHz")
        );
        assert_eq!(parse_model("model name :\n"), None);
        assert_eq!(parse_model(""), None);
        let arm =
            |part: &str| format!("processor\t: 0\nCPU implementer\t: 0x41\nCPU part\t: {part}\n\n");
        let big_little = arm("0xd40") + &arm("0xd0c") + &arm("0xd40");
        assert_eq!(parse_model(&big_little), None);
        assert_eq!(parse_arm_model(&big_little).as_deref(), Some("AArch64 0x41 0xd0c+0xd40"));
        assert_eq!(parse_arm_model("CPU part : 0xd40\n"), None);
    }

    #[test]
    fn caches_come_from_files_or_are_typical() {
        let root = std::env::temp_dir().join(format!("tensorwright-caches-{}", std::process::id()));
        let write = |path: &str, text: &str| {
            let path = root.join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        let levels = [("1", "Data", "48K"), ("1", "Instruction", "32K"), ("2", "Unified", "2M")];
        for (number, (level, kind, size)) in levels.iter().enumerate() {
            let index = format!("index{number}");
            write(&format!("{index}/level"), level);
            write(&format!("{index}/type"), kind);
            write(&format!("{index}/size"), size);
            write(&format!("{index}/coherency_line_size"), "128\n");
        }
        let caches = Caches::read(&root);
        std::fs::remove_dir_all(&root).unwrap();
        assert_eq!(caches, Caches { line: 128, l1d: 48 << 10, l2: 2 << 20, l3: None });
        assert_eq!(Caches::read(Path::new("no/such/directory")), TYPICAL);
    }

    #[test]
    fn the_first_allowed_processor_is_found() {
        assert_eq!(first_allowed("Name:\tx\nCpus_allowed_list:\t2-5,8\n"), Some(2));
        assert_eq!(first_allowed("Cpus_allowed_list:\t7\n"), Some(7));
        assert_eq!(first_allowed(""), None);
    }
}
