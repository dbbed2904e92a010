//! Fuzz targets: one file and one line of [`TARGETS`] each.

mod databases;
mod imports;
mod lsp;
mod manifests;
mod npy;
mod schedules;
mod texts;

use std::path::{Path, PathBuf};

use tensorwright_testkit::Rng;

/// All readers of user input.
pub(crate) const TARGETS: &[Target] = &[
    texts::TARGET,
    schedules::TARGET,
    imports::TARGET,
    databases::TARGET,
    npy::TARGET,
    manifests::TARGET,
    lsp::TARGET,
];

/// Mutates an input, perhaps with parts of others.
type Mutate = fn(&[u8], &[Vec<u8>], &mut Rng) -> Vec<u8>;

/// A reader of bytes.
pub(crate) struct Target {
    /// Its name.
    pub(crate) name: &'static str,
    /// A description of its input.
    pub(crate) reads: &'static str,
    /// The extension of failure files.
    pub(crate) extension: &'static str,
    /// The CPU seconds per input (and per 100 kB of longer ones).
    pub(crate) seconds: f64,
    /// Valid or nearly valid inputs for mutation.
    pub(crate) corpus: fn() -> Vec<Vec<u8>>,
    /// Mutates an input of the corpus.
    pub(crate) mutate: Mutate,
    /// Reads an input.
    pub(crate) run: fn(&mut Input) -> Reached,
}

/// One input.
pub(crate) struct Input {
    /// The bytes.
    pub(crate) bytes: Vec<u8>,
    /// Sizes that fit the text before mutation, if known.
    pub(crate) sizes: Vec<(String, i64)>,
    /// Random numbers for further choices of the run.
    pub(crate) rng: Rng,
}

/// How far an input got.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Reached {
    /// Rejected.
    Refused,
    /// Parsed, but not usable.
    Read,
    /// Parsed and used.
    Used,
}

impl Target {
    /// The target with a name.
    pub(crate) fn named(name: &str) -> Option<&'static Self> {
        TARGETS.iter().find(|target| target.name == name)
    }
}

/// The root of the workspace.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The contents of all files in folders with an extension, in a deterministic order.
fn files(folders: &[&str], extension: &str) -> Vec<Vec<u8>> {
    let entries = folders.iter().flat_map(|folder| std::fs::read_dir(root().join(folder)));
    let mut paths: Vec<PathBuf> = entries.flatten().flatten().map(|entry| entry.path()).collect();
    paths.retain(|path| path.extension().is_some_and(|other| other == extension));
    paths.sort();
    paths.iter().filter_map(|path| std::fs::read(path).ok()).collect()
}

/// A file in its own temporary folder, in memory if possible; removed on drop with SQLite's side
/// files.
struct Scratch {
    _folder: tempfile::TempDir,
    file: PathBuf,
}

impl Scratch {
    /// `None` without a writable place.
    fn new() -> Option<Self> {
        let memory = Path::new("/dev/shm");
        let folder = if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() };
        let folder =
            tempfile::Builder::new().prefix("tensorwright-fuzz-").tempdir_in(folder).ok()?;
        Some(Self { file: folder.path().join("records.db"), _folder: folder })
    }
}
