//! Editor queries on a source text, independent of any protocol.
//!
//! ```
//! use tensorwright_lsp::analysis::Analysis;
//!
//! let text = "def scale(float(N) A) -> (B) { B(i) = 2 * A(i) }";
//! let analysis = Analysis::new("scale.tc", text);
//! assert!(analysis.problems().is_empty());
//! let hover = analysis.hover(text.find("i)").unwrap() as u32).unwrap();
//! assert!(hover.markdown.contains("0 <= i < N"));
//! ```

mod accesses;
mod affine;
mod bound;
mod completion;
mod error_free;
mod extents;
mod hover;
mod names;
mod poly;
mod problems;
mod samples;
mod size_comments;
mod symbols;

pub use completion::{Completion, CompletionKind};
pub use hover::Hover;
pub use symbols::{Symbol, SymbolKind};

use std::cell::OnceCell;
use std::collections::BTreeMap;

use tensorwright_lang::diagnostic::{Diagnostic, Diagnostics};
use tensorwright_lang::source::{Source, Span};
use tensorwright_lang::syntax::{self, ast};
use tensorwright_lang::{Def, Module};

use extents::Extents;
use names::Occurrence;
use samples::Sample;
use size_comments::SizeComment;

/// A text and its analysis. Ranges are inferred on first use.
#[derive(Debug)]
pub struct Analysis {
    source: Source,
    tree: ast::Module,
    problems: Diagnostics,
    /// The error-free definitions.
    checked: Option<Module>,
    names: Vec<Occurrence>,
    /// The sizes from comments, by definition.
    given: BTreeMap<usize, SizeComment>,
    /// Per definition.
    inferred: Vec<OnceCell<Inferred>>,
}

/// Ranges and shapes of a definition: for some sizes, and as formulas.
#[derive(Debug, Default)]
struct Inferred {
    samples: Vec<Sample>,
    extents: Extents,
}

/// Definitions with more statements get numbers only, no formulas.
const MAX_STATEMENTS: usize = 400;

impl Analysis {
    /// Parses and checks a text; `name` is what diagnostics call it.
    #[must_use]
    pub fn new(name: &str, text: &str) -> Self {
        let source = Source::new(name, text);
        let (tree, _) = syntax::parse(&source);
        let (checked, mut problems) = match Module::parse(name, text) {
            Ok(module) => {
                let warnings = module.warnings();
                (Some(module), warnings)
            }
            Err(problems) => {
                (error_free::error_free_module(&source, &tree, problems.list()), problems)
            }
        };
        let names = names::occurrences(&tree);
        let given = size_comments::size_comments(text, &tree);
        let inferred = tree.defs.iter().map(|_| OnceCell::new()).collect();
        let mut analysis = Self {
            source: source.clone(),
            tree,
            problems: Diagnostics::new(source.clone(), Vec::new()),
            checked,
            names,
            given,
            inferred,
        };
        let binding = analysis.binding_problems();
        if !binding.is_empty() {
            let all = problems.list().iter().cloned().chain(binding).collect();
            problems = Diagnostics::new(source, all);
        }
        analysis.problems = problems;
        analysis
    }

    /// The text.
    #[must_use]
    pub fn text(&self) -> &str {
        self.source.text()
    }

    /// The diagnostics of the text and of the sizes in its comments.
    #[must_use]
    pub fn problems(&self) -> &[Diagnostic] {
        self.problems.list()
    }

    /// Where the name at an offset is defined.
    #[must_use]
    pub fn definition(&self, offset: u32) -> Option<Span> {
        names::definition(&self.tree, &names::at(&self.names, offset)?.entity)
    }

    /// A definition, if it is error-free.
    fn def(&self, number: usize) -> Option<Def<'_>> {
        let span = self.tree.defs.get(number)?.span;
        self.checked.as_ref()?.defs().find(|def| def.span() == span)
    }

    /// The ranges and shapes of a definition.
    fn inferred(&self, number: usize) -> Option<&Inferred> {
        let def = self.def(number)?;
        let infer = || {
            let given = self.given.get(&number).map(|given| &given.sizes);
            let samples = samples::samples(&def, given);
            // A definition that binds has no deep chain of calls.
            if samples.is_empty() || def.statements() > MAX_STATEMENTS {
                return Inferred { samples, ..Inferred::default() };
            }
            let callee = |number: usize| Some(&self.inferred(number)?.extents);
            let extents = extents::extents(&self.tree, number, &samples, &callee);
            Inferred { samples, extents }
        };
        Some(self.inferred.get(number)?.get_or_init(infer))
    }
}
