//! [`Server`]: a private PostgreSQL server.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use super::skip;

/// A private server that can be killed and restarted. It stops when dropped.
#[derive(Debug)]
pub struct Server {
    directory: PathBuf,
    url: String,
    library: Option<PathBuf>,
}

impl Server {
    /// Starts a server with its data in a directory; `None` if PostgreSQL is not installed.
    ///
    /// # Panics
    /// If it is not and `TENSORWRIGHT_NEEDS_POSTGRES` is set, as in CI.
    #[must_use]
    pub fn start(directory: &Path) -> Option<Self> {
        Self::start_with(directory, None)
    }

    /// The same with a library preloaded into the server (`LD_PRELOAD`).
    ///
    /// # Panics
    /// As [`Server::start`].
    #[must_use]
    pub fn start_with(directory: &Path, library: Option<&Path>) -> Option<Self> {
        // The server may run as another user, which must be able to reach its directory.
        let _ = fs::set_permissions(directory, Permissions::from_mode(0o711));
        let directory = directory.join("server");
        let library = library.map(Path::to_owned);
        match script(&[&directory], library.as_deref()) {
            Ok(url) => Some(Self { directory, url, library }),
            Err(reason) => {
                skip(&reason);
                None
            }
        }
    }

    /// The URL of the server.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Its data directory, with `postgresql.conf` and `pg_hba.conf`.
    #[must_use]
    pub fn data(&self) -> PathBuf {
        self.directory.join("data")
    }

    /// Kills all its processes at once. Written data survives in the page cache: a power failure
    /// would lose more.
    pub fn kill(&self) {
        let Ok(text) = fs::read_to_string(self.data().join("postmaster.pid")) else { return };
        let Some(main) = text.lines().next() else { return };
        let children = Command::new("pgrep").args(["-P", main]).output();
        let children = children.map(|output| output.stdout).unwrap_or_default();
        let children = String::from_utf8_lossy(&children).into_owned();
        let all = std::iter::once(main).chain(children.split_whitespace());
        let _ = Command::new("kill").arg("-9").args(all).status();
    }

    /// Restarts it on the same port.
    ///
    /// # Errors
    /// The server's error message.
    pub fn start_again(&self) -> Result<(), String> {
        let begun = Instant::now();
        let port = self.port();
        loop {
            let arguments = [Path::new("--port"), Path::new(&port), &self.directory];
            match script(&arguments, self.library.as_deref()) {
                Ok(_) => return Ok(()),
                // Killed processes hold its shared memory for a moment.
                Err(_) if begun.elapsed() < Duration::from_secs(30) => {
                    std::thread::sleep(Duration::from_millis(100));
                }
                Err(reason) => return Err(reason),
            }
        }
    }

    fn port(&self) -> String {
        super::port(&self.url).map(|port| port.to_string()).unwrap_or_default()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
        // The directory belongs to the test, and may have another owner.
        let _ = script(&[Path::new("--stop"), &self.directory], None);
        let _ = fs::remove_dir_all(&self.directory);
    }
}

/// Runs `.ci/postgres`; returns the URL that it prints.
fn script(arguments: &[&Path], library: Option<&Path>) -> Result<String, String> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.ci/postgres");
    let mut command = Command::new(script);
    command.args(arguments);
    if let Some(library) = library {
        command.env("LD_PRELOAD", library);
    }
    let output = command.output().map_err(|error| error.to_string())?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    Ok(text.trim().rsplit_once("POSTGRES=").map(|(_, url)| url.to_owned()).unwrap_or_default())
}
