//! `tensorwright report`

use std::path::PathBuf;

use clap::Args;
use tensorwright::{Code, Diagnostic, Diagnostics, LoweredProgram, Program, Source};
use tensorwright_records::{AnyStore, Error, Location, now, open_existing};
use tensorwright_report::{Report, Section, Selection, render};
use tensorwright_tuner::{RecordNames, described};

use super::db::table::counted;
use crate::args::{OutputArgs, ProgramArgs};
use crate::failure::{InFormat, Outcome};
use crate::sizes::SizeList;
use crate::{files, report};

/// Write an HTML page about tuning results
///
/// One file that works offline: best time over trials by strategy, outcomes, the roofline with
/// every candidate, important parameters, and the best schedule with its loops. Without FILE,
/// covers all tuned programs.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  tensorwright report -o report.html
  tensorwright report gemm.tc --def gemm --size M=512,N=512,K=512 -o gemm.html
  tensorwright report --run 3f9a -o run.html    # as `tensorwright db ls --runs` names it
The page is described in docs/report.md.")]
pub(crate) struct ReportArgs {
    /// The program: only its results, with any number of threads
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,

    /// The definition; optional if the file has only one
    #[arg(long = "def", value_name = "NAME", requires = "file")]
    def: Option<String>,

    /// Sizes and integer scalars, such as `M=128,K=64`; may be repeated
    #[arg(long = "size", value_name = "NAME=NUMBER,...", requires = "file")]
    sizes: Vec<SizeList>,

    /// Only runs whose names have this prefix
    #[arg(long, value_name = "RUN")]
    run: Option<String>,

    /// The records [default: $TENSORWRIGHT_DB, or tensorwright/records.sqlite3 in the user's data
    /// directory]
    #[arg(long, value_name = "FILE|URL")]
    db: Option<Location>,

    /// The output file
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,

    #[command(flatten)]
    format: OutputArgs,
}

/// Writes the page.
pub(crate) fn run(args: &ReportArgs) -> Outcome {
    let format = args.format.format;
    let report = gather(args).in_format(format)?;
    let page = render(&report);
    files::write_bytes(&args.output, page.as_bytes()).in_format(format)?;
    if format == crate::args::Format::Json {
        let value =
            serde_json::json!({ "file": args.output.display().to_string(), "report": report });
        return Ok(report::json(&value)?);
    }
    let trials: u64 = report.sections.iter().map(|section| section.headline.trials).sum();
    let keys = counted(report.sections.len() as u64, "key");
    println!("wrote {}: {keys}, {}", args.output.display(), counted(trials, "trial"));
    Ok(())
}

/// The page about a program, selected by its hash; for users of this crate as a library.
///
/// # Errors
/// If there are no records, or none of the program.
pub fn report_page(program: String, db: Option<&Location>) -> Result<String, Diagnostics> {
    let selection = Selection { program: Some(program), run: None };
    let report = selected(db, &selection)?;
    if report.sections.is_empty() {
        let message = "the program was not tuned with these sizes".to_owned();
        return Err(problem(message, "tune it first"));
    }
    Ok(render(&report))
}

/// The selected records.
fn selected(db: Option<&Location>, selection: &Selection) -> Result<Report, Diagnostics> {
    let mut report =
        Report::from_store(&*records(db)?, selection).map_err(|error| failed(&error))?;
    report.made = Some(now());
    for section in &mut report.sections {
        let Some(program) = described(&section.program) else { continue };
        name_as_text(section, &RecordNames::new(&program, || None));
        add_loops(section, &program);
    }
    Ok(report)
}

/// The contents of the page; an empty selection is an error.
fn gather(args: &ReportArgs) -> Result<Report, Diagnostics> {
    let program = args.file.as_ref().map(|file| {
        let (file, def, sizes) = (file.clone(), args.def.clone(), args.sizes.clone());
        super::program(&ProgramArgs { file, def, sizes })
    });
    let program = program.transpose()?.map(|program| program.hash().to_string());
    let selection = Selection { program, run: args.run.clone() };
    let report = selected(args.db.as_ref(), &selection)?;
    if report.sections.is_empty() {
        let message = match (&args.run, &args.file) {
            (Some(run), _) => format!("there is no such run: `{run}`"),
            (None, Some(_)) => "the program was not tuned with these sizes".to_owned(),
            (None, None) => "nothing was tuned yet".to_owned(),
        };
        let help =
            "`tensorwright db ls --runs` lists what is recorded; `tensorwright tune` adds to it";
        return Err(problem(message, help));
    }
    Ok(report)
}

/// Opens existing records. Reading creates no files.
fn records(db: Option<&Location>) -> Result<AnyStore, Diagnostics> {
    open_existing(db).map_err(|error| failed(&error))?.ok_or_else(|| {
        let place = Location::given(db).map(|place| place.to_string()).unwrap_or_default();
        let message = format!("there are no records at {place}");
        problem(message, "tune something, import records, or name another file with --db")
    })
}

/// Renames axes and tensors from positional names to those of the program.
fn name_as_text(section: &mut Section, names: &RecordNames<'_>) {
    let tell = |words: &mut String| *words = names.told(words);
    if let Some(winner) = &mut section.winner {
        if let Some(schedule) = names.own(&winner.schedule) {
            winner.schedule = schedule.to_string();
        }
        tell(&mut winner.algorithm);
    }
    for candidate in &mut section.fastest {
        tell(&mut candidate.algorithm);
        for (name, value) in &mut candidate.values {
            tell(name);
            tell(value);
        }
    }
    for parameter in section.importance.iter_mut().flat_map(|it| &mut it.parameters) {
        tell(&mut parameter.name);
        parameter.values.iter_mut().for_each(|effect| tell(&mut effect.value));
    }
}

/// Adds the loops of the best schedule, if it still applies.
fn add_loops(section: &mut Section, program: &Program) {
    let Some(winner) = &mut section.winner else { return };
    let lowered = || -> Result<LoweredProgram, Diagnostics> {
        let threads = usize::try_from(section.key.threads).unwrap_or(1);
        let builder = program.compile().threads(threads).schedule_text(&winner.schedule)?;
        builder.lower()
    };
    let Ok(lowered) = lowered() else { return };
    winner.loops = Some(lowered.loops());
    let map = lowered.stage_map();
    winner.stages = (map.stages.len() > 1).then(|| map.to_string());
}

/// Converts a problem of records into diagnostics.
fn failed(error: &Error) -> Diagnostics {
    problem(error.to_string(), &error.help())
}

fn problem(message: String, help: &str) -> Diagnostics {
    let diagnostic = Diagnostic::without_place(Code::InvalidFile, message).help(help);
    Diagnostics::new(Source::new("records", ""), vec![diagnostic])
}
