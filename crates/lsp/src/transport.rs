//! Length-prefixed messages over a pair of streams.
//!
//! A malformed message gets an error response and is skipped; only invalid lengths end the session.

use std::io::{self, BufRead, Read, Write};
use std::sync::Mutex;
use std::thread;

use lsp_server::{Connection, ErrorCode, Message};
use serde_json::json;

use crate::server::{self, Ending};

/// The longest message accepted, several times the largest source text.
const MAX_MESSAGE: u64 = 64 << 20;

/// The longest header line.
const MAX_HEADER: u64 = 4096;

/// Serves a client until it sends `exit`, or until its stream ends.
///
/// # Errors
/// If a stream fails, or a length header is invalid.
pub fn serve(input: impl BufRead + Send, output: impl Write + Send) -> io::Result<Ending> {
    let (ours, theirs) = Connection::memory();
    let output = Mutex::new(output);
    thread::scope(|scope| {
        let Connection { sender, receiver } = theirs;
        let reader = scope.spawn(|| {
            // The server ends when the last sender is dropped.
            let sender = sender;
            read_all(input, &output, |message| sender.send(message).is_ok())
        });
        let writer =
            scope.spawn(|| receiver.into_iter().try_for_each(|message| write(&output, &message)));
        let ending = server::run(&ours);
        drop(ours);
        let written = writer.join().unwrap_or_else(|_| Err(io::Error::other("the writer failed")));
        let read = reader.join().unwrap_or_else(|_| Err(io::Error::other("the reader failed")));
        written.and(read).map(|()| ending)
    })
}

fn write(output: &Mutex<impl Write>, message: &Message) -> io::Result<()> {
    let mut output = output.lock().map_err(|_| io::Error::other("the output failed"))?;
    message.write(&mut *output)
}

/// Passes all messages to `take`, up to `exit` or until it stops.
fn read_all(
    mut input: impl BufRead,
    output: &Mutex<impl Write>,
    take: impl Fn(Message) -> bool,
) -> io::Result<()> {
    while let Some(length) = read_header(&mut input)? {
        let mut body = (&mut input).take(length);
        let message: Result<Message, String> = if length > MAX_MESSAGE {
            io::copy(&mut body, &mut io::sink())?;
            Err(format!("it has {length} bytes, and at most {MAX_MESSAGE} are read"))
        } else {
            let mut text = Vec::new();
            body.read_to_end(&mut text)?;
            serde_json::from_slice(&text).map_err(|error| error.to_string())
        };
        let message = match message {
            Ok(message) => message,
            Err(why) => {
                refuse(output, &why)?;
                continue;
            }
        };
        let is_exit = matches!(&message, Message::Notification(note) if note.method == "exit");
        if !take(message) || is_exit {
            break;
        }
    }
    Ok(())
}

/// Reports a malformed message. It has no id to answer to.
fn refuse(output: &Mutex<impl Write>, why: &str) -> io::Result<()> {
    let message = format!("invalid message: {why}");
    let error = json!({ "code": ErrorCode::ParseError as i32, "message": message });
    let body = json!({ "jsonrpc": "2.0", "id": null, "error": error }).to_string();
    let mut output = output.lock().map_err(|_| io::Error::other("the output failed"))?;
    write!(output, "Content-Length: {}\r\n\r\n{body}", body.len())?;
    output.flush()
}

/// The length of the next message; `None` at the end of the stream.
fn read_header(input: &mut impl BufRead) -> io::Result<Option<u64>> {
    let malformed = |what: &str| io::Error::new(io::ErrorKind::InvalidData, what.to_owned());
    let mut length: Option<u64> = None;
    loop {
        let mut line = Vec::new();
        input.take(MAX_HEADER).read_until(b'\n', &mut line)?;
        if line.is_empty() {
            return Ok(None);
        }
        if !line.ends_with(b"\n") {
            return Err(malformed("a header that does not end"));
        }
        let line = String::from_utf8_lossy(&line);
        let line = line.trim();
        if line.is_empty() {
            return length.map(Some).ok_or_else(|| malformed("a message without its length"));
        }
        let (name, value) =
            line.split_once(':').ok_or_else(|| malformed("a header without `:`"))?;
        if name.trim().eq_ignore_ascii_case("content-length") {
            length = value.trim().parse().ok();
        }
    }
}
