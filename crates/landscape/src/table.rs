//! Formats a comparison as a text table.
//!
//! ```text
//! strategy    90 %            95 %            99 %            after 50           own time
//! random      38 (12-81)      102 (60-190)    > 500 (7/20)    0.91 (0.88-0.94)   2 us
//! ```

use std::fmt;

use crate::comparison::{After, Comparison, Reach, Row};

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rows = vec![heading(self)];
        rows.extend(self.rows.iter().map(|row| line(row, self)));
        let columns = rows.first().map_or(0, Vec::len);
        let widths: Vec<usize> = (0..columns)
            .map(|column| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0))
            .collect();
        writeln!(
            f,
            "{} points, {} seeds, {} trials; trials to a share of the optimum's speed, and the share \
             after some trials: median (quartiles)",
            self.points, self.seeds, self.trials
        )?;
        for row in rows {
            let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}"));
            writeln!(f, "{}", cells.collect::<Vec<_>>().join("  ").trim_end())?;
        }
        Ok(())
    }
}

fn heading(comparison: &Comparison) -> Vec<String> {
    let mut cells = vec!["strategy".to_owned()];
    if let Some(row) = comparison.rows.first() {
        cells.extend(row.reach.iter().map(|reach| format!("{:.0} %", reach.level * 100.0)));
        cells.extend(row.after.iter().map(|after| format!("after {}", after.trials)));
        cells.push("own time per trial".to_owned());
    }
    cells
}

fn line(row: &Row, comparison: &Comparison) -> Vec<String> {
    let mut cells = vec![row.strategy.to_owned()];
    cells.extend(row.reach.iter().map(|reach| reached(reach, comparison)));
    cells.extend(row.after.iter().map(share));
    cells.push(format!("{:.3} ms", row.own_seconds_per_trial * 1e3));
    cells
}

fn reached(reach: &Reach, comparison: &Comparison) -> String {
    let trials = |n: f64| if n.is_finite() { format!("{n:.0}") } else { "-".to_owned() };
    let q = reach.trials;
    let median =
        if q.median.is_finite() { trials(q.median) } else { format!("> {}", comparison.trials) };
    let mut text = format!("{median} ({}..{})", trials(q.lower), trials(q.upper));
    if (reach.reached as u64) < comparison.seeds {
        text.push_str(&format!(" {}/{}", reach.reached, comparison.seeds));
    }
    text
}

fn share(after: &After) -> String {
    let q = after.share;
    format!("{:.3} ({:.3}..{:.3})", q.median, q.lower, q.upper)
}
