//! Reading and writing files, with errors that name the file and the remedy.

mod input;

use std::path::Path;

use tensorwright::{Buffer, Code, Diagnostic, Diagnostics, Module, Source, npy};
use tensorwright_landscape::Landscape;
use tensorwright_lang::diagnostic::nearest;
use tensorwright_pipeline::{Samples, Weights};
use tensorwright_tuner::Manifest;

pub(crate) use self::input::Input;

/// The largest source file; the parser rejects texts long before this.
const MAX_SOURCE: u64 = 16 << 20;

/// The largest landscape.
const MAX_LANDSCAPE: u64 = 64 << 20;

/// The largest files of samples and weights of a cost model.
const MAX_SAMPLES: u64 = 1 << 30;
const MAX_WEIGHTS: u64 = 64 << 20;

/// The largest `.npy` file.
const MAX_NPY: u64 = 9 << 30;

/// Reads and checks a source file.
pub(crate) fn module(path: &Path) -> Result<Module, Diagnostics> {
    let bytes = read(path, MAX_SOURCE)?;
    Module::parse_bytes(&path.display().to_string(), &bytes)
}

/// Reads a source file for one definition; others may have errors.
pub(crate) fn module_with(path: &Path) -> Result<Module, Diagnostics> {
    let bytes = read(path, MAX_SOURCE)?;
    Module::parse_partly(&path.display().to_string(), &bytes)
}

/// Reads a manifest.
pub(crate) fn manifest(path: &Path) -> Result<Manifest, Diagnostics> {
    Manifest::parse(text(path, "a manifest is TOML, with an [[operator]] for each operator")?)
}

/// Reads the text of a schedule.
pub(crate) fn schedule(path: &Path) -> Result<Source, Diagnostics> {
    text(path, "a schedule has one step per line, such as `C: split m 8`")
}

/// Reads a text; `help` describes the expected contents.
fn text(path: &Path, help: &str) -> Result<Source, Diagnostics> {
    let bytes = read(path, MAX_SOURCE)?;
    let text = String::from_utf8(bytes).map_err(|_| {
        let message = format!("{} is not text: it is not UTF-8", path.display());
        problem(path, message, Some(help))
    })?;
    Ok(Source::new(&path.display().to_string(), &text))
}

/// Reads a recorded landscape.
pub(crate) fn landscape(path: &Path) -> Result<Landscape, Diagnostics> {
    let bytes = read(path, MAX_LANDSCAPE)?;
    Landscape::decode(&bytes).map_err(|error| {
        let message = format!("{} cannot be used: {error}", path.display());
        problem(path, message, Some("record it again with `tensorwright landscape record`"))
    })
}

/// Reads samples of a cost model.
pub(crate) fn samples(path: &Path) -> Result<Samples, Diagnostics> {
    own(path, MAX_SAMPLES, |text| Samples::parse(text).map_err(|error| error.to_string()))
}

/// Reads weights of a cost model.
pub(crate) fn weights(path: &Path) -> Result<Weights, Diagnostics> {
    own(path, MAX_WEIGHTS, |text| Weights::parse(text).map_err(|error| error.to_string()))
}

/// Cuts off an incomplete last line.
pub(crate) fn end_with_a_line(path: &Path) -> Result<(), Diagnostics> {
    let bytes = read(path, MAX_SAMPLES)?;
    let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
    if whole == bytes.len() {
        return Ok(());
    }
    let cut = || std::fs::OpenOptions::new().write(true).open(path)?.set_len(whole as u64);
    cut().map_err(|error| {
        problem(path, format!("{} cannot be written: {error}", path.display()), None)
    })
}

/// Reads a text written by this program; its parse error may end with a line of help.
fn own<T>(
    path: &Path,
    most: u64,
    parse: impl FnOnce(&str) -> Result<T, String>,
) -> Result<T, Diagnostics> {
    let bytes = read(path, most)?;
    let read = String::from_utf8(bytes).map_err(|_| "it is not UTF-8".to_owned());
    read.and_then(|text| parse(&text)).map_err(|wrong| {
        let (what, help) = match wrong.split_once("\n  help: ") {
            Some((what, help)) => (what, Some(help)),
            None => (wrong.as_str(), None),
        };
        problem(path, format!("{} cannot be used: {what}", path.display()), help)
    })
}

