//! Checks that every Rust file is a module, with one test program per crate.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

fn crates() -> Vec<PathBuf> {
    children(&Path::new(env!("CARGO_MANIFEST_DIR")).join(".."))
}

fn children(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten();
    entries.filter_map(|entry| Some(entry.ok()?.path())).collect()
}

fn is_rust(path: &Path) -> bool {
    path.extension().and_then(OsStr::to_str) == Some("rs")
}

/// The module name of a file or of a folder with `mod.rs`.
fn module(path: &Path) -> Option<&str> {
    (is_rust(path) || path.join("mod.rs").exists()).then(|| path.file_stem()?.to_str()).flatten()
}

/// The text of the files that can declare a folder's modules.
fn parents(folder: &Path) -> String {
    let inside = ["lib.rs", "main.rs", "mod.rs"].map(|name| folder.join(name));
    let beside = folder.with_extension("rs");
    inside.into_iter().chain([beside]).filter_map(|file| fs::read_to_string(file).ok()).collect()
}

/// Undeclared modules in a folder.
fn forgotten(folder: &Path, all: &mut Vec<PathBuf>) {
    let declared = parents(folder);
    for path in children(folder) {
        if path.is_dir() {
            forgotten(&path, all);
        }
        let Some(name) = module(&path).filter(|name| !["lib", "main", "mod"].contains(name)) else {
            continue;
        };
        let says = |text: String| declared.contains(&text);
        if !(says(format!("mod {name};")) || says(format!("\"{name}.rs\""))) {
            all.push(path);
        }
    }
}

#[test]
fn every_file_is_a_module() {
    let mut all = Vec::new();
    for krate in crates() {
        for folder in [krate.join("src"), krate.join("tests/it")] {
            forgotten(&folder, &mut all);
        }
    }
    // Separate programs, and a file that a test and an example include by path.
    all.retain(|path| !path.parent().is_some_and(|folder| folder.ends_with("src/bin")));
    all.retain(|path| !path.ends_with("support/landscape.rs"));
    assert!(all.is_empty(), "no module declares {all:?}");
}

#[test]
fn tests_of_a_crate_are_one_program() {
    let all: Vec<_> = crates().iter().flat_map(|krate| children(&krate.join("tests"))).collect();
    let programs: Vec<_> = all.iter().filter(|path| is_rust(path)).collect();
    assert!(programs.is_empty(), "move to tests/it and declare in its main.rs: {programs:?}");
    assert!(all.iter().filter(|path| path.join("main.rs").exists()).count() > 5);
}
