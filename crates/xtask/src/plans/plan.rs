//! [`Plan`]: the untuned schedule of a program on a target, with its prediction.

use tensorwright_lang::precision::Precision;
use tensorwright_lang::program::Program;
use tensorwright_machine::{Cpu, Goal, Gpu, GpuApi, Target};
use tensorwright_policy::{DefaultSchedule, lower_options};
use tensorwright_schedule::interface::{Interface, LaunchPlan};
use tensorwright_schedule::{Schedule, canonical, lower_with};

/// What is kept of a program on a target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Plan {
    /// The name of the program, and the number of threads on a processor.
    pub(super) name: String,
    /// The file, the definition and the sizes.
    pub(super) source: String,
    /// The predicted cycles and the cost model: `1.5e3 by tiles`, or `-`.
    pub(super) cycles: String,
    /// The launches on a device.
    pub(super) launches: Option<usize>,
    /// The schedule, or why it cannot be built.
    pub(super) text: String,
}

/// A target with fixed properties, whatever the machine at hand.
pub(super) struct PlanTarget {
    /// The name of its folder.
    pub(super) folder: &'static str,
    /// Follows the names of programs.
    suffix: &'static str,
    goal: Goal,
    /// The suites; all if empty.
    suites: &'static [&'static str],
}

/// The suites with programs that have other algorithms if rounding may change.
const REWRITTEN: &[&str] = &["attention", "examples"];

/// All targets.
pub(super) fn targets() -> Result<Vec<PlanTarget>, String> {
    let ampere = Target::named("cuda:sm_80").map_err(|error| error.to_string())?;
    let line = |folder, suffix, goal| PlanTarget { folder, suffix, goal, suites: &[] };
    let avx2 = || Goal::new(Cpu::avx2().into());
    let fast = line("avx2", ", fast", avx2().with_precision(Precision::Fast));
    Ok(vec![
        line("avx2", ", 1 thread", avx2()),
        line("avx2", ", 2 threads", avx2().with_workers(2)),
        PlanTarget { suites: REWRITTEN, ..fast },
        line("cuda_sm_80", "", Goal::new(ampere)),
        line("opencl", "", Goal::new(opencl().into())),
    ])
}

/// An OpenCL device of average size.
fn opencl() -> Gpu {
    Gpu {
        name: "opencl:0".to_owned(),
        model: "an OpenCL device of 32 compute units".to_owned(),
        api: GpuApi::OpenCl,
        units: 32,
        warp: 32,
        threads_per_block: 256,
        shared_per_block: 32 << 10,
        shared_per_unit: 32 << 10,
        registers_per_unit: 64 << 10,
        registers_per_thread: 128,
        l2: 2 << 20,
        bandwidth: None,
        clock: 1_500_000_000,
        tensor: false,
        is_processor: false,
    }
}

impl PlanTarget {
    /// Whether plans of a suite are kept.
    pub(super) fn has(&self, suite: &str) -> bool {
        self.suites.is_empty() || self.suites.contains(&suite)
    }

    /// The name of a program's plan.
    pub(super) fn name(&self, program: &str) -> String {
        format!("{program}{}", self.suffix)
    }

    /// The plan of a program.
    pub(super) fn plan(&self, name: &str, source: &str, program: &Program) -> Plan {
        let (name, source) = (self.name(name), source.to_owned());
        let refused = |reason: String| {
            let line = reason.lines().next().unwrap_or_default();
            let (cycles, text) = ("-".to_owned(), format!("refused: {line}\n"));
            Plan { name: name.clone(), source: source.clone(), cycles, launches: None, text }
        };
        let found = match DefaultSchedule::of(program, &self.goal) {
            Ok(found) => found,
            Err(error) => return refused(error.to_string()),
        };
        let launches = match self.launches(program, &found.schedule) {
            Ok(launches) => launches,
            Err(reason) => return refused(reason),
        };
        let cycles = found.prediction.map_or_else(
            || "-".to_owned(),
            // Functions such as `exp` may differ in the last digits between machines.
            |known| format!("{:.5e} by {}", known.cycles, known.model),
        );
        let mut text = found.schedule.to_string();
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        Plan { name, source, cycles, launches, text }
    }

    /// The launches of a schedule on a device; none on a processor.
    fn launches(&self, program: &Program, schedule: &Schedule) -> Result<Option<usize>, String> {
        let nest = schedule.apply(canonical(program)).map_err(|error| error.to_string())?;
        let options = lower_options(&self.goal.target);
        let lowered =
            lower_with(nest, &options, &mut |_, _| {}).map_err(|error| error.to_string())?;
        let device = self.goal.target.gpu();
        Ok(device.map(|_| LaunchPlan::of(&lowered, &Interface::of(&lowered)).len()))
    }
}
