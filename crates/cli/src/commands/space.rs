//! `tensorwright space`

use std::io::Write;

use clap::Args;
use tensorwright_lang::text::grouped;
use tensorwright_policy::{Count, Preset, ScheduleSpace};
use tensorwright_space::{Point, Rng};

use crate::args::{Format, OutputArgs, ProgramArgs, TargetArgs};
use crate::failure::{InFormat, Outcome};
use crate::report;

/// Show the schedule space of a definition: parameters, size, legal share, samples
///
/// The space is generated from the program and the target, without templates. A point has one value
/// per parameter and decodes to a schedule.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  tensorwright space examples/kernels/gemm.tc --def gemm --size M=1024,N=1024,K=1024
  tensorwright space examples/kernels/gemm.tc --def gemm --size M=1024,N=1024,K=1024 --preset gbfs
  tensorwright space examples/kernels/conv2d.tc --def conv2d_two_stage \\
      --size B=1,IP=256,OP=512,H=28,W=28,KH=3,KW=3,s=1,p=1 --sample 3")]
pub(crate) struct SpaceArgs {
    #[command(flatten)]
    program: ProgramArgs,

    #[command(flatten)]
    target: TargetArgs,

    #[command(flatten)]
    space: SpaceOptions,

    /// Draw this many legal points and show their schedules
    #[arg(long, value_name = "N", default_value_t = 1)]
    sample: usize,

    /// The seed of the sample
    #[arg(long, default_value_t = 0)]
    seed: u64,

    #[command(flatten)]
    output: OutputArgs,
}

/// Selection of a space.
#[derive(Debug, Clone, Args)]
pub(crate) struct SpaceOptions {
    /// full; divisible: only splits that divide; gbfs: the tiling space of the G-BFS paper; tiles:
    /// tiling only
    #[arg(long, value_name = "NAME", default_value = "full", value_parser = preset)]
    preset: Preset,

    /// Search only these parameters (names or prefixes); the others keep their defaults
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    only: Vec<String>,
}

impl SpaceOptions {
    /// The space options.
    pub(crate) fn options(&self) -> tensorwright_policy::SpaceOptions {
        let mut options = self.preset.options();
        if !self.only.is_empty() {
            options.only = Some(self.only.clone());
        }
        options
    }
}

fn preset(name: &str) -> Result<Preset, String> {
    let names: Vec<&str> = Preset::ALL.iter().map(|(name, _)| *name).collect();
    Preset::find(name).ok_or_else(|| format!("the presets are {}", names.join(", ")))
}

/// Shows a space.
pub(crate) fn run(args: &SpaceArgs) -> Outcome {
    let format = args.output.format;
    let program = super::program(&args.program).in_format(format)?;
    let goal = super::goal(&args.target).in_format(format)?.on_this_machine();
    let options = args.space.options();
    let spaces = ScheduleSpace::new(program.ir(), &goal, &options)
        .and_then(|space| Ok((space, ScheduleSpace::alternatives(program.ir(), &goal, &options)?)));
    let spaces = spaces.map_err(|error| super::unavailable(&error)).in_format(format)?;
    let (space, algorithms) = (spaces.0, algorithms(&spaces.1));
    match format {
        Format::Json => json(&space, &algorithms, args)?,
        Format::Text => text(&space, &algorithms, args)?,
    }
    Ok(())
}

/// The algorithms that `tune` tries, with the sizes of their spaces.
fn algorithms(spaces: &[ScheduleSpace]) -> Vec<(String, String)> {
    let size = |space: &ScheduleSpace| space.search_space().size().to_string();
    spaces.iter().map(|space| (space.algorithm(), size(space))).collect()
}

fn samples(space: &ScheduleSpace, args: &SpaceArgs) -> Vec<Point> {
    let mut rng = Rng::new(args.seed);
    let mut draw = || space.search_space().sample_legal(&mut rng);
    (0..args.sample.min(10_000)).map_while(|_| draw()).collect()
}

