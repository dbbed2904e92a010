//! [`BuildOptions`]: how a package is built, and [`Progress`]: how far that is.

use std::path::Path;

use tensorwright_records::Store;

/// How a package is built.
#[derive(Clone, Copy)]
#[non_exhaustive]
pub struct BuildOptions<'a> {
    /// The C compiler.
    pub cc: &'a Path,
    /// Where the best schedules are; without records all kernels are untuned.
    pub records: Option<&'a dyn Store>,
    /// Whether there is a shared library too.
    pub shared: bool,
    /// Is told how far the build is.
    pub progress: &'a (dyn Fn(&Progress) + Sync),
    /// Is told what is wrong with records, a line at a time: they are left out.
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

/// How far a build is.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Progress {
    /// The kernels that are compiled.
    pub done: usize,
    /// The kernels that there will be.
    pub total: usize,
    /// The one that was compiled last.
    pub what: String,
}
