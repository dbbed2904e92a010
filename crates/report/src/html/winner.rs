//! The winning schedule and its loop nest.

use std::fmt::{Result, Write};

use super::Page;
use crate::model::Section;
use crate::text::{Escaped, shortened};

/// The schedule and the loop nest, with copy buttons.
pub(super) fn write(out: &mut String, page: &Page<'_>, section: &Section, place: usize) -> Result {
    out.write_str("<h3>Best schedule</h3>\n")?;
    let Some(winner) = &section.winner else {
        return out.write_str("<p class=\"empty\">There is none yet.</p>\n");
    };
    let id = shortened(winner.trial.run.as_str(), 12);
    let mut by = String::new();
    for (name, word) in [("origin", &winner.origin), ("algorithm", &winner.algorithm)] {
        if !word.is_empty() {
            by += &format!(", {name}: {}", shortened(word, 200));
        }
    }
    write!(
        out,
        "<p class=\"note\">Trial {} of run {}{}.</p>\n<div class=\"texts\">\n",
        winner.trial.number,
        Escaped(id.trim_end_matches('…')),
        Escaped(&by)
    )?;
    let limit = page.share(400_000, 4000, 60_000);
    let schedule = match winner.schedule.trim_end() {
        "" => "# no steps: the loops as they are written",
        steps => steps,
    };
    text(out, ("Schedule", "text"), &format!("s{place}"), schedule, limit)?;
    if let Some(stages) = &winner.stages {
        text(
            out,
            ("Where stages are computed", "text"),
            &format!("w{place}"),
            stages.trim_end(),
            limit,
        )?;
    }
    if let Some(loops) = &winner.loops {
        // Their lines are long.
        text(out, ("Loops", "text wide"), &format!("l{place}"), loops.trim_end(), limit)?;
    }
    out.write_str("</div>\n")?;
    if section.program.text.is_empty() {
        return Ok(());
    }
    out.write_str("<details><summary>The program</summary>\n")?;
    text(out, ("Program", "text"), &format!("p{place}"), section.program.text.trim_end(), limit)?;
    out.write_str("</details>\n")
}

/// A named text in a box of a class.
fn text(
    out: &mut String,
    (name, class): (&str, &str),
    id: &str,
    content: &str,
    limit: usize,
) -> Result {
    let shown = shortened(content, limit);
    let note = if shown.len() == content.len() { "" } else { " (shortened)" };
    writeln!(
        out,
        "<div class=\"{class}\"><div class=\"bar\"><h4>{name}{note}</h4>\
         <button type=\"button\" data-copy=\"{id}\" hidden>Copy</button></div>\
         <pre id=\"{id}\" tabindex=\"0\" role=\"region\" aria-label=\"{name}\">{}</pre></div>",
        Escaped(&shown)
    )
}
