//! Scheduling time over the number of stages: stencil chains with full beam search.

use std::fmt::Write;

use tensorwright_lang::Module;

use super::StudyOptions;
use super::svg::{self, Axis, text};
use super::switches::{Switches, search};

/// The lengths of the chains.
const STAGES: [usize; 7] = [4, 8, 16, 32, 64, 128, 256];

/// Prints a line per length and the fitted exponent, and writes the plot.
pub(super) fn run(options: &StudyOptions) -> Result<(), String> {
    let goal = options.goal()?;
    println!(
        "| stages | states | costs of groups | frozen | seconds |\n| --- | --- | --- | --- | --- |"
    );
    let mut points: Vec<(f64, f64)> = Vec::new();
    for stages in STAGES {
        let module =
            Module::parse("chain.tc", &chain(stages)).map_err(|error| error.to_string())?;
        let sizes = [("H", 1536), ("W", 2560)];
        let program = module.bind("chain", sizes).map_err(|error| error.to_string())?;
        let found = search(&program, &goal, Switches::FOUR[0], 0, options.longest)?;
        if found.is_ended {
            return Err(format!("{stages} stages take longer than --longest"));
        }
        let (taken, seconds) = (found.outcome.statistics, found.time.as_secs_f64());
        println!(
            "| {stages} | {} | {} | {} | {seconds:.2} |",
            taken.states, taken.groups, taken.frozen
        );
        points.push((stages as f64, seconds));
    }
    let (factor, exponent) = fit(&points);
    println!("\nseconds = {factor:.4} * stages^{exponent:.2}");
    match &options.plot {
        Some(path) => svg::write(path, &plot(&points, factor, exponent)),
        None => Ok(()),
    }
}

/// A chain of five-tap stencils with clamped borders.
pub(super) fn chain(stages: usize) -> String {
    let mut text = format!("def chain(float(H,W) s0) -> (s{stages}) {{\n");
    for n in 1..=stages {
        let of = n - 1;
        let _ = writeln!(
            text,
            "  s{n}(y,x) = (s{of}(max(y-1,0),x) + s{of}(y,max(x-1,0)) + s{of}(y,x) + s{of}(y,min(x+1,W-1)) \
             + s{of}(min(y+1,H-1),x)) / 5 where y in 0:H, x in 0:W"
        );
    }
    text + "}\n"
}

/// `factor` and `exponent` of the least-squares power law, on logarithms.
fn fit(points: &[(f64, f64)]) -> (f64, f64) {
    let count = points.len() as f64;
    let logs: Vec<(f64, f64)> = points.iter().map(|(x, y)| (x.ln(), y.ln())).collect();
    let (x, y) = logs.iter().fold((0.0, 0.0), |sum, point| (sum.0 + point.0, sum.1 + point.1));
    let (x, y) = (x / count, y / count);
    let over: f64 = logs.iter().map(|point| (point.0 - x) * (point.1 - y)).sum();
    let under: f64 = logs.iter().map(|point| (point.0 - x) * (point.0 - x)).sum();
    let exponent = over / under;
    ((y - exponent * x).exp(), exponent)
}

const WIDTH: f64 = 560.0;
const HEIGHT: f64 = 340.0;
const LEFT: f64 = 60.0;
const RIGHT: f64 = 20.0;
const TOP: f64 = 20.0;
const BOTTOM: f64 = 50.0;

/// The plot, with logarithmic axes and the fit as a line.
fn plot(points: &[(f64, f64)], factor: f64, exponent: f64) -> String {
    let least = points.iter().map(|point| point.1).fold(f64::INFINITY, f64::min);
    let most = points.iter().map(|point| point.1).fold(0.0, f64::max);
    let (low, high) = (10f64.powf(least.log10().floor()), 10f64.powf(most.log10().ceil()));
    let (first, last) = (STAGES[0] as f64, STAGES[STAGES.len() - 1] as f64);
    let x = Axis { low: first / 1.2, high: last * 1.2, from: LEFT, to: WIDTH - RIGHT };
    let y = Axis { low, high, from: HEIGHT - BOTTOM, to: TOP };
    let mut lines = Vec::new();
    for stages in STAGES {
        let at = x.at(stages as f64);
        lines.push(svg::line((at, TOP), (at, HEIGHT - BOTTOM), "#d8d8d8"));
        lines.push(text(at, HEIGHT - BOTTOM + 18.0, "middle", stages));
    }
    let mut tick = low;
    while tick <= high * 1.001 {
        let at = y.at(tick);
        lines.push(svg::line((LEFT, at), (WIDTH - RIGHT, at), "#d8d8d8"));
        lines.push(text(LEFT - 8.0, at + 4.0, "end", tick));
        tick *= 10.0;
    }
    let fitted = |stages: f64| y.at(factor * stages.powf(exponent));
    lines.push(format!(
        "<line x1=\"{:.1}\" x2=\"{:.1}\" y1=\"{:.1}\" y2=\"{:.1}\" stroke=\"#e08a2e\" stroke-width=\"1.5\"/>",
        x.at(first),
        x.at(last),
        fitted(first),
        fitted(last)
    ));
    for (stages, seconds) in points {
        let (x, y) = (x.at(*stages), y.at(*seconds));
        lines.push(format!("<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"4\" fill=\"#2f6fb2\"/>"));
    }
    lines.push(text(
        (LEFT + WIDTH - RIGHT) / 2.0,
        HEIGHT - 8.0,
        "middle",
        "stages of a chain of stencils",
    ));
    let about = format!("seconds to schedule, full beam; the line is stages^{exponent:.2}");
    lines.push(text(LEFT + 10.0, TOP + 14.0, "start", about));
    svg::document(WIDTH, HEIGHT, &lines)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn powers_are_found() {
        let points: Vec<(f64, f64)> =
            STAGES.iter().map(|n| (*n as f64, 0.5 * (*n as f64).powf(1.25))).collect();
        let (factor, exponent) = fit(&points);
        assert!((factor - 0.5).abs() < 1e-9 && (exponent - 1.25).abs() < 1e-9);
        let svg = plot(&points, factor, exponent);
        assert_eq!(svg.matches("<circle").count(), STAGES.len());
        assert!(svg.contains("stages^1.25") && svg.ends_with("</svg>\n"), "{svg}");
    }
}
