//! Renders a [`Report`] as an HTML page.
//!
//! Except for the two plots of the search and the one of all candidates, everything is written as
//! HTML and SVG, so that it can be read, searched and printed without a script. All text from
//! records goes through [`Escaped`] or [`embedded`].

mod data;
mod fastest;
mod headline;
mod outcomes;
mod parameters;
mod progress;
mod roofline;
mod runs;
mod winner;

use std::collections::BTreeSet;
use std::fmt::{Result, Write};

use crate::model::{Report, Section};
use crate::text::{Escaped, counted, digits, duration, embedded, moment, percent, sizes};

pub(crate) const UPLOT_SCRIPT: &str = include_str!("../../assets/uPlot.iife.min.js");
pub(crate) const UPLOT_STYLE: &str = include_str!("../../assets/uPlot.min.css");
pub(crate) const UPLOT_LICENCE: &str = include_str!("../../assets/uPlot-LICENSE");
const SCRIPT: &str = include_str!("../../assets/page.js");
pub(crate) const STYLE: &str = include_str!("../../assets/page.css");

/// The number of colours for strategies; more strategies share them.
const COLOURS: usize = 12;

/// The page loads nothing, whatever a record contains.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'";

/// The shared state of a page's parts.
struct Page<'r> {
    report: &'r Report,
    /// The names of all strategies; one has the same colour in all sections.
    strategies: Vec<&'r str>,
}

impl<'r> Page<'r> {
    fn new(report: &'r Report) -> Self {
        let names = report.sections.iter().flat_map(|section| &section.strategies);
        let names: BTreeSet<&str> = names.map(|strategy| strategy.name.as_str()).collect();
        Self { report, strategies: names.into_iter().collect() }
    }

    /// The colour of a strategy.
    fn colour(&self, strategy: &str) -> usize {
        self.strategies.iter().position(|name| *name == strategy).unwrap_or(0) % COLOURS
    }

    /// A section's share of `of`, within limits.
    fn share(&self, of: usize, least: usize, most: usize) -> usize {
        (of / self.report.sections.len().max(1)).clamp(least, most)
    }
}

/// The page: one self-contained HTML document.
#[must_use]
pub fn render(report: &Report) -> String {
    let mut out = String::new();
    // Writing to a string cannot fail.
    let _ = page(&mut out, &Page::new(report));
    out
}

fn page(out: &mut String, page: &Page<'_>) -> Result {
    let report = page.report;
    let title = match report.sections.as_slice() {
        [only] => format!("{} {}", only.program.def, sizes(&only.program.sizes)),
        sections => counted(sections.len() as u64, "kernel"),
    };
    write!(
        out,
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <title>{} – Tensorwright report</title>\n\
         <style>{UPLOT_STYLE}</style>\n<style>\n{STYLE}</style>\n</head>\n<body>\n\
         <a class=\"skip\" href=\"#main\">Skip to the results</a>\n<header class=\"page\">\n\
         <p class=\"brand\">Tensorwright <span>tuning report</span></p>\n",
        Escaped(&title)
    )?;
    if let Some(made) = report.made {
        writeln!(out, "<p class=\"made\">made {}</p>", moment(made))?;
    }
    out.write_str("</header>\n<main id=\"main\">\n")?;
    index(out, report)?;
    for (place, section) in report.sections.iter().enumerate() {
        self::section(out, page, section, place)?;
    }
    out.write_str("</main>\n")?;
    scripts(out, page)?;
    out.write_str("</body>\n</html>\n")
}

/// The scripts and their data.
fn scripts(out: &mut String, page: &Page<'_>) -> Result {
    let json = serde_json::to_string(&data::data(page)).unwrap_or_else(|_| "{}".to_owned());
    write!(
        out,
        "<footer><details><summary>Plots are drawn by uPlot</summary><pre>{}</pre></details></footer>\n\
         <script type=\"application/json\" id=\"data\">{}</script>\n\
         <script>{UPLOT_SCRIPT}</script>\n<script>\n{SCRIPT}</script>\n",
        Escaped(UPLOT_LICENCE),
        embedded(&json)
    )
}

/// The list of all sections, if there are several.
fn index(out: &mut String, report: &Report) -> Result {
    match report.sections.as_slice() {
        [] => {
            return out.write_str(
                "<h1>Nothing to report</h1>\n<p>There are no runs that match. \
                 <code>tensorwright db ls --runs</code> lists what is recorded.</p>\n",
            );
        }
        [_] => return Ok(()),
        sections => {
            writeln!(out, "<h1>{}</h1>", counted(sections.len() as u64, "kernel"))?;
        }
    }
    out.write_str(
        "<nav aria-label=\"Kernels\" class=\"scroll\" tabindex=\"0\"><table class=\"index\">\n<thead><tr>\
         <th scope=\"col\">kernel</th><th scope=\"col\" class=\"n\">threads</th>\
         <th scope=\"col\" class=\"n\">best</th><th scope=\"col\" class=\"n\">GFLOP/s</th>\
         <th scope=\"col\" class=\"n\">of roofline</th><th scope=\"col\" class=\"n\">speed-up</th>\
         <th scope=\"col\" class=\"n\">trials</th></tr></thead>\n<tbody>\n",
    )?;
    for (place, section) in report.sections.iter().enumerate() {
        let headline = &section.headline;
        let cell = |value: Option<String>| value.unwrap_or_else(|| "–".to_owned());
        writeln!(
            out,
            "<tr><th scope=\"row\"><a href=\"#k{place}\">{} <span>{}</span></a></th>\
             <td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td>\
             <td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td></tr>",
            Escaped(&section.program.def),
            Escaped(&sizes(&section.program.sizes)),
            section.key.threads,
            cell(headline.seconds.map(duration)),
            cell(headline.gflops.map(digits)),
            cell(headline.roofline.map(percent)),
            cell(headline.speedup.map(|speedup| format!("{speedup:.2}×"))),
            crate::text::grouped(headline.trials),
        )?;
    }
    out.write_str("</tbody></table></nav>\n")?;
    if report.left_out > 0 {
        let more = counted(report.left_out as u64, "kernel");
        writeln!(
            out,
            "<p class=\"note\">{more} tuned longer ago left out: name a program to see one.</p>"
        )?;
    }
    Ok(())
}

/// The section of a key.
fn section(out: &mut String, page: &Page<'_>, section: &Section, place: usize) -> Result {
    let level = if page.report.sections.len() == 1 { 1 } else { 2 };
    writeln!(out, "<section class=\"kernel\" id=\"k{place}\" aria-labelledby=\"t{place}\">")?;
    headline::write(out, section, place, level)?;
    progress::write(out, page, section, place)?;
    roofline::write(out, page, section, place)?;
    outcomes::write(out, section, place)?;
    parameters::write(out, section)?;
    winner::write(out, page, section, place)?;
    fastest::write(out, section)?;
    runs::write(out, page, section)?;
    out.write_str("</section>\n")
}
