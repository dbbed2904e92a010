//! The campaign report as Markdown.

use std::fmt::Write as _;

use tensorwright_lang::text::grouped;

use super::kinds::KINDS;
use super::state::State;

/// The table of tests and failures by kind.
pub(super) fn table(state: &State) -> String {
    let mut text = "| kind | what | tried | skipped | failures | open | hours |\n\
                    | --- | --- | ---: | ---: | ---: | ---: | ---: |\n"
        .to_owned();
    for kind in KINDS {
        let done = state.done(kind.name);
        let open = done.failures.iter().filter(|known| known.is_open).count();
        let found = match done.repeated {
            0 => done.failures.len().to_string(),
            repeated => format!("{} and {repeated} alike", done.failures.len()),
        };
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} | {found} | {open} | {:.2} |",
            kind.name,
            kind.about,
            grouped(done.tried),
            grouped(done.skipped),
            done.seconds / 3600.0,
        );
    }
    text
}

/// The whole page.
pub(super) fn page(state: &State) -> String {
    let commits = state.commits.join(", ");
    let mut text = format!(
        "# Campaign\n\nWhat `xtask campaign` has tried, over all sittings, with seed {}. CONTRIBUTING.md \
         says how to run and replay it.\n\nCommits: {commits}. *Skipped* are pairs without a schedule \
         that is small enough or can be lowered, and programs that the reference refuses. *Open* are \
         failures that still failed when they were last replayed.\n\n{}\n\n{}",
        state.seed,
        full(state),
        table(state)
    );
    for (title, is_open) in [("Found and fixed", false), ("Open", true)] {
        let list = failures(state, is_open);
        if !list.is_empty() {
            let _ = write!(text, "\n## {title}\n\n{list}");
        }
    }
    text
}

/// When `.ci/run full` last passed.
fn full(state: &State) -> String {
    match state.full.as_str() {
        "" => "No run of `.ci/run full` is recorded here. It writes `target/full.txt`, which \
               `xtask campaign --full target/full.txt` records."
            .to_owned(),
        line => format!("The last recorded run of `.ci/run full`: {line}."),
    }
}

/// A line for each open or closed failure.
fn failures(state: &State, is_open: bool) -> String {
    let mut state = state.clone();
    let mut lines = String::new();
    for kind in KINDS {
        for known in state.failures_mut(kind.name).iter().filter(|known| known.is_open == is_open) {
            let _ = writeln!(lines, "- {} {}: {}", kind.name, known.index, known.title);
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::super::state::{Done, KeptFailure};
    use super::*;

    #[test]
    fn the_page_has_a_row_for_every_kind_and_a_line_for_what_is_open() {
        let mut state = State::new(3, "abc".to_owned());
        let known = |is_open| KeptFailure {
            index: 9,
            title: "llvm wrong".into(),
            file: "f".into(),
            is_open,
        };
        let failures = vec![known(true), known(false)];
        let done = Done {
            next: 1_234_567,
            tried: 1_234_567,
            skipped: 12,
            seconds: 1800.0,
            repeated: 0,
            failures,
        };
        state.add("space", &done);
        assert!(page(&state).contains("No run of `.ci/run full` is recorded here."));
        "2026-11-19, commit abc".clone_into(&mut state.full);
        let page = page(&state);
        assert!(page.contains("run of `.ci/run full`: 2026-11-19, commit abc.\n"), "{page}");
        let row = "| points of search spaces, native code and C | 1,234,567 | 12 | 2 | 1 | 0.50 |";
        assert!(page.contains(row), "{page}");
        assert!(page.contains("## Found and fixed\n\n- space 9: llvm wrong\n"), "{page}");
        assert!(page.ends_with("## Open\n\n- space 9: llvm wrong\n"), "{page}");
        assert_eq!(page.lines().filter(|line| line.starts_with("| ")).count(), KINDS.len() + 2);
    }
}
