//! Diagnostics of the sizes in comments.

use tensorwright_lang::Def;
use tensorwright_lang::diagnostic::Diagnostic;

use super::Analysis;
use super::size_comments::SizeComment;

/// The most definitions to bind after each change of the text.
const MAX_BOUND: usize = 100;

impl Analysis {
    /// The diagnostics of binding definitions to the sizes in their comments.
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

/// A command may leave sizes to the shapes of its inputs; it is then skipped.
fn is_complete(given: &SizeComment, def: &Def<'_>) -> bool {
    !given.is_command || def.sizes().iter().all(|size| given.sizes.contains_key(*size))
}
