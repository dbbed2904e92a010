//! Harmful device programs: real OpenCL kernels in the real runner.
#![allow(clippy::print_stdout, reason = "a skipped test says so")]

use std::time::Duration;

use crate::common::{LONG, Processes, config, next};
use tensorwright::{Module, Program, Schedule, Target};
use tensorwright_device::{Description, DeviceProgram, LaunchPlan};
use tensorwright_measure::Measurer;
use tensorwright_outcome::{Outcome, Phase};
use tensorwright_schedule::Interface;

/// Enough floats to fill the last page of a tensor partly.
const SIZE: i64 = 1000;

/// Every device that shares the memory of this process: only there can kernels do harm.
fn devices() -> Vec<Description> {
    let devices = tensorwright_device::devices().into_iter().filter_map(|list| list.devices.ok());
    let devices: Vec<_> = devices.flatten().filter(|device| device.shares_memory).collect();
    if devices.is_empty() {
        assert!(std::env::var_os("TENSORWRIGHT_NEEDS_DEVICES").is_none(), "there is no OpenCL");
        println!("skipped: there is no OpenCL here");
    }
    devices
}

fn program() -> Program {
    let text = "def twice(float(N) A) -> (B) { B(i) = 2 * A(i) }";
    Module::parse("twice.tc", text).unwrap().def("twice").unwrap().bind([("N", SIZE)]).unwrap()
}

fn interface() -> Interface {
    let lowered = program().compile().schedule(Schedule::default()).lower().unwrap();
    lowered.interface().clone()
}

/// A kernel whose threads run the body, with `i` for the thread's number.
fn kernel(body: &str) -> DeviceProgram {
    let source = format!(
        "kernel void twice(global const float *a, global float *b, global uchar *workspace,
             global int *status) {{
    const int i = get_global_id(0);
    {body}
}}
"
    );
    let launch = LaunchPlan::new("twice", [125, 1, 1], [8, 1, 1]).with_parameters([0, 1]);
    let mut program = DeviceProgram::new(source, interface(), vec![launch]);
    program.workspace_bytes = 64;
    program
}

fn right() -> DeviceProgram {
    kernel("b[i] = 2 * a[i];")
}

fn start(device: &Description) -> Measurer {
    let mut config = config();
    config.target = Target::Gpu(device.gpu.clone());
    config.run_deadline = Duration::from_secs(5);
    config.build_deadline = Duration::from_secs(60);
    Measurer::start(&program(), config).unwrap()
}

fn measure(measurer: &mut Measurer, id: u64, program: &DeviceProgram) -> Outcome {
    measurer.submit_program(id, program, 1.0);
    let finished = next(measurer);
    assert_eq!(finished.id, id);
    finished.outcome
}

fn assert_well(measurer: &mut Measurer) {
    let outcome = measure(measurer, 99, &right());
    let timing = outcome.timing().unwrap_or_else(|| panic!("{outcome}"));
    assert!(timing.seconds > 0.0 && timing.runs > 0, "{outcome}");
}

/// The outcomes of a program on every device; the measurer must work afterwards.
fn fates(program: &DeviceProgram) -> Vec<Outcome> {
    let fate = |device: Description| {
        let mut measurer = start(&device);
        assert_well(&mut measurer);
        let outcome = measure(&mut measurer, 1, program);
        assert_well(&mut measurer);
        let processes = Processes::of(&measurer);
        drop(measurer);
        processes.assert_gone();
        outcome
    };
    devices().into_iter().map(fate).collect()
}

#[test]
fn an_endless_loop_is_ended() {
    // It waits for something that never comes, which compilers cannot know.
    let endless = kernel("volatile global int *wait = status; while (*wait == 0) {} b[i] = a[i];");
    for outcome in fates(&endless) {
        assert!(matches!(outcome, Outcome::TimedOut { phase: Phase::Check, .. }), "{outcome}");
    }
}

#[test]
fn far_out_of_bounds_ends_the_process() {
    for outcome in fates(&kernel("b[i + (1L << 36)] = a[i];")) {
        let Outcome::Crashed { reason, .. } = &outcome else { panic!("{outcome}") };
        assert!(reason.contains("SIGSEGV"), "{reason}");
    }
}

#[test]
fn a_page_out_of_bounds_ends_the_process() {
    for body in ["b[i] = 2 * a[i]; b[i + 1024] = 0;", "b[i] = 2 * a[i] + 0 * a[i + 1024];"] {
        for outcome in fates(&kernel(body)) {
            let Outcome::Crashed { reason, .. } = &outcome else { panic!("{body}: {outcome}") };
            assert!(reason.contains("SIGSEGV"), "{reason}");
        }
    }
}

#[test]
fn a_little_out_of_bounds_is_noticed() {
    for outcome in fates(&kernel("b[i] = 2 * a[i]; b[1003] = 1;")) {
        let Outcome::WrongResult { reason } = &outcome else { panic!("{outcome}") };
        assert_eq!(reason, "the kernel writes past the end of output 0");
    }
    for outcome in fates(&kernel("b[i] = 2 * a[i]; workspace[64] = 1;")) {
        let Outcome::WrongResult { reason } = &outcome else { panic!("{outcome}") };
        assert_eq!(reason, "the kernel writes past the end of its workspace");
    }
}

