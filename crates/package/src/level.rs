//! [`Level`]: a processor that a package has kernels for.

use tensorwright::{Cpu, Diagnostics, Goal, Source, Target, TargetError, VectorIsa};

/// A processor that a package has kernels for. Which one is used is decided when the library runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Level {
    cpu: Cpu,
    target: Target,
}

impl Level {
    /// The levels of a package that names none.
    pub const USUAL: [&'static str; 2] = ["avx2", "avx512"];

    /// The levels that there are.
    pub const ALL: [&'static str; 3] = ["sse", "avx2", "avx512"];

    /// The level of a name; `None` if there is none.
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

    /// What code is generated for.
    #[must_use]
    pub fn target(&self) -> &Target {
        &self.target
    }

    /// What the level asks of a processor, as x86-64's microarchitecture levels have it: LLVM may use
    /// all of it, not only the vectors.
    #[must_use]
    pub fn requirement(&self) -> &'static str {
        match self.cpu.isa() {
            VectorIsa::Avx512 => "x86-64-v4",
            VectorIsa::Avx2 => "x86-64-v3",
            _ => "x86-64",
        }
    }

    /// What schedules are made for. Cache sizes are typical ones, and not those of the machine that
    /// builds, so that every machine builds the same package.
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

/// Says what is wrong with a target.
pub(crate) fn unavailable(error: &TargetError) -> Diagnostics {
    Diagnostics::new(Source::new("target", ""), vec![error.diagnostic()])
}
