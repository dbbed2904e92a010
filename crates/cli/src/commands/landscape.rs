//! `tensorwright landscape`

mod record;

use std::io::Write;
use std::path::PathBuf;

use clap::{Args, Subcommand};
use tensorwright_landscape::{Landscape, Provenance};
use tensorwright_measure::WorkerCommand;

use crate::args::{Format, OutputArgs};
use crate::failure::{InFormat, Outcome};
use crate::{files, report};

/// Record and show landscapes: every point of a space measured once, to compare searches on
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  tensorwright landscape record gemm.tc --def gemm --size M=256,N=256,K=256 --preset tiles -o gemm.landscape
  tensorwright landscape info gemm.landscape")]
pub(crate) struct LandscapeArgs {
    #[command(subcommand)]
    command: LandscapeCommand,
}

#[derive(Debug, Subcommand)]
enum LandscapeCommand {
    Record(record::RecordArgs),
    Info(InfoArgs),
}

/// Show a recorded landscape: the program, the space, the outcomes, the fastest points
#[derive(Debug, Args)]
#[command(after_help = "Example:
  tensorwright landscape info bench/landscapes/gemm.landscape")]
struct InfoArgs {
    /// The file
    #[arg(value_name = "FILE")]
    file: PathBuf,

    #[command(flatten)]
    output: OutputArgs,
}

/// Runs a subcommand.
pub(crate) fn run(args: &LandscapeArgs, worker: WorkerCommand) -> Outcome {
    match &args.command {
        LandscapeCommand::Record(args) => record::run(args, worker),
        LandscapeCommand::Info(args) => info(args),
    }
}

fn info(args: &InfoArgs) -> Outcome {
    let format = args.output.format;
    let landscape = files::landscape(&args.file).in_format(format)?;
    match format {
        Format::Json => Ok(report::json(&json(&landscape))?),
        Format::Text => Ok(text(&landscape, &mut crate::terminal::out())?),
    }
}

/// Shares of the optimum's speed, and how many points reach each.
fn shares(landscape: &Landscape) -> Vec<(f64, usize)> {
    let seconds = landscape.seconds();
    let Some(optimum) = seconds.first() else { return Vec::new() };
    let reach = |share: f64| seconds.partition_point(|s| *s <= optimum / share);
    [0.99, 0.95, 0.90, 0.75, 0.50].map(|share| (share, reach(share))).into()
}

fn text(landscape: &Landscape, out: &mut impl Write) -> std::io::Result<()> {
    let Provenance { def, sizes, key, machine, method, complete, .. } = landscape.origin();
    let sizes: Vec<String> = sizes.iter().map(|(name, size)| format!("{name}={size}")).collect();
    let space = landscape.space();
    let extent = if *complete { "all legal points" } else { "a sample" };
    writeln!(out, "definition  {def} {}", sizes.join(","))?;
    writeln!(out, "key         {key}")?;
    writeln!(out, "machine     {machine}")?;
    writeln!(out, "measured    {method}")?;
    writeln!(out, "points      {} of {}: {extent}", landscape.points().len(), space.size())?;
    writeln!(out, "outcomes    {}", landscape.tally())?;
    for (kind, reason, count) in landscape.tally().commonest(5) {
        writeln!(out, "            {count} {kind}: {reason}")?;
    }
    if let Some((point, seconds)) = landscape.optimum() {
        writeln!(out, "fastest     {:.4} ms  {}", seconds * 1e3, space.text(point))?;
    }
    for (share, points) in shares(landscape) {
        writeln!(out, "            {points} points within {:.0} % of its speed", share * 100.0)?;
    }
    writeln!(out, "parameters")?;
    for parameter in space.parameters() {
        let (name, kind) = (parameter.name(), parameter.kind());
        writeln!(out, "  {name:16} {kind:14} {} values", parameter.count())?;
    }
    Ok(())
}

fn json(landscape: &Landscape) -> serde_json::Value {
    let space = landscape.space();
    let parameter = |parameter: &tensorwright_space::Parameter| {
        serde_json::json!({
            "name": parameter.name(),
            "kind": parameter.kind(),
            "values": parameter.count(),
        })
    };
    let outcomes: std::collections::BTreeMap<&str, u64> = landscape.tally().kinds().collect();
    serde_json::json!({
        "origin": landscape.origin(),
        "space": landscape.space_hash().unwrap_or_default(),
        "size": space.size().to_string(),
        "points": landscape.points().len(),
        "outcomes": outcomes,
        "fastest": landscape.optimum().map(|(point, seconds)| serde_json::json!({
            "point": point,
            "text": space.text(point),
            "seconds": seconds,
        })),
        "within": shares(landscape).into_iter().map(|(share, points)| serde_json::json!({
            "share": share,
            "points": points,
        })).collect::<Vec<_>>(),
        "parameters": space.parameters().iter().map(parameter).collect::<Vec<_>>(),
    })
}
