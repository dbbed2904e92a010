//! [`Child`]: the parent's handle of a child process.
//!
//! One long-lived thread starts all children: the system signals a child to end when the *thread*
//! that started it ends. Each child has one more thread that reads its messages, and one that reads
//! its standard error.

use std::fs::File;
use std::io::{self, Read};
use std::net::Shutdown;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{self, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use serde::Serialize;

use crate::protocol::{self, Frame};
use crate::{MeasureError, WorkerCommand, system};

/// The bytes of a child's standard error to keep: the end, which has the reason.
const MOST_STDERR: usize = 8 << 10;

/// How long a child may take to accept a message. It is only sent one while it is idle.
const WRITE_DEADLINE: Duration = Duration::from_secs(5);

/// How long to wait for the rest of a dead child's standard error.
const LAST_WORDS: Duration = Duration::from_millis(200);

/// The role of a child.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    Builder,
    Runner,
}

/// An event of a child.
#[derive(Debug)]
pub(crate) struct Event {
    /// The number of the child.
    pub(crate) child: u64,
    /// A message, `None` at the end of messages, or the error of a malformed one.
    pub(crate) what: io::Result<Option<Frame>>,
}

/// A running child process. Dropping it ends the process and waits until it is gone.
#[derive(Debug)]
pub(crate) struct Child {
    /// Unique among the children of a measurer.
    pub(crate) number: u64,
    process: process::Child,
    socket: UnixStream,
    stderr: Arc<Mutex<Vec<u8>>>,
    /// Closed when the standard error has been read to its end.
    stderr_end: Receiver<()>,
    is_ended: bool,
}

/// How a child ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct End {
    /// The signal, if one ended it.
    pub(crate) signal: Option<i32>,
    /// The signal or exit code as text.
    pub(crate) reason: String,
    /// The end of what it wrote to its standard error.
    pub(crate) stderr: String,
}

/// The thread that starts children.
#[derive(Debug)]
pub(crate) struct Spawner {
    orders: Option<Sender<SpawnRequest>>,
    thread: Option<JoinHandle<()>>,
    worker: WorkerCommand,
    shared: File,
    events: Sender<Event>,
    children: u64,
}

type SpawnRequest = (Command, Sender<io::Result<process::Child>>);

impl Spawner {
    /// Starts the thread. Events of all children go to `events`.
    pub(crate) fn new(
        worker: WorkerCommand,
        shared: File,
        events: Sender<Event>,
    ) -> Result<Self, MeasureError> {
        let (orders, receiver) = mpsc::channel::<SpawnRequest>();
        let spawn = move || {
            for (mut command, answer) in receiver {
                // The requester waits for the answer.
                let _ = answer.send(command.spawn());
            }
        };
        let thread = thread::Builder::new().name("spawner".to_owned()).spawn(spawn);
        let thread =
            thread.map_err(|error| MeasureError::System { what: "start a thread", error })?;
        let (orders, thread) = (Some(orders), Some(thread));
        Ok(Self { orders, thread, worker, shared, events, children: 0 })
    }

    /// Starts a child.
    pub(crate) fn start(&mut self, role: Role) -> Result<Child, MeasureError> {
        tracing::debug!(?role, "start a child");
        self.try_start(role).map_err(|error| MeasureError::Spawn {
            program: self.worker.program.display().to_string(),
            error,
        })
    }

    fn try_start(&mut self, role: Role) -> io::Result<Child> {
        let (socket, theirs) = UnixStream::pair()?;
        socket.set_write_timeout(Some(WRITE_DEADLINE))?;
        let mut command = Command::new(&self.worker.program);
        command
            .args(&self.worker.args)
            .arg(match role {
                Role::Builder => "builder",
                Role::Runner => "runner",
            })
            .arg(process::id().to_string())
            // The child moves both away before it does anything else.
            .stdin(OwnedFd::from(theirs))
            .stdout(OwnedFd::from(self.shared.try_clone()?))
            .stderr(Stdio::piped())
            // A process group of its own, so that all of it can be killed, and the parent handles
            // Ctrl-C.
            .process_group(0);
        let (answer, spawned) = mpsc::channel();
        let gone = || io::Error::other("the thread that starts processes is gone");
        let orders = self.orders.as_ref().ok_or_else(gone)?;
        orders.send((command, answer)).map_err(|_| gone())?;
        let mut process = spawned.recv().map_err(|_| gone())??;
        self.children += 1;
        let number = self.children;
        let stderr = Arc::new(Mutex::new(Vec::new()));
        let (end, stderr_end) = mpsc::channel::<()>();
        let pipe = process.stderr.take();
        let child = Child { number, process, socket, stderr, stderr_end, is_ended: false };
        // From here on dropping `child` cleans up.
        self.listen(&child)?;
        if let Some(pipe) = pipe {
            let stderr = Arc::clone(&child.stderr);
            let keep = move || {
                keep_end(pipe, &stderr);
                drop(end);
            };
            thread::Builder::new().name("stderr".to_owned()).spawn(keep)?;
        }
        Ok(child)
    }

