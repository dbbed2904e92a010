//! Minimises failing cases with the same kind of failure.

use std::time::{Duration, Instant};

use super::DifferentialOptions;
use super::case::Case;
use super::failure::{Problem, Suspect};
use super::process;
use super::report::{self, MinimisedCase};
use super::shrink;

/// The time limit: each attempt starts a process.
const PATIENCE: Duration = Duration::from_secs(60);

/// Minimises a case.
pub(crate) fn minimise(
    options: &DifferentialOptions,
    case: &Case,
    problem: &Problem,
    job: usize,
) -> Result<MinimisedCase, String> {
    let file = report::folder().join(format!("candidate-{job}.case"));
    let emitters = match problem.suspect {
        // It fails before code generation.
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
    // Comparing with the other code generator tells which one is wrong.
    attempt.emitters = vec![Suspect::Llvm, Suspect::C];
    if matches!(problem.suspect, Suspect::Aarch64 | Suspect::Cuda | Suspect::OpenCl) {
        attempt.emitters.push(problem.suspect);
    }
    let problems = problems(&attempt, &small)?;
    let _ = std::fs::remove_file(&file);
    Ok(MinimisedCase { case: small, problems })
}

/// A smaller failing case, by greedy changes; `None` if no change keeps it failing.
fn smaller(case: &Case, fails: &dyn Fn(&Case) -> bool, deadline: Instant) -> Option<Case> {
    let mut small = case.clone();
    for shrink in shrink::ALL {
        // Candidates are ordered, so earlier ones are not tried again.
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
