//! Checks that files, folders and definitions that contributors' pages name exist.

use std::fs;
use std::path::{Path, PathBuf};

const PAGES: [&str; 4] =
    ["CONTRIBUTING.md", "ARCHITECTURE.md", "docs/adding.md", "docs/internals.md"];

/// Extensions of file names.
const ENDS: [&str; 9] = [".rs", ".py", ".md", ".tc", ".json", ".js", ".toml", ".c", ".test"];

/// Prefixes of generated paths.
const MADE: [&str; 2] = ["target/", "_native"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

#[test]
fn files_that_pages_name_exist() {
    let files = files();
    let mut missing = Vec::new();
    for page in PAGES {
        let text = fs::read_to_string(root().join(page)).unwrap();
        let paths = spans(&text).into_iter().map(|span| span.text).filter(|text| is_path(text));
        let paths = paths.filter(|path| named(&files, path).is_empty());
        missing.extend(paths.map(|path| format!("{page}: {path}")));
    }
    assert_eq!(missing, [""; 0], "pages name what is not there");
}

/// "`name` of `file`" and "`name` in `file`" mean that the file defines the name.
#[test]
fn definitions_are_in_the_files_that_pages_say() {
    let files = files();
    let mut missing = Vec::new();
    for page in PAGES {
        let text = fs::read_to_string(root().join(page)).unwrap();
        for pair in spans(&text).windows(2) {
            let (name, file) = (pair[0].text, pair[1].text);
            let between: Vec<&str> = text[pair[0].end..pair[1].start].split_whitespace().collect();
            let says = matches!(between[..], ["of" | "in"]);
            if !says || !is_name(name) || !file.ends_with(".rs") {
                continue;
            }
            let has = |path: &PathBuf| {
                defines(&fs::read_to_string(root().join(path)).unwrap_or_default(), name)
            };
            if !named(&files, file).iter().any(has) {
                missing.push(format!("{page}: {name} of {file}"));
            }
        }
    }
    assert_eq!(missing, [""; 0], "files do not define what pages say");
}

#[test]
fn spans_paths_and_definitions_are_told_apart() {
    let text = "a `b` of `c/d.rs`\n```text\n`e`\n```\nand `f g`";
    let found: Vec<&str> = spans(text).iter().map(|span| span.text).collect();
    assert_eq!(found, ["b", "c/d.rs", "f g"]);
    assert!(is_path("c/d.rs") && is_path("cpu/") && is_path("mod.rs"));
    assert!(!is_path("Schedule::apply") && !is_path("a / b") && !is_path("E0xxx_what.tc"));
    assert!(
        defines("pub(super) enum Type {", "Type") && defines("const ARMS: &[u8] = &[];", "ARMS")
    );
    assert!(defines("macro_rules! storage {", "storage!") && !defines("use a::Type;", "Type"));
}

/// A text between backquotes.
struct Span<'t> {
    text: &'t str,
    start: usize,
    end: usize,
}

fn spans(page: &str) -> Vec<Span<'_>> {
    let mut spans = Vec::new();
    let (mut offset, mut is_code) = (0, false);
    for line in page.split_inclusive('\n') {
        is_code ^= line.starts_with("```");
        if !is_code && !line.starts_with("```") {
            let mut start = offset;
            for (number, text) in line.split('`').enumerate() {
                let end = start + text.len();
                if number % 2 == 1 {
                    spans.push(Span { text, start: start - 1, end: end + 1 });
                }
                start = end + 1;
            }
        }
        offset += line.len();
    }
    spans
}

fn is_name(text: &str) -> bool {
    text != "mod"
        && text.trim_end_matches('!').chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// Whether a text names a file or folder, without placeholders.
fn is_path(text: &str) -> bool {
    let is_one = text.chars().all(|c| c.is_ascii_alphanumeric() || "_-./".contains(c));
    let stands_for_others = text.contains("E0xxx")
        || text.starts_with('.')
        || MADE.iter().any(|made| text.starts_with(made));
    let ends = text.ends_with('/') || ENDS.iter().any(|end| text.ends_with(end));
    is_one && !stands_for_others && (ends || text.contains('/'))
}

/// All files and folders, from the workspace root.
fn files() -> Vec<PathBuf> {
    fn collect(folder: &Path, from: &Path, found: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let (path, name) = (entry.path(), entry.file_name());
            let is_built = name == "target" && path.join("CACHEDIR.TAG").exists();
            if is_built || name == "node_modules" || name == ".git" {
                continue;
            }
            found.push(path.strip_prefix(from).unwrap_or(&path).to_path_buf());
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                collect(&path, from, found);
            }
        }
    }
    let (root, mut found) = (root(), Vec::new());
    collect(&root, &root, &mut found);
    found
}

/// The files of a path: from the root, or all with that ending.
fn named(files: &[PathBuf], path: &str) -> Vec<PathBuf> {
    let whole = Path::new(path);
    match files.iter().find(|file| *file == whole) {
        Some(file) => vec![file.clone()],
        None => files.iter().filter(|file| file.ends_with(whole)).cloned().collect(),
    }
}

/// Whether a Rust source defines a name.
fn defines(text: &str, name: &str) -> bool {
    let plain = name.trim_end_matches('!');
    let words = ["fn", "struct", "enum", "trait", "const", "static", "type", "macro_rules!"];
    let starts = words.map(|word| format!("{word} {plain}"));
    starts.iter().any(|start| {
        text.match_indices(start.as_str()).any(|(at, _)| {
            let after = text[at + start.len()..].chars().next();
            !after.is_some_and(|c| c.is_ascii_alphanumeric() || c == '_')
        })
    })
}
