//! No two files of a crate use each other, directly or by way of others: what stands below knows nothing
//! of what stands above. A module and its own parts are one thing and may.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

type Module = Vec<String>;

#[test]
fn files_of_a_crate_do_not_go_in_circles() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut found = Vec::new();
    for folder in fs::read_dir(crates).unwrap().map(|entry| entry.unwrap().path()) {
        let name = folder.file_name().unwrap().to_string_lossy().into_owned();
        let circles = circles(&folder.join("src"));
        found.extend(circles.iter().map(|circle| format!("{name}: {circle}")));
    }
    assert_eq!(found, [""; 0], "move what both use to a file below both");
}

#[test]
fn paths_are_found_in_uses_and_in_code() {
    let text = "use crate::a::{B, c::{self, D}};\nfn f() { super::e(crate::g::h) } // crate::no";
    let found: Vec<String> = paths(text).iter().map(|path| path.join("::")).collect();
    let wanted = ["crate::a::B", "crate::a::c::self", "crate::a::c::D", "super::e", "crate::g::h"];
    assert_eq!(found, wanted);
}

/// What uses what, of the files that are part of a circle or between two.
fn circles(src: &Path) -> Vec<String> {
    let mut files = Vec::new();
    collect(src, src, &mut files);
    let modules: BTreeSet<Module> = files.iter().map(|(module, _)| module.clone()).collect();
    let mut uses: BTreeMap<Module, BTreeSet<Module>> = BTreeMap::new();
    for (module, file) in &files {
        let used = paths(&fs::read_to_string(file).unwrap_or_default());
        let used = used.iter().filter_map(|path| target(module, path, &modules));
        uses.entry(module.clone()).or_default().extend(used);
    }
    // Whatever uses nothing that is left, or is used by nothing that is left, is part of no circle.
    loop {
        let used: BTreeSet<Module> = uses.values().flatten().cloned().collect();
        let before = uses.len();
        uses.retain(|module, uses| !uses.is_empty() && used.contains(module));
        let left: BTreeSet<Module> = uses.keys().cloned().collect();
        uses.values_mut().for_each(|uses| uses.retain(|module| left.contains(module)));
        if uses.len() == before {
            break;
        }
    }
    let edge = |a: &Module, b: &Module| format!("{} uses {}", a.join("::"), b.join("::"));
    uses.iter().flat_map(|(a, uses)| uses.iter().map(move |b| edge(a, b))).collect()
}

fn collect(root: &Path, folder: &Path, files: &mut Vec<(Module, PathBuf)>) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for path in entries.flatten().map(|entry| entry.path()) {
        if path.is_dir() {
            collect(root, &path, files);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let relative = path.strip_prefix(root).unwrap_or(&path).with_extension("");
            let words = relative.iter().map(|word| word.to_string_lossy().into_owned());
            let mut module: Module = words.collect();
            module.pop_if(|last| ["mod", "lib", "main"].contains(&last.as_str()));
            if !module.iter().any(|word| word == "tests") {
                files.push((module, path));
            }
        }
    }
}

/// The other module that a path leads to; `None` for a part of this one and what it is a part of.
fn target(module: &[String], path: &[String], modules: &BTreeSet<Module>) -> Option<Module> {
    let mut full: Module = if path.first()? == "crate" { Vec::new() } else { module.to_vec() };
    for word in path {
        match word.as_str() {
            "crate" | "self" => {}
            "super" => drop(full.pop()),
            _ => full.push(word.clone()),
        }
    }
    while !modules.contains(&full) {
        full.pop()?;
    }
    (!full.starts_with(module) && !module.starts_with(&full)).then_some(full)
}

/// The paths of a text from `crate`, `super` and `self` on, without its comments and tests.
fn paths(text: &str) -> Vec<Vec<String>> {
    let text = text.split("#[cfg(test)]\nmod tests").next().unwrap_or_default();
    let lines = text.lines().map(|line| line.split("//").next().unwrap_or_default());
    let text = lines.collect::<Vec<_>>().join("\n");
    let mut found = Vec::new();
    let mut rest = text.as_str();
    while let Some(start) = rest.find(|c: char| c.is_ascii_alphabetic() || c == '_') {
        let (before, path) = rest.split_at(start);
        let (word, after) = word(path);
        let starts = ["crate", "super", "self"].contains(&word) && !before.ends_with("::");
        rest = match starts && after.starts_with("::") {
            true => tree(path, &Vec::new(), &mut found),
            false => after,
        };
    }
    found
}

fn word(text: &str) -> (&str, &str) {
    let end = text.find(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    text.split_at(end.unwrap_or(text.len()))
}

/// Adds the paths of `a::b` or `a::{b, c}`, and returns what follows.
fn tree<'t>(text: &'t str, before: &[String], found: &mut Vec<Vec<String>>) -> &'t str {
    let text = text.trim_start();
    if let Some(mut rest) = text.strip_prefix('{') {
        loop {
            rest = rest.trim_start_matches([' ', '\n', ',']);
            match rest.strip_prefix('}') {
                Some(after) => return after,
                None if rest.is_empty() => return rest,
                None => {}
            }
            let after = tree(rest, before, found);
            // A star, or a name behind `as`.
            rest = after.find([',', '}']).map_or("", |end| &after[end..]);
        }
    }
    let (first, rest) = word(text);
    let path = [before, &[first.to_owned()]].concat();
    match rest.strip_prefix("::") {
        Some(rest) if !first.is_empty() => tree(rest, &path, found),
        _ => {
            found.push(path);
            rest
        }
    }
}
