//! Sources of programs: one file and one line of [`SOURCES`] each.
//!
//! A share of all programs is replaced by its gradient.

pub(crate) mod examples;
mod featured;
mod generated;
mod gradient;
mod matrices;
mod pipelines;
mod rewritable;
mod vectors;

use tensorwright_testkit::Rng;

use examples::Examples;

/// A program with sizes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Example {
    /// The source text.
    pub(crate) text: String,
    /// The def to bind.
    pub(crate) def: String,
    /// A value for every size.
    pub(crate) sizes: Vec<(String, i64)>,
}

/// Draws a program.
type Draw = fn(&Programs, &mut Rng) -> Example;

/// All sources by name, with their percentages.
const SOURCES: [(&str, usize, Draw); 9] = [
    ("examples", 15, |programs, rng| programs.examples.golden(rng)),
    ("odd sizes", 20, |programs, rng| programs.examples.odd(rng)),
    ("rewritable", 13, |_, rng| rewritable::draw(rng)),
    ("vectors", 12, |_, rng| vectors::draw(rng)),
    ("pipelines", 8, |_, rng| pipelines::draw(rng)),
    ("matrices", 4, |_, rng| matrices::draw(rng)),
    ("generated", 20, |_, rng| generated::draw(rng)),
    ("recurrences", 4, |_, rng| featured::draw(rng, "recurrence")),
    ("scatters", 4, |_, rng| featured::draw(rng, "scatter")),
];

/// The percentage of programs replaced by their gradients, where these exist.
const GRADIENTS: usize = 25;

/// The data of the sources, read once.
pub(crate) struct Programs {
    examples: Examples,
    /// The only source, by name; all by default.
    only: Option<String>,
}

impl Programs {
    /// Reads the examples. Draws from one source only if its name is given.
    pub(crate) fn load(only: Option<&str>) -> Result<Self, String> {
        Ok(Self { examples: Examples::load()?, only: only.map(str::to_owned) })
    }

    /// The names of all sources.
    pub(crate) fn names() -> impl Iterator<Item = &'static str> {
        SOURCES.iter().map(|(name, ..)| *name).chain([gradient::NAME])
    }

    /// A random program with sizes, and its source.
    pub(crate) fn draw(&self, rng: &mut Rng) -> (Example, &'static str) {
        let only = self.only.as_deref();
        let mut left = rng.index(100);
        let chosen = SOURCES.iter().find(|(name, share, _)| match only {
            Some(only) if only != gradient::NAME => only == *name,
            _ => left.checked_sub(*share).map(|rest| left = rest).is_none(),
        });
        let (name, _, draw) = chosen.unwrap_or(&SOURCES[0]);
        let example = draw(self, rng);
        let wanted = only.map_or_else(|| rng.percent(GRADIENTS), |only| only == gradient::NAME);
        if wanted {
            return gradient::of(&example, rng).map_or((example, name), |g| (g, gradient::NAME));
        }
        (example, name)
    }
}
