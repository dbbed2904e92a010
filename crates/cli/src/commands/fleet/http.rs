//! A read-only HTTP server for a few pages.
//!
//! It serves one request per connection, with time limits for clients.

use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// The longest request head.
const MOST_BYTES: usize = 8 << 10;

/// The time limit for reading a request, and for sending a response.
const PATIENCE: Duration = Duration::from_secs(5);

/// The most concurrent clients.
const MOST_CLIENTS: usize = 32;

/// How often the server checks whether to stop.
const TICK: Duration = Duration::from_millis(50);

/// A response.
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) kind: &'static str,
    pub(super) body: String,
}

impl Answer {
    pub(super) fn plain(status: u16, body: &str) -> Self {
        Self { status, kind: "text/plain; charset=utf-8", body: format!("{body}\n") }
    }
}

/// Serves until it is told to stop. Paths come without their query string.
pub(super) fn serve(
    listener: &TcpListener,
    stop: &AtomicBool,
    answer: impl Fn(&str) -> Answer + Send + Sync + 'static,
) -> std::io::Result<()> {
    // Only an explicit address lets other machines connect; then any host name is allowed.
    let is_private = listener.local_addr()?.ip().is_loopback();
    listener.set_nonblocking(true)?;
    let answer = Arc::new(answer);
    let clients = Arc::new(AtomicUsize::new(0));
    while !stop.load(Ordering::Relaxed) {
        let client = match listener.accept() {
            Ok((client, _)) => client,
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                std::thread::sleep(TICK);
                continue;
            }
            // The client has gone, or the system lacks a resource: both are transient.
            Err(_) => {
                std::thread::sleep(TICK);
                continue;
            }
        };
        if clients.fetch_add(1, Ordering::Relaxed) >= MOST_CLIENTS {
            clients.fetch_sub(1, Ordering::Relaxed);
            continue;
        }
        let (answer, counted) = (Arc::clone(&answer), Arc::clone(&clients));
        let started = std::thread::Builder::new().spawn(move || {
            // A client that disconnects gets no response.
            let _ = converse(client, is_private, answer.as_ref());
            counted.fetch_sub(1, Ordering::Relaxed);
        });
        if started.is_err() {
            clients.fetch_sub(1, Ordering::Relaxed);
        }
    }
    Ok(())
}

fn converse(
    mut client: TcpStream,
    is_private: bool,
    answer: &dyn Fn(&str) -> Answer,
) -> std::io::Result<()> {
    client.set_nonblocking(false)?;
    client.set_read_timeout(Some(PATIENCE))?;
    client.set_write_timeout(Some(PATIENCE))?;
    let head = head_of(&mut client)?;
    let (answer, has_body) = respond(&head, is_private, answer);
    let Answer { status, kind, body } = answer;
    let word = match status {
        200 => "OK",
        400 => "Bad Request",
        404 => "Not Found",
        405 => "Method Not Allowed",
        421 => "Misdirected Request",
        _ => "Service Unavailable",
    };
    let mut text = format!(
        "HTTP/1.1 {status} {word}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nConnection: close\r\nCache-Control: no-store\r\n\
         X-Content-Type-Options: nosniff\r\nReferrer-Policy: no-referrer\r\nX-Frame-Options: DENY\r\n\
         Cross-Origin-Resource-Policy: same-origin\r\n\r\n",
        body.len()
    );
    if has_body {
        text.push_str(&body);
    }
    client.write_all(text.as_bytes())?;
    client.shutdown(Shutdown::Write)
}

/// The request head, as far as it arrived in time.
fn head_of(client: &mut TcpStream) -> std::io::Result<String> {
    let begun = Instant::now();
    let (mut bytes, mut some) = (Vec::new(), [0; 1024]);
    while !bytes.windows(4).any(|four| four == b"\r\n\r\n") {
        let count = client.read(&mut some)?;
        bytes.extend_from_slice(&some[..count]);
        if count == 0 || bytes.len() > MOST_BYTES || begun.elapsed() > PATIENCE {
            break;
        }
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// The response, and whether to send its body.
fn respond(head: &str, is_private: bool, answer: &dyn Fn(&str) -> Answer) -> (Answer, bool) {
    let mut lines = head.split("\r\n");
    let mut words = lines.next().unwrap_or_default().split(' ');
    let (method, path, version) = (words.next(), words.next(), words.next());
    let is_whole = head.contains("\r\n\r\n") && head.len() <= MOST_BYTES;
    let (Some(path), Some("HTTP/1.1" | "HTTP/1.0"), true) = (path, version, is_whole) else {
        return (Answer::plain(400, "not an HTTP request"), true);
    };
    if !matches!(method, Some("GET" | "HEAD")) {
        return (Answer::plain(405, "this server is read-only"), true);
    }
    let header = |name: &str| {
        let found = |line: &&str| {
            line.split_once(':').is_some_and(|(key, _)| key.eq_ignore_ascii_case(name))
        };
        lines
            .clone()
            .find(found)
            .and_then(|line| line.split_once(':'))
            .map(|(_, value)| value.trim())
    };
    // A foreign page whose host name resolves here must not read this (DNS rebinding).
    if is_private && !header("host").is_none_or(is_here) {
        return (Answer::plain(421, "wrong host name"), true);
    }
    let path = path.split('?').next().unwrap_or_default();
    (answer(path), method == Some("GET"))
}

/// Whether a host name is this machine: a loopback address or `localhost`.
fn is_here(host: &str) -> bool {
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => host.rsplit_once(':').map_or(host, |(name, _)| name),
    };
    name.eq_ignore_ascii_case("localhost") || name.parse::<IpAddr>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(head: &str) -> u16 {
        respond(head, true, &|path| match path {
            "/" => Answer::plain(200, "here"),
            _ => Answer::plain(404, "nothing"),
        })
        .0
        .status
    }

    #[test]
    fn only_plain_reading_is_answered() {
        assert_eq!(status("GET / HTTP/1.1\r\nHost: localhost:7411\r\n\r\n"), 200);
        assert_eq!(status("HEAD /?x=1 HTTP/1.1\r\nHost: [::1]:7411\r\n\r\n"), 200);
        assert_eq!(status("GET / HTTP/1.0\r\n\r\n"), 200);
        assert_eq!(status("GET /x HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n"), 404);
        assert_eq!(status("POST / HTTP/1.1\r\nHost: localhost\r\n\r\n"), 405);
        assert_eq!(status("DELETE /metrics HTTP/1.1\r\n\r\n"), 405);
        assert_eq!(status("GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n"), 421);
        for wrong in [
            "",
            "\r\n\r\n",
            "GET /\r\n\r\n",
            "GET / HTTP/2\r\n\r\n",
            "GET / HTTP/1.1\r\n",
            "\0\u{fffd}",
        ] {
            assert_eq!(status(wrong), 400, "{wrong:?}");
        }
        let long = format!("GET / HTTP/1.1\r\nX: {}\r\n\r\n", "x".repeat(MOST_BYTES));
        assert_eq!(status(&long), 400);
    }
}
