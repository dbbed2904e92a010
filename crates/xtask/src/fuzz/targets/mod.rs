//! What is fuzzed. One file and one line of [`TARGETS`] each.

mod databases;
mod imports;
mod lsp;
mod manifests;
mod npy;
mod schedules;
mod texts;

use std::path::{Path, PathBuf};

use tensorwright_testkit::Rng;

/// Everything that reads what users and files may hold.
pub(crate) const TARGETS: &[Target] = &[
    texts::TARGET,
    schedules::TARGET,
    imports::TARGET,
    databases::TARGET,
    npy::TARGET,
    manifests::TARGET,
    lsp::TARGET,
];

/// Changes an input; others of the corpus may be parts of it.
type Mutate = fn(&[u8], &[Vec<u8>], &mut Rng) -> Vec<u8>;

/// Something that reads bytes.
pub(crate) struct Target {
    /// Its name.
    pub(crate) name: &'static str,
    /// What it reads, for people.
    pub(crate) reads: &'static str,
    /// What files of failures are called.
    pub(crate) extension: &'static str,
    /// The processor seconds that an input may take, and more for those longer than 100 KB.
    pub(crate) seconds: f64,
    /// Inputs that are valid, or nearly: what others are made of.
    pub(crate) corpus: fn() -> Vec<Vec<u8>>,
    /// Makes an input of one of the corpus.
    pub(crate) mutate: Mutate,
    /// Reads an input.
    pub(crate) run: fn(&mut Input) -> Reached,
}

/// One input.
pub(crate) struct Input {
    /// What is read.
    pub(crate) bytes: Vec<u8>,
    /// Sizes that would fit the text before it was mutated, where they are known.
    pub(crate) sizes: Vec<(String, i64)>,
    /// The source of what the run of this input still has to choose.
    pub(crate) rng: Rng,
}

/// How far an input got.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Reached {
    /// It is refused.
    Refused,
    /// It is read, but nothing could be done with it.
    Read,
    /// It was read and used.
    Used,
}

impl Target {
    /// The target of a name.
    pub(crate) fn named(name: &str) -> Option<&'static Self> {
        TARGETS.iter().find(|target| target.name == name)
    }
}

/// The root of the workspace.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The contents of the files of folders whose names end in an extension, in an order that does not
/// depend on the file system.
fn files(folders: &[&str], extension: &str) -> Vec<Vec<u8>> {
    let entries = folders.iter().flat_map(|folder| std::fs::read_dir(root().join(folder)));
    let mut paths: Vec<PathBuf> = entries.flatten().flatten().map(|entry| entry.path()).collect();
    paths.retain(|path| path.extension().is_some_and(|other| other == extension));
    paths.sort();
    paths.iter().filter_map(|path| std::fs::read(path).ok()).collect()
}

/// A file in a folder of its own, in memory if the system has a place for that; gone when dropped,
/// with what SQLite puts beside it.
struct Scratch {
    _folder: tempfile::TempDir,
    file: PathBuf,
}

impl Scratch {
    /// `None` if the system has no place for it.
    fn new() -> Option<Self> {
        let memory = Path::new("/dev/shm");
        let folder = if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() };
        let folder =
            tempfile::Builder::new().prefix("tensorwright-fuzz-").tempdir_in(folder).ok()?;
        Some(Self { file: folder.path().join("records.db"), _folder: folder })
    }
}
