//! The table of runs and their commands.

use std::fmt::{Result, Write};

use super::Page;
use super::progress::speed;
use crate::model::{Line, Section};
use crate::text::{Escaped, counted, grouped, moment, shortened};

/// A table of the runs.
pub(super) fn write(out: &mut String, page: &Page<'_>, section: &Section) -> Result {
    let shown = page.share(400, 10, 100).min(section.runs.len());
    let count = section.runs.len() + section.runs_left_out;
    write!(
        out,
        "<details class=\"runs\"><summary>{}</summary><div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Runs\"><table>\n<thead><tr>\
         <th scope=\"col\">run</th><th scope=\"col\">strategy</th><th scope=\"col\" class=\"n\">seed</th>\
         <th scope=\"col\" class=\"n\">trials</th><th scope=\"col\" class=\"n\">best</th>\
         <th scope=\"col\">began</th><th scope=\"col\">ended</th><th scope=\"col\">command</th>\
         </tr></thead>\n<tbody>\n",
        counted(count as u64, "run"),
    )?;
    section.runs.iter().take(shown).try_for_each(|run| row(out, run, section.program.flops))?;
    out.write_str("</tbody></table></div>\n")?;
    if count > shown {
        writeln!(
            out,
            "<p class=\"note\">The latest {shown} of {}.</p>",
            counted(count as u64, "run")
        )?;
    }
    if section.runs_left_out > 0 {
        let more = counted(section.runs_left_out as u64, "earlier run");
        writeln!(out, "<p class=\"note\">{more} not looked at for this page.</p>")?;
    }
    out.write_str("</details>\n")
}

fn row(out: &mut String, run: &Line, flops: f64) -> Result {
    let id: String = run.id.as_str().chars().take(12).collect();
    let end = run.end.as_ref().map_or("running or killed", |end| end.status.as_str());
    writeln!(
        out,
        "<tr><th scope=\"row\"><code>{}</code></th><td>{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td>\
         <td class=\"n\">{}</td><td>{}</td><td>{}</td><td class=\"command\"><code>{}</code></td></tr>",
        Escaped(&id),
        Escaped(&shortened(&run.strategy, 60)),
        run.seed,
        grouped(run.trials),
        run.best.map_or_else(|| "–".to_owned(), |seconds| speed(flops, seconds)),
        moment(run.started),
        Escaped(&shortened(end, 60)),
        Escaped(run.command.as_deref().unwrap_or("–")),
    )
}
