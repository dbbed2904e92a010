//! Test generators: random programs, meaning-preserving rewrites, mutations and corruption.
//!
//! All but `postgres`, which starts servers, works on text alone and shares no code with the
//! compiler: a bug in the real lexer or parser cannot hide by being in the test as well. Everything
//! is a function of a seed, so a failure is replayed by its number.

pub mod damage;
pub mod generate;
pub mod mutate;
#[cfg(unix)]
pub mod postgres;
pub mod token;
pub mod transform;

pub use damage::damage;
pub use generate::{FEATURES, GeneratedProgram, Scale, generate, generate_at};
pub use mutate::mutate;
pub use tensorwright_random::SplitMix as Rng;
pub use transform::{RenamedText, reformat, rename, rename_within};

/// The seeds that an environment variable names as `FIRST..END`, or others.
#[must_use]
pub fn seeds(variable: &str, others: std::ops::Range<u64>) -> std::ops::Range<u64> {
    let named = |given: String| {
        let (first, end) = given.split_once("..")?;
        Some(first.parse::<u64>().ok()?..end.parse::<u64>().ok()?)
    };
    std::env::var(variable).ok().and_then(named).unwrap_or(others)
}
