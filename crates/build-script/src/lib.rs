//! Compiles kernels in the build script of a Rust program.
//!
//! ```no_run
//! // build.rs
//! fn main() -> Result<(), tensorwright_build::Error> {
//!     tensorwright_build::Package::new("kernels.toml").build()
//! }
//! ```
//!
//! The manifest is the one of `tensorwright package` (docs/packaging.md). The functions of the package
//! are in a file of its name:
//!
//! ```ignore
//! #[allow(dead_code, reason = "the package has more than this program uses")]
//! mod kernels {
//!     include!(concat!(env!("OUT_DIR"), "/kernels.rs"));
//! }
//! ```
//!
//! `examples/rust-build` is a whole project.
#![allow(clippy::print_stdout, reason = "build scripts talk to Cargo on standard output")]

mod error;

pub use error::Error;

use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

pub use tensorwright::Precision;
use tensorwright::{Diagnostics, Module, Source};
use tensorwright_package::{BuildOptions, Plan};
use tensorwright_records::{AnyStore, Location, Store, open_existing};
use tensorwright_tuner::Manifest;

/// The largest source file; parsers reject texts long before this.
const MAX_SOURCE: u64 = 16 << 20;

/// A package manifest for a build script to compile.
#[derive(Debug, Clone)]
#[must_use]
pub struct Package {
    manifest: PathBuf,
    cc: PathBuf,
    records: Option<PathBuf>,
    precision: Option<Precision>,
}

impl Package {
    /// The package of a manifest; its path is relative to the crate being built.
    pub fn new(manifest: impl Into<PathBuf>) -> Self {
        let cc = std::env::var_os("CC").map_or(PathBuf::from("cc"), PathBuf::from);
        Self { manifest: manifest.into(), cc, records: None, precision: None }
    }

    /// Reads schedules from a records file, whose path is relative to the crate being built. The
    /// default is untuned kernels, so that the build depends only on the crate.
    pub fn records(mut self, path: impl Into<PathBuf>) -> Self {
        self.records = Some(path.into());
        self
    }

    /// Sets the precision of all operators, overriding the manifest.
    pub fn precision(mut self, precision: Precision) -> Self {
        self.precision = Some(precision);
        self
    }

    /// Sets the C compiler; the default is `$CC` or `cc`.
    pub fn cc(mut self, program: impl Into<PathBuf>) -> Self {
        self.cc = program.into();
        self
    }

    /// Compiles the package into `OUT_DIR` and prints the Cargo directives to link and rebuild it.
    ///
    /// # Errors
    /// An invalid manifest or source, missing tools, or a call outside of a build script.
    pub fn build(self) -> Result<(), Error> {
        let folder = variable("CARGO_MANIFEST_DIR")?;
        let output = variable("OUT_DIR")?;
        self.build_into(&folder, &output, &mut |directive| println!("{directive}"))
    }

    /// Compiles the package of the crate in `folder` into a directory; `tell` receives the
    /// directives.
    fn build_into(
        &self,
        folder: &Path,
        output: &Path,
        tell: &mut dyn FnMut(&str),
    ) -> Result<(), Error> {
        let path = folder.join(&self.manifest);
        let text = String::from_utf8_lossy(&read(&path)?).into_owned();
        tell(&format!("cargo:rerun-if-changed={}", path.display()));
        tell("cargo:rerun-if-env-changed=CC");
        let mut manifest = Manifest::parse(Source::new(&path.display().to_string(), &text))?;
        if let Some(precision) = self.precision {
            manifest = manifest.with_precision(precision);
        }
        let beside = path.parent().unwrap_or(folder);
        let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
        let plan = Plan::new(&manifest, stem, &mut |file| {
            let path = beside.join(file);
            tell(&format!("cargo:rerun-if-changed={}", path.display()));
            let bytes = read(&path).map_err(Error::into_diagnostics)?;
            Module::parse_bytes(&path.display().to_string(), &bytes)
        })?;
        let store = self.store(folder, tell)?;
        let mut options = BuildOptions::default();
        options.cc = &self.cc;
        options.records = store.as_deref().map(|store| store as &dyn Store);
        options.shared = false;
        let said = Mutex::new(Vec::new());
        let notes = |note: &str| {
            said.lock().unwrap_or_else(PoisonError::into_inner).push(note.to_owned());
        };
        options.notes = &notes;
        let package = plan.build(&options);
        for note in said.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            tell(&format!("cargo:warning={note}"));
        }
        let package = package?;
        let name = package.name();
        write(&output.join(format!("lib{name}.a")), package.library())?;
        write(&output.join(format!("{name}.rs")), package.rust_module().as_bytes())?;
        tell(&format!("cargo:rustc-link-search=native={}", output.display()));
        tell(&format!("cargo:rustc-link-lib=static={name}"));
        tell("cargo:rustc-link-lib=m");
        Ok(())
    }

    fn store(&self, folder: &Path, tell: &mut dyn FnMut(&str)) -> Result<Option<AnyStore>, Error> {
        let Some(path) = &self.records else { return Ok(None) };
        let path = folder.join(path);
        tell(&format!("cargo:rerun-if-changed={}", path.display()));
        let place = Location::from(path.as_path());
        let store = open_existing(Some(&place)).map_err(|error| Error::new(error.to_string()))?;
        match store {
            Some(store) => Ok(Some(store)),
            None => Err(Error::new(format!("there are no records at {}", path.display()))),
        }
    }
}

/// A directory from an environment variable of Cargo.
fn variable(name: &str) -> Result<PathBuf, Error> {
    let value = std::env::var_os(name).map(PathBuf::from);
    value.ok_or_else(|| Error::new(format!("{name} is not set: call this in a build script")))
}

fn read(path: &Path) -> Result<Vec<u8>, Error> {
    let failed = |error| Error::new(format!("{} cannot be read: {error}", path.display()));
    let mut bytes = Vec::new();
    let file = std::fs::File::open(path).map_err(failed)?;
    file.take(MAX_SOURCE).read_to_end(&mut bytes).map_err(failed)?;
    Ok(bytes)
}

fn write(path: &Path, content: &[u8]) -> Result<(), Error> {
    let failed = |error| Error::new(format!("{} cannot be written: {error}", path.display()));
    std::fs::write(path, content).map_err(failed)
}

impl From<Diagnostics> for Error {
    fn from(diagnostics: Diagnostics) -> Self {
        Self::of(diagnostics)
    }
}
