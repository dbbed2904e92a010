//! Every offered fix resolves its diagnostic.

use std::path::Path;

use crate::Module;
use crate::diagnostic::{Diagnostic, Fix};

/// The value of an option in the first line of a program: `# $ tensorwright explain FILE --def f`.
fn option<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let mut words = text.lines().next()?.split_whitespace();
    words.find(|word| *word == name)?;
    words.next()
}

/// The diagnostics that the first line of a program requests: of the text, or of its binding.
fn diagnostics(text: &str) -> Vec<Diagnostic> {
    let module = match Module::parse("program.tc", text) {
        Err(diagnostics) => return diagnostics.list().to_vec(),
        Ok(module) => module,
    };
    let Some(def) = option(text, "--def") else { return module.warnings().list().to_vec() };
    let sizes = option(text, "--size").unwrap_or_default().split(',').filter_map(|pair| {
        let (name, value) = pair.split_once('=')?;
        Some((name.to_owned(), value.parse().ok()?))
    });
    match module.bind(def, sizes) {
        Err(diagnostics) => diagnostics.list().to_vec(),
        Ok(_) => Vec::new(),
    }
}

fn apply(text: &str, fix: &Fix) -> String {
    let (start, end) = (fix.span.start as usize, fix.span.end as usize);
    format!("{}{}{}", &text[..start], fix.replacement, &text[end..])
}

#[test]
fn a_fix_removes_its_diagnostic() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/diagnostics");
    let mut tried = 0;
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "tc") {
            continue;
        }
        // A text that is not UTF-8 has no fix.
        let Ok(text) = std::fs::read_to_string(&path) else { continue };
        let found = diagnostics(&text);
        let [diagnostic] = found.as_slice() else { continue };
        let Some(fix) = &diagnostic.fix else { continue };
        tried += 1;
        let mended = apply(&text, fix);
        let left = diagnostics(&mended);
        let remains = left.iter().any(|other| other.code == diagnostic.code);
        assert!(!remains, "{}\n{mended}\n{left:#?}", path.display());
    }
    assert!(tried >= 20, "only {tried} programs offer a fix");
}
