//! The headline: the result in a few numbers.

use std::fmt::{Result, Write};

use crate::model::{Headline, Section};
use crate::text::{Escaped, counted, digits, duration, grouped, moment, percent, shortened, sizes};

/// Writes the name of the kernel, the machine, and its speed.
pub(super) fn write(out: &mut String, section: &Section, place: usize, level: u8) -> Result {
    let threads = counted(section.key.threads.into(), "thread");
    let machine = shortened(&section.machine, 120);
    let machine = if machine.is_empty() { "an unnamed machine".to_owned() } else { machine };
    write!(
        out,
        "<h{level} id=\"t{place}\">{} <span class=\"sizes\">{}</span></h{level}>\n\
         <p class=\"where\">{threads} on {} · compiler {}, precision {}{}</p>\n<dl class=\"cards\">\n",
        Escaped(&section.program.def),
        Escaped(&sizes(&section.program.sizes)),
        Escaped(&machine),
        Escaped(&section.key.compiler),
        section.key.precision,
        when(&section.headline),
    )?;
    cards(out, section)?;
    out.write_str("</dl>\n")
}

/// The dates of tuning.
fn when(headline: &Headline) -> String {
    let (Some(first), Some(last)) = (headline.first, headline.last) else { return String::new() };
    let (first, last) = (moment(first), moment(last));
    if first == last { format!(" · tuned {last}") } else { format!(" · tuned {first} to {last}") }
}

fn cards(out: &mut String, section: &Section) -> Result {
    let headline = &section.headline;
    let none = || "–".to_owned();
    let how = match (headline.seconds, headline.declared) {
        (None, _) => "nothing was measured",
        (Some(_), true) => "finalists measured again in turns",
        (Some(_), false) => "fastest trial",
    };
    card(out, "Best time", headline.seconds.map_or_else(none, duration), how)?;
    let per_call = format!("{} operations a call", digits(section.program.flops));
    if section.program.flops > 0.0 {
        let speed = headline.gflops.map_or_else(none, |speed| {
            format!("{} <span class=\"unit\">GFLOP/s</span>", digits(speed))
        });
        card(out, "Speed", speed, &per_call)?;
    }
    let bound = section.roofs.map_or("the machine's limits are not known".to_owned(), |roofs| {
        let limit = digits(roofs.attainable_gflops());
        let by = if roofs.memory_gflops() < roofs.peak_gflops { "memory" } else { "compute" };
        let above = match headline.roofline {
            // The memory roof assumes that all data comes from memory.
            Some(share) if share > 1.0 => {
                ", which counts all data as read from memory: these stay in caches"
            }
            _ => "",
        };
        format!("{by}-bound at {limit} GFLOP/s{above}")
    });
    card(out, "Of the roofline", headline.roofline.map_or_else(none, percent), &bound)?;
    let default = headline.default_seconds.map_or("the default was not measured".to_owned(), |s| {
        format!("default schedule: {}", duration(s))
    });
    let speedup = headline.speedup.map_or_else(none, |speedup| format!("{speedup:.2}×"));
    card(out, "Speed-up", speedup, &default)?;
    let runs = counted((section.runs.len() + section.runs_left_out) as u64, "run");
    let mut note = runs;
    if headline.refused > 0 {
        note.push_str(&format!("; {} more refused by rules", grouped(headline.refused)));
    }
    if headline.removed > 0 {
        note.push_str(&format!("; {} more removed", grouped(headline.removed)));
    }
    card(out, "Trials", grouped(headline.trials), &note)
}

fn card(out: &mut String, name: &str, value: String, note: &str) -> Result {
    writeln!(
        out,
        "<div><dt>{name}</dt><dd class=\"value\">{value}</dd><dd class=\"note\">{}</dd></div>",
        Escaped(note)
    )
}
