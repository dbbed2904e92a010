//! Where programs come from: generated ones, and the examples at the sizes of their golden tests.

use std::path::Path;

use tensorwright_testkit::{Rng, Scale, generate_at};

use super::case::Case;
use super::inputs::Inputs;
use super::rewritable;

/// How many of a hundred programs are examples.
const EXAMPLES: usize = 15;

/// How many of a hundred of the others are such that rewritings apply to them.
const REWRITABLE: usize = 20;

/// The examples, read once.
pub(crate) struct Source {
    examples: Vec<Example>,
}

/// A program with sizes.
pub(crate) struct Example {
    /// The source text.
    pub(crate) text: String,
    /// The def to bind.
    pub(crate) def: String,
    /// A value for every size.
    pub(crate) sizes: Vec<(String, i64)>,
}

impl Source {
    /// Reads the examples.
    pub(crate) fn load() -> Result<Self, String> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
        let read = |path: &Path| {
            std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
        };
        let cases = read(&folder.join("golden/cases.json"))?;
        let cases: serde_json::Value =
            serde_json::from_str(&cases).map_err(|error| format!("cases.json: {error}"))?;
        let mut examples = Vec::new();
        for case in cases.as_array().into_iter().flatten() {
            let (Some(file), Some(def)) = (case["file"].as_str(), case["def"].as_str()) else {
                return Err("cases.json: a case without a file or a def".to_owned());
            };
            let sizes = case["sizes"].as_object().into_iter().flatten();
            let sizes = sizes.filter_map(|(name, value)| Some((name.clone(), value.as_i64()?)));
            let text = read(&folder.join("kernels").join(file))?;
            examples.push(Example { text, def: def.to_owned(), sizes: sizes.collect() });
        }
        Ok(Self { examples })
    }

    /// A random program with inputs, not scheduled yet.
    pub(crate) fn draw(&self, rng: &mut Rng) -> Case {
        let (inputs, target) = (Inputs::random(rng), target(rng).to_owned());
        let schedule = String::new();
        if !self.examples.is_empty() && rng.chance(EXAMPLES) {
            let Example { text, def, sizes } = rng.pick(&self.examples);
            let (text, def, sizes) = (text.clone(), def.clone(), sizes.clone());
            return Case { text, def, sizes, inputs, target, schedule };
        }
        if rng.chance(REWRITABLE) {
            let Example { text, def, sizes } = rewritable::draw(rng);
            return Case { text, def, sizes, inputs, target, schedule };
        }
        let generated = generate_at(Scale::Tileable, rng.next_u64());
        let (text, def, sizes) = (generated.text, generated.def, generated.sizes);
        Case { text, def, sizes, inputs, target, schedule }
    }
}

/// Mostly this machine; sometimes one with shorter vectors.
fn target(rng: &mut Rng) -> &'static str {
    match rng.below(10) {
        0 if cfg!(target_arch = "x86_64") => "sse",
        1 if cfg!(target_arch = "x86_64") => "avx2",
        _ => "native",
    }
}
