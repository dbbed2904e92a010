//! Explanations of programs: ranges and their derivation, cost, stages.

mod text;

use std::collections::HashMap;

use serde::Serialize;

use tensorwright_lang::program::{
    AccessLimit, AxisId, AxisKind, Combine, Index, RangeReason, Read, Scatter, Stage, Tensor,
    TensorId,
};

use tensorwright_schedule::StageMap;

use crate::{Analysis, DType, Program, Source};

/// The explanation of a program. `Display` renders text; it serialises for tools.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct Explanation {
    /// The name of the definition.
    pub name: String,
    /// The name of the source text.
    pub source: String,
    /// The canonical hash of the program.
    pub hash: String,
    /// The signature with all sizes as numbers.
    pub signature: String,
    /// The inputs.
    pub inputs: Vec<TensorExplanation>,
    /// The outputs.
    pub outputs: Vec<TensorExplanation>,
    /// The stages, in order.
    pub stages: Vec<StageExplanation>,
    /// Loops, arithmetic and memory traffic.
    pub analysis: Analysis,
    /// Where a schedule computes the stages, if one was [given](Explanation::with_stage_map).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stage_map: Option<StageMap>,
}

/// An input or output.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct TensorExplanation {
    /// The name.
    pub name: String,
    /// The element type.
    pub dtype: DType,
    /// The extents.
    pub shape: Vec<i64>,
    /// Whether it is a `const` input.
    pub is_const: bool,
    /// The number of bytes.
    pub bytes: i64,
}

/// A stage: one loop nest that computes one tensor.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct StageExplanation {
    /// The output tensor, with `'` for each earlier version of the name.
    pub makes: String,
    /// Its type and shape.
    pub tensor_type: String,
    /// The statement in the source text, on one line.
    pub statement: String,
    /// The one-based line of the statement.
    pub line: usize,
    /// How the stage combines its values: `assign`, `reduce` or `accumulate`.
    pub combine: &'static str,
    /// The tensors it reads.
    pub reads: Vec<String>,
    /// The loops.
    pub axes: Vec<AxisExplanation>,
    /// The elements it reads, and why they are in bounds.
    pub accesses: Vec<AccessExplanation>,
    /// The written positions of a scatter, and why they are in bounds.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub positions: Vec<AccessExplanation>,
}

/// A read and why it is in bounds.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct AccessExplanation {
    /// The read as source text.
    pub text: String,
    /// Why it is in bounds.
    pub in_bounds: InBounds,
}

/// Why a read is in bounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum InBounds {
    /// For all values of the index variables.
    Always,
    /// By the conditions around it.
    Guarded,
    /// Checked at run time, because a subscript depends on data.
    Checked,
    /// A recurrence that reads its own elements, or its initial value.
    Scanned,
}

/// A loop of a stage and the derivation of its range.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct AxisExplanation {
    /// The index variable.
    pub name: String,
    /// Spatial or reduce.
    pub kind: AxisKind,
    /// The direction of a recurrence along it: `forwards` or `backwards`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scan: Option<&'static str>,
    /// Whether each value gives its own direction.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_scattered: bool,
    /// The first value.
    pub lo: i64,
    /// One past the last value.
    pub hi: i64,
    /// The reason, in a sentence.
    pub because: String,
    /// The reason as data.
    pub reason: RangeReason,
}

impl Program {
    /// Explains the program: ranges, their derivation, and cost. As data, or as text through
    /// `Display`.
    #[must_use]
    pub fn explain(&self) -> Explanation {
        Explanation::new(self)
    }
}

impl Explanation {
    fn new(program: &Program) -> Self {
        let ir = program.ir();
        let versions = versions(program);
        let starts = line_starts(ir.source.text());
        Self {
            name: ir.name.clone(),
            source: ir.source.name().to_owned(),
            hash: ir.hash().to_string(),
            signature: signature(program),
            inputs: program.inputs().iter().map(tensor).collect(),
            outputs: program.outputs().into_iter().map(tensor).collect(),
            stages: ir.stages.iter().map(|s| stage(program, (&versions, &starts), s)).collect(),
            analysis: ir.analysis(),
            stage_map: None,
        }
    }

    /// Adds the effect of a schedule on the stages:
    /// [`LoweredProgram::stage_map`](crate::LoweredProgram::stage_map).
    #[must_use]
    pub fn with_stage_map(self, map: StageMap) -> Self {
        Self { stage_map: Some(map), ..self }
    }
}

fn signature(program: &Program) -> String {
    let typed = |tensor: &Tensor| {
        let constant = if tensor.is_const { "const " } else { "" };
        format!("{constant}{} {}", tensor.type_text(), tensor.name)
    };
    let inputs: Vec<String> = program.inputs().iter().map(typed).collect();
    let outputs: Vec<String> = program.outputs().into_iter().map(typed).collect();
    format!("{}({}) -> ({})", program.name(), inputs.join(", "), outputs.join(", "))
}

fn tensor(tensor: &Tensor) -> TensorExplanation {
    TensorExplanation {
        name: tensor.name.clone(),
        dtype: tensor.dtype,
        shape: tensor.shape.clone(),
        is_const: tensor.is_const,
        bytes: tensor.bytes(),
    }
}

