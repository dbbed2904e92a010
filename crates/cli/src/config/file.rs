//! Parser for one configuration file, with located errors.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;
use tensorwright::{Code, Diagnostic, Diagnostics, Source, Span, Target, TargetError};
use tensorwright_records::Location;
use toml::Spanned;

use super::deadline::parse_deadline;
use super::size::parse_bytes;

/// The longest file, in bytes.
const MAX_BYTES: usize = 1 << 16;

const KEYS: &str =
    "the keys are database, threads, target, cache.limit, device.deadline (docs/configuration.md)";

/// A value with its line number.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct AtLine<T> {
    pub(super) value: T,
    pub(super) line: usize,
}

/// The settings in a file.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct FileSettings {
    pub(super) database: Option<AtLine<Location>>,
    pub(super) threads: Option<AtLine<u16>>,
    pub(super) target: Option<AtLine<String>>,
    pub(super) cache_limit: Option<AtLine<u64>>,
    pub(super) deadline: Option<AtLine<Duration>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Tables {
    database: Option<Spanned<String>>,
    threads: Option<Spanned<i64>>,
    target: Option<Spanned<String>>,
    #[serde(default)]
    cache: Cache,
    #[serde(default)]
    device: Device,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Cache {
    limit: Option<Spanned<String>>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Device {
    deadline: Option<Spanned<String>>,
}

/// Parses a text. `folder` is the base of relative paths, `home` replaces `~`.
pub(super) fn parse(
    source: &Source,
    folder: &Path,
    home: Option<&Path>,
) -> Result<FileSettings, Diagnostics> {
    let text = source.text();
    let wrong = |span: Option<std::ops::Range<usize>>, message: String, help: &str| {
        let diagnostic = match span {
            Some(range) => {
                let span = Span::new(range.start as u32, range.end as u32);
                Diagnostic::new(Code::InvalidConfiguration, span, message)
            }
            None => Diagnostic::without_place(Code::InvalidConfiguration, message),
        };
        Diagnostics::new(source.clone(), vec![diagnostic.help(help)])
    };
    if text.len() > MAX_BYTES {
        let message = format!("the configuration is longer than {MAX_BYTES} bytes");
        return Err(wrong(None, message, KEYS));
    }
    if let Some(at) = tensorwright_tuner::nested_too_deep(text) {
        let message = "a bracket is nested too deep, or one before it is not closed".to_owned();
        return Err(wrong(Some(at..at + 1), message, KEYS));
    }
    let tables: Tables = toml::from_str(text)
        .map_err(|error| wrong(error.span(), error.message().to_owned(), KEYS))?;
    let line = |at: usize| source.line_column(at as u32).0;
    let mut said = FileSettings::default();
    if let Some(database) = tables.database {
        let (span, value) = (database.span(), database.into_inner());
        if value.is_empty() {
            let help = "name a file or a server: database = \"records.sqlite3\"";
            return Err(wrong(Some(span), "the database has no name".to_owned(), help));
        }
        let Ok(place) = value.parse::<Location>();
        let value = match place {
            Location::File(path) => Location::File(absolute(path, folder, home)),
            server @ Location::Server(_) => server,
        };
        said.database = Some(AtLine { value, line: line(span.start) });
    }
    if let Some(threads) = tables.threads {
        let span = threads.span();
        let number = u16::try_from(threads.into_inner()).ok();
        let Some(value) = number.filter(|number| (1..=1024).contains(number)) else {
            let message = "threads must be 1 to 1024".to_owned();
            return Err(wrong(Some(span), message, "leave them out for 1"));
        };
        said.threads = Some(AtLine { value, line: line(span.start) });
    }
    if let Some(target) = tables.target {
        let (span, value) = (target.span(), target.into_inner());
        // Whether a device exists is checked when it is used.
        if let Err(error @ TargetError::Unknown { .. }) = Target::named(&value) {
            return Err(wrong(Some(span), error.to_string(), &error.help()));
        }
        said.target = Some(AtLine { value, line: line(span.start) });
    }
    if let Some(limit) = tables.cache.limit {
        let (span, value) = (limit.span(), limit.into_inner());
        let value = parse_bytes(&value)
            .map_err(|message| wrong(Some(span.clone()), message, "write limit = \"2 GB\""))?;
        said.cache_limit = Some(AtLine { value, line: line(span.start) });
    }
    if let Some(deadline) = tables.device.deadline {
        let (span, value) = (deadline.span(), deadline.into_inner());
        let value = parse_deadline(&value).map_err(|message| {
            wrong(Some(span.clone()), message, "write deadline = \"60s\", or \"10m\"")
        })?;
        said.deadline = Some(AtLine { value, line: line(span.start) });
    }
    Ok(said)
}

/// A path from a file, relative to its folder or to the home directory.
fn absolute(path: PathBuf, folder: &Path, home: Option<&Path>) -> PathBuf {
    match (path.strip_prefix("~"), home) {
        (Ok(rest), Some(home)) => home.join(rest),
        _ => folder.join(path),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<FileSettings, Diagnostics> {
        let source = Source::new("tensorwright.toml", text);
        parse(&source, Path::new("/project"), Some(Path::new("/home/ann")))
    }

    #[test]
    fn values_have_lines_and_paths_start_from_the_file() {
        let text = "# ours\ndatabase = \"records/a.db\"\nthreads = 4\n\n[cache]\nlimit = \"2 GB\"\n\
             [device]\ndeadline = \"10m\"\n";
        let said = read(text).unwrap();
        let place = Location::File("/project/records/a.db".into());
        assert_eq!(said.database, Some(AtLine { value: place, line: 2 }));
        assert_eq!(said.threads, Some(AtLine { value: 4, line: 3 }));
        assert_eq!(said.cache_limit, Some(AtLine { value: 2_000_000_000, line: 6 }));
        assert_eq!(said.deadline, Some(AtLine { value: Duration::from_secs(600), line: 8 }));
        assert_eq!(said.target, None);
        let home = read("database = \"~/a.db\"").unwrap().database.unwrap().value;
        assert_eq!(home, Location::File("/home/ann/a.db".into()));
        let server = read("database = \"postgres://ann@db.example/t\"").unwrap();
        assert!(matches!(server.database.unwrap().value, Location::Server(_)));
        assert_eq!(read("").unwrap(), FileSettings::default());
    }

    #[test]
    fn mistakes_are_shown_whole() {
        let wrong = |text: &str| read(text).unwrap_err().render(false);
        insta::assert_snapshot!(
            [
                wrong("thread = 4\n"),
                wrong("threads = 0\n"),
                wrong("threads = \"two\"\n"),
                wrong("target = \"avx1024\"\n"),
                wrong("database = \"\"\n"),
                wrong("[cache]\nlimit = \"much\"\n"),
                wrong("[device]\ndeadline = \"0s\"\n"),
                wrong("threads = \n"),
                wrong(&"#".repeat(MAX_BYTES + 1)),
            ]
            .concat()
        );
    }
}
