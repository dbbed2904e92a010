//! `tensorwright db export` and `tensorwright db import`

use std::fs::File;
use std::io::{BufReader, BufWriter, Write};
use std::path::Path;

use tensorwright::printable;
use tensorwright_records::transfer::{Imported, read_lines, write_csv, write_lines};
use tensorwright_records::{Error, Location, RunFilter, Store, open};

use super::table::counted;
use super::{ExportArgs, ImportArgs, Shape, existing, failed, problem};
use crate::args::Format;
use crate::failure::{Failure, Outcome};
use crate::files::Input;
use crate::{report, terminal};

/// Writes records to a file or to standard output.
pub(super) fn export(db: Option<&Location>, args: &ExportArgs) -> Outcome {
    let store = existing(db, Format::Text)?;
    let filter = RunFilter { def: args.def.clone(), id: args.run.clone(), ..RunFilter::default() };
    let Some(path) = &args.output else {
        let out = match args.shape {
            Shape::Lines => terminal::json(),
            Shape::Csv => terminal::out(),
        };
        let mut out = ErrorKeepingWriter { out, error: None };
        let result = write(&*store, args.shape, &filter, &mut out, Path::new("standard output"));
        return match out.error {
            Some(error) => Err(Failure::Output(error)),
            None => result.map_err(|error| failed(&error, Format::Text)),
        };
    };
    if is_database(path, &*store) {
        let message = format!("{} is the file of the records itself", path.display());
        return Err(problem(message, "name another file with -o", Format::Text));
    }
    let fail = |error: std::io::Error| {
        let reason = error.to_string();
        failed(&Error::File { path: path.clone(), reason }, Format::Text)
    };
    let mut out = File::create(path).map_err(fail)?;
    write(&*store, args.shape, &filter, &mut out, path)
        .map_err(|error| failed(&error, Format::Text))?;
    out.sync_all().map_err(fail)
}

fn is_database(path: &Path, store: &dyn Store) -> bool {
    let Location::File(records) = store.location() else { return false };
    match (path.canonicalize(), records.canonicalize()) {
        (Ok(a), Ok(b)) => a == b,
        _ => false,
    }
}

fn write(
    store: &dyn Store,
    shape: Shape,
    filter: &RunFilter,
    out: &mut dyn Write,
    name: &Path,
) -> tensorwright_records::Result<()> {
    let mut out = BufWriter::new(out);
    match shape {
        Shape::Lines => write_lines(store, filter, &mut out, name)?,
        Shape::Csv => write_csv(store, filter, &mut out, name)?,
    };
    super::warn_of_damage(store);
    let fail =
        |error: std::io::Error| Error::File { path: name.to_owned(), reason: error.to_string() };
    out.flush().map_err(fail)
}

/// A writer that keeps its error: a closed pipe is not a failure.
struct ErrorKeepingWriter<W> {
    out: W,
    error: Option<std::io::Error>,
}

impl<W: Write> Write for ErrorKeepingWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.out.write(bytes).inspect_err(|error| self.error = Some(error.kind().into()))
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.out.flush().inspect_err(|error| self.error = Some(error.kind().into()))
    }
}

/// Reads records from files.
pub(super) fn import(db: Option<&Location>, args: &ImportArgs) -> Outcome {
    let format = args.output.format;
    let mut store = open(db).map_err(|error| failed(&error, format))?;
    let mut reports = Vec::new();
    for file in &args.files {
        let imported = read(&mut *store, file).map_err(|error| failed(&error, format))?;
        reports.push((file.display().to_string(), imported));
    }
    let bad = reports.iter().any(|(_, imported)| imported.bad > 0);
    match format {
        Format::Json => report::json(&serde_json::json!({
            "files": reports.iter().map(|(file, imported)| json(file, imported)).collect::<Vec<_>>(),
        }))?,
        Format::Text => {
            let mut out = terminal::out();
            for (file, imported) in &reports {
                let Imported { added, known, bad, .. } = imported;
                writeln!(
                    out,
                    "{file}: {added} added, {known} known already, {}",
                    counted(*bad, "bad line")
                )?;
                show_bad(file, imported);
            }
        }
    }
    if bad { Err(Failure::Reported) } else { Ok(()) }
}

fn read(store: &mut dyn Store, file: &Path) -> tensorwright_records::Result<Imported> {
    if file == Path::new("-") {
        return read_lines(store, &mut std::io::stdin().lock(), Path::new("standard input"));
    }
    let input = Input::open(file)
        .map_err(|error| Error::File { path: file.to_owned(), reason: error.to_string() })?;
    read_lines(store, &mut BufReader::new(input), file)
}

fn show_bad(file: &str, imported: &Imported) {
    for bad in &imported.bad_lines {
        eprintln!("{file}:{}: {}", bad.line, printable(&bad.reason));
    }
    let more = imported.bad - imported.bad_lines.len() as u64;
    if more > 0 {
        eprintln!("{file}: and {more} more");
    }
}

fn json(file: &str, imported: &Imported) -> serde_json::Value {
    serde_json::json!({ "file": file, "imported": imported })
}
