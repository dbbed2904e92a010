//! What records of a program are found by, on this machine with this compiler.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use sha2::{Digest, Sha256};
use tensorwright::{Goal, Program, Target};
use tensorwright_policy::ScheduleSpace;
use tensorwright_records::{Key, ProgramInfo};
use tensorwright_space::SearchSpace;

/// The version of Tensorwright and of the LLVM that it is built on.
pub const COMPILER: &str = concat!(env!("CARGO_PKG_VERSION"), " llvm-19");

/// The class of machines of a fleet whose results depend on the same: a target, threads and a compiler.
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

/// What is kept about a program.
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

/// The name of this machine with this build of the compiler, in records: a hash, since what it is made
/// of is nobody else's business.
pub(crate) fn installation() -> &'static str {
    static NAME: OnceLock<String> = OnceLock::new();
    NAME.get_or_init(|| {
        let mut hasher = Sha256::new();
        hasher.update("tensorwright verified schedules\n");
        hasher.update(tensorwright::runtime::installation());
        hasher.finalize()[..16].iter().map(|byte| format!("{byte:02x}")).collect()
    })
}

/// What says whether points of an earlier run mean the same now: a hash of all algorithms and
/// parameters, and of how a point is written.
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
        // A few values say enough of how they are numbered.
        for rank in [0, count / 3, count / 2, count - 1] {
            hasher.update(parameter.text(rank));
            hasher.update([0]);
        }
    }
}
