//! The identity of a program, machine and compiler in the records.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use sha2::{Digest, Sha256};
use tensorwright::{Goal, Program, Target};
use tensorwright_policy::ScheduleSpace;
use tensorwright_records::{Key, ProgramInfo};
use tensorwright_space::SearchSpace;

/// The version of Tensorwright and of the LLVM that it is built on.
pub const COMPILER: &str = concat!(env!("CARGO_PKG_VERSION"), " llvm-19");

/// The class of fleet machines with comparable results: a target, threads and a compiler.
#[must_use]
pub fn class_of(target: &Target, threads: usize) -> String {
    format!("{} x{threads} {COMPILER}", target.fingerprint())
}

/// The key of a program for a goal.
#[must_use]
pub fn key_of(program: &Program, goal: &Goal) -> Key {
    Key {
        program: program.hash().to_string(),
        family: program.ir().family_hash().to_string(),
        target: goal.target.fingerprint(),
        threads: u32::try_from(goal.threads()).unwrap_or(u32::MAX),
        compiler: COMPILER.to_owned(),
        precision: goal.precision,
    }
}

/// The description of a program in the records.
#[must_use]
pub fn program_info(program: &Program, sizes: BTreeMap<String, i64>) -> ProgramInfo {
    let analysis = program.analysis();
    ProgramInfo {
        hash: program.hash().to_string(),
        family: program.ir().family_hash().to_string(),
        def: program.name().to_owned(),
        sizes,
        text: program.to_string(),
        flops: analysis.flops as f64,
        bytes: analysis.min_bytes as f64,
    }
}

/// The name of this machine and compiler build in the records: a hash, which reveals nothing about
/// the machine.
pub(crate) fn installation() -> &'static str {
    static NAME: OnceLock<String> = OnceLock::new();
    NAME.get_or_init(|| {
        let mut hasher = Sha256::new();
        hasher.update("tensorwright verified schedules\n");
        hasher.update(tensorwright::runtime::installation());
        hasher.finalize()[..16].iter().map(|byte| format!("{byte:02x}")).collect()
    })
}

/// Identifies the spaces, so that points of earlier runs can be reused: a hash of all algorithms
/// and parameters, and of the encoding of points.
pub(crate) fn space_hash<'s>(spaces: impl Iterator<Item = &'s ScheduleSpace>) -> String {
    let mut hasher = Sha256::new();
    hasher.update("algorithm beside point\n");
    for space in spaces {
        hasher.update(space.algorithm());
        hash_parameters(&mut hasher, space.search_space());
    }
    hasher.finalize()[..8].iter().map(|byte| format!("{byte:02x}")).collect()
}

fn hash_parameters(hasher: &mut Sha256, space: &SearchSpace) {
    for parameter in space.parameters() {
        hasher.update(parameter.name());
        hasher.update([0]);
        let count = parameter.count();
        hasher.update(count.to_le_bytes());
        // A few values are enough to detect another numbering.
        for rank in [0, count / 3, count / 2, count - 1] {
            hasher.update(parameter.text(rank));
            hasher.update([0]);
        }
    }
}
