//! Converts analysis results to protocol types.

use lsp_types::{
    CodeAction, CodeActionKind, CompletionItem, CompletionItemKind, Diagnostic,
    DiagnosticRelatedInformation, DiagnosticSeverity, DiagnosticTag, DocumentSymbol, Location,
    NumberOrString, Range, SymbolKind as Kind, TextEdit, Uri, WorkspaceEdit,
};
use tensorwright_lang::diagnostic::{self as lang, Code, Fix, Severity};

use crate::analysis::{Completion, CompletionKind, Symbol, SymbolKind};
use crate::position::LineIndex;

/// Converts a diagnostic: message, label, notes and help become one text, other labels become
/// related information.
pub(crate) fn diagnostic(
    problem: &lang::Diagnostic,
    uri: &Uri,
    lines: &LineIndex<'_>,
) -> Diagnostic {
    let mut message = problem.message.clone();
    let here = problem.labels.first().filter(|label| !label.text.is_empty());
    let lead = here.map(|label| label.text.clone());
    let notes = problem.notes.iter().map(|note| format!("note: {note}"));
    let help = problem.help.iter().map(|help| format!("help: {help}"));
    for line in lead.into_iter().chain(notes).chain(help) {
        message.push('\n');
        message.push_str(&line);
    }
    let related = problem.labels.iter().skip(1).filter(|label| !label.text.is_empty());
    let related: Vec<DiagnosticRelatedInformation> = related
        .map(|label| DiagnosticRelatedInformation {
            location: Location::new(uri.clone(), lines.range(label.span)),
            message: label.text.clone(),
        })
        .collect();
    let unused = matches!(problem.code, Code::UnusedInput | Code::UnusedResult);
    Diagnostic {
        // A diagnostic without a span is shown at the start of the text.
        range: lines.range(problem.span().unwrap_or_default()),
        severity: Some(match problem.severity() {
            Severity::Error => DiagnosticSeverity::ERROR,
            Severity::Warning => DiagnosticSeverity::WARNING,
        }),
        code: Some(NumberOrString::String(problem.code.to_string())),
        source: Some("tensorwright".to_owned()),
        message,
        related_information: (!related.is_empty()).then_some(related),
        tags: unused.then(|| vec![DiagnosticTag::UNNECESSARY]),
        ..Diagnostic::default()
    }
}

/// Converts a fix to a code action.
pub(crate) fn quick_fix(
    fix: &Fix,
    problem: Diagnostic,
    text: &str,
    uri: &Uri,
    lines: &LineIndex<'_>,
) -> CodeAction {
    let old = text.get(fix.span.start as usize..fix.span.end as usize).unwrap_or_default();
    let new = fix.replacement.trim();
    let title = match (old.is_empty(), new.is_empty()) {
        (true, _) => format!("Insert `{new}`"),
        (false, true) => format!("Remove `{old}`"),
        (false, false) => format!("Replace `{old}` with `{new}`"),
    };
    let edit = TextEdit::new(lines.range(fix.span), fix.replacement.clone());
    #[allow(clippy::mutable_key_type, reason = "the type of the protocol; addresses do not change")]
    let changes = [(uri.clone(), vec![edit])].into_iter().collect();
    CodeAction {
        title,
        kind: Some(CodeActionKind::QUICKFIX),
        diagnostics: Some(vec![problem]),
        edit: Some(WorkspaceEdit::new(changes)),
        is_preferred: Some(true),
        ..CodeAction::default()
    }
}

/// Whether two ranges share a position.
pub(crate) fn touch(a: Range, b: Range) -> bool {
    a.start <= b.end && b.start <= a.end
}

pub(crate) fn symbol(symbol: &Symbol, lines: &LineIndex<'_>) -> DocumentSymbol {
    let children: Vec<DocumentSymbol> =
        symbol.children.iter().map(|child| self::symbol(child, lines)).collect();
    #[allow(deprecated, reason = "a field of the protocol that cannot be left out")]
    DocumentSymbol {
        name: symbol.name.clone(),
        detail: Some(symbol.detail.clone()),
        kind: match symbol.kind {
            SymbolKind::Def | SymbolKind::Function => Kind::FUNCTION,
            SymbolKind::Input => Kind::FIELD,
            SymbolKind::Result | SymbolKind::Intermediate => Kind::VARIABLE,
        },
        tags: None,
        deprecated: None,
        range: lines.range(symbol.span),
        selection_range: lines.range(symbol.name_span),
        children: (!children.is_empty()).then_some(children),
    }
}

/// Converts a completion item; `rank` preserves the order of the analysis.
pub(crate) fn completion(completion: Completion, rank: usize) -> CompletionItem {
    CompletionItem {
        label: completion.label,
        kind: Some(match completion.kind {
            CompletionKind::Tensor => CompletionItemKind::FIELD,
            CompletionKind::Index => CompletionItemKind::VARIABLE,
            CompletionKind::Size => CompletionItemKind::UNIT,
            CompletionKind::Def | CompletionKind::Function => CompletionItemKind::FUNCTION,
            CompletionKind::Constant => CompletionItemKind::CONSTANT,
            CompletionKind::Type => CompletionItemKind::TYPE_PARAMETER,
            CompletionKind::Keyword => CompletionItemKind::KEYWORD,
        }),
        detail: (!completion.detail.is_empty()).then_some(completion.detail),
        sort_text: Some(format!("{rank:05}")),
        ..CompletionItem::default()
    }
}
