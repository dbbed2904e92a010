//! `tensorwright cache`: show, limit and clear the files that tuning keeps on disk.

use std::io::Write;

use clap::{Args, Subcommand};
use serde_json::json;
use tensorwright::ObjectCache;
use tensorwright_records::{Collection, Footprint, KeptFile, Location, open_existing};

use super::db::table::{bytes, table};
use super::db::{failed, problem};
use crate::args::{Format, OutputArgs};
use crate::config::{Settings, parse_bytes};
use crate::failure::{Failure, Outcome};
use crate::report;

/// Trials to keep per key, tried from the largest to the smallest.
const STEPS: [usize; 4] = [50, 10, 3, 1];

/// Show, trim or clear the files that tuning keeps on disk
///
/// The records hold the schedules found by tuning; with `cache.limit` in `tensorwright.toml`, every
/// `tune` ends by trimming them. Kernels compiled by Python have a folder of their own, which
/// limits its own size; `--db` leaves them out.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  tensorwright cache show
  tensorwright cache trim --limit 500MB
  tensorwright cache clear --yes")]
pub(crate) struct CacheArgs {
    /// The records, instead of the default ones
    #[arg(long, global = true, value_name = "FILE|URL")]
    db: Option<Location>,

    #[command(subcommand)]
    command: CacheCommand,
}

#[derive(Debug, Subcommand)]
enum CacheCommand {
    Show(ShowArgs),
    Trim(TrimArgs),
    Clear(ClearArgs),
}

/// List files with their sizes
#[derive(Debug, Args)]
struct ShowArgs {
    #[command(flatten)]
    output: OutputArgs,
}

/// Remove the slowest trials until the records fit
///
/// Declared winners and the fastest trial of each key always stay; if they exceed the limit, the
/// exit code is 1.
#[derive(Debug, Args)]
struct TrimArgs {
    /// The size limit, such as 500MB [default: cache.limit in tensorwright.toml]
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes)]
    limit: Option<u64>,

    #[command(flatten)]
    output: OutputArgs,
}

/// Remove everything: records, interrupted runs, kept defects, compiled kernels
#[derive(Debug, Args)]
struct ClearArgs {
    /// Really remove; without it, only list what would be removed
    #[arg(long)]
    yes: bool,

    #[command(flatten)]
    output: OutputArgs,
}

/// Runs a subcommand.
pub(crate) fn run(args: &CacheArgs, settings: &Settings) -> Outcome {
    let db = args.db.as_ref();
    match &args.command {
        CacheCommand::Show(args) => show(db, settings.cache_limit.value, args.output.format),
        CacheCommand::Trim(args) => {
            let format = args.output.format;
            let limit = args.limit.or(settings.cache_limit.value).ok_or_else(|| {
                let help = "give --limit 500MB, or set limit under [cache] in tensorwright.toml";
                problem("no cache limit is set".to_owned(), help, format)
            })?;
            trim(db, limit, format)
        }
        CacheCommand::Clear(args) => clear(db, args.yes, args.output.format),
    }
}

fn footprint(db: Option<&Location>, format: Format) -> Result<Footprint, Failure> {
    let found = Location::given(db).and_then(|place| Footprint::of(&place));
    found.map_err(|error| failed(&error, format))
}

/// The folder of compiled kernels; `None` if it does not exist or belongs to another user.
fn kernels(db: Option<&Location>) -> Option<(ObjectCache, KeptFile)> {
    let folder = ObjectCache::usual_folder().filter(|folder| db.is_none() && folder.is_dir())?;
    let cache = ObjectCache::open(&folder, u64::MAX).ok()?;
    let (count, bytes) = cache.footprint().ok()?;
    let kept = KeptFile::new("compiled kernels", folder, bytes);
    (count > 0).then_some((cache, kept))
}

