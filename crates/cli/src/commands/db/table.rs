//! Text tables and number formatting.

use std::collections::BTreeMap;

/// Aligns columns, two spaces apart; cells that begin with a digit are right-aligned.
pub(crate) fn table(head: &[&str], rows: &[Vec<String>]) -> String {
    let width = |text: &str| text.chars().count();
    let columns = head.len();
    let widths: Vec<usize> = (0..columns)
        .map(|at| {
            rows.iter().map(|row| width(&row[at])).chain([width(head[at])]).max().unwrap_or(0)
        })
        .collect();
    let is_number = |at: usize| {
        rows.iter().all(|row| row[at].starts_with(|c: char| c.is_ascii_digit() || c == '-'))
    };
    let numbers: Vec<bool> = (0..columns).map(is_number).collect();
    let line = |cells: Vec<&str>| {
        let padded: Vec<String> = cells
            .iter()
            .enumerate()
            .map(|(at, cell)| {
                let space = " ".repeat(widths[at].saturating_sub(width(cell)));
                if numbers[at] { format!("{space}{cell}") } else { format!("{cell}{space}") }
            })
            .collect();
        format!("{}\n", padded.join("  ").trim_end())
    };
    let body = rows.iter().map(|row| line(row.iter().map(String::as_str).collect()));
    line(head.to_vec()) + &body.collect::<String>()
}

/// Sizes in the syntax of `--size`.
pub(super) fn sizes(sizes: &BTreeMap<String, i64>) -> String {
    let list: Vec<String> = sizes.iter().map(|(name, size)| format!("{name}={size}")).collect();
    if list.is_empty() { "-".to_owned() } else { list.join(",") }
}

/// A count with its noun: `1 trial`, `2 trials`.
pub(crate) fn counted(number: u64, thing: &str) -> String {
    format!("{number} {thing}{}", if number == 1 { "" } else { "s" })
}

/// The speed of a call.
pub(super) fn gflops(flops: f64, seconds: f64) -> String {
    format!("{:.1}", flops / seconds / 1e9)
}

/// A number of bytes with a suitable unit.
pub(crate) fn bytes(bytes: u64) -> String {
    match bytes {
        b if b >= 10 << 20 => format!("{} MiB", b >> 20),
        b if b >= 10 << 10 => format!("{} KiB", b >> 10),
        b => format!("{b} B"),
    }
}

/// A moment, as UTC: `2026-03-14 15:09`.
pub(super) fn moment(milliseconds: i64) -> String {
    let minutes = milliseconds.div_euclid(60_000);
    let (days, minute) = (minutes.div_euclid(1440), minutes.rem_euclid(1440));
    let (year, month, day) = date(days);
    format!("{year:04}-{month:02}-{day:02} {:02}:{:02}", minute / 60, minute % 60)
}

/// The Gregorian date of a day since 1970, counted in eras of 400 years that begin in March, so that
/// the leap day is the last of its year.
fn date(days: i64) -> (i64, i64, i64) {
    let days = days.saturating_add(719_468);
    let (era, day) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let of_year = day - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let of_month = of_year - (153 * month + 2) / 5 + 1;
    let (month, next) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    (year + era * 400 + next, month, of_month)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned() {
        let rows = [vec!["gemm".to_owned(), "8".to_owned()], vec!["a".to_owned(), "12".to_owned()]];
        assert_eq!(table(&["def", "n"], &rows), "def    n\ngemm   8\na     12\n");
    }

    #[test]
    fn moments_are_dates() {
        assert_eq!(moment(0), "1970-01-01 00:00");
        assert_eq!(moment(951_782_400_000), "2000-02-29 00:00");
        assert_eq!(moment(1_773_500_940_000), "2026-03-14 15:09");
        assert_eq!(moment(-60_000), "1969-12-31 23:59");
        let _ = (moment(i64::MAX), moment(i64::MIN));
    }
}
