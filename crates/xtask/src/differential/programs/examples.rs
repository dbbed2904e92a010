//! The examples, at the sizes of their golden tests and at odd ones.

use std::collections::HashSet;
use std::path::Path;

use tensorwright_lang::Module;
use tensorwright_testkit::Rng;

use super::Example;

/// One, primes, and extents smaller than a vector.
const ODD: [i64; 14] = [1, 1, 2, 3, 3, 4, 5, 7, 11, 13, 17, 19, 31, 37];

/// The lists of golden tests, and where their programs are.
const LISTS: [(&str, &str); 2] = [("cases.json", "kernels"), ("pipelines.json", "pipelines")];

/// The attempts to draw consistent sizes.
const TRIES: usize = 40;

/// The most elements of all tensors, and operations, of a program at odd sizes: the reference takes
/// about a microsecond for each.
const MAX_ELEMENTS: i64 = 12_000;
const MAX_OPERATIONS: u128 = 40_000;

/// The examples with the sizes of their golden tests.
pub(crate) struct Examples(Vec<Example>);

impl Examples {
    /// Reads the examples.
    pub(crate) fn load() -> Result<Self, String> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
        let read = |path: &Path| {
            std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
        };
        let mut examples = Vec::new();
        for (list, programs) in LISTS {
            let cases = read(&folder.join("golden").join(list))?;
            let cases: serde_json::Value =
                serde_json::from_str(&cases).map_err(|error| format!("{list}: {error}"))?;
            let cases = cases.as_array().filter(|cases| !cases.is_empty());
            for case in cases.ok_or_else(|| format!("{list}: no cases"))? {
                let (Some(file), Some(def)) = (case["file"].as_str(), case["def"].as_str()) else {
                    return Err(format!("{list}: a case without a file or a def"));
                };
                let sizes = case["sizes"].as_object().into_iter().flatten();
                let sizes = sizes.filter_map(|(name, value)| Some((name.clone(), value.as_i64()?)));
                let text = read(&folder.join(programs).join(file))?;
                examples.push(Example { text, def: def.to_owned(), sizes: sizes.collect() });
            }
        }
        Ok(Self(examples))
    }

    /// An example at its golden sizes.
    pub(super) fn golden(&self, rng: &mut Rng) -> Example {
        rng.pick(&self.0).clone()
    }

    /// An example at other sizes, or its golden ones if no others fit.
    pub(super) fn odd(&self, rng: &mut Rng) -> Example {
        let golden = rng.pick(&self.0);
        Self::at_odd_sizes(golden, rng).unwrap_or_else(|| golden.clone())
    }

    /// One example per definition, in order.
    pub(crate) fn definitions(&self) -> Vec<&Example> {
        let mut seen = HashSet::new();
        self.0.iter().filter(|example| seen.insert((&example.text, &example.def))).collect()
    }

    /// An example at other sizes, if some fit.
    pub(crate) fn at_odd_sizes(golden: &Example, rng: &mut Rng) -> Option<Example> {
        for attempt in 0..TRIES {
            let odd = |(name, value): &(String, i64)| {
                let keep = rng.percent(20 + 2 * attempt);
                (name.clone(), if keep { *value } else { *rng.pick(&ODD) })
            };
            let sizes = golden.sizes.iter().map(odd).collect();
            let candidate = Example { sizes, ..golden.clone() };
            if is_quick(&candidate) {
                return Some(candidate);
            }
        }
        None
    }
}

/// Draws programs until one is quick to interpret.
pub(super) fn until_quick(mut draw: impl FnMut() -> Example) -> Example {
    loop {
        let example = draw();
        if is_quick(&example) {
            return example;
        }
    }
}

/// Whether a program binds and the reference runs it within milliseconds.
pub(super) fn is_quick(example: &Example) -> bool {
    let bound = Module::parse("example.tc", &example.text)
        .and_then(|module| module.def(&example.def)?.bind(example.sizes.clone()));
    bound.is_ok_and(|program| {
        let elements =
            |shape: &[i64]| shape.iter().fold(1_i64, |n, extent| n.saturating_mul(*extent));
        let all = program.tensors.iter().map(|tensor| elements(&tensor.shape));
        all.fold(0, i64::saturating_add) <= MAX_ELEMENTS
            && program.analysis().flops <= MAX_OPERATIONS
    })
}
