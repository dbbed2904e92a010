//! Requests and replies, one JSON line each; also used by the peers in `bench/peers`.

use std::fmt;
use std::path::PathBuf;

use serde::de::{IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

/// A request of the driver.
#[derive(Debug, Deserialize)]
#[serde(tag = "request", rename_all = "lowercase")]
pub(crate) enum Request {
    /// Build the kernel of a workload, replacing the previous one.
    Build {
        workload: Workload,
        /// The directory with the inputs, `NAME.npy` each.
        inputs: PathBuf,
    },
    /// Report the records of a workload.
    Records { workload: Workload },
    /// Sample the kernel for some time.
    Sample { seconds: f64 },
    /// Call the kernel once and write its result.
    Output { path: PathBuf },
    /// Measure the overhead of an empty call.
    Overhead,
    /// Measure the machine's current roofline for data of this size.
    Roof { bytes: u64, written: u64 },
    /// End.
    Quit,
}

/// The fields of a workload that this runner uses.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Workload {
    /// The source file, from the directory in which the runner was started.
    pub(crate) file: PathBuf,
    /// The definition.
    #[serde(rename = "def")]
    pub(crate) definition: String,
    /// `NAME=NUMBER,...`
    pub(crate) size: String,
    /// The names of the inputs, in the order of the definition; shapes come from the definition.
    #[serde(deserialize_with = "names_in_order")]
    pub(crate) inputs: Vec<String>,
}

/// The keys of an object in source order, which maps would sort.
fn names_in_order<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    struct Names;

    impl<'de> Visitor<'de> for Names {
        type Value = Vec<String>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("inputs with their shapes")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            let mut names = Vec::new();
            while let Some((name, _)) = map.next_entry::<String, IgnoredAny>()? {
                names.push(name);
            }
            Ok(names)
        }
    }

    deserializer.deserialize_map(Names)
}

/// An answer.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(crate) enum Reply {
    Built(Built),
    Records(Tuning),
    Samples { ns: Vec<f64> },
    Roof { gflops: f64, gbps: f64, bandwidth: &'static str },
    Done {},
    Error { error: String },
}

/// A kernel that is ready.
#[derive(Debug, Serialize)]
pub(crate) struct Built {
    /// This runner has one variant per workload.
    pub(crate) variants: [&'static str; 1],
    /// The schedule in use.
    pub(crate) schedule: String,
    /// The hash of the generated code: the object, or the source and launches of device kernels.
    pub(crate) code: String,
    /// The factor by which rounding errors may exceed those of the program's own sums.
    pub(crate) error_growth: f64,
    /// The compile time.
    pub(crate) compile_s: f64,
    /// The records of tuning.
    pub(crate) tuning: Tuning,
    pub(crate) version: String,
}

/// The cost of tuning so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub(crate) struct Tuning {
    /// The trials of all runs, for these sizes, threads and machine.
    pub(crate) trials: u64,
    /// The total time of the runs.
    pub(crate) seconds: f64,
}
