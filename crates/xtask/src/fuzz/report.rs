//! Files under `target/fuzz/`: the inputs that failed, and which ones are running.

use std::fs::{self, File};
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use super::Options;

/// An input that the front end could not take.
pub(crate) struct Failure {
    /// Its index.
    pub(crate) index: u64,
    /// What happened.
    pub(crate) reason: String,
    /// The text.
    pub(crate) input: Vec<u8>,
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/fuzz")
}

fn journal_path(job: usize) -> PathBuf {
    folder().join(format!("running-{job}"))
}

/// Makes the folder and forgets what an earlier run has noted.
pub(crate) fn prepare(options: &Options) -> io::Result<()> {
    fs::create_dir_all(folder())?;
    (0..options.jobs).try_for_each(|job| fs::write(journal_path(job), b""))
}

/// Writes the input of a failure to a file and says so.
pub(crate) fn write(options: &Options, failure: &Failure) {
    let Failure { index, reason, input } = failure;
    let name = format!("seed-{}-index-{index}.tc", options.seed);
    let written =
        fs::create_dir_all(folder()).and_then(|()| fs::write(folder().join(&name), input));
    let place = match written {
        Ok(()) => format!("target/fuzz/{name}"),
        Err(error) => format!("no file ({error})"),
    };
    eprintln!(
        "\nfuzz: input {index} ({} bytes): {reason}\n  input:  {place}\n  \
         replay: cargo run --release -p tensorwright-xtask -- fuzz --seed {} --from {index} \
         --count 1 --max-bytes {}",
        input.len(),
        options.seed,
        options.max_bytes
    );
}

/// Where a job notes the input that it is about to run, to be read after its process has died.
pub(crate) struct Journal(File);

impl Journal {
    /// The journal of a job.
    pub(crate) fn open(job: usize) -> io::Result<Self> {
        File::create(journal_path(job)).map(Self)
    }

    /// Notes an input. Unbuffered: what is in the kernel outlives the process.
    pub(crate) fn note(&mut self, index: u64) -> io::Result<()> {
        self.0.seek(SeekFrom::Start(0))?;
        self.0.write_all(format!("{index:020}").as_bytes())
    }
}

/// The inputs that the jobs of the last run have noted.
pub(crate) fn running(options: &Options) -> Vec<u64> {
    let read = |job| fs::read_to_string(journal_path(job)).ok()?.trim().parse().ok();
    (0..options.jobs).filter_map(read).collect()
}
