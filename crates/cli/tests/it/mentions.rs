//! Checks that commands named in pages, examples, help texts and messages exist.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use clap::Command;
use tensorwright_cli::command_line;

/// Files and folders to read, from the root.
const PLACES: [&str; 12] = [
    "README.md",
    "ARCHITECTURE.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "justfile",
    "docs",
    "guide/src",
    "examples",
    "deploy",
    "editors",
    "tests",
    "crates",
];

/// The extensions of files to read.
const ENDS: [&str; 10] =
    ["md", "rs", "py", "tc", "sched", "toml", "yaml", "ipynb", "ts", "justfile"];

/// Folders with texts of other programs.
const SKIPPED: [&str; 4] = ["target", "node_modules", "snapshots", "golden"];

fn texts(path: PathBuf, found: &mut Vec<(PathBuf, String)>) {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    if path.is_dir() {
        if !SKIPPED.contains(&name) {
            let entries = fs::read_dir(&path).unwrap();
            entries.for_each(|entry| texts(entry.unwrap().path(), found));
        }
    } else if ENDS.contains(&name.rsplit('.').next().unwrap_or_default()) {
        // Some examples are invalid UTF-8 on purpose.
        let text = String::from_utf8_lossy(&fs::read(&path).unwrap()).replace("\\\n", " ");
        found.push((path, text));
    }
}

/// The words after the program's name, where it stands alone, after a prompt or in backquotes.
fn named(line: &str) -> Vec<&str> {
    const NAME: &str = "tensorwright ";
    let is_command = |at: usize| {
        let before = line[..at].trim_start_matches([' ', '/', '!', '#', '"']);
        before.is_empty() || before.ends_with('`') || before.ends_with("$ ")
    };
    let places = line.match_indices(NAME).map(|(at, _)| at).filter(|at| is_command(*at));
    places.map(|at| line[at + NAME.len()..].split('`').next().unwrap_or_default()).collect()
}

/// The parts of a line between backquotes.
fn quoted(line: &str) -> impl Iterator<Item = &str> {
    let is_fence = line.trim_start().starts_with("```");
    line.split('`').skip(1).step_by(2).filter(move |_| !is_fence)
}

/// The command line, with global flags in every subcommand.
fn built() -> &'static Command {
    static BUILT: LazyLock<Command> = LazyLock::new(|| {
        let mut command = command_line();
        command.build();
        command
    });
    &BUILT
}

fn subcommand<'c>(command: &'c Command, name: &str) -> Option<&'c Command> {
    command.get_subcommands().find(|command| command.get_name() == name)
}

fn has_flag(command: &Command, flag: &str) -> bool {
    command.get_arguments().any(|argument| argument.get_long() == Some(flag))
}

/// Whether a word can be a subcommand, not a file, placeholder or flag.
fn is_word(word: &str) -> bool {
    word.starts_with(|c: char| c.is_ascii_lowercase())
        && word.chars().all(|c| c.is_ascii_lowercase() || c == '-')
}

/// The error in the words after the program's name, if any.
fn wrong(words: &str) -> Option<String> {
    let mut command = built();
    let ends = |word: &&str| ["|", ">", ">>", "&&", "||", ";", "#", "..."].contains(word);
    let mut words = words.split_whitespace().take_while(|word| !ends(word)).peekable();
    while let Some(word) = words.next_if(|word| is_word(word)) {
        match subcommand(command, word) {
            Some(next) => command = next,
            // Built without the feature.
            None if word == "fleet" => return None,
            None if command.has_subcommands() => {
                return Some(format!("{} has no subcommand {word}", command.get_name()));
            }
            None => break,
        }
    }
    let mut flags = words.filter_map(|word| word.strip_prefix("--")).map(flag_name);
    let unknown = flags.find(|flag| !flag.is_empty() && !has_flag(command, flag))?;
    Some(format!("{} has no --{unknown}", command.get_name()))
}

/// The name of a flag, without its value and punctuation.
fn flag_name(flag: &str) -> &str {
    flag.split(|c: char| !c.is_ascii_lowercase() && c != '-').next().unwrap_or_default()
}

#[test]
fn commands_that_texts_name_exist() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let (mut found, mut mistakes, mut count) = (Vec::new(), Vec::new(), 0);
    PLACES.iter().for_each(|place| texts(root.join(place), &mut found));
    for (path, text) in found.iter().filter(|(path, _)| !path.ends_with("mentions.rs")) {
        for (number, line) in text.lines().enumerate() {
            let starts = |span: &&str| {
                let first = span.split_whitespace().next().unwrap_or_default();
                span.contains(' ') && subcommand(built(), first).is_some()
            };
            for words in named(line).into_iter().chain(quoted(line).filter(starts)) {
                count += 1;
                if let Some(wrong) = wrong(words) {
                    mistakes.push(format!("{}:{}: {wrong}", path.display(), number + 1));
                }
            }
        }
    }
    assert!(count > 300, "only {count} commands are found");
    assert!(mistakes.is_empty(), "{}", mistakes.join("\n"));
}

#[test]
fn commands_are_told_from_other_words() {
    assert_eq!(named("$ tensorwright run a.tc"), ["run a.tc"]);
    assert_eq!(named("see `tensorwright db ls`, `tensorwright tune`"), ["db ls", "tune"]);
    assert_eq!(named("import tensorwright as tw"), [""; 0]);
    assert_eq!(wrong("run a.tc --size N=4 --verify > out --nothing"), None);
    assert_eq!(wrong("db ls --runs"), None);
    assert_eq!(wrong("tun a.tc").as_deref(), Some("tensorwright has no subcommand tun"));
    assert_eq!(wrong("db list").as_deref(), Some("db has no subcommand list"));
    assert_eq!(wrong("run a.tc --verfy").as_deref(), Some("run has no --verfy"));
}
