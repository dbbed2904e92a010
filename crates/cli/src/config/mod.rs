//! Settings: records, threads, target, cache limit and device deadline, with their origins.
//!
//! Precedence: command line, environment variables, the project's `tensorwright.toml`, the user's.
//! docs/configuration.md is for users.

mod deadline;
mod defaults;
mod file;
mod size;
mod threads;

use std::env;
use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Serialize;
use tensorwright::{Code, Diagnostic, Diagnostics, Source};
use tensorwright_device::{DEFAULT_DEADLINE, set_deadline};
use tensorwright_records::{Location, default_path, set_default_location};

pub(crate) use defaults::with_defaults;
pub(crate) use size::parse_bytes;
pub use threads::default_threads;

use deadline::parse_deadline;
use file::{AtLine, FileSettings};

use crate::files::Input;

const NAME: &str = "tensorwright.toml";
/// The only file to read; empty for none.
const CONFIG: &str = "TENSORWRIGHT_CONFIG";
const DATABASE: &str = "TENSORWRIGHT_DB";
const THREADS: &str = "TENSORWRIGHT_THREADS";
const TARGET: &str = "TENSORWRIGHT_TARGET";
const DEADLINE: &str = "TENSORWRIGHT_DEVICE_DEADLINE";

/// Which configuration file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Level {
    User,
    Project,
    Named,
}

/// A configuration file that was looked for.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct ConfigFile {
    pub(crate) level: Level,
    pub(crate) path: PathBuf,
    pub(crate) found: bool,
}

/// Where a value comes from.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "lowercase", tag = "kind")]
pub(crate) enum Origin {
    Default,
    Variable { name: &'static str },
    File { level: Level, path: PathBuf, line: usize },
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::Variable { name } => write!(f, "${name}"),
            Self::File { path, line, .. } => write!(f, "{}:{line}", path.display()),
        }
    }
}

/// A value with its origin.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Value<T> {
    pub(crate) value: T,
    pub(crate) from: Origin,
}

/// All settings.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Settings {
    /// `None` without a default location.
    pub(crate) database: Value<Option<Location>>,
    pub(crate) threads: Value<u16>,
    pub(crate) target: Value<String>,
    pub(crate) cache_limit: Value<Option<u64>>,
    /// The time limit for the launches of a call on a device.
    pub(crate) deadline: Value<Duration>,
    pub(crate) places: Vec<ConfigFile>,
}

/// The settings of this process.
///
/// # Errors
/// If a file or a variable is invalid.
pub(crate) fn load() -> Result<Settings, Diagnostics> {
    let variable = |name| env::var_os(name).filter(|value: &OsString| !value.is_empty());
    let home = variable("HOME").map(PathBuf::from).filter(|home| home.is_absolute());
    settings(places(home.as_deref(), &variable), home.as_deref(), &variable)
}

