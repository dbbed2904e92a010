//! Minimises failing inputs.

use std::time::{Duration, Instant};

use super::FuzzOptions;
use super::process;
use super::report;

/// The time limit: each attempt starts a process.
const PATIENCE: Duration = Duration::from_secs(30);

/// The smallest bytes that were found to fail in place of those of an index. Pieces are removed,
/// halves first (Zeller and Hildebrandt, "Simplifying and isolating failure-inducing input", 2002).
pub(super) fn minimise(options: &FuzzOptions, index: u64, input: Vec<u8>) -> Vec<u8> {
    let file = report::folder().join(format!("candidate-{}", std::process::id()));
    let replay = Some(file.clone());
    let attempt = FuzzOptions { from: index, count: 1, jobs: 1, replay, ..options.clone() };
    let deadline = Instant::now() + PATIENCE;
    let fails = |bytes: &[u8]| {
        let written = std::fs::write(&file, bytes).is_ok();
        written
            && process::run(&attempt, &mut |_| {})
                .is_ok_and(|heard| heard.died.is_some() || !heard.failed.is_empty())
    };
    let small = shrink(input, &mut |bytes| Instant::now() < deadline && fails(bytes));
    let _ = std::fs::remove_file(&file);
    small
}

/// Removes pieces, each half as long as those before.
fn shrink(mut bytes: Vec<u8>, fails: &mut dyn FnMut(&[u8]) -> bool) -> Vec<u8> {
    let mut piece = bytes.len().div_ceil(2);
    while piece > 0 {
        let mut start = 0;
        while start < bytes.len() {
            let end = (start + piece).min(bytes.len());
            let candidate = [&bytes[..start], &bytes[end..]].concat();
            if fails(&candidate) {
                bytes = candidate;
            } else {
                start = end;
            }
        }
        piece = if piece == 1 { 0 } else { piece.div_ceil(2) };
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_matter_is_removed() {
        let mut fails = |bytes: &[u8]| bytes.contains(&b'x') && bytes.contains(&b'y');
        assert_eq!(shrink(b"aaaxaaaaaaaaaayaaaa".to_vec(), &mut fails), b"xy");
        assert_eq!(shrink(Vec::new(), &mut fails), b"");
    }
}
