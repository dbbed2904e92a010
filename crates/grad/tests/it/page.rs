//! Runs the examples of `docs/differentiation.md`.
//!
//! A block `tc grad=f` is followed by its gradient; with `error=E1101` it is rejected with that
//! code. `UPDATE_PAGE=1` in the environment rewrites the gradients on the page, to be reviewed as a
//! diff.

use std::path::{Path, PathBuf};

use tensorwright_grad::grad;
use tensorwright_lang::Module;

fn page() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/differentiation.md")
}

/// The options in the info string of a block.
fn word<'i>(info: &'i str, key: &str) -> Option<&'i str> {
    info.split_whitespace().find_map(|word| word.strip_prefix(key)?.strip_prefix('='))
}

/// The gradient of a program, or the code of its error.
fn answer(info: &str, text: &str) -> Result<String, String> {
    let module = Module::parse("page.tc", text).map_err(|error| error.to_string())?;
    let wrt: Vec<&str> = word(info, "wrt").into_iter().flat_map(|list| list.split(',')).collect();
    let def = word(info, "grad").unwrap();
    match (grad(&module, def, &wrt), word(info, "error")) {
        (Ok(gradient), None) => Ok(gradient.source().to_owned()),
        (Err(error), Some(code)) if error.list()[0].code.id() == code => Ok(String::new()),
        (Ok(gradient), Some(_)) => Err(gradient.source().to_owned()),
        (Err(error), _) => Err(error.to_string()),
    }
}

#[test]
fn the_gradients_on_the_page_are_those_that_are_printed() {
    let text = std::fs::read_to_string(page()).unwrap();
    let mut rewritten = String::new();
    let mut expected: Option<String> = None;
    let mut count = 0;
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        rewritten += &format!("{line}\n");
        let Some(info) = line.strip_prefix("```").filter(|info| !info.is_empty()) else { continue };
        let body: Vec<&str> = lines.by_ref().take_while(|line| *line != "```").collect();
        let body: String = body.iter().map(|line| format!("{line}\n")).collect();
        if word(info, "grad").is_some() {
            assert_eq!(expected, None, "a gradient is missing before `{line}`");
            let found = answer(info, &body).unwrap_or_else(|error| panic!("{line}\n{error}"));
            expected = (!found.is_empty()).then_some(found);
            count += 1;
            rewritten += &body;
        } else if let Some(gradient) = expected.take().filter(|_| info == "tc") {
            rewritten += &gradient;
        } else {
            rewritten += &body;
        }
        rewritten += "```\n";
    }
    assert!(count >= 5, "the page has only {count} examples");
    if std::env::var_os("UPDATE_PAGE").is_some() {
        std::fs::write(page(), &rewritten).unwrap();
    } else {
        assert_eq!(text, rewritten);
    }
}
