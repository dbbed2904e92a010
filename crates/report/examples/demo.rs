//! A report of synthetic runs, to view the page without tuning.
//!
//! `cargo run -p tensorwright-report --example demo -- report.html [many|failures|empty|all]`
#![allow(clippy::print_stdout, reason = "an example speaks to whoever runs it")]

use std::error::Error;
use std::path::PathBuf;

use serde_json::{Value, json};
use tensorwright_outcome::{Outcome, Phase, Timing};
use tensorwright_random::SplitMix;
use tensorwright_records::{
    Declared, Event, Key, ProgramInfo, RunEnd, RunId, RunInfo, SqliteStore, Store, StoreOptions,
    Trial, TrialId,
};
use tensorwright_report::{Report, Selection, render};

/// The start of the synthetic runs: 2026-03-14 09:00 UTC.
const BEGAN: i64 = 1_773_478_800_000;

/// Strategies: the name, how often it starts at the best so far, and its own time per trial.
const STRATEGIES: [(&str, f64, f64); 7] = [
    ("random", 0.0, 0.148),
    ("genetic", 0.55, 0.150),
    ("g-bfs", 0.8, 0.149),
    ("op-evo", 0.72, 0.150),
    ("q-method", 0.65, 0.165),
    ("surrogate", 0.86, 0.171),
    ("portfolio", 0.92, 0.152),
];

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let page = PathBuf::from(arguments.next().unwrap_or_else(|| "report.html".to_owned()));
    let what = arguments.next().unwrap_or_default();
    let directory = tempfile::tempdir()?;
    let options = StoreOptions::default();
    let mut store = SqliteStore::open(&directory.path().join("records.sqlite3"), options)?;
    match what.as_str() {
        "many" => fill(&mut store, 1024, 1, 2, 8000, Mode::Usual)?,
        "failures" => fill(&mut store, 1024, 1, 1, 60, Mode::Failures)?,
        "empty" => fill(&mut store, 1024, 1, 1, 0, Mode::Usual)?,
        "all" => {
            for (size, threads) in [(256, 1), (512, 1), (1024, 1), (1024, 2), (2048, 2)] {
                fill(&mut store, size, threads, 2, 120, Mode::Usual)?;
            }
        }
        _ => fill(&mut store, 1024, 1, 5, 400, Mode::Usual)?,
    }
    let mut report = Report::from_store(&store, &Selection::default())?;
    report.made = Some(BEGAN + 3_600_000);
    for winner in report.sections.iter_mut().filter_map(|section| section.winner.as_mut()) {
        winner.loops = Some(LOOPS.to_owned());
    }
    let text = render(&report);
    std::fs::write(&page, &text)?;
    println!("wrote {}: {} KB", page.display(), text.len() / 1000);
    Ok(())
}

/// The behaviour of the synthetic candidates.
#[derive(Clone, Copy, PartialEq)]
enum Mode {
    Usual,
    Failures,
}

/// All strategies on one key.
fn fill(
    store: &mut SqliteStore,
    size: i64,
    threads: u32,
    seeds: u64,
    trials: u64,
    mode: Mode,
) -> Result<(), Box<dyn Error>> {
    let cube = (size as f64).powi(3);
    let salt = size as u64 * 8 + u64::from(threads);
    let program = ProgramInfo {
        hash: format!("gemm-{size}"),
        family: "gemm".into(),
        def: "gemm".into(),
        sizes: [("K", size), ("M", size), ("N", size)].map(|(n, s)| (n.to_owned(), s)).into(),
        text: format!(
            "def gemm(float({size},{size}) A, float({size},{size}) B) -> (C) {{\n  C(m,n) +=! A(m,k) * B(k,n)\n}}\n"
        ),
        flops: 2.0 * cube,
        bytes: 12.0 * (size * size) as f64,
    };
    let target = "Intel(R) Xeon(R) Processor @ 2.90GHz [avx avx2 avx512f fma]";
    let key = Key::new(&program, target, threads, "0.1.0 llvm-19");
    let peak = 118.0 * f64::from(threads);
    let meta = meta(&program, peak);
    let mut fastest: Option<(f64, TrialId)> = None;
    for (place, (name, greed, own)) in STRATEGIES.iter().enumerate() {
        for seed in 0..seeds {
            let mut run = RunInfo::new(name, seed);
            run.id =
                RunId::named(&format!("{:016x}", mix(salt * 1000 + place as u64 * 100 + seed)));
            run.space = "space".into();
            run.meta = meta.clone();
            run.started = BEGAN + (place as i64 * 100 + seed as i64) * 60_000;
            store.begin_run(&key, &program, &run)?;
            let mut search =
                Search::new(seed * 31 + place as u64, *greed, program.flops / peak / 1e9);
            let events: Vec<Event> = (0..trials)
                .map(|number| {
                    let trial = search.trial(number, *own, *name == "portfolio", mode);
                    if let Some(seconds) = trial.outcome.cost()
                        && fastest.as_ref().is_none_or(|(best, _)| seconds < *best)
                    {
                        fastest = Some((seconds, TrialId { run: run.id.clone(), number }));
                    }
                    Event::Trial { run: run.id.clone(), trial }
                })
                .collect();
            store.apply(&events)?;
            let ended = run.started + (trials as f64 * own * 1000.0) as i64;
            store.end_run(&run.id, &RunEnd { ended, status: "finished".into() })?;
        }
    }
    if let Some((seconds, trial)) = fastest {
        let best = Declared {
            trial,
            seconds: seconds * 1.01,
            against: Value::Null,
            declared: BEGAN,
            replaces: None,
        };
        store.declare_best(&key, &best)?;
    }
    Ok(())
}

