//! The child's side: [`serve`].

mod backend;
mod builder;
mod candidate;
mod compare;
mod cpu;
mod device;
mod expected;
mod memory;
mod probes;
mod runner;
mod sandbox;
mod timing;

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::net::UnixStream;

use serde::Serialize;
use tensorwright::{Module, Program};

use crate::protocol::{self, Frame, GREETING, Setup};
use crate::system;

pub(crate) use sandbox::PROCESSOR_SECONDS;

/// The connection to the parent.
struct Connection {
    socket: UnixStream,
    /// Inputs and expected results.
    shared: File,
}

/// Why a child ends: the parent is gone (`Ok`), or an error to report.
type Served = Result<(), String>;

/// The main function of a child process, which returns the exit code. `args` are the last ones of
/// the command line: the role and the parent's process id.
///
/// Standard input and output are those that [`Measurer`](crate::Measurer) gave the process; they
/// are replaced with null devices before any candidate runs.
#[must_use]
pub fn serve(args: impl IntoIterator<Item = String>) -> u8 {
    let args: Vec<String> = args.into_iter().collect();
    let served = match (args.first().map(String::as_str), args.get(1).map(|text| text.parse())) {
        (Some("builder"), Some(Ok(parent))) => connect(parent).and_then(builder::serve),
        (Some("runner"), Some(Ok(parent))) => connect(parent).and_then(run),
        _ => Err("`tensorwright tune` starts this process; do not run it by hand".to_owned()),
    };
    match served {
        Ok(()) => 0,
        Err(reason) => {
            // The parent keeps this text, if it is still there.
            let _ = writeln!(io::stderr(), "{reason}");
            1
        }
    }
}

/// Runs candidates on the backend of the setup.
fn run(mut connection: Connection) -> Served {
    let Some((setup, program)) = connection.setup()? else { return Ok(()) };
    match &setup.device {
        None => cpu::serve(connection, &setup, &program),
        Some(name) => device::serve(connection, &setup, &program, name),
    }
}

/// Moves the connection away from the standard streams, where the parent can put it without unsafe
/// code, and replaces these with null devices.
fn connect(parent: u32) -> Result<Connection, String> {
    let take = || -> io::Result<Connection> {
        system::end_with_parent(parent)?;
        let socket = UnixStream::from(system::take_descriptor(libc::STDIN_FILENO)?);
        let shared = File::from(system::take_descriptor(libc::STDOUT_FILENO)?);
        let nothing = File::options().read(true).write(true).open("/dev/null")?;
        system::replace_stream(libc::STDIN_FILENO, &nothing)?;
        system::replace_stream(libc::STDOUT_FILENO, &nothing)?;
        Ok(Connection { socket, shared })
    };
    take().map_err(|error| format!("cannot connect to the parent: {error}"))
}

impl Connection {
    /// The next request; `None` when the parent is gone.
    fn next(&mut self) -> Result<Option<Frame>, String> {
        protocol::receive(&mut self.socket).map_err(|error| format!("cannot read: {error}"))
    }

    /// Answers a request.
    fn reply(&mut self, number: u64, message: &impl Serialize, bytes: &[u8]) -> Served {
        protocol::send(&mut self.socket, number, message, bytes)
            .map_err(|error| format!("cannot answer: {error}"))
    }

    /// The first message; `None` when the parent is gone.
    fn setup(&mut self) -> Result<Option<(Setup, Program)>, String> {
        let Some(frame) = self.next()? else { return Ok(None) };
        if frame.number != GREETING {
            return Err("the first message has a wrong number".to_owned());
        }
        let setup: Setup = frame.message().map_err(|error| format!("cannot read: {error}"))?;
        let program = program(&setup)?;
        if !setup.processors.is_empty() {
            // A hint: if it is refused, the scheduler decides.
            let _ = system::stay_on(&setup.processors);
        }
        Ok(Some((setup, program)))
    }
}

/// Parses the program and checks its hash.
fn program(setup: &Setup) -> Result<Program, String> {
    let read = || Module::parse("<program>", &setup.program)?.def(&setup.def)?.bind::<String>([]);
    let program = read().map_err(|diagnostics| diagnostics.render(false))?;
    match program.hash().to_string() == setup.hash {
        true => Ok(program),
        false => Err("the text of the program describes another program".to_owned()),
    }
}
