//! Starts children; computes expected results and the roofline.

use std::collections::VecDeque;
use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, Instant};

use tensorwright::{Program, Target};

use super::Measurer;
use super::child_slot::ChildSlot;
use super::core_assignment::CoreAssignment;
use super::names::Names;
use crate::child::{Child, Event, Role, Spawner};
use crate::protocol::{BuilderReply, BuilderRequest, Frame, GREETING, RunnerReply, Setup};
use crate::shared::Layout;
use crate::{Config, MeasureError, Roofline, system};

/// The number of the first request.
const EXPECT: u64 = 1;

pub(super) fn start(program: &Program, mut config: Config) -> Result<Measurer, MeasureError> {
    config.threads = config.threads.max(1);
    config.builders = config.builders.max(1);
    // The runner checks whether the device exists.
    let runs_here = config.target.check_runs_here();
    runs_here.map_err(|error| MeasureError::Worker(error.to_string()))?;
    let layout = Layout::of(program)
        .ok_or_else(|| MeasureError::Expected("the tensors are too large".to_owned()))?;
    let system = |what, error| MeasureError::System { what, error };
    let shared = system::memory_file(layout.bytes).map_err(|e| system("make a shared file", e))?;
    let seal = shared.try_clone().map_err(|error| system("share a file", error))?;
    let (sender, events) = mpsc::channel();
    let mut spawner = Spawner::new(config.worker.clone(), shared, sender)?;
    let places = CoreAssignment::new(&config);
    let names = Names::of(program);
    let mut setup = setup(names.shared(), &config);

    let builder = first_builder(&mut spawner, &events, &setup, &places, &config)?;
    system::seal(&seal).map_err(|error| system("seal a shared file", error))?;
    let (runner, roofline) = first_runner(&mut spawner, &events, &setup, &places, &config)?;
    setup.roofline = Some(roofline);

    let mut builders: Vec<_> = (0..config.builders).map(|_| ChildSlot::empty()).collect();
    if let Some(slot) = builders.first_mut() {
        slot.occupy(builder);
        slot.ready_by = None;
    }
    let mut slot = ChildSlot::empty();
    slot.occupy(runner);
    slot.ready_by = None;
    Ok(Measurer {
        config,
        names,
        setup,
        events,
        builders,
        runner: slot,
        spawner,
        places,
        queue: VecDeque::new(),
        built: VecDeque::new(),
        finished: VecDeque::new(),
        finalists: Vec::new(),
        compared: None,
        is_comparing: false,
        is_draining: false,
        best: None,
        roofline,
        requests: EXPECT,
    })
}

fn setup(program: &Program, config: &Config) -> Setup {
    Setup {
        program: program.to_string(),
        def: program.name().to_owned(),
        hash: program.hash().to_string(),
        target: config.target.name().to_owned(),
        device: match &config.target {
            Target::Gpu(gpu) => Some(gpu.name.clone()),
            Target::Cpu(_) | Target::Fpga(_) => None,
        },
        threads: config.threads,
        processors: Vec::new(),
        seed: config.seed,
        memory_bytes: config.memory_bytes,
        roofline: None,
    }
}

/// The first builder also computes the expected results.
fn first_builder(
    spawner: &mut Spawner,
    events: &Receiver<Event>,
    setup: &Setup,
    places: &CoreAssignment,
    config: &Config,
) -> Result<Child, MeasureError> {
    let mut child = spawner.start(Role::Builder)?;
    let setup = Setup { processors: places.builders.clone(), ..setup.clone() };
    greet(&mut child, &setup);
    let frame = answer(events, &mut child, config.start_deadline, MeasureError::Worker)?;
    match frame.message() {
        Ok(BuilderReply::Ready) => {}
        _ => return Err(MeasureError::Worker("the builder sent no greeting".to_owned())),
    }
    // Waiting detects a child that is gone.
    let _ = child.send(EXPECT, &BuilderRequest::Expect, &[]);
    let frame = answer(events, &mut child, config.expected_deadline, MeasureError::Expected)?;
    match frame.message() {
        Ok(BuilderReply::Expected) => Ok(child),
        Ok(BuilderReply::Failed(reason)) => Err(MeasureError::Expected(reason)),
        _ => Err(MeasureError::Expected("the builder sent an unexpected answer".to_owned())),
    }
}

fn first_runner(
    spawner: &mut Spawner,
    events: &Receiver<Event>,
    setup: &Setup,
    places: &CoreAssignment,
    config: &Config,
) -> Result<(Child, Roofline), MeasureError> {
    let mut child = spawner.start(Role::Runner)?;
    let setup = Setup { processors: places.runner.clone(), ..setup.clone() };
    greet(&mut child, &setup);
    let frame = answer(events, &mut child, config.start_deadline, MeasureError::Worker)?;
    match frame.message() {
        Ok(RunnerReply::Ready(roofline)) => Ok((child, roofline)),
        _ => Err(MeasureError::Worker("the runner sent no greeting".to_owned())),
    }
}

/// Sends a child its setup. If that fails, the child is gone, which the wait for it detects.
pub(super) fn greet(child: &mut Child, setup: &Setup) {
    let _ = child.send(GREETING, setup, &[]);
}

/// Waits for a message of a child.
fn answer(
    events: &Receiver<Event>,
    child: &mut Child,
    wait: Duration,
    error: impl Fn(String) -> MeasureError,
) -> Result<Frame, MeasureError> {
    let until = Instant::now() + wait;
    loop {
        let left = until.saturating_duration_since(Instant::now());
        let Ok(event) = events.recv_timeout(left) else {
            child.kill();
            return Err(error(format!("it took more than {} s", wait.as_secs_f64())));
        };
        if event.child != child.number {
            continue;
        }
        return match event.what {
            Ok(Some(frame)) => Ok(frame),
            Ok(None) => {
                let end = child.end();
                Err(error(format!("{}\n{}", end.reason, end.stderr.trim_end())))
            }
            Err(problem) => Err(error(problem.to_string())),
        };
    }
}
