//! [`Cpu`]: a CPU target.

use std::sync::OnceLock;

use crate::fingerprint::fingerprint;
use crate::native;
use crate::{TargetError, VectorIsa};

/// A CPU target: this machine, or a generic one.
///
/// | name | processor | vector | registers |
/// | --- | --- | --- | --- |
/// | `native` | this machine | by its features | |
/// | `sse` | any x86-64 | 16 bytes | 16 |
/// | `avx2` | x86-64 since Haswell | 32 bytes | 16 |
/// | `avx512` | x86-64 since Skylake-X | 64 bytes | 32 |
/// | `neon` | any AArch64 | 16 bytes | 32 |
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Cpu {
    name: &'static str,
    isa: VectorIsa,
    features: Vec<&'static str>,
    caches: CpuCaches,
}

/// The cache sizes of a core that determine good tile sizes, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct CpuCaches {
    /// The L1 data cache.
    pub l1: i64,
    /// The L2 cache.
    pub l2: i64,
}

impl CpuCaches {
    /// Caches of common CPUs, for portable code.
    pub const TYPICAL: Self = Self { l1: 32 << 10, l2: 1 << 20 };
}

/// The name of this machine's CPU.
const NATIVE: &str = "native";

impl Cpu {
    /// The names of CPUs that [`Target::named`](crate::Target::named) accepts.
    pub const NAMES: [&'static str; 5] = [NATIVE, "sse", "avx2", "avx512", "neon"];

    /// The CPU of this machine.
    ///
    /// # Errors
    /// The CPU is neither x86-64 nor AArch64.
    pub fn native() -> Result<Self, TargetError> {
        // Cached: it never changes, and every kernel asks for it.
        static NATIVE_CPU: OnceLock<Result<Cpu, TargetError>> = OnceLock::new();
        NATIVE_CPU.get_or_init(Self::detect).clone()
    }

    fn detect() -> Result<Self, TargetError> {
        let features = native::features();
        let isa = if cfg!(target_arch = "x86_64") {
            VectorIsa::of_x86(|name| features.contains(&name))
        } else if cfg!(target_arch = "aarch64") {
            VectorIsa::Neon
        } else {
            return Err(TargetError::Architecture { name: std::env::consts::ARCH.to_owned() });
        };
        let caches = native::Caches::detect();
        let caches = CpuCaches { l1: caches.l1d as i64, l2: caches.l2 as i64 };
        Ok(Self { name: NATIVE, isa, features, caches })
    }

    /// A generic CPU.
    pub(crate) fn preset(name: &'static str, isa: VectorIsa, features: &[&'static str]) -> Self {
        Self { name, isa, features: features.to_vec(), caches: CpuCaches::TYPICAL }
    }

    /// x86-64 with AVX-512: 32 registers of 64 bytes.
    #[must_use]
    pub fn avx512() -> Self {
        let features = ["avx512f", "avx512bw", "avx512dq", "avx512vl", "avx2", "fma"];
        Self::preset("avx512", VectorIsa::Avx512, &features)
    }

    /// x86-64 with AVX2 and FMA: 16 registers of 32 bytes.
    #[must_use]
    pub fn avx2() -> Self {
        Self::preset("avx2", VectorIsa::Avx2, &["avx2", "fma"])
    }

    /// Any x86-64: 16 registers of 16 bytes.
    #[must_use]
    pub fn sse() -> Self {
        Self::preset("sse", VectorIsa::Sse, &[])
    }

    /// AArch64 with NEON: 32 registers of 16 bytes.
    #[must_use]
    pub fn neon() -> Self {
        Self::preset("neon", VectorIsa::Neon, &["neon"])
    }

    /// The name.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Whether it is this machine's CPU, with all its features.
    #[must_use]
    pub fn is_native(&self) -> bool {
        self.name == NATIVE
    }

    /// The vector instruction set.
    #[must_use]
    pub fn isa(&self) -> VectorIsa {
        self.isa
    }

    /// The features beyond the baseline of the architecture, as LLVM spells them.
    #[must_use]
    pub fn features(&self) -> &[&'static str] {
        &self.features
    }

    /// The bytes of a vector register.
    #[must_use]
    pub fn vector_bytes(&self) -> i64 {
        self.isa.vector_bytes()
    }

    /// The number of vector registers.
    #[must_use]
    pub fn vector_registers(&self) -> i64 {
        self.isa.vector_registers()
    }

    /// The caches of a core.
    #[must_use]
    pub fn caches(&self) -> CpuCaches {
        self.caches
    }

    /// Sets the caches.
    #[must_use]
    pub fn with_caches(self, caches: CpuCaches) -> Self {
        Self { caches, ..self }
    }

    /// Sets this machine's caches, if this machine can run the code.
    #[must_use]
    pub fn on_this_machine(self) -> Self {
        match Self::native() {
            Ok(here) if here.runs(&self) => self.with_caches(here.caches),
            _ => self,
        }
    }

    /// The lanes of a vector for an element size in bytes; capped at the maximum that rules and
    /// spaces consider.
    #[must_use]
    pub fn lanes(&self, element_bytes: i64) -> i64 {
        (self.vector_bytes() / element_bytes.max(1)).clamp(1, 16)
    }

    /// Whether this CPU can run code for another one: it has its vectors and all of its features.
    fn runs(&self, other: &Self) -> bool {
        let has = |feature| self.features.contains(feature);
        self.isa.runs(other.isa) && other.features.iter().all(has)
    }

    /// Checks that this machine can run code for the CPU.
    ///
    /// # Errors
    /// It cannot.
    pub fn check_runs_here(&self) -> Result<(), TargetError> {
        if Self::native()?.runs(self) {
            return Ok(());
        }
        Err(TargetError::Foreign { name: self.name.to_owned(), here: native::model() })
    }

    /// Code for a smaller CPU than this machine's is measured here too, so the fingerprint includes
    /// both.
    pub(crate) fn fingerprint(&self) -> String {
        let model = native::model();
        if self.is_native() {
            return fingerprint(&model, self.features.iter().copied());
        }
        fingerprint(&format!("{model} as {}", self.name), self.features.iter().copied())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_runs_where_its_features_are() {
        let (plain, wide) = (Cpu::avx2(), Cpu::avx512());
        let more = Cpu::preset("more", VectorIsa::Avx2, &["avx2", "fma", "avxvnni"]);
        assert!(wide.runs(&plain) && more.runs(&plain) && plain.runs(&Cpu::sse()));
        assert!(!plain.runs(&wide) && !plain.runs(&Cpu::neon()));
        assert!(!plain.runs(&more) && !wide.runs(&more), "vectors alone are not enough");
    }

    #[test]
    fn the_features_of_processors_can_be_detected() {
        let known: Vec<&str> = native::detected().into_iter().map(|(name, _)| name).collect();
        for name in Cpu::NAMES {
            let target = crate::Target::named(name).unwrap();
            let cpu = target.cpu().unwrap();
            let is_here = cpu.isa().is_x86() == Cpu::native().unwrap().isa().is_x86();
            for feature in cpu.features().iter().filter(|_| is_here) {
                assert!(known.contains(feature), "`{name}` never runs: nobody looks for {feature}");
            }
        }
    }
}
