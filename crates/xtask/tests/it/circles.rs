//! Checks that the module dependencies of each crate have no cycles.
//!
//! A module and its submodules count as one. An imported name stands for the file that defines it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

type Module = Vec<String>;

/// Allowed cycles: mutually recursive definitions.
const ALLOWED: &[&str] = &[
    // A subscript may be an expression, which reads at subscripts.
    "lang: program::index uses program::expr",
    // Floats, their bits and masks are defined by each other.
    "codegen-llvm: math::lanes::float uses math::lanes::bits",
    "codegen-llvm: math::lanes::mask uses math::lanes::float",
    // Arguments may be frozen, and what is frozen is made of arguments.
    "tensorwright: kernel::arguments uses kernel::constants",
];

#[test]
fn files_of_a_crate_do_not_go_in_circles() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let (mut found, mut met) = (Vec::new(), BTreeSet::<&str>::new());
    for folder in fs::read_dir(crates).unwrap().map(|entry| entry.unwrap().path()) {
        let name = folder.file_name().unwrap().to_string_lossy().into_owned();
        let is_allowed = |edge: &str| {
            let allowed = ALLOWED.iter().find(|allowed| **allowed == format!("{name}: {edge}"));
            met.extend(allowed);
            allowed.is_some()
        };
        let circles = circles(&folder.join("src"), is_allowed);
        found.extend(circles.iter().map(|circle| format!("{name}: {circle}")));
    }
    assert_eq!(found, [""; 0], "move what both use to a file below both");
    assert_eq!(met.len(), ALLOWED.len(), "not all of what is allowed is there: {met:?}");
}

#[test]
fn paths_are_found_in_uses_and_in_code() {
    let text = "use crate::a::{B, c::{self, D}};\nfn f() { super::e(crate::g::h) } // crate::no";
    let found: Vec<String> = paths(text).iter().map(|path| path.join("::")).collect();
    let wanted = ["crate::a::B", "crate::a::c::self", "crate::a::c::D", "super::e", "crate::g::h"];
    assert_eq!(found, wanted);
}

#[test]
fn names_are_followed_to_the_files_that_define_them() {
    let module = |text: &str| -> Module { text.split("::").map(str::to_owned).collect() };
    let modules = BTreeSet::from([Vec::new(), module("a"), module("a::b"), module("c")]);
    let names = |at: &[String], text| names(at, text, &modules);
    let mut known = names(&[], "pub use a::{B, Other as O};\nmod a;");
    known.extend(names(&module("a"), "mod b;\npub(crate) use b::B;"));
    let names = Names { modules, known };
    let target = |from, path| target(&module(from), &module(path), &names);
    assert_eq!(target("c", "crate::B::new"), Some(module("a::b")));
    assert_eq!(target("c", "super::a::c"), Some(module("a")));
    assert_eq!(target("a::b", "super::B"), None, "its own name");
    assert_eq!(target("a::b", "crate::c"), Some(module("c")));
}

/// The modules of a crate, and the meaning of imported names.
struct Names {
    modules: BTreeSet<Module>,
    known: BTreeMap<Module, Module>,
}

impl Names {
    /// The module that defines a path.
    fn definition(&self, path: &[String]) -> Option<Module> {
        let mut path = path.to_vec();
        // Follows re-exports; no chain is longer.
        for _ in 0..8 {
            let length = (0..=path.len()).rev().find(|n| self.modules.contains(&path[..*n]))?;
            let taken = path.get(..=length).and_then(|name| self.known.get(name));
            match taken {
                Some(taken) => path.splice(..=length, taken.iter().cloned()),
                None => return Some(path[..length].to_vec()),
            };
        }
        None
    }
}

/// The imported names of a module, with their meaning.
fn names(module: &[String], text: &str, modules: &BTreeSet<Module>) -> BTreeMap<Module, Module> {
    let text = code(text);
    let mut names = BTreeMap::new();
    for (at, word) in text.match_indices("use ") {
        let line = text[..at].rsplit('\n').next().unwrap_or_default().trim();
        if !(line.is_empty() || line.starts_with("pub")) {
            continue;
        }
        let mut paths = Vec::new();
        tree(&text[at + word.len()..], &[], &mut paths);
        for path in paths {
            let Some(full) = absolute(module, &path, modules) else { continue };
            let name = full.last().map(|name| [module, std::slice::from_ref(name)].concat());
            names.extend(name.filter(|name| *name != full).map(|name| (name, full)));
        }
    }
    names
}

/// An absolute path; `None` for another crate.
fn absolute(module: &[String], path: &[String], modules: &BTreeSet<Module>) -> Option<Module> {
    let first = path.first()?;
    let mut full: Module = if first == "crate" { Vec::new() } else { module.to_vec() };
    let is_part = || modules.contains(&[module, std::slice::from_ref(first)].concat());
    if !["crate", "self", "super"].contains(&first.as_str()) && !is_part() {
        return None;
    }
    for word in path {
        match word.as_str() {
            "crate" | "self" => {}
            "super" => drop(full.pop()),
            _ => full.push(word.clone()),
        }
    }
    Some(full)
}

/// The dependencies between files on cycles.
fn circles(src: &Path, mut is_allowed: impl FnMut(&str) -> bool) -> Vec<String> {
    let mut files = Vec::new();
    collect(src, src, &mut files);
    let modules: BTreeSet<Module> = files.iter().map(|(module, _)| module.clone()).collect();
    let texts =
        files.iter().map(|(module, file)| (module, fs::read_to_string(file).unwrap_or_default()));
    let texts: Vec<(&Module, String)> = texts.collect();
    let known = texts.iter().flat_map(|(module, text)| names(module, text, &modules)).collect();
    let names = Names { modules, known };
    let edge = |a: &Module, b: &Module| format!("{} uses {}", a.join("::"), b.join("::"));
    let mut uses: BTreeMap<Module, BTreeSet<Module>> = BTreeMap::new();
    for (module, text) in &texts {
        let used = paths(text).into_iter().filter_map(|path| target(module, &path, &names));
        let used = used.filter(|used| !is_allowed(&edge(module, used)));
        uses.entry((*module).clone()).or_default().extend(used);
    }
    // Removes files without dependencies or dependents, which are on no cycle.
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

/// The target module of a path; `None` within a module and its parents.
fn target(module: &[String], path: &[String], names: &Names) -> Option<Module> {
    let full = names.definition(&absolute(module, path, &names.modules)?)?;
    (!full.starts_with(module) && !module.starts_with(&full)).then_some(full)
}

/// All paths that begin with `crate`, `super` or `self`.
fn paths(text: &str) -> Vec<Vec<String>> {
    let text = code(text);
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

/// A text without comments and tests.
fn code(text: &str) -> String {
    let text = text.split("#[cfg(test)]\nmod tests").next().unwrap_or_default();
    let lines = text.lines().map(|line| line.split("//").next().unwrap_or_default());
    lines.collect::<Vec<_>>().join("\n")
}

fn word(text: &str) -> (&str, &str) {
    let end = text.find(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    text.split_at(end.unwrap_or(text.len()))
}

/// Adds the paths of `a::b` or `a::{b, c}`, and returns the rest.
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
            // A star, or a name after `as`.
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