fn json(
    space: &ScheduleSpace,
    algorithms: &[(String, String)],
    args: &SpaceArgs,
) -> std::io::Result<()> {
    let search = space.search_space();
    let parameters: Vec<_> = space
        .all_parameters()
        .map(|(parameter, free, start)| {
            serde_json::json!({
                "name": parameter.name(),
                "kind": parameter.kind(),
                "values": parameter.count(),
                "free": free,
                "start": start,
            })
        })
        .collect();
    let size = search.size();
    let prunings: Vec<_> = space
        .prunings(args.seed)
        .into_iter()
        .map(|pruning| match pruning.left {
            Count::Exact(left) => {
                serde_json::json!({ "rule": pruning.rule, "left": number(&left.to_string()) })
            }
            Count::Share { share, error } => {
                serde_json::json!({ "rule": pruning.rule, "share": share, "error": error })
            }
        })
        .collect();
    let samples: Vec<_> = samples(space, args)
        .iter()
        .map(|point| {
            let (schedule, refused) = match space.decode(point) {
                Ok(schedule) => (Some(schedule.to_string()), None),
                Err(refused) => (None, Some(format!("{}: {}", refused.rule, refused.reason))),
            };
            let name = |place: usize| search.parameters().get(place).map_or("", |p| p.name());
            let idle: Vec<&str> = space.idle(point).iter().map(|(place, _)| name(*place)).collect();
            serde_json::json!({ "point": point, "text": search.text(point), "idle": idle,
                                "schedule": schedule, "refused": refused })
        })
        .collect();
    report::json(&serde_json::json!({
        "size": number(&size.to_string()),
        "log10": log10(&size.to_string()),
        "algorithms": algorithms
            .iter()
            .map(|(name, size)| serde_json::json!({ "algorithm": name, "size": number(size) }))
            .collect::<Vec<_>>(),
        "parameters": parameters,
        "rules": prunings,
        "samples": samples,
    }))
}

/// A JSON number if readers can hold it, otherwise its digits as text.
fn number(digits: &str) -> serde_json::Value {
    match digits.parse::<u64>() {
        Ok(number) if number < 1 << 53 => number.into(),
        _ => digits.into(),
    }
}

fn text(
    space: &ScheduleSpace,
    algorithms: &[(String, String)],
    args: &SpaceArgs,
) -> std::io::Result<()> {
    let mut out = crate::terminal::out();
    if algorithms.len() > 1 {
        writeln!(out, "algorithms, most promising first; `tune` searches them all")?;
        for (name, size) in algorithms {
            writeln!(out, "  {name}: about 10^{:.0} points", log10(size))?;
        }
        writeln!(out, "\nas written")?;
    }
    let search = space.search_space();
    let all: Vec<_> = space.all_parameters().collect();
    let width = all.iter().map(|(p, _, _)| p.name().chars().count()).max().unwrap_or(0);
    writeln!(out, "parameters")?;
    for (parameter, free, start) in &all {
        let (name, kind, count) = (parameter.name(), parameter.kind(), parameter.count());
        let fixed = if *free { "starts at" } else { "fixed at" };
        writeln!(out, "  {name:width$}  {kind:13}  {count:>6} values, {fixed} {start}")?;
    }
    let size = search.size().to_string();
    writeln!(out, "\nsize\n  {}", sized(&size))?;
    for pruning in space.prunings(args.seed) {
        let left = match pruning.left {
            Count::Exact(left) => format!("{} left", sized(&left.to_string())),
            Count::Share { share, error } => {
                let exponent = log10(&size) + share.max(f64::MIN_POSITIVE).log10();
                let share = format!("{:.3} % ± {:.3} %", share * 100.0, error * 100.0);
                format!("{share} left, about 10^{exponent:.1}")
            }
        };
        writeln!(out, "  after {:10} {left}", pruning.rule)?;
    }
    for (place, point) in samples(space, args).iter().enumerate() {
        writeln!(out, "\nsample {}\n  {}", place + 1, search.text(point))?;
        match space.decode(point) {
            Ok(schedule) => {
                for (place, reason) in space.idle(point) {
                    let name = search.parameters().get(place).map_or("", |p| p.name());
                    writeln!(out, "  {name} makes no difference: {reason}")?;
                }
                for line in schedule.to_string().lines() {
                    writeln!(out, "    {line}")?;
                }
            }
            Err(refused) => writeln!(out, "  illegal: {}: {}", refused.rule, refused.reason)?,
        }
    }
    Ok(())
}

/// The decimal logarithm of a number given by its digits.
fn log10(digits: &str) -> f64 {
    let head: f64 = digits.get(..15).unwrap_or(digits).parse().unwrap_or(1.0);
    head.log10() + digits.len().saturating_sub(15) as f64
}

/// Digits in groups of three, with the power of ten for long numbers.
fn sized(digits: &str) -> String {
    let text = grouped(digits);
    if digits.len() > 9 { format!("{text} (10^{:.1})", log10(digits)) } else { text }
}
