//! Checks the error-free definitions of a text that has errors.

use tensorwright_lang::Module;
use tensorwright_lang::diagnostic::{Diagnostic, Severity};
use tensorwright_lang::source::Source;
use tensorwright_lang::syntax::ast;

/// The most passes that remove definitions with errors: each pass can expose errors in their
/// callers.
const ROUNDS: usize = 4;

/// Longer texts are not checked again, to keep typing responsive.
const MAX_BYTES: usize = 100_000;

/// The module of the error-free definitions, with their offsets unchanged.
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

/// Replaces everything but functions and error-free definitions by blanks, so that offsets stay.
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