/// Parameters: name, kind, values, and the cost of each value.
const PARAMETERS: [(&str, &str, &[&str], &[f64]); 7] = [
    (
        "tile.m",
        "factorization",
        &[
            "[1024,1]", "[512,2]", "[256,4]", "[170,6]", "[128,8]", "[85,12]", "[64,16]",
            "[32,32]", "[16,64]", "[8,128]",
        ],
        &[2.4, 1.9, 1.35, 1.0, 1.06, 1.12, 1.3, 1.6, 1.9, 2.1],
    ),
    (
        "tile.n",
        "factorization",
        &["[1024,1]", "[128,8]", "[64,16]", "[32,32]", "[21,48]", "[16,64]", "[8,128]"],
        &[3.2, 1.7, 1.2, 1.0, 1.04, 1.15, 1.5],
    ),
    (
        "tile.k",
        "factorization",
        &["[1024,1]", "[64,16]", "[16,64]", "[8,128]", "[4,256]", "[2,512]", "[1,1024]"],
        &[1.5, 1.3, 1.12, 1.05, 1.0, 1.03, 1.1],
    ),
    ("vectorize", "categorical", &["none", "n by 8", "n by 16"], &[5.0, 1.5, 1.0]),
    ("pack B", "categorical", &["no", "tile", "panel"], &[1.45, 1.1, 1.0]),
    (
        "order",
        "permutation",
        &["m n k", "m k n", "n m k", "n k m", "k m n", "k n m"],
        &[1.1, 1.0, 1.12, 1.2, 1.15, 1.3],
    ),
    ("unroll", "discrete", &["1", "2", "4", "8"], &[1.08, 1.03, 1.0, 1.02]),
];

fn meta(program: &ProgramInfo, peak: f64) -> Value {
    let parameters: Vec<Value> = PARAMETERS
        .iter()
        .map(|(name, kind, values, _)| {
            json!({"name": name, "kind": kind, "values": values, "count": values.len()})
        })
        .collect();
    json!({
        "command": "tensorwright tune gemm.tc --def gemm --size M=1024,N=1024,K=1024 --trials 400",
        "threads": 1,
        "machine": "Intel(R) Xeon(R) Processor @ 2.90GHz",
        "roofline": {
            "peak_gflops": peak, "peak_gbps": 11.5, "flops": program.flops,
            "bytes": program.bytes, "seconds": program.flops / peak / 1e9,
        },
        "parameters": parameters,
    })
}

/// A synthetic search: starts at random points or at neighbours of its best.
struct Search {
    random: u64,
    greed: f64,
    bound: f64,
    best: Option<(f64, Vec<u32>)>,
}

impl Search {
    fn new(seed: u64, greed: f64, bound: f64) -> Self {
        Self { random: mix(seed + 17), greed, bound, best: None }
    }

    fn uniform(&mut self) -> f64 {
        self.random = mix(self.random);
        (self.random >> 11) as f64 / (1u64 << 53) as f64
    }

    fn below(&mut self, count: usize) -> usize {
        ((self.uniform() * count as f64) as usize).min(count - 1)
    }

    fn point(&mut self, number: u64) -> Vec<u32> {
        let counts = PARAMETERS.map(|(_, _, values, _)| values.len());
        if number == 0 {
            return vec![6, 1, 2, 1, 1, 0, 0];
        }
        if let Some((_, best)) = &self.best {
            let mut point = best.clone();
            if self.uniform() < self.greed {
                for _ in 0..1 + self.below(2) {
                    let at = self.below(counts.len());
                    point[at] = self.below(counts[at]) as u32;
                }
                return point;
            }
        }
        counts.map(|count| self.below(count) as u32).to_vec()
    }

