//! [`ProgramInfo`]: the record of a program.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// A tuned program.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct ProgramInfo {
    /// The hash of structure, sizes and types.
    pub hash: String,
    /// The hash of the structure and types alone.
    pub family: String,
    /// The name of the definition.
    pub def: String,
    /// The sizes by name.
    pub sizes: BTreeMap<String, i64>,
    /// The source text with all sizes as numbers, which binds to a program of the same hash.
    pub text: String,
    /// The operations of a call.
    pub flops: f64,
    /// The bytes that a call must read and write.
    pub bytes: f64,
}
