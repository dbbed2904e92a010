//! "Did you mean" suggestions: the nearest name.

/// The most likely intended candidate: at most a third of its letters, and at least one, may
/// differ. A single letter may differ only in case.
#[must_use]
pub fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let limit = (name.chars().count() / 3).clamp(1, 3);
    candidates
        .into_iter()
        .filter(|candidate| *candidate != name)
        .map(|candidate| (distance(name, candidate), candidate))
        .filter(|(distance, candidate)| {
            *distance == 0 || *distance <= limit && candidate.chars().count() > limit
        })
        .min()
        .map(|(_, candidate)| candidate)
}

/// The case-insensitive number of insertions, deletions, replacements and swaps of neighbours that
/// turn one word into the other.
fn distance(a: &str, b: &str) -> usize {
    const LONGEST: usize = 64;
    let letters = |word: &str| -> Vec<char> {
        word.chars().take(LONGEST).flat_map(char::to_lowercase).collect()
    };
    let (a, b) = (letters(a), letters(b));
    let mut rows = vec![vec![0; b.len() + 1]; a.len() + 1];
    for i in 0..=a.len() {
        for j in 0..=b.len() {
            rows[i][j] = if i == 0 || j == 0 {
                i + j
            } else {
                let replace = rows[i - 1][j - 1] + usize::from(a[i - 1] != b[j - 1]);
                let mut best = replace.min(rows[i - 1][j] + 1).min(rows[i][j - 1] + 1);
                if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                    best = best.min(rows[i - 2][j - 2] + 1);
                }
                best
            };
        }
    }
    rows[a.len()][b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_names_are_found_and_far_ones_are_not() {
        assert_eq!(nearest("flaot", ["float", "double"]), Some("float"));
        assert_eq!(nearest("matmull", ["conv2d", "matmul"]), Some("matmul"));
        assert_eq!(nearest("x", ["y", "z"]), None, "single letters are all near each other");
        assert_eq!(nearest("n", ["N", "M"]), Some("N"));
        assert_eq!(nearest("weights", ["bias"]), None);
    }
}
