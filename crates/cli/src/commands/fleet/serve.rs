//! `tensorwright fleet serve`: a live page, its data, and Prometheus metrics.

use std::net::{SocketAddr, TcpListener};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use clap::Args;
use serde_json::json;
use tensorwright_fleet::Fleet;
use tensorwright_records::{Error, Url};

use super::http::{self, Answer};
use super::metrics;
use super::snapshot::Snapshot;
use crate::commands::tune::stop_on_signals;

/// The longest age of a cached snapshot, for any number of readers.
const AGE: Duration = Duration::from_secs(1);

/// The timeout of the fleet's server.
const LIMIT: Duration = Duration::from_secs(5);

/// Serve a live page of the fleet, and Prometheus metrics at /metrics
///
/// The page is read-only, loads no external resources, and listens on this machine only, unless
/// --listen names another address. Anyone who can reach the address can see it. A database user
/// with the role `read` suffices.
#[derive(Debug, Args)]
pub(super) struct ServeArgs {
    /// The address to listen on
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:7411")]
    pub(super) listen: SocketAddr,
}

/// The last snapshot and its time.
struct Last {
    fleet: Fleet,
    taken: Option<(Instant, Result<Snapshot, String>)>,
}

impl Last {
    /// A snapshot that is recent enough.
    fn now(&mut self) -> &Result<Snapshot, String> {
        let is_old = self.taken.as_ref().is_none_or(|(when, _)| when.elapsed() > AGE);
        if is_old {
            let taken = Snapshot::take(&mut self.fleet).map_err(|error| error.to_string());
            self.taken = Some((Instant::now(), taken));
        }
        static NOTHING: Result<Snapshot, String> = Err(String::new());
        self.taken.as_ref().map_or(&NOTHING, |(_, taken)| taken)
    }
}

/// Serves until it is told to stop.
pub(super) fn run(args: &ServeArgs, url: &Url) -> Result<(), Error> {
    let fleet = Fleet::connect(url)?.with_limit(LIMIT);
    let refused = |error: std::io::Error| Error::Invalid {
        what: format!("the address {}", args.listen),
        reason: format!("cannot be listened on: {error}"),
    };
    let listener = TcpListener::bind(args.listen).map_err(refused)?;
    let address = listener.local_addr().map_err(refused)?;
    eprintln!("http://{address}/ and http://{address}/metrics, until Ctrl-C");
    if !address.ip().is_loopback() {
        eprintln!("anyone who can reach this address can see the fleet");
    }
    let last = Mutex::new(Last { fleet, taken: None });
    let answer = move |path: &str| {
        if path == "/" {
            let (kind, body) = ("text/html; charset=utf-8", tensorwright_report::live_page());
            return Answer { status: 200, kind, body };
        }
        let mut last = last.lock().unwrap_or_else(PoisonError::into_inner);
        match (path, last.now()) {
            ("/metrics", now) => {
                Answer { status: 200, kind: metrics::TYPE, body: metrics::text(now.as_ref().ok()) }
            }
            ("/data.json", now) => {
                let (status, data) = match now {
                    Ok(snapshot) => (200, snapshot.json()),
                    Err(error) => (503, json!({ "error": error })),
                };
                Answer { status, kind: "application/json", body: data.to_string() }
            }
            _ => Answer::plain(404, "there are /, /data.json and /metrics"),
        }
    };
    http::serve(&listener, &stop_on_signals(), answer).map_err(refused)
}
