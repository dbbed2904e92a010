//! Best-so-far plots and the table of strategies.

use std::fmt::{Result, Write};

use super::Page;
use crate::model::{Proposals, Section, Strategy};
use crate::text::{Escaped, digits, duration, grouped, span};

/// The two plots of the best so far, and the strategies as a table and legend.
pub(super) fn write(out: &mut String, page: &Page<'_>, section: &Section, place: usize) -> Result {
    out.write_str("<h3>Search</h3>\n")?;
    let measured = section.strategies.iter().any(|strategy| strategy.best.is_some());
    if !measured {
        return out.write_str("<p class=\"empty\">No candidate was measured yet.</p>\n");
    }
    let unit = if section.program.flops > 0.0 { "GFLOP/s" } else { "time of a call" };
    write!(
        out,
        "<div class=\"bar\"><p class=\"note\">Best so far ({unit}): each run as a thin line, the \
         median of a strategy's runs as a thick one.</p>\
         <button type=\"button\" class=\"toggle\" data-log=\"k{place}\" aria-pressed=\"false\" hidden>\
         Logarithmic</button></div>\n<div class=\"plots\">\n"
    )?;
    for (kind, name) in [("trials", "Best so far by trial"), ("elapsed", "Best so far by time")] {
        writeln!(
            out,
            "<figure><figcaption>{name}</figcaption><div class=\"plot\" data-plot=\"{kind}\" \
             data-kernel=\"{place}\" role=\"img\" aria-label=\"{name}, strategy by strategy; the \
             table below has the figures\"></div><p class=\"readout\" aria-hidden=\"true\"></p></figure>"
        )?;
    }
    out.write_str("</div>\n")?;
    table(out, page, section, place)?;
    origins(out, &section.origins, section.program.flops)
}

fn table(out: &mut String, page: &Page<'_>, section: &Section, place: usize) -> Result {
    out.write_str(
        "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Strategies\"><table class=\"strategies\">\n<thead><tr>\
         <th scope=\"col\">strategy</th><th scope=\"col\" class=\"n\">runs</th>\
         <th scope=\"col\" class=\"n\">trials</th><th scope=\"col\" class=\"n\">best, median of runs</th>\
         <th scope=\"col\" class=\"n\">best of all</th>\
         <th scope=\"col\" class=\"n\">trials to 95 %</th><th scope=\"col\" class=\"n\">time to 95 %</th>\
         <th scope=\"col\" class=\"n\">reached 95 %</th></tr></thead>\n<tbody>\n",
    )?;
    for (at, strategy) in section.strategies.iter().enumerate() {
        row(out, page.colour(&strategy.name), strategy, at, place, section.program.flops)?;
    }
    out.write_str(
        "</tbody></table></div>\n<p class=\"note\">95 %: of the speed of the fastest candidate on this page, \
         in the median of all runs of the strategy; – if fewer than half of them got there.</p>\n",
    )
}

fn row(
    out: &mut String,
    colour: usize,
    strategy: &Strategy,
    at: usize,
    place: usize,
    flops: f64,
) -> Result {
    let none = || "–".to_owned();
    writeln!(
        out,
        "<tr><th scope=\"row\"><button type=\"button\" class=\"chip c{colour}\" data-kernel=\"{place}\" \
         data-strategy=\"{at}\" aria-pressed=\"true\" title=\"Show or hide\"><i></i>{}</button></th>\
         <td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td>\
         <td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n\">{} of {}</td></tr>",
        Escaped(&strategy.name),
        strategy.runs,
        grouped(strategy.trials),
        strategy.median_best.map_or_else(none, |seconds| speed(flops, seconds)),
        strategy.best.map_or_else(none, |seconds| speed(flops, seconds)),
        strategy.trials_to_reach.map_or_else(none, |trials| grouped(trials.round() as u64)),
        strategy.seconds_to_reach.map_or_else(none, span),
        strategy.reached,
        strategy.runs,
    )
}

/// A time with its speed.
pub(super) fn speed(flops: f64, seconds: f64) -> String {
    if flops > 0.0 {
        format!("{} <span class=\"unit\">GFLOP/s</span>", digits(flops / seconds / 1e9))
    } else {
        duration(seconds)
    }
}

/// The table of origins.
fn origins(out: &mut String, origins: &[Proposals], flops: f64) -> Result {
    if origins.is_empty() {
        return Ok(());
    }
    out.write_str(
        "<details><summary>Where the candidates came from</summary><div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Origins\"><table>\n<thead><tr>\
         <th scope=\"col\">origin</th><th scope=\"col\" class=\"n\">trials</th>\
         <th scope=\"col\" class=\"n\">measured</th><th scope=\"col\" class=\"n\">improved the best</th>\
         <th scope=\"col\" class=\"n\">its fastest</th><th scope=\"col\">found the best</th></tr></thead>\n<tbody>\n",
    )?;
    for origin in origins {
        writeln!(
            out,
            "<tr><th scope=\"row\">{}</th><td class=\"n\">{}</td><td class=\"n\">{}</td>\
             <td class=\"n\">{}</td><td class=\"n\">{}</td><td>{}</td></tr>",
            Escaped(&origin.name),
            grouped(origin.proposed),
            grouped(origin.measured),
            grouped(origin.improvements),
            origin.best.map_or_else(|| "–".to_owned(), |seconds| speed(flops, seconds)),
            if origin.found_best { "yes" } else { "" },
        )?;
    }
    out.write_str("</tbody></table></div></details>\n")
}