/// The names of tensor versions: `out`, then `out'`, then `out''`.
fn versions(program: &Program) -> Vec<String> {
    let mut seen: HashMap<&str, usize> = HashMap::new();
    let name = |tensor: &'_ Tensor, earlier: usize| match earlier {
        0..=3 => format!("{}{}", tensor.name, "'".repeat(earlier)),
        _ => format!("{}'{earlier}", tensor.name),
    };
    let tensors = program.ir().tensors.iter();
    tensors
        .map(|tensor| {
            let earlier = seen.entry(&tensor.name).or_insert(0);
            *earlier += 1;
            name(tensor, *earlier - 1)
        })
        .collect()
}

/// Where the lines of a text start.
fn line_starts(text: &str) -> Vec<usize> {
    std::iter::once(0).chain(text.match_indices('\n').map(|(end, _)| end + 1)).collect()
}

fn stage(
    program: &Program,
    (versions, starts): (&[String], &[usize]),
    stage: &Stage,
) -> StageExplanation {
    let version = |id: TensorId| versions[id.0 as usize].clone();
    let ir = program.ir();
    let mut reads: Vec<TensorId> = stage.base.into_iter().collect();
    let mut accesses: Vec<AccessExplanation> = Vec::new();
    stage.body.walk_reads(&mut |read| {
        if read.tensor != stage.output && !reads.contains(&read.tensor) {
            reads.push(read.tensor);
        }
        let text = one_line(ir.source.slice(read.place.0));
        if !read.subscripts.is_empty() && !accesses.iter().any(|access| access.text == text) {
            accesses.push(AccessExplanation { text, in_bounds: in_bounds(program, stage, read) });
        }
    });
    let scan = |id: AxisId| {
        let scan = stage.scan.as_ref().filter(|scan| scan.axis == id)?;
        Some(if scan.backwards { "backwards" } else { "forwards" })
    };
    let axes = stage.axes.iter().zip((0..).map(AxisId)).map(|(axis, id)| AxisExplanation {
        name: axis.name.clone(),
        kind: axis.kind,
        scan: scan(id),
        is_scattered: stage.is_scattered(id),
        lo: axis.lo,
        hi: axis.hi,
        because: because(&ir.source, &axis.name, axis.hi, &axis.reason),
        reason: axis.reason.clone(),
    });
    StageExplanation {
        makes: version(stage.output),
        tensor_type: ir.tensor(stage.output).type_text(),
        statement: one_line(ir.source.slice(stage.span)),
        line: starts.partition_point(|start| *start <= stage.span.start as usize),
        combine: match stage.combine {
            Combine::Assign => "assign",
            Combine::Reduce(_) => "reduce",
            Combine::Accumulate(_) => "accumulate",
        },
        reads: reads.into_iter().map(version).collect(),
        axes: axes.collect(),
        accesses,
        positions: stage.scatter.iter().map(|it| position(program, it)).collect(),
    }
}

fn position(program: &Program, scatter: &Scatter) -> AccessExplanation {
    let text = one_line(program.ir().source.slice(scatter.place.0));
    let in_bounds = if scatter.checked { InBounds::Checked } else { InBounds::Always };
    AccessExplanation { text, in_bounds }
}

/// Source text without comments and line breaks.
fn one_line(text: &str) -> String {
    let without_comments = text.lines().map(|line| line.split('#').next().unwrap_or(line));
    let words: Vec<&str> = without_comments.flat_map(str::split_whitespace).collect();
    words.join(" ")
}

fn in_bounds(program: &Program, stage: &Stage, read: &Read) -> InBounds {
    let ir = program.ir();
    let shape = &ir.tensor(read.tensor).shape;
    let inside = |(subscript, extent): (&Index, &i64)| {
        ir.range_of(stage, subscript).within(0, i128::from(*extent))
    };
    if read.tensor == stage.output {
        InBounds::Scanned
    } else if !read.checked.is_empty() {
        InBounds::Checked
    } else if read.subscripts.iter().zip(shape).all(inside) {
        InBounds::Always
    } else {
        InBounds::Guarded
    }
}

/// Other accesses that limit a range to the same end, without duplicates.
fn also_limited_by(limits: &[AccessLimit]) -> String {
    let mut places: Vec<String> = Vec::new();
    for limit in limits {
        let place = format!("{} of {}", limit.dimension, limit.tensor);
        if !places.contains(&place) {
            places.push(place);
        }
    }
    match places.get(1..) {
        None | Some([]) => String::new(),
        Some(others) => format!("; the same follows from dimension {}", others.join(", ")),
    }
}

/// The derivation of a range, in a sentence.
fn because(source: &Source, name: &str, hi: i64, reason: &RangeReason) -> String {
    let (round, limits) = match reason {
        RangeReason::Where { span } => {
            let text: Vec<&str> = source.slice(*span).split_whitespace().collect();
            return format!("given: {}", text.join(" "));
        }
        RangeReason::Access { round, limits } => (round, limits),
    };
    let Some(limit) = limits.first() else { return String::new() };
    // `OP, the extent of dimension 0 of weight`
    let name_of_size = limit.size.as_ref().map_or(String::new(), |size| format!("{size}, "));
    let place =
        format!("{name_of_size}the extent of dimension {} of {}", limit.dimension, limit.tensor);
    let also = also_limited_by(limits);
    if limit.is_target {
        return format!("{place}, which another statement determines{also}");
    }
    if limit.subscript == name {
        return format!("{place}{also}");
    }
    format!(
        "the most for which {} stays below {}, {place} (at {name} = {hi} it would not; round {round}){also}",
        limit.subscript, limit.extent
    )
}
