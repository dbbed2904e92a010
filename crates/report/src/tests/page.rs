//! End-to-end tests from records to the page.

use crate::{Report, Selection, render};
use serde_json::{Value, json};
use tensorwright_outcome::{Outcome, Phase, Timing};
use tensorwright_records::{
    Declared, Event, Key, Origin, ProgramInfo, RunEnd, RunId, RunInfo, SqliteStore, Store,
    StoreOptions, Trial, TrialId,
};

/// Records in a temporary directory.
struct Scratch {
    store: SqliteStore,
    _directory: tempfile::TempDir,
}

impl Scratch {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("records.sqlite3");
        let store = SqliteStore::open(&path, StoreOptions::default()).unwrap();
        Self { store, _directory: directory }
    }

    fn run(&mut self, program: &ProgramInfo, run: &RunInfo, trials: Vec<Trial>) -> Key {
        let key = Key::new(program, "A Processor [avx2 fma]", 1, "0.1.0 llvm-19");
        self.store.begin_run(&key, program, run).unwrap();
        let event = |trial| Event::Trial { run: run.id.clone(), trial };
        let events: Vec<Event> = trials.into_iter().map(event).collect();
        for page in events.chunks(10_000) {
            self.store.apply(page).unwrap();
        }
        key
    }

    fn report(&self) -> Report {
        Report::from_store(&self.store, &Selection::default()).unwrap()
    }
}

fn program(name: &str) -> ProgramInfo {
    ProgramInfo {
        hash: format!("hash of {name}"),
        family: "family".into(),
        def: name.into(),
        sizes: [("M".to_owned(), 64)].into(),
        text: format!("def {name}(float(64) A) -> (B) {{ B(i) = A(i) * 2 }}\n"),
        flops: 1e9,
        bytes: 1e8,
    }
}

fn run(id: &str, strategy: &str, seed: u64, meta: Value) -> RunInfo {
    let mut run = RunInfo::new(strategy, seed);
    run.id = RunId::named(id);
    run.space = "space".into();
    run.meta = meta;
    run.started = 1_773_478_800_000 + seed as i64 * 60_000;
    run
}

fn meta() -> Value {
    json!({
        "command": "tensorwright tune scale.tc",
        "machine": "A Processor",
        "roofline": {"peak_gflops": 100.0, "peak_gbps": 20.0, "flops": 1e9, "bytes": 1e8, "seconds": 0.01},
        "parameters": [
            {"name": "tile", "kind": "factorization", "values": ["[64,1]", "[32,2]"], "count": 2},
            {"name": "unroll", "kind": "discrete", "count": 3},
        ],
    })
}

fn measured(number: u64, point: Vec<u32>, seconds: f64) -> Trial {
    let timing =
        Timing { seconds, raw_seconds: seconds, spread: 0.01, runs: 5, ..Timing::default() };
    let schedule = format!("B: split i {point:?}\n");
    Trial {
        outcome: Outcome::Measured(timing),
        elapsed: number as f64 / 4.0,
        ..Trial::new(number, point, &schedule)
    }
}

fn failed(number: u64, outcome: Outcome) -> Trial {
    Trial { outcome, elapsed: number as f64 / 4.0, ..Trial::new(number, vec![0, 0], "") }
}

fn crashed(text: &str) -> Outcome {
    Outcome::Crashed { reason: format!("signal 11 {text}"), stderr: text.into() }
}

