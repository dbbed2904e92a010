//! The part of a text that is free of errors, so that one mistake does not silence an editor.

use tensorwright_lang::Module;
use tensorwright_lang::diagnostic::{Diagnostic, Severity};
use tensorwright_lang::source::Source;
use tensorwright_lang::syntax::ast;

/// How often definitions with errors are left out: each time, what calls them has errors next.
const ROUNDS: usize = 4;

/// Longer texts are not read again while somebody types.
const MAX_BYTES: usize = 100_000;

/// The text without its definitions that have errors, all others in their places.
pub(super) fn error_free_module(
    source: &Source,
    tree: &ast::Module,
    problems: &[Diagnostic],
) -> Option<Module> {
    if source.text().len() > MAX_BYTES {
        return None;
    }
    let mut broken = vec![false; tree.defs.len()];
    let mut problems = problems.to_vec();
    for _ in 0..ROUNDS {
        for problem in problems.iter().filter(|problem| problem.severity() == Severity::Error) {
            let Some(span) = problem.span() else { continue };
            for (def, broken) in tree.defs.iter().zip(&mut broken) {
                *broken |= def.span.contains(span);
            }
        }
        match Module::parse(source.name(), &without(source.text(), tree, &broken)) {
            Ok(module) => return Some(module),
            Err(more) => problems = more.list().to_vec(),
        }
    }
    None
}

/// Blanks instead of everything but functions and sound definitions, which stay at their offsets.
fn without(text: &str, tree: &ast::Module, broken: &[bool]) -> String {
    let mut kept = String::with_capacity(text.len());
    let functions = tree.functions.iter().map(|function| function.span);
    let sound = tree.defs.iter().zip(broken).filter(|(_, broken)| !**broken);
    let mut spans: Vec<_> = functions.chain(sound.map(|(def, _)| def.span)).collect();
    spans.sort();
    for span in spans {
        let (start, end) = (span.start as usize, span.end as usize);
        if kept.len() <= start {
            kept.extend(std::iter::repeat_n(' ', start - kept.len()));
            kept.push_str(text.get(start..end).unwrap_or_default());
        }
    }
    kept
}
