//! Compares plans with those that were kept.

use std::fmt::Write;

use similar::TextDiff;

use tensorwright_lang::program::Program;

use super::loops::are_same;
use super::plan::Plan;

/// The lines around a difference.
const CONTEXT: usize = 3;

/// The columns of the summary.
const COLUMNS: usize = 6;

/// The comparison of a file: a suite on a target.
#[derive(Debug, Default)]
pub(super) struct Comparison {
    /// `SUITE on TARGET`.
    pub(super) title: String,
    /// Every differing plan in full.
    pub(super) report: String,
    same: usize,
    /// Other steps that make the same loops.
    renamed: usize,
    changed: usize,
    /// The new predictions divided by the old ones of the same model, with the names of programs.
    ratios: Vec<(f64, String)>,
}

impl Comparison {
    /// Compares the kept plans of a suite with the new ones. `programs` has a program for each of
    /// these.
    pub(super) fn new(
        title: String,
        kept: &[Plan],
        new: &[Plan],
        programs: &[Option<&Program>],
    ) -> Self {
        let mut found = Self { title, ..Self::default() };
        for (place, plan) in new.iter().enumerate() {
            let program = programs.get(place).copied().flatten();
            match kept.iter().find(|known| known.name == plan.name) {
                Some(known) => found.pair(known, plan, program),
                None => found.alone(plan, "new: not kept yet"),
            }
        }
        let is_gone = |known: &&Plan| new.iter().all(|plan| plan.name != known.name);
        for known in kept.iter().filter(is_gone) {
            found.alone(known, "kept, but there is no such program now");
        }
        found
    }

    pub(super) fn is_same(&self) -> bool {
        self.changed == 0 && self.renamed == 0
    }

    fn alone(&mut self, plan: &Plan, what: &str) {
        self.changed += 1;
        let _ = writeln!(self.report, "{}: {}: {what}", self.title, plan.name);
    }

    fn pair(&mut self, kept: &Plan, new: &Plan, program: Option<&Program>) {
        let ratio = ratio(&kept.cycles, &new.cycles);
        if let Some(ratio) = ratio {
            self.ratios.push((ratio, new.name.clone()));
        }
        if kept == new {
            self.same += 1;
            return;
        }
        let is_renamed = kept.text != new.text
            && (&kept.cycles, kept.launches) == (&new.cycles, new.launches)
            && program.is_some_and(|program| are_same(program, &kept.text, &new.text));
        let text = &mut self.report;
        if is_renamed {
            self.renamed += 1;
            let _ = writeln!(text, "{}: {}: other steps, the same loops", self.title, new.name);
            return;
        }
        self.changed += 1;
        let _ = writeln!(text, "{}: {}: {}", self.title, new.name, new.source);
        if kept.source != new.source {
            let _ = writeln!(text, "  program: {}, now {}", kept.source, new.source);
        }
        let times = ratio.map_or_else(String::new, |ratio| format!(" ({ratio:.3} times)"));
        let _ = writeln!(text, "  predicted cycles: {}, now {}{times}", kept.cycles, new.cycles);
        if kept.launches != new.launches {
            let shown = |n: Option<usize>| n.map_or_else(|| "-".to_owned(), |n| n.to_string());
            let (old, now) = (shown(kept.launches), shown(new.launches));
            let _ = writeln!(text, "  launches: {old}, now {now}");
        }
        if kept.text == new.text {
            let _ = writeln!(text, "  the schedule is the same");
            return;
        }
        let diff = TextDiff::from_lines(&kept.text, &new.text);
        let mut diff = diff.unified_diff();
        let _ = write!(text, "{}", diff.context_radius(CONTEXT).header("kept", "now"));
    }

    /// The line of this file in the summary.
    fn row(&self) -> [String; COLUMNS] {
        let logs = self.ratios.iter().map(|(ratio, _)| ratio.ln());
        let mean = match self.ratios.len() {
            0 => "-".to_owned(),
            count => format!("{:.3}", (logs.sum::<f64>() / count as f64).exp()),
        };
        let largest = self.ratios.iter().max_by(|(a, _), (b, _)| a.total_cmp(b));
        let largest = match largest {
            Some((ratio, name)) if *ratio > 1.0 => format!("{ratio:.3} ({name})"),
            Some((ratio, _)) => format!("{ratio:.3}"),
            None => "-".to_owned(),
        };
        let [same, renamed, changed] =
            [self.same, self.renamed, self.changed].map(|count| count.to_string());
        [self.title.clone(), same, renamed, changed, mean, largest]
    }
}