#[test]
fn writes_to_inputs_end_the_process() {
    for outcome in fates(&kernel("b[i] = 2 * a[i]; ((global float *)a)[i] = 1;")) {
        assert_eq!(outcome.kind(), "crashed", "{outcome}");
    }
}

#[test]
fn wrong_results_are_found() {
    for body in ["b[i] = 2 * a[i] + (i == 7);", "", "b[i] = 2 * a[i]; status[0] = 3;"] {
        for outcome in fates(&kernel(body)) {
            let Outcome::WrongResult { reason } = &outcome else { panic!("{body}: {outcome}") };
            let words =
                ["1 of 1000 elements differ; the first is number 7", "1000 of 1000", "status 3"];
            assert!(words.iter().any(|words| reason.contains(words)), "{reason}");
        }
    }
}

#[test]
fn results_that_are_wrong_later_are_found() {
    // The workspace is poisoned only before the checked call.
    let body = "const int calls = workspace[i % 64]; b[i] = 2 * a[i] + (calls == 1);
        barrier(CLK_GLOBAL_MEM_FENCE); if (i < 64) workspace[i] = 1;";
    for outcome in fates(&kernel(body)) {
        assert_eq!(outcome.kind(), "wrong-result", "{outcome}");
    }
}

#[test]
fn limits_and_memory_refuse_before_anything_runs() {
    let mut shared = right();
    shared.launches[0].shared_bytes = 1 << 30;
    for outcome in fates(&shared) {
        let Outcome::Illegal { rule, .. } = &outcome else { panic!("{outcome}") };
        assert_eq!(rule, "limits");
    }
    let undeclared =
        kernel("volatile local float huge[1 << 24]; huge[i] = a[i]; b[i] = huge[i] * 2;");
    for outcome in fates(&undeclared) {
        assert!(matches!(outcome.kind(), "illegal" | "build-failed"), "{outcome}");
    }
    let mut workspace = right();
    // More than the process may have, and less than the device reports.
    workspace.workspace_bytes = 3 << 30;
    for outcome in fates(&workspace) {
        let Outcome::Illegal { rule, .. } = &outcome else { panic!("{outcome}") };
        assert!(["memory", "limits"].contains(&rule.as_str()), "{outcome}");
    }
}

#[test]
fn texts_that_do_not_compile_say_where() {
    for outcome in fates(&kernel("b[i] = 2 * c[i];")) {
        let Outcome::BuildFailed { reason } = &outcome else { panic!("{outcome}") };
        assert!(reason.contains("line 4") && reason.contains('c'), "{reason}");
    }
    let mut missing = right();
    missing.launches[0].kernel = "thrice".to_owned();
    for outcome in fates(&missing) {
        assert!(outcome.to_string().contains("no kernel `thrice`"), "{outcome}");
    }
}

#[test]
fn finalists_are_compared_on_a_device() {
    for device in devices() {
        let mut measurer = start(&device);
        let slow = kernel(
            "float x = a[i]; for (int k = 0; k < 20000; k++) x += a[k % 8] * 1e-30f; \
                           b[i] = a[i] + x - (x - a[i]);",
        );
        let wrong = kernel("b[i] = 3 * a[i];");
        let programs = [right(), slow, wrong].map(|program| (program, 1e6));
        let found = measurer.finalist_programs(&programs, Duration::from_millis(200));
        let kinds: Vec<&str> = found.iter().map(|finalist| finalist.outcome.kind()).collect();
        assert_eq!(kinds[0], "measured", "{found:?}");
        assert_eq!(kinds[2], "wrong-result", "{found:?}");
        assert!(found[1].outcome.cost() > found[0].outcome.cost(), "{found:?}");
        assert_eq!(found[0].rounds.len(), found[1].rounds.len());
        assert_well(&mut measurer);
    }
}

#[test]
fn one_that_crashes_does_not_take_the_other_finalists_with_it() {
    let Some(device) = devices().into_iter().next() else { return };
    let mut measurer = start(&device);
    let crash = kernel("b[i + (1L << 36)] = a[i];");
    let programs = [right(), crash].map(|program| (program, 1.0));
    let found = measurer.finalist_programs(&programs, Duration::from_millis(50));
    let kinds: Vec<&str> = found.iter().map(|finalist| finalist.outcome.kind()).collect();
    assert_eq!(kinds, ["measured", "crashed"]);
}

#[test]
fn schedules_for_devices_are_built_checked_and_timed() {
    for device in devices() {
        let mut measurer = start(&device);
        measurer.submit(1, &Schedule::default());
        let outcome = next(&mut measurer).outcome;
        assert!(outcome.timing().is_some_and(|timing| timing.seconds > 0.0), "{outcome}");
        assert_well(&mut measurer);
    }
}

#[test]
fn a_device_that_is_not_there_is_an_error_that_says_which_are() {
    let Some(device) = devices().into_iter().next() else { return };
    let mut config = config();
    config.expected_deadline = LONG;
    let mut gpu = device.gpu;
    gpu.name = "opencl:77".to_owned();
    config.target = Target::Gpu(gpu);
    let error = Measurer::start(&program(), config).unwrap_err().to_string();
    assert!(error.contains("there is no device `opencl:77`; the devices are opencl:0"), "{error}");
}
