//! The importance of parameters.

use std::fmt::{Result, Write};

use crate::importance::{Importance, Influence};
use crate::model::Section;
use crate::text::{Escaped, counted, duration, percent};

/// The parameters by importance, and the effect of the values of the top ones.
pub(super) fn write(out: &mut String, section: &Section) -> Result {
    out.write_str("<h3>Parameters</h3>\n")?;
    let Some(importance) = &section.importance else {
        return out.write_str(
            "<p class=\"empty\">Too few candidates were measured to say what matters.</p>\n",
        );
    };
    ranking(out, importance)?;
    let shown = importance.parameters.iter().filter(|one| !one.values.is_empty());
    let shown: Vec<&Influence> = shown.filter(|one| one.share > 0.0).collect();
    if shown.is_empty() {
        return Ok(());
    }
    out.write_str("<h4>Median time of a call by value</h4>\n<div class=\"effects\">\n")?;
    shown.into_iter().try_for_each(|parameter| effects(out, parameter))?;
    out.write_str("</div>\n")
}

fn ranking(out: &mut String, importance: &Importance) -> Result {
    write!(
        out,
        "<p class=\"note\">The share of the variance of log time that each parameter explains by \
         itself, over {}. Parameters act together, so the shares need not add up.</p>\n\
         <table class=\"bars\">\n<thead class=\"hidden\"><tr><th scope=\"col\">parameter</th>\
         <th scope=\"col\">share</th><th scope=\"col\"></th></tr></thead>\n<tbody>\n",
        counted(importance.candidates as u64, "candidate")
    )?;
    for parameter in &importance.parameters {
        writeln!(
            out,
            "<tr><th scope=\"row\" title=\"{}\">{}</th><td class=\"track\"><i style=\"width:{:.1}%\"></i></td>\
             <td class=\"n\">{}</td></tr>",
            Escaped(&parameter.kind),
            Escaped(&parameter.name),
            parameter.share * 100.0,
            percent(parameter.share),
        )?;
    }
    out.write_str("</tbody></table>\n")?;
    match importance.left_out {
        0 => Ok(()),
        more => writeln!(
            out,
            "<p class=\"note\">{} that explain less left out.</p>",
            counted(more as u64, "parameter")
        ),
    }
}

/// The values of a parameter; shorter bars are faster.
fn effects(out: &mut String, parameter: &Influence) -> Result {
    let slowest = parameter.values.iter().map(|effect| effect.seconds).fold(0.0, f64::max);
    let fastest =
        parameter.values.iter().map(|effect| effect.seconds).fold(f64::INFINITY, f64::min);
    let all = parameter.values.len() == parameter.tried;
    let which = if all {
        counted(parameter.tried as u64, "value")
    } else {
        format!("fastest {} of {} values", parameter.values.len(), parameter.tried)
    };
    write!(
        out,
        "<table class=\"bars effect\">\n<caption>{} <span>{which}</span></caption>\n\
         <thead class=\"hidden\"><tr><th scope=\"col\">value</th><th scope=\"col\">time</th>\
         <th scope=\"col\"></th></tr></thead>\n<tbody>\n",
        Escaped(&parameter.name),
    )?;
    for effect in &parameter.values {
        let best = if effect.seconds <= fastest { " class=\"best\"" } else { "" };
        writeln!(
            out,
            "<tr{best}><th scope=\"row\">{}</th><td class=\"track\" title=\"{}\"><i style=\"width:{:.1}%\"></i></td>\
             <td class=\"n\">{}</td></tr>",
            Escaped(&effect.value),
            counted(effect.count as u64, "candidate"),
            effect.seconds / slowest * 100.0,
            duration(effect.seconds),
        )?;
    }
    out.write_str("</tbody></table>\n")
}