/// Two runs of one strategy and one of a portfolio, with every kind of outcome.
fn small(scratch: &mut Scratch) -> Key {
    let program = program("scale");
    let cut = Timing { seconds: 0.001, cut: true, ..Timing::default() };
    let random = |shift: f64| {
        let mut trials: Vec<Trial> = (0..8)
            .map(|at| {
                let point = vec![at % 2, at / 3];
                measured(at.into(), point, 0.1 / (1.0 + f64::from(at % 2)) + shift)
            })
            .collect();
        trials.push(failed(8, Outcome::TimedOut { phase: Phase::Check, limit: 2.0 }));
        trials.push(failed(9, Outcome::Measured(cut)));
        trials
    };
    scratch.run(&program, &run("run-1", "random", 1, meta()), random(0.0));
    scratch.run(&program, &run("run-2", "random", 2, meta()), random(0.01));
    let illegal = |size: u32| {
        let reason = format!("needs {size} registers");
        Outcome::Illegal { rule: "registers".into(), reason }
    };
    let mut portfolio = vec![
        measured(0, vec![0, 0], 0.1),
        measured(1, vec![1, 2], 0.04),
        failed(2, illegal(40)),
        failed(3, illegal(41)),
        failed(4, Outcome::BuildFailed { reason: "refused".into() }),
        failed(5, Outcome::WrongResult { reason: "B[3] is 1".into() }),
        failed(6, crashed("oops")),
        failed(7, Outcome::DeviceLost),
        measured(8, vec![1, 1], 0.02),
    ];
    for trial in &mut portfolio {
        trial.origin = match trial.number {
            0 => Origin::Default,
            1 => Origin::Ranked,
            number if number % 2 == 0 => "genetic".into(),
            _ => "descent".into(),
        };
    }
    let key = scratch.run(&program, &run("run-3", "portfolio", 3, json!(null)), portfolio);
    let end = RunEnd { ended: 1_773_478_990_000, status: "finished".into() };
    scratch.store.end_run(&RunId::named("run-3"), &end).unwrap();
    let trial = TrialId { run: RunId::named("run-3"), number: 8 };
    let best =
        Declared { trial, seconds: 0.021, against: json!(null), declared: 0, replaces: None };
    scratch.store.declare_best(&key, &best).unwrap();
    key
}

/// Asserts that nothing on the page makes a browser send a request.
fn assert_alone(page: &str) {
    let page = page.replace("/*! https://github.com/leeoniya/uPlot (v1.6.32) */", "");
    for request in ["http://", "https://", " src=", "@import", "url(", "<link", "<img", "fetch("] {
        assert!(!page.contains(request), "the page has `{request}`");
    }
    let links = page.match_indices(" href=\"").map(|(at, text)| &page[at + text.len()..][..1]);
    assert!(links.into_iter().all(|first| first == "#"));
}

/// The data that the page's script draws.
fn data(page: &str) -> Value {
    let (_, rest) = page.split_once("id=\"data\">").unwrap();
    serde_json::from_str(rest.split_once("</script>").unwrap().0).unwrap()
}

#[test]
fn a_small_report_as_data() {
    let mut scratch = Scratch::new();
    small(&mut scratch);
    insta::assert_snapshot!(serde_json::to_string_pretty(&scratch.report()).unwrap());
}

#[test]
fn a_page_stands_alone() {
    let mut scratch = Scratch::new();
    small(&mut scratch);
    let page = render(&scratch.report());
    assert_alone(&page);
    for part in
        ["scale", "21.00 ms", "A Processor", "run-3", "[32,2]", "registers: needs 40 registers"]
    {
        assert!(page.contains(part), "the page lacks `{part}`");
    }
    assert_eq!(data(&page)["kernels"][0]["strategies"].as_array().unwrap().len(), 2);
}

