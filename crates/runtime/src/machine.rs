//! [`Machine`]: CPU model, features, caches and memory of this machine.
//!
//! Everything is queried from the system; a common and safe default replaces missing values.
#![allow(unsafe_code, reason = "asks the C library for the size of memory")]

use std::collections::BTreeSet;
use std::fmt;
use std::fs;
use std::path::Path;

pub use tensorwright_machine::Caches;
use tensorwright_machine::{features, model};

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
    /// The CPU's model name, or the architecture if it has none.
    pub model: String,
    /// The architecture, as Rust spells it: `x86_64`, `aarch64`.
    pub architecture: &'static str,
    /// The vector features of this CPU that matter for code generation, as LLVM spells them.
    pub features: Vec<&'static str>,
    /// The number of logical CPUs.
    pub logical_processors: usize,
    /// The number of cores: logical CPUs that share a core count once.
    pub physical_cores: usize,
    /// The CPUs that this process may use; empty if unknown.
    pub allowed_processors: Vec<usize>,
    /// The caches of the first allowed CPU.
    pub caches: Caches,
    /// The size of memory in bytes, if known.
    pub memory_bytes: Option<u64>,
}

impl Machine {
    /// Queries the system.
    #[must_use]
    pub fn detect() -> Self {
        let allowed_processors = affinity::allowed();
        let processors = Path::new("/sys/devices/system/cpu");
        let topology = Topology::read(processors);
        let available = std::thread::available_parallelism().map_or(1, usize::from);
        Self {
            model: model(),
            architecture: std::env::consts::ARCH,
            features: features(),
            logical_processors: topology.logical.max(available),
            physical_cores: if topology.cores > 0 { topology.cores } else { available },
            allowed_processors,
            caches: Caches::detect(),
            memory_bytes: physical_memory(),
        }
    }

    /// Whether the CPU has a feature of [`Machine::features`].
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

/// A number of bytes, printed with a suitable unit.
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

/// The number of CPUs and cores in sysfs; zero if unknown.
#[derive(Debug, PartialEq, Eq)]
struct Topology {
    logical: usize,
    cores: usize,
}

impl Topology {
    fn read(directory: &Path) -> Self {
        let entries = fs::read_dir(directory).into_iter().flatten().flatten();
        // The CPUs of one core have the same list of siblings.
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
    use super::{Machine, Path, Size, Topology};

    #[test]
    fn sizes_are_written_for_people() {
        let texts = [0, 64, 32 << 10, 36608 << 10, 3 << 30].map(|bytes| Size(bytes).to_string());
        assert_eq!(texts, ["0 B", "64 B", "32 KiB", "35.8 MiB", "3 GiB"]);
    }

    #[test]
    fn topology_comes_from_files() {
        let root =
            std::env::temp_dir().join(format!("tensorwright-machine-{}", std::process::id()));
        let write = |path: &str, text: &str| {
            let path = root.join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        for (processor, siblings) in [(0, "0,2"), (1, "1,3"), (2, "0,2"), (3, "1,3")] {
            write(&format!("cpu{processor}/topology/core_cpus_list"), siblings);
        }
        let topology = Topology::read(&root);
        std::fs::remove_dir_all(&root).unwrap();
        assert_eq!(topology, Topology { logical: 4, cores: 2 });
    }

    #[test]
    fn without_files_the_typical_machine_stands_in() {
        let nowhere = Path::new("no/such/directory");
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
