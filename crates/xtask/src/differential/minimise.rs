//! Makes a failing case smaller while it keeps failing in the same way.

use std::time::{Duration, Instant};

use super::DifferentialOptions;
use super::case::Case;
use super::failure::{Problem, Suspect};
use super::process;
use super::report::{self, MinimisedCase};
use super::shrink;

/// How long a case is made smaller: each attempt starts a process.
const PATIENCE: Duration = Duration::from_secs(60);

/// Makes a case smaller.
pub(crate) fn minimise(
    options: &DifferentialOptions,
    case: &Case,
    problem: &Problem,
    job: usize,
) -> Result<MinimisedCase, String> {
    let file = report::folder().join(format!("candidate-{job}.case"));
    let emitters = match problem.suspect {
        // It fails before code is generated.
        Suspect::Schedule => vec![Suspect::Llvm],
        emitter => vec![emitter],
    };
    let replay = Some(file.clone());
    let mut attempt = DifferentialOptions { emitters, replay, ..options.clone() };
    let problems = |attempt: &DifferentialOptions, case: &Case| -> Result<Vec<Problem>, String> {
        std::fs::write(&file, case.to_string()).map_err(|error| error.to_string())?;
        let heard = process::run(attempt)?;
        Ok(heard.failed.into_iter().chain(heard.died).map(|(_, problem)| problem).collect())
    };
    let fails = |case: &Case| {
        problems(&attempt, case).is_ok_and(|found| found.iter().any(|p| p.resembles(problem)))
    };
    let deadline = Instant::now() + PATIENCE;
    let mut small = case.clone();
    if fails(&small) {
        while let Some(smaller) = smaller(&small, &fails, deadline) {
            small = smaller;
        }
    }
    // Whether the other code generator agrees tells who is to blame.
    attempt.emitters = vec![Suspect::Llvm, Suspect::C];
    if matches!(problem.suspect, Suspect::Aarch64 | Suspect::Cuda | Suspect::OpenCl) {
        attempt.emitters.push(problem.suspect);
    }
    let problems = problems(&attempt, &small)?;
    let _ = std::fs::remove_file(&file);
    Ok(MinimisedCase { case: small, problems })
}

/// A smaller case that fails too: every change that is tried and keeps it failing is kept. `None`
/// if none does.
fn smaller(case: &Case, fails: &dyn Fn(&Case) -> bool, deadline: Instant) -> Option<Case> {
    let mut small = case.clone();
    for shrink in shrink::ALL {
        // Candidates of what is left come in the same order, so those before are not tried again.
        let mut number = 0;
        while let Some(candidate) = shrink(&small).into_iter().nth(number)
            && Instant::now() < deadline
        {
            if fails(&candidate) {
                small = candidate;
            } else {
                number += 1;
            }
        }
    }
    (small != *case).then_some(small)
}
