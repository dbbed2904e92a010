//! The table of the fastest candidates.

use std::fmt::{Result, Write};

use super::progress::speed;
use crate::model::{Candidate, Section};
use crate::text::{Escaped, duration, shortened};

/// The most parameter values in a row.
const MOST_VALUES: usize = 40;

/// Writes the table of the fastest candidates.
pub(super) fn write(out: &mut String, section: &Section) -> Result {
    if section.fastest.is_empty() {
        return Ok(());
    }
    write!(
        out,
        "<h3>Fastest {}</h3>\n<p class=\"note\">Distinct schedules, as first measured. \
         Parameters: all of the fastest, only differences for the others.</p>\n\
         <div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Fastest candidates\"><table class=\"fastest\">\n<thead><tr>\
         <th scope=\"col\" class=\"n\">#</th><th scope=\"col\" class=\"n\">time</th>\
         <th scope=\"col\" class=\"n\">speed</th><th scope=\"col\" class=\"n\">spread</th>\
         <th scope=\"col\">origin</th><th scope=\"col\">algorithm</th><th scope=\"col\" class=\"n\">trial</th>\
         <th scope=\"col\">run</th><th scope=\"col\">parameters</th></tr></thead>\n<tbody>\n",
        if section.fastest.len() == 1 {
            "candidate".to_owned()
        } else {
            section.fastest.len().to_string()
        },
    )?;
    for (at, candidate) in section.fastest.iter().enumerate() {
        row(out, at, candidate, section.program.flops)?;
    }
    out.write_str("</tbody></table></div>\n")
}

fn row(out: &mut String, at: usize, candidate: &Candidate, flops: f64) -> Result {
    let origin = match candidate.origin.as_str() {
        "" => candidate.strategy.clone(),
        origin if origin == candidate.strategy => origin.to_owned(),
        origin => format!("{origin} in {}", candidate.strategy),
    };
    let run: String = candidate.trial.run.as_str().chars().take(12).collect();
    write!(
        out,
        "<tr><td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n\">±{:.1} %</td>\
         <td>{}</td><td>{}</td><td class=\"n\">{}</td><td><code>{}</code></td><td class=\"values\">",
        at + 1,
        duration(candidate.seconds),
        if flops > 0.0 { speed(flops, candidate.seconds) } else { "–".to_owned() },
        candidate.spread * 100.0,
        Escaped(&shortened(&origin, 80)),
        Escaped(&shortened(&candidate.algorithm, 80)),
        candidate.trial.number,
        Escaped(&run),
    )?;
    for (name, value) in candidate.values.iter().take(MOST_VALUES) {
        write!(out, "<span>{}=<b>{}</b></span> ", Escaped(name), Escaped(value))?;
    }
    if candidate.values.len() > MOST_VALUES {
        out.write_str("…")?;
    }
    out.write_str("</td></tr>\n")
}
