//! The outline of a text: definitions, and the tensors in them.

use std::collections::HashSet;

use tensorwright_lang::source::Span;
use tensorwright_lang::syntax::{ast, print_expr};

use super::{Analysis, names};

/// An entry of the outline.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Symbol {
    /// The name.
    pub name: String,
    /// The kind of entry.
    pub kind: SymbolKind,
    /// A short description.
    pub detail: String,
    /// The whole item.
    pub span: Span,
    /// Its name.
    pub name_span: Span,
    /// Nested entries.
    pub children: Vec<Symbol>,
}

/// The kind of an outline entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SymbolKind {
    /// A `def`.
    Def,
    /// A `fn`.
    Function,
    /// A parameter.
    Input,
    /// A computed tensor that is returned.
    Result,
    /// A computed tensor that is not returned.
    Intermediate,
}

impl Analysis {
    /// The outline of the text.
    #[must_use]
    pub fn symbols(&self) -> Vec<Symbol> {
        let functions = self.tree.functions.iter().map(function_symbol);
        let defs = self.tree.defs.iter().map(|def| self.def_symbol(def));
        let mut symbols: Vec<Symbol> = functions.chain(defs).collect();
        symbols.sort_by_key(|symbol| symbol.span);
        symbols
    }

    fn def_symbol(&self, def: &ast::Def) -> Symbol {
        let inputs = def.params.iter().map(|param| Symbol {
            name: param.name.name.clone(),
            kind: SymbolKind::Input,
            detail: self.source.slice(param.span).to_owned(),
            span: param.span,
            name_span: param.name.span,
            children: Vec::new(),
        });
        let mut children: Vec<Symbol> = inputs.collect();
        let results: Vec<&str> = def.returns.iter().map(|result| result.name.as_str()).collect();
        let mut seen: HashSet<&str> = def.params.iter().map(|p| p.name.name.as_str()).collect();
        for stmt in &def.body {
            // The first statement that writes a tensor represents it.
            let targets = names::targets(stmt).iter();
            for target in targets.filter(|target| seen.insert(&target.name)) {
                children.push(made(stmt, target, results.contains(&target.name.as_str())));
            }
        }
        Symbol {
            name: def.name.name.clone(),
            kind: SymbolKind::Def,
            detail: format!("-> ({})", results.join(", ")),
            span: def.span,
            name_span: def.name.span,
            children,
        }
    }
}

fn made(stmt: &ast::Stmt, target: &ast::Ident, is_result: bool) -> Symbol {
    let (kind, detail) = match is_result {
        true => (SymbolKind::Result, "result"),
        false => (SymbolKind::Intermediate, "intermediate"),
    };
    Symbol {
        name: target.name.clone(),
        kind,
        detail: detail.to_owned(),
        span: stmt.span(),
        name_span: target.span,
        children: Vec::new(),
    }
}

fn function_symbol(function: &ast::Function) -> Symbol {
    Symbol {
        name: function.name.name.clone(),
        kind: SymbolKind::Function,
        detail: print_expr(&function.body),
        span: function.span,
        name_span: function.name.span,
        children: Vec::new(),
    }
}
