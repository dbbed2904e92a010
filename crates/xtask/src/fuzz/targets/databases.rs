//! Damaged records databases.

use tensorwright_outcome::{Outcome, Timing};
use tensorwright_records::{
    Collection, Error, Key, ProgramInfo, RunFilter, RunInfo, SqliteStore, Store, StoreOptions,
    Trial,
};
use tensorwright_testkit::damage;

use super::{Input, Reached, Scratch, Target};

pub(super) const TARGET: Target = Target {
    name: "databases",
    reads: "SQLite files of records",
    extension: "sqlite3",
    seconds: 5.0,
    corpus,
    mutate: |bytes, _, rng| damage(bytes, rng),
    run,
};

const TEXT: &str = "def gemm(float(8,64) A) -> (C) { C(m,n) = A(m,n) }\n";

/// A database with a number of trials.
pub(super) fn filled(scratch: &Scratch, trials: u64) -> Option<SqliteStore> {
    let options = StoreOptions { durable: false, ..StoreOptions::default() };
    let mut store = SqliteStore::open(&scratch.file, options).ok()?;
    let program = ProgramInfo {
        hash: "gemm-8".into(),
        family: "gemm".into(),
        def: "gemm".into(),
        sizes: [("M".to_owned(), 8), ("N".to_owned(), 64)].into(),
        text: TEXT.to_owned(),
        flops: 512.0,
        bytes: 4096.0,
    };
    let key = Key::new(&program, "A Processor [avx2 fma]", 1, "0.1.0 llvm-19");
    let run = store.begin_run(&key, &program, &RunInfo::new("random", 1)).ok()?;
    for number in 0..trials {
        let seconds = 1.0 / (number + 1) as f64;
        let timing = Timing { seconds, raw_seconds: seconds, runs: 9, ..Timing::default() };
        let schedule = format!("C: split m {}\nC: vectorize n\n", number + 2);
        let trial = Trial {
            outcome: Outcome::Measured(timing),
            origin: ["default", "ranked", "opevo", ""][number as usize % 4].into(),
            algorithm: ["", "as written", "C: winograd m n by 4"][number as usize % 3].into(),
            ..Trial::new(number, vec![number as u32, 7], &schedule)
        };
        store.insert(&run, &trial).ok()?;
    }
    Some(store)
}

/// Databases of one page and of several.
fn corpus() -> Vec<Vec<u8>> {
    let bytes = |trials| {
        let scratch = Scratch::new()?;
        // Closing it flushes pending writes.
        drop(filled(&scratch, trials)?);
        std::fs::read(&scratch.file).ok()
    };
    [0, 3, 300].into_iter().filter_map(bytes).collect()
}

/// Reads everything from a store, and writes to it.
pub(super) fn use_everything(store: &mut SqliteStore) -> Result<(), Error> {
    for summary in store.runs(&RunFilter::default())? {
        std::hint::black_box(store.trials(&summary.info.id, None, 1000)?);
    }
    for summary in store.keys()? {
        std::hint::black_box(store.best(&summary.key)?);
        std::hint::black_box(store.nearest(&summary.key, &Default::default(), 3)?);
        std::hint::black_box(store.why_miss(&summary.key)?);
    }
    std::hint::black_box((store.declared()?, store.removed()?, store.program("gemm-8")?));
    store.collect(Collection { keep: 2, dry_run: false })?;
    Ok(())
}

fn run(input: &mut Input) -> Reached {
    let Some(scratch) = Scratch::new() else { return Reached::Refused };
    if std::fs::write(&scratch.file, &input.bytes).is_err() {
        return Reached::Refused;
    }
    let options = StoreOptions { durable: false, ..StoreOptions::default() };
    let told = |error: Error, reached| {
        std::hint::black_box((error.to_string(), error.help()));
        reached
    };
    match SqliteStore::open(&scratch.file, options) {
        Err(error) => told(error, Reached::Refused),
        Ok(mut store) => match use_everything(&mut store) {
            Ok(()) => Reached::Used,
            Err(error) => told(error, Reached::Read),
        },
    }
}