/// Writes bytes to a file.
pub(crate) fn write_bytes(path: &Path, bytes: &[u8]) -> Result<(), Diagnostics> {
    std::fs::write(path, bytes).map_err(|error| {
        let help = "check that the directory exists and may be written to";
        problem(path, format!("{} cannot be written: {error}", path.display()), Some(help))
    })
}

/// Reads a buffer from a `.npy` file: the header first, then as many bytes as it declares.
pub(crate) fn buffer(path: &Path) -> Result<Buffer, Diagnostics> {
    let failed = |error| unreadable(path, &error);
    let wrong = |error: &dyn std::fmt::Display| {
        let message = format!("{} cannot be used: {error}", path.display());
        problem(path, message, Some("write it with numpy.save"))
    };
    let mut input = Input::open(path).map_err(failed)?;
    let mut bytes = Vec::new();
    input.read_up_to(npy::MAX_BEGINNING as u64, &mut bytes).map_err(failed)?;
    let whole = npy::file_bytes(&bytes).map_err(|error| wrong(&error))?;
    if whole > MAX_NPY {
        return Err(too_large(path, MAX_NPY));
    }
    // One byte beyond the declared size shows that the file is too long.
    input.read_up_to(whole + 1, &mut bytes).map_err(failed)?;
    if bytes.len() as u64 > whole {
        let more = "more bytes follow than the header says: the file is damaged";
        return Err(wrong(&more));
    }
    drop(input);
    npy::decode(&bytes).map_err(|error| wrong(&error))
}

/// Writes a buffer to a `.npy` file.
pub(crate) fn write(path: &Path, buffer: &Buffer) -> Result<(), Diagnostics> {
    let bytes = npy::encode(buffer).map_err(|error| problem(path, error.to_string(), None))?;
    write_bytes(path, &bytes)
}

/// Reads a file up to a limit, so that `/dev/zero` is an error, not out of memory.
fn read(path: &Path, limit: u64) -> Result<Vec<u8>, Diagnostics> {
    let failed = |error| unreadable(path, &error);
    let mut input = Input::open(path).map_err(failed)?;
    if input.length().is_some_and(|length| length > limit) {
        return Err(too_large(path, limit));
    }
    let mut bytes = Vec::new();
    input.read_up_to(limit + 1, &mut bytes).map_err(failed)?;
    if bytes.len() as u64 > limit {
        return Err(too_large(path, limit));
    }
    Ok(bytes)
}

fn unreadable(path: &Path, error: &std::io::Error) -> Diagnostics {
    let help = advice(path, error);
    problem(path, format!("{} cannot be read: {error}", path.display()), Some(&help))
}

fn too_large(path: &Path, limit: u64) -> Diagnostics {
    problem(path, format!("{} is larger than {} MiB", path.display(), limit >> 20), None)
}

/// Advice for an unreadable file: similar names that exist.
fn advice(path: &Path, error: &std::io::Error) -> String {
    match error.kind() {
        std::io::ErrorKind::NotFound => {}
        std::io::ErrorKind::OutOfMemory => return "give the process more memory".to_owned(),
        std::io::ErrorKind::Other => return "name a file, or a pipe that is written to".to_owned(),
        _ => return "name a file that you may read".to_owned(),
    }
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let Ok(entries) = std::fs::read_dir(folder) else {
        return format!("there is no folder {}", folder.display());
    };
    let extension = path.extension();
    let is_alike = |path: &Path| path.is_file() && path.extension() == extension;
    let alike = entries.flatten().map(|entry| entry.path()).filter(|path| is_alike(path));
    let name = |path: &Path| path.file_name().and_then(|name| name.to_str()).map(str::to_owned);
    let mut names: Vec<String> = alike.filter_map(|path| name(&path)).collect();
    names.sort();
    let wanted = name(path).unwrap_or_default();
    if let Some(near) = nearest(&wanted, names.iter().map(String::as_str)) {
        return format!("did you mean {}?", path.with_file_name(near).display());
    }
    match names.as_slice() {
        [only] => format!("did you mean {}?", path.with_file_name(only).display()),
        _ => "name a file that exists".to_owned(),
    }
}

fn problem(path: &Path, message: String, help: Option<&str>) -> Diagnostics {
    let mut diagnostic = Diagnostic::without_place(Code::InvalidFile, message);
    if let Some(help) = help {
        diagnostic = diagnostic.help(help);
    }
    Diagnostics::new(Source::new(&path.display().to_string(), ""), vec![diagnostic])
}
