//! The plot data for the script.

use serde::Serialize;

use super::Page;
use crate::curve::{Curve, Median};
use crate::model::{Dots, Section};

/// The data of all plots.
#[derive(Debug, Serialize)]
pub(super) struct Data<'r> {
    kernels: Vec<Kernel<'r>>,
}

/// The data of a key's plots.
#[derive(Debug, Serialize)]
struct Kernel<'r> {
    /// The operations of a call; 0 if speeds mean nothing and times are shown.
    flops: f64,
    strategies: Vec<Lines<'r>>,
    dots: &'r Dots,
    /// Horizontal lines over the candidates: speed, name.
    roofs: Vec<(f64, String)>,
}

/// The curves of a strategy.
#[derive(Debug, Serialize)]
struct Lines<'r> {
    name: &'r str,
    colour: usize,
    curves: &'r [Curve],
    median: Option<&'r Median>,
}

/// The plot data for the script.
pub(super) fn data<'r>(page: &Page<'r>) -> Data<'r> {
    Data { kernels: page.report.sections.iter().map(|section| kernel(page, section)).collect() }
}

fn kernel<'r>(page: &Page<'r>, section: &'r Section) -> Kernel<'r> {
    let lines = section.strategies.iter().map(|strategy| Lines {
        name: &strategy.name,
        colour: page.colour(&strategy.name),
        curves: &strategy.curves,
        median: strategy.median.as_ref(),
    });
    let flops = section.program.flops;
    let known = flops.is_finite() && flops > 0.0;
    let roofs = section.roofs.filter(|_| known).map(|roofs| {
        vec![
            (roofs.peak_gflops, "compute roof".to_owned()),
            (roofs.memory_gflops(), "memory roof".to_owned()),
        ]
    });
    Kernel {
        flops: if known { flops } else { 0.0 },
        strategies: lines.collect(),
        dots: &section.dots,
        roofs: roofs.unwrap_or_default(),
    }
}
