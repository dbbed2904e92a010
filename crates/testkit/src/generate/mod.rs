//! Random valid programs, small enough to interpret quickly.
//!
//! A program is a sequence of *patterns*: a contraction, a padded read, an update in place, a call.
//! Each pattern chooses its extents first and then gives its inputs the matching shapes, so that
//! every range is inferable, nonempty and in bounds by construction. A pattern may read results of
//! earlier ones.

mod access;
mod builder;
mod call;
mod contraction;
mod gather;
mod guarded;
mod pointwise;
mod recurrence;
mod scatter;
mod typed;
mod update;
mod value;

use crate::Rng;
use builder::Builder;
pub(crate) use typed::type_names;

/// A random valid program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GeneratedProgram {
    /// The source text.
    pub text: String,
    /// The def to bind.
    pub def: String,
    /// A value for every size, and for every integer scalar that shapes the program.
    pub sizes: Vec<(String, i64)>,
    /// Inputs whose elements are used directly as subscripts: each must be in `0..bound`.
    pub index_inputs: Vec<(String, i64)>,
    /// The language features that the program uses: a subset of [`FEATURES`].
    pub features: Vec<&'static str>,
}

/// All features; a test checks that generated programs cover them.
pub const FEATURES: &[&str] = &[
    "pointwise",
    "broadcast",
    "transpose",
    "scalar result",
    "index as value",
    "untyped result",
    "contraction",
    "several reduce variables",
    "+=",
    "*=",
    "min=",
    "max=",
    "+=!",
    "*=!",
    "min=!",
    "max=!",
    "offset range",
    "where",
    "stencil",
    "strided",
    "dilated",
    "reversed",
    "scalar stride",
    "division",
    "inferred division",
    "remainder",
    "padding",
    "padding by &&",
    "padding by ||",
    "padding by !",
    "nested ternary",
    "guard of &&",
    "clamp",
    "min and max subscripts",
    "gather",
    "guarded gather",
    "reduced gather",
    "initialize and accumulate",
    "in place",
    "partial update",
    "shape from later statement",
    "in-out",
    "recurrence",
    "recurrence backwards",
    "scatter",
    "checked scatter",
    "call",
    "several results",
    "concat",
    "scalar",
    "const input",
    "literal dimension",
    "id.num",
    "cast",
    "builtin",
    "comparison",
    "logic",
    "bool tensor",
    "integer division",
    "ternary",
    "chain",
    "odd name",
];

/// A pattern adds statements that compute a new tensor.
type Pattern = fn(&mut Builder);

const PATTERNS: &[Pattern] = &[
    pointwise::map,
    pointwise::map,
    pointwise::indices,
    contraction::contraction,
    contraction::contraction,
    access::stencil,
    access::window,
    access::reversed,
    access::scalar_stride,
    access::quotients,
    guarded::padded,
    guarded::padded,
    guarded::joined,
    guarded::clamped,
    gather::gather,
    update::accumulate,
    update::partial,
    update::shape_from_later,
    update::in_out,
    call::call,
    call::concat,
];

/// The random stream that decides on recurrences.
const RECURRENCES: u64 = 17;

/// The random stream that decides on scatters.
const SCATTERS: u64 = 18;

/// The size of a program's dimensions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Scale {
    /// Less than ten: quick to interpret, for properties of programs.
    Small,
    /// Up to forty, mostly not multiples of anything: long enough to be tiled and vectorized with a
    /// tail. Fewer statements, so that programs are still quick to interpret and compile.
    Tileable,
}

/// The program of a seed.
#[must_use]
pub fn generate(seed: u64) -> GeneratedProgram {
    generate_at(Scale::Small, seed)
}

/// The program of a seed, with dimensions of a scale.
#[must_use]
pub fn generate_at(scale: Scale, seed: u64) -> GeneratedProgram {
    let mut builder = Builder::new(Rng::of(seed, 0), scale);
    let most = match scale {
        Scale::Small => 6,
        Scale::Tileable => 3,
    };
    let statements = 1 + builder.rng.index(most);
    // From separate streams, so that most seeds still give the same programs as before.
    let (mut recurs, mut scatters) = (Rng::of(seed, RECURRENCES), Rng::of(seed, SCATTERS));
    while builder.statement_count() < statements {
        let idea = match (recurs.percent(4), scatters.percent(4)) {
            (true, _) => recurrence::recurrence,
            (_, true) => scatter::scatter,
            _ => *builder.rng.pick(PATTERNS),
        };
        idea(&mut builder);
    }
    builder.finish("kernel")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::token::tokens;

    #[test]
    fn a_program_is_a_function_of_its_seed() {
        for seed in 0..200 {
            assert_eq!(generate(seed), generate(seed));
        }
    }

    #[test]
    fn two_thousand_programs_of_each_scale_exercise_every_feature() {
        let known: BTreeSet<&str> = FEATURES.iter().copied().collect();
        for scale in [Scale::Small, Scale::Tileable] {
            let features = |seed| generate_at(scale, seed).features;
            let used: BTreeSet<&str> = (0..2000).flat_map(features).collect();
            let difference: Vec<_> = known.symmetric_difference(&used).collect();
            assert!(difference.is_empty(), "{scale:?}: unused or unlisted: {difference:?}");
        }
    }

    #[test]
    fn delimiters_match_and_sizes_are_used_and_positive() {
        for seed in 0..500 {
            let program = generate(seed);
            let all = tokens(&program.text);
            let count = |text: &str| all.iter().filter(|token| token.text == text).count();
            assert_eq!(count("("), count(")"), "{}", program.text);
            assert_eq!(count("{"), count("}"));
            assert!(count(&program.def) == 1);
            for (name, value) in &program.sizes {
                assert!(count(name) >= 1, "{name} in {}", program.text);
                assert!(*value >= 1);
            }
        }
    }

    #[test]
    fn programs_stay_small() {
        for seed in 0..500 {
            assert!(generate(seed).text.len() < 8000);
        }
    }
}
