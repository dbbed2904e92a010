//! [`Manifest`]: many operators and sizes, tuned with a common budget.
//!
//! ```toml
//! [tune]
//! time = "10m"            # for all together; or: trials = 2000
//! strategy = "portfolio"
//!
//! [[operator]]
//! file = "kernels/gemm.tc"
//! def = "gemm"
//! sizes = { M = 1024, N = 1024, K = 1024 }
//! threads = 2
//! weight = 12             # how often it is called
//! ```

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Deserialize;

/// The longest manifest, in bytes.
const MAX_BYTES: usize = 1 << 20;

/// Trials that every operator gets before the budget goes where it pays.
const FIRST_SLICE: u64 = 40;

/// Trials that are given at a time afterwards.
const SLICE: u64 = 32;

/// How much of an operator's last gain is expected of its next slice.
const DECAY: f64 = 0.5;

/// Many operators and sizes.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// What holds for all.
    #[serde(default)]
    pub tune: Common,
    /// The operators.
    #[serde(default, rename = "operator")]
    pub operators: Vec<Operator>,
}

/// What holds for all operators.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Common {
    /// Trials for all together.
    pub trials: Option<u64>,
    /// Time for all together: `90s`, `10m`, `2h`.
    #[serde(default, deserialize_with = "duration")]
    pub time: Option<Duration>,
    /// The strategy.
    pub strategy: Option<String>,
    /// The seed.
    #[serde(default)]
    pub seed: u64,
}

/// An operator with sizes.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Operator {
    /// The file, relative to the manifest.
    pub file: String,
    /// The definition; not needed if the file has one.
    pub def: Option<String>,
    /// Its sizes.
    #[serde(default)]
    pub sizes: BTreeMap<String, i64>,
    /// The threads.
    #[serde(default = "one")]
    pub threads: usize,
    /// How often it is called: what it saves counts so many times.
    #[serde(default = "once")]
    pub weight: f64,
}

fn one() -> usize {
    1
}

fn once() -> f64 {
    1.0
}

fn duration<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Option<Duration>, D::Error> {
    let text = String::deserialize(from)?;
    parse_duration(&text).map(Some).map_err(serde::de::Error::custom)
}

/// Reads `1500ms`, `90s`, `10m`, `2h`, or seconds.
///
/// # Errors
/// If the text is none of these.
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    let text = text.trim();
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let scale = match unit.trim() {
        "" | "s" => 1.0,
        "ms" => 1e-3,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        _ => return Err(format!("`{text}` is no time: write 90s, 10m or 2h")),
    };
    let number: f64 =
        number.parse().map_err(|_| format!("`{text}` is no time: write 90s, 10m or 2h"))?;
    Duration::try_from_secs_f64(number * scale).map_err(|_| format!("`{text}` is too long a time"))
}

impl Manifest {
    /// Reads a manifest.
    ///
    /// # Errors
    /// What is wrong and where, in the words of the TOML reader.
    pub fn parse(text: &str) -> Result<Self, String> {
        if text.len() > MAX_BYTES {
            return Err(format!("the manifest is longer than {MAX_BYTES} bytes"));
        }
        let manifest: Self = toml::from_str(text).map_err(|error| error.to_string())?;
        if manifest.operators.is_empty() {
            return Err("the manifest has no [[operator]]".to_owned());
        }
        for (place, operator) in manifest.operators.iter().enumerate() {
            if !(operator.weight.is_finite() && operator.weight > 0.0) {
                return Err(format!("operator {}: the weight must be positive", place + 1));
            }
            if !(1..=1024).contains(&operator.threads) {
                return Err(format!("operator {}: threads must be 1 to 1024", place + 1));
            }
        }
        Ok(manifest)
    }
}

/// Who gets the next slice of a common budget.
///
/// Every operator gets a first slice. Then the next goes where it is expected to save most: the
/// operator's weight times the seconds that its last slice saved, decayed for every slice since that
/// saved nothing, as in Ansor's scheduler of tasks.
#[derive(Debug, Clone)]
pub struct Allocation {
    states: Vec<State>,
}

