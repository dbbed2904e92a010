//! [`Machine`]: what the processor is and has.
//!
//! Everything is read from the system when asked, nothing is assumed to be a particular machine;
//! where the system does not say, a value that is common and safe stands in.
#![allow(unsafe_code, reason = "asks the C library for the size of memory")]

use std::collections::BTreeSet;
use std::fmt;
use std::fs;
use std::path::Path;

use crate::affinity;

/// A description of the machine that this process runs on.
///
/// ```
/// use tensorwright_runtime::Machine;
///
/// let machine = Machine::detect();
/// assert!(machine.logical_processors >= 1);
/// assert!(machine.to_string().contains("cache"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Machine {
    /// The processor's name for itself, or the architecture's if it has none.
    pub model: String,
    /// The architecture, as Rust spells it: `x86_64`, `aarch64`.
    pub architecture: &'static str,
    /// Vector features that this processor has and that code generation asks about, in the spelling
    /// of LLVM.
    pub features: Vec<&'static str>,
    /// Processors that the system shows.
    pub logical_processors: usize,
    /// Cores among them: processors that share a core count once.
    pub physical_cores: usize,
    /// The processors that this process may use; empty if the system does not say.
    pub allowed_processors: Vec<usize>,
    /// The caches of the first allowed processor.
    pub caches: Caches,
    /// The size of memory in bytes, if known.
    pub memory_bytes: Option<u64>,
}

/// Sizes of data caches in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Caches {
    /// The size of a cache line.
    pub line: usize,
    /// The first level, per core.
    pub l1d: usize,
    /// The second level.
    pub l2: usize,
    /// The third level, if there is one.
    pub l3: Option<usize>,
}

/// What stands in where the system does not say: small values, since a tile that is made for too
/// small a cache costs little.
const TYPICAL: Caches = Caches { line: 64, l1d: 32 << 10, l2: 256 << 10, l3: None };

impl Machine {
    /// Asks the system.
    #[must_use]
    pub fn detect() -> Self {
        let allowed_processors = affinity::allowed();
        let processors = Path::new("/sys/devices/system/cpu");
        let first = allowed_processors.first().copied().unwrap_or(0);
        let topology = Topology::read(processors);
        let available = std::thread::available_parallelism().map_or(1, usize::from);
        Self {
            model: model(),
            architecture: std::env::consts::ARCH,
            features: features(),
            logical_processors: topology.logical.max(available),
            physical_cores: if topology.cores > 0 { topology.cores } else { available },
            allowed_processors,
            caches: Caches::read(&processors.join(format!("cpu{first}/cache"))),
            memory_bytes: physical_memory(),
        }
    }

    /// Whether the processor has a feature of [`Machine::features`].
    #[must_use]
    pub fn has(&self, feature: &str) -> bool {
        self.features.contains(&feature)
    }
}

impl fmt::Display for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Caches { line, l1d, l2, l3 } = self.caches;
        writeln!(f, "processor  {} ({})", self.model, self.architecture)?;
        writeln!(f, "features   {}", self.features.join(" "))?;
        let (cores, logical) = (self.physical_cores, self.logical_processors);
        let allowed = self.allowed_processors.len();
        write!(f, "cores      {cores} ({logical} logical")?;
        if allowed > 0 {
            write!(f, ", {allowed} allowed")?;
        }
        writeln!(f, ")")?;
        write!(f, "caches     L1d {}, L2 {}", Size(l1d as u64), Size(l2 as u64))?;
        if let Some(l3) = l3 {
            write!(f, ", L3 {}", Size(l3 as u64))?;
        }
        writeln!(f, ", cache line {line} B")?;
        match self.memory_bytes {
            Some(bytes) => write!(f, "memory     {}", Size(bytes)),
            None => write!(f, "memory     unknown"),
        }
    }
}

/// A number of bytes in the unit that people use for it.
struct Size(u64);

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let units = ["B", "KiB", "MiB", "GiB", "TiB"];
        let power = (self.0.max(1).ilog2() / 10).min(4);
        let value = self.0 as f64 / (1u64 << (10 * power)) as f64;
        let rounded = (value * 10.0).round() / 10.0;
        write!(f, "{rounded} {}", units[power as usize])
    }
}

