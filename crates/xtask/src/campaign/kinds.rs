//! The test kinds of a campaign, one line each.

/// A kind of test.
pub(super) struct Kind {
    /// Its name.
    pub(super) name: &'static str,
    /// A description.
    pub(super) about: &'static str,
    /// The command, without seed, first index and count.
    pub(super) arguments: &'static str,
    /// How much of the time it gets, relative to the others.
    pub(super) share: u32,
}

const fn kind(
    name: &'static str,
    share: u32,
    arguments: &'static str,
    about: &'static str,
) -> Kind {
    Kind { name, about, arguments, share }
}

/// All kinds.
#[rustfmt::skip]
pub(super) const KINDS: &[Kind] = &[
    kind("random", 10, "differential --schedules random --c-every 4", "random primitives, native code and C"),
    kind("space", 14, "differential --schedules space --c-every 4", "points of search spaces, native code and C"),
    kind("policy", 8, "differential --schedules policy --c-every 4", "untuned and default schedules, native code and C"),
    kind("vectors", 6, "differential --programs vectors --emitters llvm", "conversions, selections and masks in vectors"),
    kind("sanitized", 6, "differential --emitters c --sanitize", "C under AddressSanitizer and UBSan"),
    kind("aarch64", 6, "differential --emitters aarch64", "code for AArch64 under an emulator"),
    kind("aarch64-space", 4, "differential --schedules space --emitters aarch64", "points of spaces, for AArch64"),
    kind("texts", 4, "fuzz --target texts", "programs, by the front end"),
    kind("schedules", 3, "fuzz --target schedules", "damaged schedules"),
    kind("imports", 2, "fuzz --target imports", "damaged exports of records"),
    kind("databases", 2, "fuzz --target databases", "damaged databases"),
    kind("npy", 1, "fuzz --target npy", "damaged arrays"),
    kind("manifests", 1, "fuzz --target manifests", "damaged manifests"),
    kind("lsp", 2, "fuzz --target lsp", "damaged messages of editors"),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fuzz::TARGETS;

    #[test]
    fn every_command_is_one_and_every_target_is_there() {
        for kind in KINDS {
            let words: Vec<String> = kind.arguments.split_whitespace().map(str::to_owned).collect();
            let parsed = match words[0].as_str() {
                "differential" => {
                    crate::differential::DifferentialOptions::parse(&words[1..]).map(|_| ())
                }
                _ => crate::fuzz::FuzzOptions::parse(&words[1..]).map(|_| ()),
            };
            assert_eq!(parsed, Ok(()), "{}", kind.name);
        }
        for target in TARGETS {
            assert!(KINDS.iter().any(|kind| kind.name == target.name), "{}", target.name);
        }
    }
}