#[derive(Debug, Clone, Copy)]
struct State {
    weight: f64,
    seconds: Option<f64>,
    expected: f64,
    trials: u64,
    exhausted: bool,
}

impl Allocation {
    /// An allocation to operators of these weights.
    #[must_use]
    pub fn new(weights: &[f64]) -> Self {
        let state = |weight: &f64| State {
            weight: *weight,
            seconds: None,
            expected: f64::INFINITY,
            trials: 0,
            exhausted: false,
        };
        Self { states: weights.iter().map(state).collect() }
    }

    /// The operator that goes next, and for how many trials; `None` if all are exhausted.
    #[must_use]
    pub fn next(&self) -> Option<(usize, u64)> {
        let open = self.states.iter().enumerate().filter(|(_, state)| !state.exhausted);
        let (place, state) = open.max_by(|(i, a), (j, b)| {
            // Of equal ones the one with fewer trials, then the first.
            a.expected.total_cmp(&b.expected).then(b.trials.cmp(&a.trials)).then(j.cmp(i))
        })?;
        Some((place, if state.seconds.is_none() { FIRST_SLICE } else { SLICE }))
    }

    /// Notes what a slice brought: the best seconds now, the trials, and whether there is nothing
    /// left to try.
    pub fn observe(&mut self, operator: usize, seconds: f64, trials: u64, exhausted: bool) {
        let Some(state) = self.states.get_mut(operator) else { return };
        let saved = match state.seconds {
            Some(before) => (before - seconds).max(0.0),
            // The first slice always saves much; a tenth of the time is a fair guess for the next.
            None => seconds * 0.1,
        };
        let last = if state.expected.is_finite() { state.expected } else { 0.0 };
        state.expected = (state.weight * saved).max(last * DECAY);
        let best = state.seconds.map_or(seconds, |before| before.min(seconds));
        state.seconds = Some(best);
        state.trials += trials;
        state.exhausted |= exhausted || trials == 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn manifests_are_read_and_mistakes_are_named() {
        let text = "[tune]\ntime = \"10m\"\n[[operator]]\nfile = \"gemm.tc\"\nsizes = { M = 4 }\n";
        let manifest = Manifest::parse(text).unwrap();
        assert_eq!(manifest.tune.time, Some(Duration::from_secs(600)));
        assert_eq!((manifest.operators[0].threads, manifest.operators[0].weight), (1, 1.0));
        let wrong = Manifest::parse("[[operator]]\nfile = \"a.tc\"\nsize = {}\n").unwrap_err();
        assert!(wrong.contains("unknown field `size`"), "{wrong}");
        assert!(Manifest::parse("[tune]\ntime = \"soon\"").unwrap_err().contains("write 90s"));
        assert_eq!(Manifest::parse("").unwrap_err(), "the manifest has no [[operator]]");
        assert_eq!(parse_duration("1500ms"), Ok(Duration::from_millis(1500)));
        assert!(parse_duration("1e400").is_err());
    }

    #[test]
    fn trials_go_where_they_pay() {
        let mut allocation = Allocation::new(&[1.0, 1.0, 10.0]);
        for (operator, seconds) in [(0, 1.0), (1, 1.0), (2, 1.0)] {
            assert_eq!(allocation.next(), Some((operator, FIRST_SLICE)));
            allocation.observe(operator, seconds, 40, false);
        }
        // The one that is called ten times as often goes first ...
        assert_eq!(allocation.next(), Some((2, SLICE)));
        for _ in 0..5 {
            allocation.observe(2, 1.0, 32, false);
        }
        // ... until it gains nothing any more.
        assert_eq!(allocation.next(), Some((0, SLICE)));
        allocation.observe(0, 0.5, 32, false);
        assert_eq!(allocation.next(), Some((0, SLICE)));
        allocation.observe(0, 0.5, 32, true);
        assert_eq!(allocation.next(), Some((1, SLICE)));
    }
}
