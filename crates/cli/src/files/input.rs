//! [`Input`]: an input file, which may be a pipe.
//!
//! A pipe has data only if a process writes to it: `<(command)` in a shell does, an unopened FIFO
//! does not. Opening and reading never wait silently, whatever the name refers to.

use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::OFlags;

/// How long a pipe may have no writer.
const PATIENCE: Duration = Duration::from_secs(5);

/// When to print that data is awaited.
const SILENCE: Duration = Duration::from_secs(2);

/// An input file. Waits for data as long as a writer may still provide it.
#[derive(Debug)]
pub(crate) struct Input {
    file: File,
    path: PathBuf,
    /// The length, if it is known.
    length: Option<u64>,
    is_pipe: bool,
    /// Whether a writer has opened the pipe.
    has_writer: bool,
    said: bool,
}

impl Input {
    /// Opens a file.
    ///
    /// # Errors
    /// If the file cannot be opened, or cannot be read sequentially.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let flags = OFlags::NONBLOCK.bits().cast_signed();
        let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
        let about = file.metadata()?;
        if about.is_dir() {
            return Err(io::Error::other("it is a folder"));
        }
        let length = about.is_file().then_some(about.len());
        let (path, is_pipe) = (path.to_owned(), about.file_type().is_fifo());
        Ok(Self { file, path, length, is_pipe, has_writer: false, said: false })
    }

    /// The length, if it is known before reading.
    pub(crate) fn length(&self) -> Option<u64> {
        // Files in /proc report zero.
        self.length.filter(|bytes| *bytes > 0)
    }

    /// Appends the rest to `bytes`, up to a limit.
    pub(crate) fn read_up_to(&mut self, limit: u64, bytes: &mut Vec<u8>) -> io::Result<()> {
        let left = limit.saturating_sub(bytes.len() as u64);
        if let Some(length) = self.length() {
            let more = usize::try_from(length.min(left)).unwrap_or(usize::MAX);
            bytes.try_reserve(more)?;
        }
        self.take(left).read_to_end(bytes)?;
        Ok(())
    }

    /// Waits until data or the end is there; returns whether that happened in time.
    fn wait(&self, time: Option<Duration>) -> io::Result<bool> {
        let time = time.map(|time| Timespec { tv_sec: time.as_secs().cast_signed(), tv_nsec: 0 });
        let mut asked = [PollFd::new(&self.file, PollFlags::IN)];
        Ok(poll(&mut asked, time.as_ref())? > 0)
    }

    /// Waits for data from a connected writer.
    fn wait_for_data(&mut self) -> io::Result<()> {
        if !self.said && !self.wait(Some(SILENCE))? {
            self.said = true;
            eprintln!("waiting for {}: nothing was written to it yet", self.path.display());
        }
        self.wait(None).map(|_| ())
    }
}

impl Read for Input {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.file.read(into) {
                Ok(0) if self.is_pipe && !self.has_writer && !into.is_empty() => {
                    if !self.wait(Some(PATIENCE))? {
                        return Err(io::Error::other("it is a pipe that nobody writes to"));
                    }
                    self.has_writer = true;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.has_writer = true;
                    self.wait_for_data()?;
                }
                done => {
                    self.has_writer |= done.is_ok();
                    return done;
                }
            }
        }
    }
}
