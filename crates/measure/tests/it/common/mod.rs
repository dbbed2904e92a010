//! Shared test helpers: programs, a measurer, compiled C, leaked processes.

use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use tensorwright::schedule::interface::Function;
use tensorwright::{Module, Program, Schedule, Target};
use tensorwright_measure::{Config, Measurer, TrialResult, WorkerCommand};
use tensorwright_outcome::Outcome;

/// Longer than any test step takes, even on a busy machine.
pub(crate) const LONG: Duration = Duration::from_secs(120);

pub(crate) fn program(text: &str, def: &str, sizes: &[(&str, i64)]) -> Program {
    let sizes = sizes.iter().map(|(name, size)| ((*name).to_owned(), *size));
    Module::parse("test.tc", text).unwrap().def(def).unwrap().bind(sizes).unwrap()
}

pub(crate) fn matmul(size: i64) -> Program {
    let text = "def mm(float(M,K) A, float(K,N) B) -> (C) { C(m,n) +=! A(m,k) * B(k,n) }";
    program(text, "mm", &[("M", size), ("N", size), ("K", size)])
}

pub(crate) fn config() -> Config {
    let worker = WorkerCommand::new(env!("CARGO_BIN_EXE_tensorwright-worker"));
    let mut config = Config::new(worker, Target::native().unwrap());
    config.run_deadline = Duration::from_secs(20);
    config.build_deadline = Duration::from_secs(60);
    config
}

pub(crate) fn schedule(text: &str) -> Schedule {
    Schedule::parse(text).unwrap()
}

/// A legal and fast schedule.
pub(crate) fn good() -> Schedule {
    schedule("C: split n 16\nC: reorder m n.0 k n.1\nC: vectorize n.1")
}

pub(crate) fn next(measurer: &mut Measurer) -> TrialResult {
    measurer.next(LONG).expect("an outcome in time")
}

/// Measures the good schedule to prove that the measurer works.
pub(crate) fn assert_well(measurer: &mut Measurer) {
    measurer.submit(999, &good());
    let finished = next(measurer);
    assert_eq!(finished.id, 999);
    assert!(matches!(finished.outcome, Outcome::Measured(_)), "{}", finished.outcome);
}

/// Machine code of a C function body with the interface of a kernel.
pub(crate) fn object(program: &Program, includes: &str, body: &str) -> Vec<u8> {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    let lowered = program.compile().schedule(Schedule::default()).lower().unwrap();
    let symbol = lowered.interface().function(Function::Compute);
    let name = format!("tensorwright-measure-{}-{number}", std::process::id());
    let directory = std::env::temp_dir();
    let file = |ending: &str| -> PathBuf { directory.join(format!("{name}.{ending}")) };
    let text = format!(
        "{includes}\n#include <stdint.h>\n\
         int32_t {symbol}(void *const *buffers, void *workspace, void *pool) {{\n{body}\nreturn 0;\n}}\n"
    );
    std::fs::write(file("c"), text).unwrap();
    let compiler =
        if Command::new("clang-19").arg("--version").output().is_ok() { "clang-19" } else { "cc" };
    let status = Command::new(compiler)
        .args(["-O0", "-w", "-fno-stack-protector", "-mcmodel=large", "-fPIC", "-c", "-o"])
        .args([file("o"), file("c")])
        .status()
        .unwrap();
    assert!(status.success());
    let object = std::fs::read(file("o")).unwrap();
    for ending in ["c", "o"] {
        std::fs::remove_file(file(ending)).unwrap();
    }
    object
}

/// The processes of a measurer; waits until they are gone, zombies too.
pub(crate) struct Processes(Vec<u32>);

impl Processes {
    pub(crate) fn of(measurer: &Measurer) -> Self {
        let (mut all, runner) = measurer.processes();
        all.extend(runner);
        Self(all)
    }

    pub(crate) fn assert_gone(&self) {
        let start = Instant::now();
        let exists = |id: &u32| std::path::Path::new(&format!("/proc/{id}")).exists();
        while self.0.iter().any(exists) {
            assert!(start.elapsed() < LONG, "left behind: {:?}", self.0);
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

/// The children of this process: id and state.
pub(crate) fn children() -> Vec<(u32, char)> {
    let ours = std::process::id();
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    numbers
        .filter_map(|number| {
            let stat = std::fs::read_to_string(format!("/proc/{number}/stat")).ok()?;
            let (_, rest) = stat.rsplit_once(") ")?;
            let mut words = rest.split(' ');
            let state = words.next()?.chars().next()?;
            (words.next()?.parse::<u32>().ok()? == ours).then_some((number, state))
        })
        .collect()
}