    fn trial(&mut self, number: u64, own: f64, portfolio: bool, mode: Mode) -> Trial {
        let point = self.point(number);
        let outcome = self.outcome(&point, number, mode);
        if let Outcome::Measured(timing) = &outcome
            && self.best.as_ref().is_none_or(|(best, _)| timing.seconds < *best)
        {
            self.best = Some((timing.seconds, point.clone()));
        }
        let origin = if portfolio && number > 0 { STRATEGIES[self.below(6)].0 } else { "" };
        let schedule = schedule(&point);
        let elapsed = (number + 1) as f64 * own + self.uniform() * 0.1;
        Trial { origin: origin.into(), outcome, elapsed, ..Trial::new(number, point, &schedule) }
    }

    fn outcome(&mut self, point: &[u32], number: u64, mode: Mode) -> Outcome {
        let luck = self.uniform() + if number == 0 { 1.0 } else { 0.0 };
        let luck = if mode == Mode::Failures { luck.fract() * 0.2 } else { luck };
        match luck {
            l if l < 0.10 => {
                let registers = 34 + self.below(40);
                let reason = format!("the register tile needs {registers} vector registers of 32");
                Outcome::Illegal { rule: "registers".into(), reason }
            }
            l if l < 0.14 => {
                let code = 2000 + self.below(9000);
                let reason = format!("unrolling makes {code} statements, more than 2048");
                Outcome::Illegal { rule: "unroll".into(), reason }
            }
            l if l < 0.152 => Outcome::TimedOut { phase: Phase::Build, limit: 2.0 },
            l if l < 0.16 => Outcome::BuildFailed { reason: "LLVM: ran out of registers".into() },
            l if l < 0.163 => {
                Outcome::WrongResult { reason: "C[3,17] is 12.25, should be 12.5".into() }
            }
            l if l < 0.168 => Outcome::Crashed {
                reason: "signal 11 (segmentation fault)".into(),
                stderr: "kernel: stack smashing?\n</script><b>not markup</b>\n".into(),
            },
            l if l < 0.2 => Outcome::TimedOut { phase: Phase::Time, limit: 1.0 },
            _ => Outcome::Measured(self.timing(point)),
        }
    }

    fn timing(&mut self, point: &[u32]) -> Timing {
        let factor: f64 = PARAMETERS
            .iter()
            .zip(point)
            .map(|((_, _, _, costs), rank)| costs[*rank as usize])
            .product();
        // Matching tiles are better than each alone.
        let fit = 1.0 + 0.08 * f64::from((point[0] + point[1]) % 4);
        let noise = 1.0 + 0.015 * self.uniform();
        let seconds = self.bound * 1.18 * factor * fit * noise;
        let spread = 0.004 + 0.02 * self.uniform();
        let cut = seconds > self.best.as_ref().map_or(f64::INFINITY, |(best, _)| best * 6.0);
        Timing { seconds, raw_seconds: seconds * 1.02, spread, runs: 12, cut, roofline: None }
    }
}

fn schedule(point: &[u32]) -> String {
    let value = |at: usize| PARAMETERS[at].2[point[at] as usize];
    let inner = |at: usize| {
        value(at).trim_matches(['[', ']']).split(',').next_back().unwrap_or("1").to_owned()
    };
    format!(
        "C: split m -> m.0 m.1 [{}]\nC: split n -> n.0 n.1 [{}]\nC: split k -> k.0 k.1 [{}]\n\
         C: reorder {}\nC: cache_read B at k.0 ({})\nC: vectorize n.1 ({})\nC: unroll m.1 [{}]\n",
        inner(0),
        inner(1),
        inner(2),
        value(5),
        value(4),
        value(3),
        value(6)
    )
}

fn mix(state: u64) -> u64 {
    SplitMix::nth(state, 0)
}

const LOOPS: &str = "for n.0 in 0..32 {
  for k.0 in 0..4 {
    pack B[k.0*256 .. +256, n.0*32 .. +32] -> B.local
    for m.0 in 0..171 {                      // tail: shift inwards
      C.local[6][2 x f32x16] = 0
      for k.1 in 0..256 {
        unroll for m.1 in 0..6 {
          vectorized for n.1 in 0..32 {
            C.local[m.1, n.1] += A[m, k] * B.local[k.1, n.1]
          }
        }
      }
      C[m, n] += C.local
    }
  }
}
";
