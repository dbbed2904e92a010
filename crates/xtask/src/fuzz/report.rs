//! Files in `target/fuzz/`: failing and running inputs.

use std::fs::{self, File};
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use super::FuzzOptions;

/// A failing input.
pub(crate) struct Failure {
    /// Its index.
    pub(crate) index: u64,
    /// What happened.
    pub(crate) reason: String,
    /// The minimised bytes.
    pub(crate) input: Vec<u8>,
}

pub(super) fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/fuzz")
}

/// The parent's id keeps parallel runs apart.
fn journal_path(parent: u32, job: usize) -> PathBuf {
    folder().join(format!("running-{parent}-{job}"))
}

/// Creates the folder and clears the notes of an earlier run.
pub(crate) fn prepare(options: &FuzzOptions) -> io::Result<()> {
    fs::create_dir_all(folder())?;
    let parent = std::process::id();
    (0..options.jobs).try_for_each(|job| fs::write(journal_path(parent, job), b""))
}

/// Removes the notes of a run.
pub(crate) fn clean(options: &FuzzOptions) {
    for job in 0..options.jobs {
        // A missing file is fine.
        let _ = fs::remove_file(journal_path(std::process::id(), job));
    }
}

/// Writes a failing input to a file, prints it, and returns the file name.
pub(crate) fn write(options: &FuzzOptions, failure: &Failure) -> String {
    let Failure { index, reason, input } = failure;
    let FuzzOptions { target, seed, max_bytes, .. } = options;
    let name = format!("{}-seed-{seed}-index-{index}.{}", target.name, target.extension);
    let written =
        fs::create_dir_all(folder()).and_then(|()| fs::write(folder().join(&name), input));
    let place = match written {
        Ok(()) => format!("target/fuzz/{name}"),
        Err(error) => format!("no file ({error})"),
    };
    println!(
        "\nfuzz: {} input {index} of seed {seed}: {reason}\n  input:  {place}, made small \
         ({} bytes)\n  replay: cargo run --release -p tensorwright-xtask -- fuzz --target {} \
         --seed {seed} --from {index} --count 1 --max-bytes {max_bytes}\n  or:     the same with \
         --replay {place}",
        target.name,
        input.len(),
        target.name,
    );
    place
}

/// Where a job notes its current input, to be read after a crash.
pub(crate) struct Journal(File);

impl Journal {
    /// The journal of a job.
    pub(crate) fn open(job: usize) -> io::Result<Self> {
        File::create(journal_path(std::os::unix::process::parent_id(), job)).map(Self)
    }

    /// Notes an input, unbuffered, so that it survives a crash.
    pub(crate) fn note(&mut self, index: u64) -> io::Result<()> {
        self.0.seek(SeekFrom::Start(0))?;
        self.0.write_all(format!("{index:020}").as_bytes())
    }
}

/// The inputs noted by the jobs of the last run.
pub(crate) fn running(options: &FuzzOptions) -> Vec<u64> {
    let read =
        |job| fs::read_to_string(journal_path(std::process::id(), job)).ok()?.trim().parse().ok();
    (0..options.jobs).filter_map(read).collect()
}
