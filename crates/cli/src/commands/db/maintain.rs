//! `tensorwright db gc`

use std::io::Write;

use tensorwright_records::{Collection, Location};

use super::table::{bytes, counted};
use super::{GcArgs, existing, failed};
use crate::args::Format;
use crate::failure::Outcome;
use crate::report;

/// Removes all but the fastest trials.
pub(super) fn collect(db: Option<&Location>, args: &GcArgs) -> Outcome {
    let format = args.output.format;
    let mut store = existing(db, format)?;
    let what = Collection { keep: args.keep, dry_run: args.dry_run };
    let done = store.collect(what).map_err(|error| failed(&error, format))?;
    if format == Format::Json {
        let value = serde_json::json!({ "dry_run": args.dry_run, "collected": done });
        return Ok(report::json(&value)?);
    }
    let mut out = crate::terminal::out();
    let would = if args.dry_run { "would be removed" } else { "removed" };
    let (removed, keys) = (counted(done.removed, "trial"), counted(done.keys, "key"));
    writeln!(out, "{removed} of {keys} {would}, {} kept", done.kept)?;
    if args.dry_run {
        writeln!(out, "the file has {}", bytes(done.bytes_before))?;
    } else {
        writeln!(out, "{} before, {} after", bytes(done.bytes_before), bytes(done.bytes_after))?;
    }
    Ok(())
}
