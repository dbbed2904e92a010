//! Outcomes of candidates, with reasons.

use std::fmt::{Result, Write};

use crate::model::{Outcomes, Section};
use crate::text::{Escaped, grouped, percent};

/// A bar of all outcomes, the commonest reasons, and the output of crashed processes.
pub(super) fn write(out: &mut String, section: &Section, place: usize) -> Result {
    let outcomes = &section.outcomes;
    out.write_str("<h3>Outcomes</h3>\n")?;
    let total: u64 = outcomes.kinds.iter().map(|(_, count)| count).sum();
    if total == 0 {
        return out.write_str("<p class=\"empty\">There are no trials yet.</p>\n");
    }
    bar(out, outcomes, total, place)?;
    reasons(out, outcomes, total)?;
    for crash in &outcomes.crashes {
        writeln!(
            out,
            "<details><summary>Standard error of trial {}, which crashed: {}</summary>\
             <pre tabindex=\"0\">{}</pre></details>",
            crash.trial.number,
            Escaped(&crash.reason),
            if crash.stderr.is_empty() { Escaped("(nothing)") } else { Escaped(&crash.stderr) },
        )?;
    }
    Ok(())
}

fn bar(out: &mut String, outcomes: &Outcomes, total: u64, place: usize) -> Result {
    writeln!(out, "<div class=\"stack\" role=\"img\" aria-labelledby=\"o{place}\">")?;
    for (kind, count) in &outcomes.kinds {
        let share = *count as f64 / total as f64;
        write!(
            out,
            "<i class=\"{kind}\" style=\"flex-grow:{:.5}\" title=\"{kind}: {}\"></i>",
            share,
            grouped(*count)
        )?;
    }
    write!(out, "</div>\n<ul class=\"legend\" id=\"o{place}\">\n")?;
    for (kind, count) in &outcomes.kinds {
        let share = percent(*count as f64 / total as f64);
        writeln!(
            out,
            "<li><i class=\"{kind}\"></i>{kind} <b>{}</b> <span>{share}</span></li>",
            grouped(*count)
        )?;
    }
    out.write_str("</ul>\n")
}

fn reasons(out: &mut String, outcomes: &Outcomes, total: u64) -> Result {
    if outcomes.reasons.is_empty() {
        return Ok(());
    }
    out.write_str(
        "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Reasons\"><table class=\"reasons\">\n<thead><tr>\
         <th scope=\"col\">outcome</th><th scope=\"col\">commonest reasons (numbers are those of the first)</th>\
         <th scope=\"col\" class=\"n\">trials</th><th scope=\"col\" class=\"n\">share</th></tr></thead>\n<tbody>\n",
    )?;
    for reason in &outcomes.reasons {
        writeln!(
            out,
            "<tr><td><span class=\"kind\"><i class=\"{kind}\"></i>{kind}</span></td><td class=\"reason\">{}</td>\
             <td class=\"n\">{}</td><td class=\"n\">{}</td></tr>",
            Escaped(&reason.reason),
            grouped(reason.count),
            percent(reason.count as f64 / total as f64),
            kind = reason.kind,
        )?;
    }
    out.write_str("</tbody></table></div>\n")
}
