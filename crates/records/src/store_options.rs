//! [`StoreOptions`]: how records are opened.

use std::time::Duration;

/// How records are opened.
#[derive(Debug, Clone, PartialEq)]
pub struct StoreOptions {
    /// How long to wait for others that write, and for a server to accept a connection.
    pub busy_timeout: Duration,
    /// The size that a file may not exceed; servers have quotas of their own.
    pub max_bytes: Option<u64>,
    /// Whether a commit waits for the disk, so that it outlasts a loss of power. Without that it
    /// still outlasts the end of the process, though not of a server.
    pub durable: bool,
}

impl Default for StoreOptions {
    fn default() -> Self {
        Self { busy_timeout: Duration::from_secs(5), max_bytes: None, durable: true }
    }
}
