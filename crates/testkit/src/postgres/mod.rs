//! PostgreSQL for tests: a shared server, private ones, and a proxy.

mod proxy;
mod server;

pub use proxy::Proxy;
pub use server::Server;

/// The environment variable with the URL of the shared server, which `.ci/postgres` starts.
pub const SHARED: &str = "TENSORWRIGHT_TEST_POSTGRES";

/// The URL of the shared server; `None` if there is none.
///
/// # Panics
/// If there is none although `TENSORWRIGHT_NEEDS_POSTGRES` is set, as in CI.
#[must_use]
pub fn shared() -> Option<String> {
    let url = std::env::var(SHARED).ok();
    if url.is_none() {
        skip("there is no server: eval \"$(.ci/postgres target/postgres)\"");
    }
    url
}

/// Reports that a test is skipped; panics if it must run.
#[expect(clippy::print_stderr, reason = "a test says that it does nothing")]
fn skip(reason: &str) {
    assert!(std::env::var_os("TENSORWRIGHT_NEEDS_POSTGRES").is_none(), "{reason}");
    eprintln!("skipped: {reason}");
}

/// The port of a URL.
#[must_use]
pub fn port(url: &str) -> Option<u16> {
    let host = url.split_once('@')?.1.split(['/', '?']).next()?;
    host.rsplit_once(':')?.1.parse().ok()
}
