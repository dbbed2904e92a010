//! [`Level`]: a processor level of a package's kernels.

use tensorwright::{Cpu, Diagnostics, Goal, Source, Target, TargetError, VectorIsa};

/// A processor level. The library selects one at run time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Level {
    cpu: Cpu,
    target: Target,
}

impl Level {
    /// The default levels.
    pub const USUAL: [&'static str; 2] = ["avx2", "avx512"];

    /// All levels.
    pub const ALL: [&'static str; 3] = ["sse", "avx2", "avx512"];

    /// The level with a name; `None` if it is unknown.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        let name = Self::ALL.into_iter().find(|known| *known == name)?;
        let target = Target::named(name).ok()?;
        Some(Self { cpu: target.cpu()?.clone(), target })
    }

    /// The name.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.cpu.name()
    }

    /// The code-generation target.
    #[must_use]
    pub fn target(&self) -> &Target {
        &self.target
    }

    /// The required CPU features, as of x86-64's microarchitecture levels: LLVM may use all of
    /// them, not only the vectors.
    #[must_use]
    pub fn requirement(&self) -> &'static str {
        match self.cpu.isa() {
            VectorIsa::Avx512 => "x86-64-v4",
            VectorIsa::Avx2 => "x86-64-v3",
            _ => "x86-64",
        }
    }

    /// The scheduling target. Cache sizes are typical ones, not those of the build machine, so that
    /// every machine builds the same package.
    #[must_use]
    pub fn goal(&self, threads: usize) -> Goal {
        Goal::new(self.target.clone()).with_workers(threads as i64)
    }

    /// The vector instructions.
    #[must_use]
    pub fn isa(&self) -> VectorIsa {
        self.cpu.isa()
    }
}

/// The diagnostic for an unavailable target.
pub(crate) fn unavailable(error: &TargetError) -> Diagnostics {
    Diagnostics::new(Source::new("target", ""), vec![error.diagnostic()])
}