    /// Starts the thread that reads a child's messages; it ends with the first malformed one.
    fn listen(&self, child: &Child) -> io::Result<()> {
        let (mut socket, events) = (child.socket.try_clone()?, self.events.clone());
        let number = child.number;
        let read = move || {
            loop {
                let what = protocol::receive(&mut socket);
                let is_last = !matches!(what, Ok(Some(_)));
                // Without a receiver, no event is needed.
                if events.send(Event { child: number, what }).is_err() || is_last {
                    return;
                }
            }
        };
        thread::Builder::new().name("messages".to_owned()).spawn(read).map(drop)
    }
}

impl Drop for Spawner {
    fn drop(&mut self) {
        // The thread ends when the channel closes.
        self.orders = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Child {
    /// Sends a message.
    pub(crate) fn send(
        &mut self,
        number: u64,
        message: &impl Serialize,
        bytes: &[u8],
    ) -> io::Result<()> {
        protocol::send(&mut self.socket, number, message, bytes)
    }

    /// The process id.
    pub(crate) fn id(&self) -> u32 {
        self.process.id()
    }

    /// Kills the process and its group, if they still exist, and waits for it.
    pub(crate) fn end(&mut self) -> End {
        // Wait a moment to learn whether it ended by itself.
        let ended = self.wait_a_moment();
        if ended.is_none() {
            system::kill_group(self.id());
        }
        let status = ended.map_or_else(|| self.process.wait(), Ok);
        self.is_ended = true;
        // Any process it could start is in the same group.
        let _ = self.socket.shutdown(Shutdown::Both);
        let _ = self.stderr_end.recv_timeout(LAST_WORDS);
        let stderr = self.stderr.lock().unwrap_or_else(PoisonError::into_inner);
        let stderr = String::from_utf8_lossy(&stderr).into_owned();
        match status {
            Ok(status) => End { signal: status.signal(), reason: describe(status), stderr },
            Err(error) => End { signal: None, reason: error.to_string(), stderr },
        }
    }

    /// Kills the process now.
    pub(crate) fn kill(&mut self) -> End {
        system::kill_group(self.id());
        self.end()
    }

    fn wait_a_moment(&mut self) -> Option<ExitStatus> {
        for _ in 0..50 {
            if let Ok(Some(status)) = self.process.try_wait() {
                return Some(status);
            }
            thread::sleep(Duration::from_millis(1));
        }
        None
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        if !self.is_ended {
            self.kill();
        }
    }
}

/// Reads to the end and keeps the last bytes.
fn keep_end(mut pipe: impl Read, kept: &Mutex<Vec<u8>>) {
    let mut chunk = [0; 4096];
    loop {
        let count = match pipe.read(&mut chunk) {
            Ok(0) => return,
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(_) => return,
        };
        let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.extend_from_slice(&chunk[..count]);
        let surplus = kept.len().saturating_sub(MOST_STDERR);
        kept.drain(..surplus);
    }
}

/// How a process ended, in words.
fn describe(status: ExitStatus) -> String {
    let Some(signal) = status.signal() else {
        return format!("the process ended with exit code {}", status.code().unwrap_or_default());
    };
    let name = match signal {
        libc::SIGSEGV => "SIGSEGV, an invalid memory access",
        libc::SIGBUS => "SIGBUS, an invalid memory access",
        libc::SIGFPE => "SIGFPE, an invalid division",
        libc::SIGILL => "SIGILL, an illegal instruction",
        libc::SIGABRT => "SIGABRT, an abort",
        libc::SIGKILL => "SIGKILL, killed from outside",
        libc::SIGXCPU => "SIGXCPU, too much CPU time",
        _ => return format!("the process was ended by signal {signal}"),
    };
    format!("the process was ended by {name}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_long_standard_error_is_kept() {
        let text: String = (0..10_000).map(|line| format!("{line}\n")).collect();
        let kept = Mutex::new(Vec::new());
        keep_end(text.as_bytes(), &kept);
        let kept = kept.into_inner().unwrap();
        assert_eq!(kept.len(), MOST_STDERR);
        assert!(kept.ends_with(b"9999\n"));
    }

    #[test]
    fn ends_are_described() {
        assert!(describe(ExitStatus::from_raw(11)).contains("SIGSEGV"));
        assert!(describe(ExitStatus::from_raw(3 << 8)).contains("exit code 3"));
        assert!(describe(ExitStatus::from_raw(31)).contains("signal 31"));
    }
}