/// The files to look for.
fn places(
    home: Option<&Path>,
    variable: &dyn Fn(&'static str) -> Option<OsString>,
) -> Vec<(Level, PathBuf)> {
    match env::var_os(CONFIG) {
        Some(path) if path.is_empty() => Vec::new(),
        Some(path) => vec![(Level::Named, PathBuf::from(path))],
        None => usual(home, variable),
    }
}

/// The settings of one file alone, without variables.
pub(crate) fn load_file(path: &Path) -> Result<Settings, Diagnostics> {
    let home = env::var_os("HOME").map(PathBuf::from);
    settings(vec![(Level::Named, path.to_owned())], home.as_deref(), &|_| None)
}

fn settings(
    places: Vec<(Level, PathBuf)>,
    home: Option<&Path>,
    variable: &dyn Fn(&'static str) -> Option<OsString>,
) -> Result<Settings, Diagnostics> {
    let mut all = Settings {
        database: Value { value: default_path().map(Location::File), from: Origin::Default },
        threads: Value { value: default_threads(), from: Origin::Default },
        target: Value { value: "native".to_owned(), from: Origin::Default },
        cache_limit: Value { value: None, from: Origin::Default },
        deadline: Value { value: DEFAULT_DEADLINE, from: Origin::Default },
        places: Vec::new(),
    };
    for (level, path) in places {
        let said = read(level, &path, home)?;
        let found = said.is_some();
        let FileSettings { database, threads, target, cache_limit, deadline } =
            said.unwrap_or_default();
        let from = |line| Origin::File { level, path: path.clone(), line };
        set(&mut all.database, database.map(|AtLine { value, line }| (Some(value), from(line))));
        set(&mut all.threads, threads.map(|AtLine { value, line }| (value, from(line))));
        set(&mut all.target, target.map(|AtLine { value, line }| (value, from(line))));
        let limit = cache_limit.map(|AtLine { value, line }| (Some(value), from(line)));
        set(&mut all.cache_limit, limit);
        set(&mut all.deadline, deadline.map(|AtLine { value, line }| (value, from(line))));
        all.places.push(ConfigFile { level, path, found });
    }
    let named = |name| variable(name).map(|value| (value, Origin::Variable { name }));
    set(&mut all.database, named(DATABASE).map(|(place, from)| (Some(place.into()), from)));
    let target = named(TARGET);
    set(&mut all.target, target.map(|(name, from)| (name.to_string_lossy().into_owned(), from)));
    if let Some((text, from)) = named(THREADS) {
        let number = text.to_str().and_then(|text| text.trim().parse::<u16>().ok());
        let Some(value) = number.filter(|number| (1..=1024).contains(number)) else {
            let message = format!("{THREADS} is `{}`, not 1 to 1024", text.to_string_lossy());
            return Err(problem(THREADS, message, "set it to the number of threads, or unset it"));
        };
        all.threads = Value { value, from };
    }
    if let Some((text, from)) = named(DEADLINE) {
        let text = text.to_string_lossy();
        let value = parse_deadline(&text)
            .map_err(|why| problem(DEADLINE, why, "set it to a time such as 60s or 10m"))?;
        all.deadline = Value { value, from };
    }
    Ok(all)
}

fn set<T>(value: &mut Value<T>, said: Option<(T, Origin)>) {
    if let Some((said, from)) = said {
        *value = Value { value: said, from };
    }
}

/// The user's file, and the project's: in the current folder or above it, up to the repository's
/// root.
fn usual(
    home: Option<&Path>,
    variable: &dyn Fn(&'static str) -> Option<OsString>,
) -> Vec<(Level, PathBuf)> {
    let folder = variable("XDG_CONFIG_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
    let folder = folder.or_else(|| home.map(|home| home.join(".config")));
    let user = folder.map(|folder| (Level::User, folder.join("tensorwright").join(NAME)));
    let here = env::current_dir().unwrap_or_default();
    let project = project(&here).unwrap_or_else(|| here.join(NAME));
    user.into_iter().chain([(Level::Project, project)]).collect()
}

/// The nearest file of a project. Outside of a repository, only the folder itself counts: in a
/// shared place such as /tmp, anyone could write a file above it.
fn project(here: &Path) -> Option<PathBuf> {
    let root = here.ancestors().find(|folder| folder.join(".git").exists());
    let last = root.unwrap_or(here);
    let within = here.ancestors().take_while(|folder| folder.starts_with(last));
    within.map(|folder| folder.join(NAME)).find(|path| path.is_file())
}

/// The settings in a file; `None` if it is missing or a project's operator manifest.
fn read(
    level: Level,
    path: &Path,
    home: Option<&Path>,
) -> Result<Option<FileSettings>, Diagnostics> {
    let name = path.display().to_string();
    let bytes = match contents(path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound && level != Level::Named => {
            return Ok(None);
        }
        Err(error) => {
            let message = format!("cannot read the configuration {name}: {error}");
            let help = format!("name a file that can be read in {CONFIG}, or correct its rights");
            return Err(problem(&name, message, &help));
        }
    };
    let Ok(text) = String::from_utf8(bytes) else {
        let message = format!("the configuration {name} is not UTF-8");
        return Err(problem(&name, message, "write it anew as text"));
    };
    if level == Level::Project && is_manifest(&text) {
        return Ok(None);
    }
    let folder = path.parent().map(|folder| std::path::absolute(folder).unwrap_or_default());
    file::parse(&Source::new(&name, &text), &folder.unwrap_or_default(), home).map(Some)
}

/// Larger than any configuration or manifest.
const MAX_MANIFEST: u64 = 16 << 20;

/// The bytes of a file, or enough of them to see that it is too long.
fn contents(path: &Path) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    Input::open(path)?.read_up_to(MAX_MANIFEST, &mut bytes)?;
    Ok(bytes)
}

/// Whether a text is an operator manifest, which may have any name.
fn is_manifest(text: &str) -> bool {
    text.lines().any(|line| line.trim_start().starts_with("[[operator]]"))
}

fn problem(name: &str, message: String, help: &str) -> Diagnostics {
    let diagnostic = Diagnostic::without_place(Code::InvalidConfiguration, message).help(help);
    Diagnostics::new(Source::new(name, ""), vec![diagnostic])
}

/// Settings for library users: threads and target, if a file sets them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Configured {
    /// Threads for parallel loops.
    pub threads: Option<u16>,
    /// The target.
    pub target: Option<String>,
}

/// Reads the configuration of this process, and sets the default location of records from it.
///
/// # Errors
/// An invalid file, as readable text.
pub fn configure() -> Result<Configured, String> {
    let home = env::var_os("HOME").map(PathBuf::from).filter(|home| home.is_absolute());
    let places = places(home.as_deref(), &|name| env::var_os(name));
    // The caller reads most variables: it knows their precedence.
    let settings = settings(places, home.as_deref(), &|name| match name {
        DEADLINE => env::var_os(name).filter(|value| !value.is_empty()),
        _ => None,
    });
    let settings = settings.map_err(|problem| problem.render(false))?;
    apply(&settings);
    let said = |from: &Origin| *from != Origin::Default;
    Ok(Configured {
        threads: said(&settings.threads.from).then_some(settings.threads.value),
        target: said(&settings.target.from).then_some(settings.target.value),
    })
}

/// Sets the default location of records and the device deadline.
pub(crate) fn apply(settings: &Settings) {
    if let Value { value: Some(place), from: Origin::File { .. } } = &settings.database {
        set_default_location(place.clone());
    }
    set_deadline(settings.deadline.value);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(path: &Path, text: &str) {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    #[test]
    fn the_project_goes_before_the_user_and_variables_before_both() {
        let scratch = tempfile::tempdir().unwrap();
        let (user, own) = (scratch.path().join("user.toml"), scratch.path().join("p/own.toml"));
        write(&user, "threads = 2\ntarget = \"avx2\"\n[cache]\nlimit = \"1 GB\"\n");
        write(&own, "target = \"sse\"\ndatabase = \"r.db\"\n");
        let places = vec![(Level::User, user.clone()), (Level::Project, own.clone())];
        let none = |_| None;
        let all = settings(places.clone(), None, &none).unwrap();
        let at = |level, path: &PathBuf, line| Origin::File { level, path: path.clone(), line };
        assert_eq!((all.threads.value, all.threads.from), (2, at(Level::User, &user, 1)));
        assert_eq!(all.target.value, "sse");
        assert_eq!(all.target.from, at(Level::Project, &own, 1));
        let place = Location::File(scratch.path().join("p/r.db"));
        assert_eq!(all.database.value, Some(place));
        assert_eq!(all.cache_limit.value, Some(1_000_000_000));
        let variable = |name| (name == THREADS).then(|| OsString::from("7"));
        let all = settings(places.clone(), None, &variable).unwrap();
        assert_eq!((all.threads.value, all.threads.from), (7, Origin::Variable { name: THREADS }));
        let variable = |name| (name == THREADS).then(|| OsString::from("many"));
        let text = settings(places, None, &variable).unwrap_err().render(false);
        insta::assert_snapshot!(text);
    }

    #[test]
    fn a_project_ends_at_its_repository() {
        let scratch = tempfile::tempdir().unwrap();
        let root = scratch.path();
        write(&root.join(NAME), "");
        write(&root.join("repository/.git/HEAD"), "");
        write(&root.join("repository/a/b/file"), "");
        write(&root.join("loose/a/file"), "");
        assert_eq!(project(&root.join("repository/a/b")), None);
        assert_eq!(project(&root.join("loose/a")), None);
        assert_eq!(project(root), Some(root.join(NAME)));
        let own = root.join("repository").join(NAME);
        write(&own, "");
        assert_eq!(project(&root.join("repository/a/b")), Some(own));
        // An operator manifest may have the same name; it is not a configuration.
        let manifest = root.join("repository/a").join(NAME);
        write(&manifest, "[[operator]]\nfile = \"a.tc\"\n");
        assert_eq!(read(Level::Project, &manifest, None), Ok(None));
    }
}