/// The new cycles divided by the old ones, if the same model predicted both.
fn ratio(kept: &str, new: &str) -> Option<f64> {
    let (old, old_model) = kept.split_once(" by ")?;
    let (now, now_model) = new.split_once(" by ")?;
    let (old, now): (f64, f64) = (old.parse().ok()?, now.parse().ok()?);
    let ratio = now / old;
    (old_model == now_model && ratio.is_finite() && ratio > 0.0).then_some(ratio)
}

/// One line per suite and target.
pub(super) fn summary(comparisons: &[Comparison]) -> String {
    let head = ["plans", "same", "same loops", "changed", "cycles, new/kept", "largest"];
    let head = head.map(str::to_owned);
    let rows: Vec<[String; COLUMNS]> =
        std::iter::once(head).chain(comparisons.iter().map(Comparison::row)).collect();
    let width = |column: usize| rows.iter().map(|row| row[column].len()).max().unwrap_or(0);
    let [a, b, c, d, e] = [0, 1, 2, 3, 4].map(width);
    let mut text = String::new();
    for [title, same, renamed, changed, mean, largest] in &rows {
        let _ = write!(text, "{title:a$}  {same:>b$}  {renamed:>c$}  {changed:>d$}  ");
        let _ = writeln!(text, "{mean:>e$}  {largest}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::{Comparison, summary};
    use crate::plans::plan::Plan;

    fn plan(name: &str, cycles: &str, launches: Option<usize>, text: &str) -> Plan {
        let (name, source) = (name.to_owned(), "gemm.tc gemm M=64,N=64,K=64".to_owned());
        Plan { name, source, cycles: cycles.to_owned(), launches, text: text.to_owned() }
    }

    #[test]
    fn a_changed_schedule_is_reported_with_both_predictions_and_a_diff() {
        let kept = "C: split m 8\nC: split n 16\nC: reorder m.0 n.0 k m.1 n.1\nC: unroll m.1\n\
                    C: vectorize n.1\nC: parallel m.0\n";
        let new = kept.replace("split m 8", "split m 6");
        let before = [
            plan("gemm_64, 1 thread", "2.00000e4 by tiles", None, kept),
            plan("gemm_64, 2 threads", "1.00000e4 by tiles", None, kept),
            plan("gone", "-", None, ""),
        ];
        let after = [
            plan("gemm_64, 1 thread", "2.20000e4 by tiles", None, &new),
            plan("gemm_64, 2 threads", "1.00000e4 by tiles", None, kept),
            plan("added", "-", None, ""),
        ];
        let found = Comparison::new("gemm on avx2".to_owned(), &before, &after, &[]);
        assert!(!found.is_same());
        assert_eq!(
            found.report,
            "gemm on avx2: gemm_64, 1 thread: gemm.tc gemm M=64,N=64,K=64\n\
             \x20 predicted cycles: 2.00000e4 by tiles, now 2.20000e4 by tiles (1.100 times)\n\
             --- kept\n\
             +++ now\n\
             @@ -1,4 +1,4 @@\n\
             -C: split m 8\n\
             +C: split m 6\n\
             \x20C: split n 16\n\
             \x20C: reorder m.0 n.0 k m.1 n.1\n\
             \x20C: unroll m.1\n\
             gemm on avx2: added: new: not kept yet\n\
             gemm on avx2: gone: kept, but there is no such program now\n"
        );
        assert_eq!(
            summary(&[found]),
            "plans         same  same loops  changed  cycles, new/kept  largest\n\
             gemm on avx2     1           0        3             1.049  1.100 (gemm_64, 1 thread)\n"
        );
    }

    #[test]
    fn changed_launches_and_models_are_reported_and_models_not_compared() {
        let kept = [plan("a", "1.00000e3 by tiles", Some(3), "C: inline\n")];
        let new = [plan("a", "5.00000e1 by beam", Some(1), "C: inline\n")];
        let found = Comparison::new("ops on opencl".to_owned(), &kept, &new, &[]);
        assert_eq!(
            found.report,
            "ops on opencl: a: gemm.tc gemm M=64,N=64,K=64\n\
             \x20 predicted cycles: 1.00000e3 by tiles, now 5.00000e1 by beam\n\
             \x20 launches: 3, now 1\n\
             \x20 the schedule is the same\n"
        );
        let same = Comparison::new("ops on opencl".to_owned(), &kept, &kept, &[]);
        assert!(same.is_same() && same.report.is_empty());
        assert_eq!(
            summary(&[found, same]),
            "plans          same  same loops  changed  cycles, new/kept  largest\n\
             ops on opencl     0           0        1                 -  -\n\
             ops on opencl     1           0        0             1.000  1.000\n"
        );
    }
}
