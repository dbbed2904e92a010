//! What goes wrong with the sizes that comments give.

use tensorwright_lang::Def;
use tensorwright_lang::diagnostic::Diagnostic;

use super::Analysis;
use super::size_comments::SizeComment;

/// The most definitions that are bound whenever the text changes.
const MAX_BOUND: usize = 100;

impl Analysis {
    /// The problems of binding definitions to the sizes of their comments.
    pub(super) fn binding_problems(&self) -> Vec<Diagnostic> {
        let mut found = Vec::new();
        for (number, given) in self.given.iter().take(MAX_BOUND) {
            let Some(def) = self.def(*number).filter(|def| is_complete(given, def)) else {
                continue;
            };
            if let Err(problems) = def.bind(given.sizes.clone()) {
                let problems = problems.list().iter().cloned();
                found.extend(problems.map(|p| p.label(given.span, "with these sizes")));
            }
        }
        found
    }
}

/// A command may leave sizes to the shapes of its inputs; such a one is passed over.
fn is_complete(given: &SizeComment, def: &Def<'_>) -> bool {
    !given.is_command || def.sizes().iter().all(|size| given.sizes.contains_key(*size))
}
