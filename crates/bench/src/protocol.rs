//! What is asked and answered, one line of JSON each. Peers in `bench/peers` speak the same.

use std::fmt;
use std::path::PathBuf;

use serde::de::{IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

/// A request of the driver.
#[derive(Debug, Deserialize)]
#[serde(tag = "request", rename_all = "lowercase")]
pub(crate) enum Request {
    /// Build the kernel of a workload; what was built before is dropped.
    Build {
        workload: Workload,
        /// The directory with the inputs, `NAME.npy` each.
        inputs: PathBuf,
    },
    /// Say what the records hold for a workload.
    Records { workload: Workload },
    /// Call the kernel for some time.
    Sample { seconds: f64 },
    /// Call the kernel once more and write its result.
    Output { path: PathBuf },
    /// Measure a call that does nothing.
    Overhead,
    /// Measure what the machine can do at this moment, for data of so many bytes.
    Roof { bytes: u64, written: u64 },
    /// End.
    Quit,
}

/// The fields of a workload that this runner needs.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Workload {
    /// The source file, from the directory in which the runner was started.
    pub(crate) file: PathBuf,
    /// The definition.
    #[serde(rename = "def")]
    pub(crate) definition: String,
    /// `NAME=NUMBER,...`
    pub(crate) size: String,
    /// The names of the inputs, in the order of the definition; the shapes are the definition's.
    #[serde(deserialize_with = "names_in_order")]
    pub(crate) inputs: Vec<String>,
}

/// The keys of an object in the order of the text, which maps would sort.
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
    /// This runner has one variant of each workload.
    pub(crate) variants: [&'static str; 1],
    /// The schedule that was used.
    pub(crate) schedule: String,
    /// By how much rounding errors may exceed those of the sums that the text names.
    pub(crate) error_growth: f64,
    /// How long compiling took.
    pub(crate) compile_s: f64,
    /// What the records hold.
    pub(crate) tuning: Tuning,
    pub(crate) version: String,
}

/// What tuning cost so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub(crate) struct Tuning {
    /// The trials of all runs, for these sizes, threads and machine.
    pub(crate) trials: u64,
    /// How long the runs took.
    pub(crate) seconds: f64,
}
