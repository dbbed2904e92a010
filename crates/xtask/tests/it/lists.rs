//! Checks keyword and processor lists and versions outside of Rust sources.

use std::fs;
use std::path::Path;

use tensorwright_lang::builtin::{Builtin, CONSTANTS};
use tensorwright_lang::dtype::DType;
use tensorwright_machine::Cpu;

fn read(path: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path))
        .unwrap_or_default()
}

/// The words of a text.
fn words(text: &str) -> Vec<&str> {
    text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').collect()
}

#[test]
fn the_guide_colours_every_word_of_the_language() {
    let text = read("guide/tc.js");
    let known = words(&text);
    let types = DType::ALL.map(DType::name);
    let aliases = DType::ALIASES.map(|(alias, _)| alias);
    let functions = Builtin::ALL.iter().map(|builtin| builtin.name());
    let constants = CONSTANTS.map(|(name, _)| name);
    let names = types.into_iter().chain(aliases).chain(functions).chain(constants);
    for word in names.chain(["def", "where", "in", "const", "scan", "from", "scatter"]) {
        assert!(known.contains(&word), "guide/tc.js has no `{word}`");
    }
}

#[test]
fn floats_are_in_the_guide() {
    let guide = read("guide/src/language.md");
    for name in DType::ALL.into_iter().filter(|dtype| dtype.is_float()).map(DType::name) {
        assert!(guide.contains(&format!("`{name}`")), "guide/src/language.md has no `{name}`");
    }
}

#[test]
fn pages_name_every_processor() {
    let pages = ["docs/cli.md", "guide/src/deploying.md"].map(|page| (page, read(page)));
    for name in Cpu::NAMES.iter().filter(|name| **name != "native") {
        for (page, text) in &pages {
            // `--target a|b` or `--target a`, `b`: the names follow the option.
            let names = text.split("--target ").skip(1).filter_map(|rest| rest.lines().next());
            assert!(names.flat_map(words).any(|word| word == *name), "{page} has no `{name}`");
        }
    }
}

#[test]
fn what_is_not_rust_has_the_version_of_the_workspace() {
    let version = env!("CARGO_PKG_VERSION");
    let changes = read("CHANGELOG.md");
    let (unreleased, released) = changes.split_once("\n## [Unreleased]\n").unwrap();
    assert!(!unreleased.contains("\n## "), "[Unreleased] is not the first heading of CHANGELOG.md");
    let latest = released.lines().find_map(|line| line.strip_prefix("## [")).unwrap();
    let (name, date) = latest.split_once("] - ").unwrap();
    assert_eq!(name, version, "CHANGELOG.md");
    assert_eq!(
        date.split('-').map(str::len).collect::<Vec<_>>(),
        [4, 2, 2],
        "{date} is not a date"
    );
    let package = format!("\"version\": \"{version}\"");
    assert!(read("editors/vscode/package.json").contains(&package), "editors/vscode/package.json");
    let extension = format!("tensorwright-{version}.vsix");
    assert!(read("editors/vscode/README.md").contains(&extension), "editors/vscode/README.md");
    let deployed = read("deploy/kubernetes.yaml");
    let images: Vec<&str> =
        deployed.lines().filter_map(|line| line.trim().strip_prefix("image: ")).collect();
    for image in images.iter().filter(|image| image.contains("tensorwright")) {
        assert!(image.ends_with(&format!(":{version}")), "deploy/kubernetes.yaml has {image}");
    }
}
