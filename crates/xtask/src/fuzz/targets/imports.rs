//! Imported records.

use std::path::Path;

use tensorwright_records::transfer::{read_lines, write_lines};
use tensorwright_records::{RunFilter, SqliteStore, StoreOptions};
use tensorwright_testkit::mutate;

use super::databases::{filled, use_everything};
use super::{Input, Reached, Scratch, Target};

pub(super) const TARGET: Target = Target {
    name: "imports",
    reads: "exported records",
    extension: "jsonl",
    seconds: 5.0,
    corpus,
    mutate,
    run,
};

/// A small database as lines: whole, and each line alone after the lines it depends on.
fn corpus() -> Vec<Vec<u8>> {
    let Some(scratch) = Scratch::new() else { return Vec::new() };
    let Some(store) = filled(&scratch, 6) else { return Vec::new() };
    let mut all = Vec::new();
    if write_lines(&store, &RunFilter::default(), &mut all, Path::new("export")).is_err() {
        return Vec::new();
    }
    let ends = all.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at + 1);
    let parts: Vec<Vec<u8>> = ends.map(|end| all[..end].to_vec()).collect();
    parts
}

fn run(input: &mut Input) -> Reached {
    let Some(scratch) = Scratch::new() else { return Reached::Refused };
    let options = StoreOptions { durable: false, ..StoreOptions::default() };
    let Ok(mut store) = SqliteStore::open(&scratch.file, options) else { return Reached::Refused };
    match read_lines(&mut store, &mut &input.bytes[..], Path::new("import")) {
        Ok(imported) if imported.added > 0 => {
            use_everything(&mut store).map_or(Reached::Read, |()| Reached::Used)
        }
        Ok(_) => Reached::Read,
        Err(error) => {
            std::hint::black_box((error.to_string(), error.help()));
            Reached::Refused
        }
    }
}
