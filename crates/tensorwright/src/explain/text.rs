//! Explanations as text.

use std::fmt::{self, Display, Formatter};

use tensorwright_lang::program::AxisKind;
use tensorwright_lang::text::quantity;

use super::{Explanation, InBounds, StageExplanation, TensorExplanation};

impl Display for Explanation {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.signature)?;
        writeln!(f, "  from {}, program {}", self.source, self.hash)?;
        tensors(f, "Inputs", &self.inputs)?;
        tensors(f, "Outputs", &self.outputs)?;
        writeln!(f, "\nStages and the derivation of each range")?;
        for (number, stage) in self.stages.iter().enumerate() {
            self.stage(f, number + 1, stage)?;
        }
        self.graph(f)?;
        self.places(f)?;
        self.costs(f)
    }
}

fn tensors(f: &mut Formatter<'_>, title: &str, tensors: &[TensorExplanation]) -> fmt::Result {
    writeln!(f, "\n{title}")?;
    let width = tensors.iter().map(|tensor| tensor.name.len()).max().unwrap_or(0);
    for tensor in tensors {
        let extents: Vec<String> = tensor.shape.iter().map(i64::to_string).collect();
        let constant = if tensor.is_const { "const " } else { "" };
        let shape = if extents.is_empty() { "scalar".to_owned() } else { extents.join(" x ") };
        let bytes = quantity(tensor.bytes as f64, "B", 1024.0);
        writeln!(f, "  {:width$}  {constant}{} {shape}, {bytes}", tensor.name, tensor.dtype)?;
    }
    Ok(())
}

/// A count with its noun: `4 x 5 elements`, `1 element`.
fn trips(counts: &[i64], what: &str) -> String {
    let factors: Vec<String> = counts.iter().map(i64::to_string).collect();
    match counts {
        [] | [1] => format!("1 {what}"),
        _ => format!("{} {what}s", factors.join(" x ")),
    }
}

impl Explanation {
    fn stage(&self, f: &mut Formatter<'_>, number: usize, stage: &StageExplanation) -> fmt::Result {
        writeln!(f, "  {number}. {} {}  (line {})", stage.tensor_type, stage.makes, stage.line)?;
        writeln!(f, "     {}", stage.statement)?;
        let name = stage.axes.iter().map(|axis| axis.name.len()).max().unwrap_or(0);
        let ranges: Vec<String> =
            stage.axes.iter().map(|axis| format!("{}:{}", axis.lo, axis.hi)).collect();
        let range = ranges.iter().map(String::len).max().unwrap_or(0);
        for (axis, text) in stage.axes.iter().zip(&ranges) {
            let kind = match (axis.kind, axis.scan) {
                _ if axis.is_scattered => "scatter",
                (_, Some(_)) => "scan   ",
                (AxisKind::Spatial, None) => "spatial",
                (AxisKind::Reduce, None) => "reduce ",
            };
            writeln!(f, "       {:name$}  {text:range$}  {kind}  {}", axis.name, axis.because)?;
        }
        let reads = stage.accesses.iter().map(|access| ("reads", access));
        let positions = stage.positions.iter().map(|access| ("scatters", access));
        for (verb, access) in reads.chain(positions) {
            let why = match access.in_bounds {
                InBounds::Always => "always in bounds",
                InBounds::Guarded => "in bounds by the conditions around it",
                InBounds::Checked => "depends on data: checked when it runs",
                InBounds::Scanned => "an earlier element, or the initial value",
            };
            writeln!(f, "       {verb} {}: {why}", access.text)?;
        }
        Ok(())
    }

    fn graph(&self, f: &mut Formatter<'_>) -> fmt::Result {
        writeln!(f, "\nGraph")?;
        for (stage, analysis) in self.stages.iter().zip(&self.analysis.stages) {
            let reads =
                if stage.reads.is_empty() { "nothing".to_owned() } else { stage.reads.join(", ") };
            let consumers = match analysis.consumers {
                0 => "a result".to_owned(),
                1 => "1 consumer".to_owned(),
                many => format!("{many} consumers"),
            };
            writeln!(f, "  {reads} -> {}  ({consumers})", stage.makes)?;
        }
        Ok(())
    }

    fn places(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Some(map) = &self.stage_map else { return Ok(()) };
        writeln!(f, "\nWhere stages are computed")?;
        map.to_string().lines().try_for_each(|line| writeln!(f, "  {line}"))
    }

    fn costs(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Explanation { analysis, .. } = self;
        writeln!(f, "\nAnalysis")?;
        writeln!(
            f,
            "  {} node{}, {} spatial and {} reduce loops",
            analysis.nodes,
            if analysis.nodes == 1 { "" } else { "s" },
            analysis.spatial_loops,
            analysis.reduce_loops
        )?;
        for (stage, explained) in analysis.stages.iter().zip(&self.stages) {
            // A scatter writes only some elements.
            let each = if explained.positions.is_empty() { ", each from" } else { " from" };
            let terms = match stage.reduce_trip_counts.as_slice() {
                [] => String::new(),
                counts => format!("{each} {}", trips(counts, "term")),
            };
            writeln!(
                f,
                "  {}: {}{terms}; {} in, {} out, {} consumer{}; {}",
                stage.name,
                trips(&stage.spatial_trip_counts, "element"),
                stage.inputs,
                stage.outputs,
                stage.consumers,
                if stage.consumers == 1 { "" } else { "s" },
                quantity(stage.flops as f64, "FLOP", 1000.0),
            )?;
        }
        writeln!(
            f,
            "  {} in all, at least {} moved: {:.2} FLOP per byte",
            quantity(analysis.flops as f64, "FLOP", 1000.0),
            quantity(analysis.min_bytes as f64, "B", 1024.0),
            analysis.arithmetic_intensity
        )
    }
}