fn show(db: Option<&Location>, limit: Option<u64>, format: Format) -> Outcome {
    let mut found = footprint(db, format)?;
    found.parts.extend(kernels(db).map(|(_, kept)| kept));
    if format == Format::Json {
        let part =
            |part: &KeptFile| json!({ "what": part.what, "path": part.path, "bytes": part.bytes });
        let parts: Vec<_> = found.parts.iter().map(part).collect();
        let value = json!({ "parts": parts, "bytes": found.bytes(), "limit": limit, "in_use": found.is_in_use });
        return Ok(report::json(&value)?);
    }
    let mut out = crate::terminal::out();
    let row = |part: &KeptFile| {
        vec![bytes(part.bytes), part.what.to_owned(), part.path.display().to_string()]
    };
    let rows: Vec<Vec<String>> = found.parts.iter().map(row).collect();
    if !rows.is_empty() {
        write!(out, "{}", table(&["size", "what", "where"], &rows))?;
    }
    let limit =
        limit.map_or_else(|| "no limit".to_owned(), |limit| format!("limit {}", bytes(limit)));
    writeln!(out, "{} in all, {limit}", bytes(found.bytes()))?;
    if found.is_in_use {
        writeln!(out, "a run is under way")?;
    }
    Ok(())
}

/// Removes trials until the file fits; returns how many, and the sizes before and after.
fn shrink(db: Option<&Location>, limit: u64) -> tensorwright_records::Result<(u64, u64, u64)> {
    let Some(mut store) = open_existing(db)? else { return Ok((0, 0, 0)) };
    let mut removed = 0;
    let dry = store.collect(Collection { keep: usize::MAX, dry_run: true })?;
    let (before, mut after) = (dry.bytes_before, dry.bytes_before);
    for keep in STEPS {
        if after <= limit {
            break;
        }
        let done = store.collect(Collection { keep, dry_run: false })?;
        removed += done.removed;
        after = done.bytes_after;
    }
    Ok((removed, before, after))
}

fn trim(db: Option<&Location>, limit: u64, format: Format) -> Outcome {
    let (removed, before, after) = shrink(db, limit).map_err(|error| failed(&error, format))?;
    if format == Format::Json {
        let value = json!({ "removed": removed, "bytes_before": before, "bytes_after": after, "limit": limit });
        report::json(&value)?;
    } else {
        let mut out = crate::terminal::out();
        let (before, after) = (bytes(before), bytes(after));
        writeln!(out, "{removed} trials removed: {before} before, {after} after")?;
    }
    if after > limit {
        let message =
            format!("the winners alone take {}, more than {}", bytes(after), bytes(limit));
        return Err(problem(message, "raise the limit, or start anew with cache clear", format));
    }
    Ok(())
}

/// Trims the records to the configured limit after a run, and reports what was removed.
pub(crate) fn keep_within(db: Option<&Location>, limit: Option<u64>) {
    let Some(limit) = limit else { return };
    // Servers have their own quotas.
    let Ok(Location::File(_)) = Location::given(db) else { return };
    match shrink(db, limit) {
        Ok((0, ..)) => {}
        Ok((removed, before, after)) => {
            let (before, after) = (bytes(before), bytes(after));
            eprintln!(
                "cache.limit: {removed} trials removed from the records ({before} to {after})"
            );
        }
        Err(error) => eprintln!("warning: cache.limit was not kept: {error}"),
    }
}

fn clear(db: Option<&Location>, yes: bool, format: Format) -> Outcome {
    let found = footprint(db, format)?;
    if found.is_in_use {
        let help = "wait for it, or stop it with Ctrl-C; its results are kept";
        return Err(problem("a run is using these records".to_owned(), help, format));
    }
    let kernels = kernels(db);
    if yes {
        found.remove().map_err(|error| failed(&error, format))?;
        if let Some((cache, _)) = &kernels {
            cache.clear()?;
        }
    }
    // Files that are not removed as a whole.
    let mut found = found;
    found.parts.extend(kernels.map(|(_, kept)| kept));
    if format == Format::Json {
        let value = json!({ "removed": yes, "bytes": found.bytes(), "files": found.parts.len() });
        return Ok(report::json(&value)?);
    }
    let mut out = crate::terminal::out();
    let done = if yes { "removed" } else { "would be removed; pass --yes to remove" };
    for part in &found.parts {
        writeln!(out, "{}: {}", part.path.display(), bytes(part.bytes))?;
    }
    writeln!(out, "{} {done}", bytes(found.bytes()))?;
    Ok(())
}
