//! [`Meta`]: the readable metadata of a run.

use serde_json::Value;

use crate::text::shortened;

/// The most algorithms, parameters per algorithm, and values per parameter to read.
const MOST_PARAMETERS: usize = 256;
const MOST_ALGORITHMS: usize = 16;
const MOST_VALUES: usize = 4096;

/// The readable metadata of a run. Anything may be missing: records come from other versions and
/// from files.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Meta {
    pub(crate) command: Option<String>,
    pub(crate) machine: Option<String>,
    pub(crate) peak_gflops: Option<f64>,
    pub(crate) peak_gbps: Option<f64>,
    pub(crate) flops: Option<f64>,
    pub(crate) bytes: Option<f64>,
    /// The roofline's lower bound on the time of a call.
    pub(crate) bound_seconds: Option<f64>,
    pub(crate) default_seconds: Option<f64>,
    /// The spaces of the run's algorithms. Older runs have one unnamed space.
    pub(crate) algorithms: Vec<Algorithm>,
}

/// An algorithm with its space.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Algorithm {
    pub(crate) name: String,
    pub(crate) parameters: Vec<Parameter>,
}

/// A parameter of a space.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Parameter {
    pub(crate) name: String,
    pub(crate) kind: String,
    /// The values by rank; empty if there were too many to record.
    pub(crate) values: Vec<String>,
}

impl Parameter {
    /// The value of a rank, or the rank itself.
    pub(crate) fn value(&self, rank: u32) -> String {
        let known = usize::try_from(rank).ok().and_then(|rank| self.values.get(rank));
        known.cloned().unwrap_or_else(|| format!("#{rank}"))
    }
}

impl Meta {
    /// Reads the metadata of a run.
    pub(crate) fn read(meta: &Value) -> Self {
        let text = |name: &str| Some(shortened(meta.get(name)?.as_str()?, 400));
        let roof = |name: &str| positive(meta.get("roofline")?.get(name));
        let algorithms = meta.get("algorithms").and_then(Value::as_array);
        let algorithms = algorithms.map(|list| list.iter().take(MOST_ALGORITHMS).map(algorithm));
        let unnamed = parameters(meta);
        let unnamed =
            (!unnamed.is_empty()).then(|| Algorithm { name: String::new(), parameters: unnamed });
        Self {
            command: text("command"),
            machine: text("machine"),
            peak_gflops: roof("peak_gflops"),
            peak_gbps: roof("peak_gbps"),
            flops: roof("flops"),
            bytes: roof("bytes"),
            bound_seconds: roof("seconds"),
            default_seconds: positive(meta.get("default_seconds")),
            algorithms: algorithms.into_iter().flatten().chain(unnamed).collect(),
        }
    }

    /// Fills gaps with an earlier run's metadata.
    pub(crate) fn or(self, earlier: Self) -> Self {
        Self {
            command: self.command.or(earlier.command),
            machine: self.machine.or(earlier.machine),
            peak_gflops: self.peak_gflops.or(earlier.peak_gflops),
            peak_gbps: self.peak_gbps.or(earlier.peak_gbps),
            flops: self.flops.or(earlier.flops),
            bytes: self.bytes.or(earlier.bytes),
            bound_seconds: self.bound_seconds.or(earlier.bound_seconds),
            default_seconds: self.default_seconds.or(earlier.default_seconds),
            algorithms: if self.algorithms.is_empty() {
                earlier.algorithms
            } else {
                self.algorithms
            },
        }
    }
}

fn algorithm(value: &Value) -> Algorithm {
    let name = value.get("name").and_then(Value::as_str).unwrap_or_default();
    Algorithm { name: name.to_owned(), parameters: parameters(value) }
}

fn parameters(value: &Value) -> Vec<Parameter> {
    let list = value.get("parameters").and_then(Value::as_array);
    list.map(|list| list.iter().take(MOST_PARAMETERS).map(parameter).collect()).unwrap_or_default()
}

fn parameter(value: &Value) -> Parameter {
    let text =
        |name: &str| shortened(value.get(name).and_then(Value::as_str).unwrap_or("(unnamed)"), 80);
    let word = |value: &Value| match value {
        Value::String(text) => shortened(text, 80),
        other => shortened(&other.to_string(), 80),
    };
    let values = value.get("values").and_then(Value::as_array);
    let values = values.map(|list| list.iter().take(MOST_VALUES).map(word).collect());
    Parameter { name: text("name"), kind: text("kind"), values: values.unwrap_or_default() }
}

/// A valid time, speed or amount.
fn positive(value: Option<&Value>) -> Option<f64> {
    value?.as_f64().filter(|number| number.is_finite() && *number > 0.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_is_not_understood_is_left_out() {
        for odd in [json!(null), json!(3), json!([]), json!({"roofline": 7, "parameters": {}})] {
            assert_eq!(Meta::read(&odd), Meta::default());
        }
        let meta = Meta::read(&json!({
            "machine": "X", "roofline": {"peak_gflops": -1.0, "peak_gbps": 20},
            "parameters": [{"name": "unroll", "kind": "discrete", "values": [1, "2"]}, null],
        }));
        assert_eq!((meta.peak_gflops, meta.peak_gbps), (None, Some(20.0)));
        let [unnamed] = &meta.algorithms[..] else { panic!("{meta:?}") };
        assert_eq!(unnamed.parameters[0].value(1), "2");
        assert_eq!(unnamed.parameters[0].value(9), "#9");
        assert_eq!(unnamed.parameters[1].name, "(unnamed)");
        let meta = Meta::read(&json!({"algorithms": [
            {"name": "as written", "parameters": [{"name": "unroll"}]}, 3, {"name": 4},
        ]}));
        let names: Vec<(&str, usize)> =
            meta.algorithms.iter().map(|one| (one.name.as_str(), one.parameters.len())).collect();
        assert_eq!(names, [("as written", 1), ("", 0), ("", 0)]);
    }
}