#[test]
fn a_page_says_where_candidates_came_from_and_which_origin_found_the_best() {
    let mut scratch = Scratch::new();
    small(&mut scratch);
    let report = scratch.report();
    let origins = &report.sections[0].origins;
    let counts: Vec<(&str, u64)> = origins.iter().map(|o| (o.name.as_str(), o.proposed)).collect();
    assert_eq!(counts, [("genetic", 4), ("default", 1), ("ranked", 1), ("descent", 3)]);
    let found: Vec<&str> =
        origins.iter().filter(|o| o.found_best).map(|o| o.name.as_str()).collect();
    assert_eq!(found, ["genetic"]);
    let page = render(&report);
    let (_, table) = page.split_once("Where the candidates came from").unwrap();
    let row = table.lines().find(|line| line.contains(">genetic<")).unwrap();
    assert!(row.ends_with("<td>yes</td></tr>"), "{row}");
    assert!(page.contains(", origin: genetic"));
    // Records without origins have no table.
    let mut scratch = Scratch::new();
    scratch.run(
        &program("scale"),
        &run("run-1", "random", 1, meta()),
        vec![measured(0, vec![0, 0], 0.1)],
    );
    assert!(!render(&scratch.report()).contains("Where the candidates came from"));
}

#[test]
fn runs_can_be_chosen() {
    let mut scratch = Scratch::new();
    small(&mut scratch);
    scratch.run(&program("other"), &run("run-4", "random", 1, meta()), vec![]);
    let choose = |program: Option<&str>, run: Option<&str>| {
        let selection = Selection { program: program.map(Into::into), run: run.map(Into::into) };
        Report::from_store(&scratch.store, &selection).unwrap()
    };
    let names = |report: &Report| -> Vec<String> {
        report.sections.iter().map(|section| section.program.def.clone()).collect()
    };
    assert_eq!(names(&choose(None, None)), ["other", "scale"]);
    assert_eq!(names(&choose(Some("hash of other"), None)), ["other"]);
    assert_eq!(names(&choose(Some("hash of other"), Some("run-1"))), [""; 0]);
    let one = choose(None, Some("run-1"));
    assert_eq!(one.sections[0].headline.seconds, Some(0.05));
    assert_eq!(one.sections[0].headline.trials, 10);
    assert!(!one.sections[0].headline.declared);
    let page = render(&choose(None, None));
    assert!(page.contains("href=\"#k1\""), "the index leads to the sections");
    assert_alone(&page);
}

#[test]
fn records_cannot_write_markup() {
    const EVIL: &str = "</script><img id=e onerror=x()>\"' onload=\u{1b}[31m<!--";
    // Records refuse names with control characters.
    const NAME: &str = "</script><img id=e onerror=x()>\"' onload=<!--";
    let mut scratch = Scratch::new();
    let mut odd = program(NAME);
    odd.text = EVIL.into();
    odd.sizes = [(NAME.to_owned(), 1)].into();
    let meta = json!({
        "command": EVIL, "machine": EVIL,
        "parameters": [{"name": EVIL, "kind": EVIL, "values": [EVIL, EVIL]}, {"name": EVIL}],
    });
    let mut trials: Vec<Trial> = (0..20)
        .map(|at| measured(at.into(), vec![at % 2, at % 3], f64::from(1 + at % 2)))
        .collect();
    for trial in &mut trials {
        trial.origin = NAME.into();
        trial.schedule = format!("{EVIL} {}", trial.number);
    }
    trials.push(failed(20, crashed(EVIL)));
    trials.push(failed(21, Outcome::Illegal { rule: EVIL.into(), reason: EVIL.into() }));
    scratch.run(&odd, &run("run-1", NAME, 1, meta), trials);
    let mut report = scratch.report();
    report.sections[0].winner.as_mut().unwrap().loops = Some(EVIL.into());
    let page = render(&report);
    assert!(!page.contains("<img") && !page.contains('\u{1b}'));
    let (before, rest) = page.split_once("id=\"data\">").unwrap();
    assert!(!before.contains("\"' onload"), "no attribute is left");
    assert!(!rest.contains("<!--"), "no comment begins inside a script");
    assert_eq!(page.matches("</script>").count(), 3, "the page's own");
    assert_eq!(data(&page)["kernels"][0]["strategies"][0]["name"], NAME);
}

#[test]
fn nothing_at_all() {
    let scratch = Scratch::new();
    let page = render(&scratch.report());
    assert!(page.contains("Nothing to report"));
    assert_alone(&page);
}

