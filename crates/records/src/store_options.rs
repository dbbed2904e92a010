//! [`StoreOptions`]: options for opening records.

use std::time::Duration;

/// Options for opening records.
#[derive(Debug, Clone, PartialEq)]
pub struct StoreOptions {
    /// How long to wait for other writers, and for a server to accept a connection.
    pub busy_timeout: Duration,
    /// The maximum size of a file; servers have quotas of their own.
    pub max_bytes: Option<u64>,
    /// Whether a commit waits for the disk and so survives a power loss. Otherwise it still
    /// survives the end of the process, but not of a server.
    pub durable: bool,
}

impl Default for StoreOptions {
    fn default() -> Self {
        Self { busy_timeout: Duration::from_secs(5), max_bytes: None, durable: true }
    }
}
