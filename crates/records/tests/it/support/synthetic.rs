//! Synthetic records that resemble real ones.

use tensorwright_outcome::{Outcome, Timing};
use tensorwright_random::SplitMix;
use tensorwright_records::{Event, Key, ProgramInfo, RunInfo, Trial};

/// Trials per run.
pub(crate) const TRIALS: u64 = 1000;

/// Runs per key.
pub(crate) const RUNS: u64 = 2;

/// The program and key with this index.
pub(crate) fn key(number: u64) -> (ProgramInfo, Key) {
    let sizes = [("K", 64 + number % 97), ("M", 32 + number), ("N", 128)];
    let program = ProgramInfo {
        hash: format!("{:032x}", u128::from(number) * 0x9e37_79b9_7f4a_7c15),
        family: format!("{:032x}", number / 100),
        def: "gemm".into(),
        sizes: sizes.iter().map(|(name, size)| ((*name).to_owned(), *size as i64)).collect(),
        text: "def gemm(float(M,K) A, float(K,N) B) -> (C) { C(m,n) +=! A(m,k) * B(k,n) }".into(),
        flops: 2.0 * sizes.iter().map(|(_, size)| *size as f64).product::<f64>(),
        bytes: 1e6,
    };
    let target = "Some Processor CPU @ 2.70GHz [avx2 avx512bw avx512dq avx512f avx512vl fma]";
    let key = Key::new(&program, target, 1, "0.1.0 llvm-19");
    (program, key)
}

/// The events of a run.
pub(crate) fn run(number: u64) -> Vec<Event> {
    let mut random = SplitMix::new(number);
    let (program, key) = key(number / RUNS);
    let info = RunInfo::new("portfolio", number);
    let run = info.id.clone();
    let mut events = vec![Event::Program(program), Event::Run { key, info }];
    events.extend(
        (0..TRIALS).map(|at| Event::Trial { run: run.clone(), trial: trial(at, &mut random) }),
    );
    events
}

fn trial(number: u64, random: &mut SplitMix) -> Trial {
    let point: Vec<u32> = (0..16).map(|_| random.below(40) as u32).collect();
    let origin = ["opevo", "q-method", "g-bfs", "genetic"][random.below(4) as usize];
    let trial = Trial::new(number, point, &schedule(random));
    let elapsed = number as f64 * 0.15 + random.unit();
    Trial { origin: origin.into(), outcome: outcome(random), elapsed, ..trial }
}

/// One candidate in four fails, with a reason.
fn outcome(random: &mut SplitMix) -> Outcome {
    let seconds = 1e-3 * (1.0 + 20.0 * random.unit());
    match random.below(16) {
        0..3 => Outcome::Illegal {
            rule: "registers".into(),
            reason: format!("the tile needs {} registers of 32", 33 + random.below(200)),
        },
        3 => Outcome::WrongResult {
            reason: format!(
                "C({},{}) is {}, not {}",
                random.below(512),
                random.below(512),
                random.unit(),
                random.unit()
            ),
        },
        _ => Outcome::Measured(Timing {
            seconds,
            raw_seconds: seconds * (1.0 + 0.1 * random.unit()),
            spread: 0.05 * random.unit(),
            runs: 3 + random.below(30) as u32,
            roofline: Some(1e-3 / seconds),
            cut: seconds > 12e-3,
        }),
    }
}

/// The steps of a tiled and packed matrix product with random factors.
fn schedule(random: &mut SplitMix) -> String {
    let mut factor = || 1 + random.below(64);
    let mut text = String::new();
    for axis in ["m", "n", "k"] {
        text += &format!("C: split {axis} {} -> {axis}.0 {axis}.1\n", factor());
        text += &format!("C: split {axis}.1 {} -> {axis}.2 {axis}.3\n", factor());
    }
    text += &format!("C: cache_write at n.2 registers {}\n", factor());
    text += &format!("C: cache_read A at k.0 layout {}\n", factor());
    text += &format!("C: cache_read B at k.0 layout {}\n", factor());
    text += "C: reorder m.0 n.0 k.0 m.2 n.2 k.2 k.3 m.3 n.3\n";
    text += "C: fuse m.0 n.0 -> o\nC: parallel o\n";
    text += &format!("C: unroll m.3 {}\nC: vectorize n.3 {}\n", factor(), factor());
    text
}
