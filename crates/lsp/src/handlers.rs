//! Request handlers, one function per request.

use lsp_types::{
    CodeActionOrCommand, CodeActionParams, CodeActionResponse, CompletionParams,
    CompletionResponse, DocumentSymbolParams, DocumentSymbolResponse, GotoDefinitionParams,
    GotoDefinitionResponse, Hover, HoverContents, HoverParams, Location, MarkupContent, MarkupKind,
    TextDocumentPositionParams, Uri,
};

use crate::analysis::Analysis;
use crate::convert;
use crate::documents::Documents;
use crate::position::LineIndex;

/// The error of a request: the document is not open.
pub(crate) struct NotOpen(pub(crate) String);

type Answer<T> = Result<Option<T>, NotOpen>;

fn analysis<'d>(documents: &'d mut Documents, uri: &Uri) -> Result<&'d Analysis, NotOpen> {
    match documents.get(uri) {
        Some(document) => Ok(document.analysis()),
        None => Err(NotOpen(uri.as_str().to_owned())),
    }
}

/// The analysis of a document, its line index, and the byte offset of the position.
fn located<'d>(
    documents: &'d mut Documents,
    at: &TextDocumentPositionParams,
) -> Result<(&'d Analysis, LineIndex<'d>, u32), NotOpen> {
    let analysis = analysis(documents, &at.text_document.uri)?;
    let lines = LineIndex::new(analysis.text());
    let offset = lines.offset(at.position) as u32;
    Ok((analysis, lines, offset))
}

pub(crate) fn hover(documents: &mut Documents, params: HoverParams) -> Answer<Hover> {
    let (analysis, lines, offset) = located(documents, &params.text_document_position_params)?;
    Ok(analysis.hover(offset).map(|hover| Hover {
        contents: HoverContents::Markup(MarkupContent {
            kind: MarkupKind::Markdown,
            value: hover.markdown,
        }),
        range: Some(lines.range(hover.span)),
    }))
}

pub(crate) fn definition(
    documents: &mut Documents,
    params: GotoDefinitionParams,
) -> Answer<GotoDefinitionResponse> {
    let at = params.text_document_position_params;
    let (analysis, lines, offset) = located(documents, &at)?;
    let uri = at.text_document.uri;
    Ok(analysis
        .definition(offset)
        .map(|span| GotoDefinitionResponse::Scalar(Location::new(uri, lines.range(span)))))
}

pub(crate) fn symbols(
    documents: &mut Documents,
    params: DocumentSymbolParams,
) -> Answer<DocumentSymbolResponse> {
    let analysis = analysis(documents, &params.text_document.uri)?;
    let lines = LineIndex::new(analysis.text());
    let symbols = analysis.symbols().iter().map(|symbol| convert::symbol(symbol, &lines)).collect();
    Ok(Some(DocumentSymbolResponse::Nested(symbols)))
}

pub(crate) fn completions(
    documents: &mut Documents,
    params: CompletionParams,
) -> Answer<CompletionResponse> {
    let (analysis, _, offset) = located(documents, &params.text_document_position)?;
    let names = analysis.completions(offset).into_iter().enumerate();
    let items = names.map(|(rank, name)| convert::completion(name, rank)).collect();
    Ok(Some(CompletionResponse::Array(items)))
}

/// The quick fixes of the diagnostics that overlap a range.
pub(crate) fn quick_fixes(
    documents: &mut Documents,
    params: CodeActionParams,
) -> Answer<CodeActionResponse> {
    let uri = params.text_document.uri;
    let analysis = analysis(documents, &uri)?;
    let lines = LineIndex::new(analysis.text());
    let fixes = analysis.problems().iter().filter_map(|problem| {
        let fix = problem.fix.as_ref()?;
        let shown = convert::diagnostic(problem, &uri, &lines);
        convert::touch(shown.range, params.range).then(|| {
            let action = convert::quick_fix(fix, shown, analysis.text(), &uri, &lines);
            CodeActionOrCommand::CodeAction(action)
        })
    });
    Ok(Some(fixes.collect()))
}