#[test]
fn a_run_without_trials() {
    let mut scratch = Scratch::new();
    scratch.run(&program("scale"), &run("run-1", "random", 1, meta()), vec![]);
    let page = render(&scratch.report());
    for part in ["No candidate was measured yet", "There are no trials yet", "There is none yet"] {
        assert!(page.contains(part), "{part}");
    }
    assert_alone(&page);
}

#[test]
fn only_failures() {
    let mut scratch = Scratch::new();
    let trials = (0..30).map(|number| failed(number, crashed("oops"))).collect();
    scratch.run(&program("scale"), &run("run-1", "random", 1, json!({"roofline": 3})), trials);
    let report = scratch.report();
    assert_eq!(report.sections[0].outcomes.kinds, [("crashed", 30)]);
    assert_eq!(report.sections[0].headline.seconds, None);
    let page = render(&report);
    assert!(page.contains("nothing was measured"));
    assert!(page.contains("Standard error of trial 0"));
    assert_alone(&page);
}

#[test]
fn a_program_without_operations_shows_times() {
    let mut scratch = Scratch::new();
    let copy = ProgramInfo { flops: 0.0, bytes: 0.0, ..program("copy") };
    let trials = (0..10).map(|at| measured(at, vec![], 1e-6 * (10 - at) as f64)).collect();
    scratch.run(&copy, &run("run-1", "random", 1, json!({})), trials);
    let report = scratch.report();
    assert_eq!(report.sections[0].headline.gflops, None);
    assert_eq!(report.sections[0].headline.speedup, Some(10.0));
    let page = render(&report);
    assert!(!page.contains("NaN") && !page.contains(">inf"));
}

#[test]
fn a_hundred_thousand_trials_make_a_page_that_can_be_sent() {
    let mut scratch = Scratch::new();
    let trials = |run: u64| {
        (0..25_000)
            .map(|at| {
                let noise = (at * 7919 + run * 31) % 1000;
                let point = vec![(at % 7) as u32, (at % 2000) as u32, noise as u32 % 5];
                // Almost every trial improves, which makes the longest possible curve.
                measured(at, point, 1.0 / (1.0 + at as f64) + noise as f64 * 1e-9)
            })
            .collect()
    };
    for (at, strategy) in ["random", "genetic", "op-evo", "portfolio"].into_iter().enumerate() {
        let info = run(&format!("run-{at}"), strategy, at as u64, meta());
        scratch.run(&program("scale"), &info, trials(at as u64));
    }
    let report = scratch.report();
    assert_eq!(report.sections[0].headline.trials, 100_000);
    assert_eq!(report.sections[0].dots.measured, 100_000);
    let page = render(&report);
    assert!(page.len() < 1_000_000, "{} bytes", page.len());
}

#[test]
fn many_kernels_make_a_page_that_can_be_sent() {
    let mut scratch = Scratch::new();
    for kernel in 0..45 {
        for (at, strategy) in ["random", "genetic", "op-evo"].into_iter().enumerate() {
            let trials = (0..120).map(|number| {
                let mut trial =
                    measured(number, vec![number as u32 % 7; 12], 1.0 / (1 + number) as f64);
                if number == 119 {
                    // The fastest, with a schedule long enough to be shortened.
                    trial.schedule = "B: split i 4\n".repeat(3000);
                }
                trial
            });
            let mut info = run(&format!("run-{kernel}-{at}"), strategy, 1, meta());
            info.started += kernel * 1000;
            scratch.run(&program(&format!("kernel{kernel}")), &info, trials.collect());
        }
    }
    let report = scratch.report();
    assert_eq!((report.sections.len(), report.left_out), (40, 5));
    let page = render(&report);
    assert!(page.contains("5 kernels"));
    assert!(page.len() < 3_000_000, "{} bytes", page.len());
}
