//! Completion: the names that are valid at an offset.

use std::collections::BTreeSet;

use tensorwright_lang::builtin::{Builtin, CONSTANTS};
use tensorwright_lang::dtype::DType;
use tensorwright_lang::syntax::ast::{self, CONCAT};
use tensorwright_lang::syntax::{prelude, print_expr};

use super::names::{Entity, size_names, targets};
use super::{Analysis, hover};

/// A completion item.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub struct Completion {
    /// The kind of item.
    pub kind: CompletionKind,
    /// The name.
    pub label: String,
    /// A short description.
    pub detail: String,
}

/// The kind of a completion item. The nearest scope comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum CompletionKind {
    /// A tensor of the definition.
    Tensor,
    /// An index variable of the definition.
    Index,
    /// A size of the definition.
    Size,
    /// Another definition.
    Def,
    /// A scalar function, or `concat`.
    Function,
    /// A named constant.
    Constant,
    /// An element type.
    Type,
    /// A keyword.
    Keyword,
}

impl Analysis {
    /// The completions at an offset; none inside a comment.
    #[must_use]
    pub fn completions(&self, offset: u32) -> Vec<Completion> {
        let before = self.text().get(..offset as usize).unwrap_or_default();
        let line = before.rsplit('\n').next().unwrap_or_default();
        if line.contains('#') {
            return Vec::new();
        }
        let mut found: BTreeSet<Completion> = BTreeSet::new();
        let mut offer = |kind, label: &str, detail: String| {
            found.insert(Completion { kind, label: label.to_owned(), detail });
        };
        for dtype in DType::ALL {
            offer(CompletionKind::Type, &dtype.to_string(), "element type".to_owned());
        }
        let Some(number) = self.def_around(offset) else {
            offer(CompletionKind::Keyword, "def", "a definition".to_owned());
            offer(CompletionKind::Keyword, "fn", "a function of numbers".to_owned());
            offer(CompletionKind::Keyword, "const", "values that stay the same".to_owned());
            return found.into_iter().collect();
        };
        for builtin in Builtin::ALL {
            offer(CompletionKind::Function, builtin.name(), builtin.summary().to_owned());
        }
        for function in prelude().iter().chain(&self.tree.functions) {
            offer(CompletionKind::Function, &function.name.name, print_expr(&function.body));
        }
        offer(CompletionKind::Function, CONCAT, hover::CONCAT_SUMMARY.to_owned());
        for (name, value) in CONSTANTS {
            offer(CompletionKind::Constant, name, value.to_string());
        }
        for keyword in ["where", "scan", "from", "scatter", "true", "false"] {
            offer(CompletionKind::Keyword, keyword, String::new());
        }
        for (other, def) in self.tree.defs.iter().enumerate() {
            if other != number {
                offer(CompletionKind::Def, &def.name.name, "definition".to_owned());
            }
        }
        let Some(def) = self.tree.defs.get(number) else { return found.into_iter().collect() };
        for size in size_names(def) {
            offer(CompletionKind::Size, &size.name, "size".to_owned());
        }
        for (name, detail) in tensors(def) {
            offer(CompletionKind::Tensor, name, detail.to_owned());
        }
        for occurrence in &self.names {
            if let Entity::Index { def, name, .. } = &occurrence.entity
                && *def == number
                && !(occurrence.span.start <= offset && offset <= occurrence.span.end)
            {
                offer(CompletionKind::Index, name, "index variable".to_owned());
            }
        }
        found.into_iter().collect()
    }

    /// The definition that contains an offset. Without its `}`, it extends to the next one.
    fn def_around(&self, offset: u32) -> Option<usize> {
        let started = self.tree.defs.partition_point(|def| def.span.start < offset);
        let number = started.checked_sub(1)?;
        let def = self.tree.defs.get(number)?;
        let closed = self.source.slice(def.span).ends_with('}');
        (offset < def.span.end || !closed).then_some(number)
    }
}

/// The tensors of a definition and their kinds, each once.
fn tensors(def: &ast::Def) -> Vec<(&str, &'static str)> {
    let params = def.params.iter().map(|param| (&param.name, "input"));
    let results = def.returns.iter().map(|result| (result, "result"));
    let made = def.body.iter().flat_map(targets).map(|target| (target, "intermediate"));
    let mut seen = BTreeSet::new();
    let all = params.chain(results).chain(made);
    all.map(|(ident, what)| (ident.name.as_str(), what)).filter(|(n, _)| seen.insert(*n)).collect()
}
