//! [`BuildOptions`] and [`Progress`] of a package build.

use std::path::Path;

use tensorwright_records::Store;

/// The options of a package build.
#[derive(Clone, Copy)]
#[non_exhaustive]
pub struct BuildOptions<'a> {
    /// The C compiler.
    pub cc: &'a Path,
    /// The source of tuned schedules; without records, all kernels have default schedules.
    pub records: Option<&'a dyn Store>,
    /// Whether to build a shared library too.
    pub shared: bool,
    /// Receives progress.
    pub progress: &'a (dyn Fn(&Progress) + Sync),
    /// Receives problems of records, one line each; affected records are ignored.
    pub notes: &'a (dyn Fn(&str) + Sync),
}

impl std::fmt::Debug for BuildOptions<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BuildOptions").field("cc", &self.cc).field("shared", &self.shared).finish()
    }
}

impl Default for BuildOptions<'_> {
    fn default() -> Self {
        Self { cc: Path::new("cc"), records: None, shared: true, progress: &|_| {}, notes: &|_| {} }
    }
}

/// The progress of a build.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Progress {
    /// The number of compiled kernels.
    pub done: usize,
    /// The total number of kernels.
    pub total: usize,
    /// The last compiled kernel.
    pub what: String,
}
