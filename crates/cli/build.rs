//! Sets the commit that `--version` prints.
//!
//! Sources in order: `TENSORWRIGHT_COMMIT`; the note of `cargo package`; git, in the project's own
//! checkout. Without any, no commit is printed. Debug builds do not ask git, because every commit
//! would rebuild the command. Clocks, paths and the state of the working tree are not used: equal
//! sources give equal binaries.

use std::path::{Path, PathBuf};
use std::process::Command;

const COMMIT: &str = "TENSORWRIGHT_COMMIT";

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed={COMMIT}");
    let here = PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default());
    let said = std::env::var(COMMIT).ok();
    let commit = said.filter(|text| !text.is_empty());
    let commit = commit.or_else(|| packaged(&here)).or_else(|| committed(&here));
    // A commit is a hexadecimal number; other contents are not printed.
    let commit = commit.filter(|text| text.chars().all(|digit| digit.is_ascii_hexdigit()));
    if let Some(short) = commit.as_deref().and_then(|commit| commit.get(..12)) {
        println!("cargo::rustc-env={COMMIT}={short}");
    }
}

/// The commit of a package: `"sha1": "..."`.
fn packaged(here: &Path) -> Option<String> {
    let text = std::fs::read_to_string(here.join(".cargo_vcs_info.json")).ok()?;
    let (_, rest) = text.split_once("\"sha1\"")?;
    rest.split('"').nth(1).map(str::to_owned)
}

/// The commit of the checkout, if it is this project's: a package may be inside another one.
fn committed(here: &Path) -> Option<String> {
    if std::env::var("PROFILE").as_deref() != Ok("release") {
        return None;
    }
    let root = here.join("../..").canonicalize().ok()?;
    let git = |arguments: &[&str]| {
        let output = Command::new("git").arg("-C").arg(&root).args(arguments).output().ok()?;
        let text = String::from_utf8(output.stdout).ok()?.trim().to_owned();
        output.status.success().then_some(text)
    };
    if Path::new(&git(&["rev-parse", "--show-toplevel"])?) != root {
        return None;
    }
    // Changes with every commit and every checkout.
    let log = root.join(git(&["rev-parse", "--git-path", "logs/HEAD"])?);
    if log.exists() {
        println!("cargo::rerun-if-changed={}", log.display());
    }
    git(&["rev-parse", "HEAD"])
}