impl Caches {
    /// Reads a `cache` directory of a processor in sysfs.
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

/// A size as sysfs writes it: `32K`, `2M`. Zero is not a size: some virtual machines report it.
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

/// How many processors and cores sysfs shows; zero where it shows none.
#[derive(Debug, PartialEq, Eq)]
struct Topology {
    logical: usize,
    cores: usize,
}

impl Topology {
    fn read(directory: &Path) -> Self {
        let entries = fs::read_dir(directory).into_iter().flatten().flatten();
        // Processors of one core have the same list of siblings.
        let mut cores = BTreeSet::new();
        let mut logical = 0;
        for entry in entries {
            let topology = entry.path().join("topology");
            let siblings = fs::read_to_string(topology.join("core_cpus_list"))
                .or_else(|_| fs::read_to_string(topology.join("thread_siblings_list")));
            if let Ok(siblings) = siblings {
                logical += 1;
                cores.insert(siblings);
            }
        }
        Self { logical, cores: cores.len() }
    }
}

/// The processor's name for itself.
fn model() -> String {
    let text = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let arm = || parse_arm_model(&text);
    parse_model(&text)
        .map(str::to_owned)
        .or_else(arm)
        .unwrap_or_else(|| std::env::consts::ARCH.to_owned())
}

/// AArch64 says who made a processor and which one it is, by numbers. Machines with several kinds name all.
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

#[cfg(target_arch = "x86_64")]
fn features() -> Vec<&'static str> {
    macro_rules! detected {
        ($($name:tt),*) => { [$(($name, std::arch::is_x86_feature_detected!($name))),*] };
    }
    present(&detected!(
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
    ))
}

#[cfg(target_arch = "aarch64")]
fn features() -> Vec<&'static str> {
    macro_rules! detected {
        ($($name:tt),*) => { [$(($name, std::arch::is_aarch64_feature_detected!($name))),*] };
    }
    present(&detected!("neon", "dotprod", "fp16", "bf16", "i8mm", "sve"))
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn features() -> Vec<&'static str> {
    present(&[])
}

fn present(features: &[(&'static str, bool)]) -> Vec<&'static str> {
    features.iter().filter(|feature| feature.1).map(|feature| feature.0).collect()
}

/// The size of memory in bytes.
#[cfg(unix)]
pub(crate) fn physical_memory() -> Option<u64> {
    // SAFETY: the calls take numbers and return numbers.
    let (pages, size) =
        unsafe { (libc::sysconf(libc::_SC_PHYS_PAGES), libc::sysconf(libc::_SC_PAGESIZE)) };
    let (pages, size) = (u64::try_from(pages).ok()?, u64::try_from(size).ok()?);
    pages.checked_mul(size).filter(|&bytes| bytes > 0)
}

#[cfg(not(unix))]
pub(crate) fn physical_memory() -> Option<u64> {
    None
}

#[cfg(test)]
mod tests {
    use super::{
        Caches, Machine, Path, Size, TYPICAL, Topology, parse_arm_model, parse_model, parse_size,
    };

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
    fn sizes_are_written_for_people() {
        let texts = [0, 64, 32 << 10, 36608 << 10, 3 << 30].map(|bytes| Size(bytes).to_string());
        assert_eq!(texts, ["0 B", "64 B", "32 KiB", "35.8 MiB", "3 GiB"]);
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
    fn caches_and_topology_come_from_files() {
        let root =
            std::env::temp_dir().join(format!("tensorwright-machine-{}", std::process::id()));
        let write = |path: &str, text: &str| {
            let path = root.join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        let levels = [("1", "Data", "48K"), ("1", "Instruction", "32K"), ("2", "Unified", "2M")];
        for (number, (level, kind, size)) in levels.iter().enumerate() {
            let index = format!("cpu0/cache/index{number}");
            write(&format!("{index}/level"), level);
            write(&format!("{index}/type"), kind);
            write(&format!("{index}/size"), size);
            write(&format!("{index}/coherency_line_size"), "128\n");
        }
        for (processor, siblings) in [(0, "0,2"), (1, "1,3"), (2, "0,2"), (3, "1,3")] {
            write(&format!("cpu{processor}/topology/core_cpus_list"), siblings);
        }
        let caches = Caches::read(&root.join("cpu0/cache"));
        let topology = Topology::read(&root);
        std::fs::remove_dir_all(&root).unwrap();
        assert_eq!(caches, Caches { line: 128, l1d: 48 << 10, l2: 2 << 20, l3: None });
        assert_eq!(topology, Topology { logical: 4, cores: 2 });
    }

    #[test]
    fn without_files_the_typical_machine_stands_in() {
        let nowhere = Path::new("no/such/directory");
        assert_eq!(Caches::read(nowhere), TYPICAL);
        assert_eq!(Topology::read(nowhere), Topology { logical: 0, cores: 0 });
    }

    #[test]
    fn this_machine_is_described() {
        let machine = Machine::detect();
        assert!(!machine.model.is_empty());
        assert!((1..=machine.logical_processors).contains(&machine.physical_cores));
        assert!(machine.caches.line.is_power_of_two());
        assert!(machine.features.iter().all(|feature| machine.has(feature)));
        assert!(!machine.has("nonsense"));
        assert_eq!(machine.to_string().lines().count(), 5);
        #[cfg(unix)]
        assert!(machine.memory_bytes.is_some_and(|bytes| bytes > 1 << 20));
    }
}
