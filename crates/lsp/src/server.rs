//! The server's message loop.
//!
//! One thread answers requests in order. Before each answer it drains the queue: cancelled requests
//! are skipped, and diagnostics are computed only when the queue is empty, so that fast typing
//! costs one analysis and not one per key.

use std::collections::{HashSet, VecDeque};

use lsp_server::{Connection, ErrorCode, Message, Notification, Request, RequestId, Response};
use lsp_types::notification::{
    Cancel, DidChangeTextDocument, DidCloseTextDocument, DidOpenTextDocument, Exit,
    Notification as Note, PublishDiagnostics,
};
use lsp_types::request::{
    CodeActionRequest, Completion, DocumentSymbolRequest, GotoDefinition, HoverRequest, Initialize,
    Request as Ask, Shutdown,
};
use lsp_types::{
    CancelParams, CodeActionKind, CodeActionOptions, CodeActionProviderCapability,
    CompletionOptions, HoverProviderCapability, InitializeResult, NumberOrString, OneOf,
    PositionEncodingKind, PublishDiagnosticsParams, ServerCapabilities, ServerInfo,
    TextDocumentSyncCapability, TextDocumentSyncKind,
};
use serde_json::Value;

use crate::convert;
use crate::documents::Documents;
use crate::handlers::{self, NotOpen};
use crate::position::LineIndex;

/// How a session ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// The client sent `shutdown` and then `exit`.
    Clean,
    /// The client disconnected, or sent `exit` without `shutdown`.
    Abrupt,
}

/// Serves a client until it sends `exit` or disconnects.
pub fn run(connection: &Connection) -> Ending {
    let mut server = Server {
        connection,
        phase: Phase::Fresh,
        documents: Documents::default(),
        waiting: VecDeque::new(),
        cancelled: HashSet::new(),
    };
    while let Some(message) = server.next() {
        match message {
            Message::Request(request) => server.request(request),
            Message::Notification(note) if note.method == Exit::METHOD => break,
            Message::Notification(note) => server.notification(note),
            // The server sends no requests, so it expects no responses.
            Message::Response(_) => {}
        }
    }
    match server.phase {
        Phase::ShutDown => Ending::Clean,
        Phase::Fresh | Phase::Running => Ending::Abrupt,
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// Before `initialize`.
    Fresh,
    Running,
    /// After `shutdown`.
    ShutDown,
}

struct Server<'c> {
    connection: &'c Connection,
    phase: Phase,
    documents: Documents,
    /// Received but unprocessed messages.
    waiting: VecDeque<Message>,
    /// Queued requests that the client cancelled.
    cancelled: HashSet<RequestId>,
}

/// A result, or the error code and message.
type Answered = Result<Value, (ErrorCode, String)>;

impl Server<'_> {
    /// The next message; `None` if the client has disconnected.
    fn next(&mut self) -> Option<Message> {
        loop {
            self.take_arrived();
            if let Some(message) = self.waiting.pop_front() {
                return Some(message);
            }
            self.publish();
            let message = self.connection.receiver.recv().ok()?;
            self.arrived(message);
        }
    }

    fn take_arrived(&mut self) {
        let arrived: Vec<Message> = self.connection.receiver.try_iter().collect();
        arrived.into_iter().for_each(|message| self.arrived(message));
    }

    /// Queues a message; a cancellation removes its request instead.
    fn arrived(&mut self, message: Message) {
        let Message::Notification(note) = &message else { return self.waiting.push_back(message) };
        if note.method != Cancel::METHOD {
            return self.waiting.push_back(message);
        }
        let Ok(CancelParams { id }) = serde_json::from_value(note.params.clone()) else { return };
        let id = match id {
            NumberOrString::Number(number) => RequestId::from(number),
            NumberOrString::String(text) => RequestId::from(text),
        };
        let waits =
            |other: &Message| matches!(other, Message::Request(request) if request.id == id);
        if self.waiting.iter().any(waits) {
            self.cancelled.insert(id);
        }
    }

    /// Sends a message. The main loop notices a disconnected client.
    fn send(&self, message: impl Into<Message>) {
        let _ = self.connection.sender.send(message.into());
    }

    fn request(&mut self, request: Request) {
        let Request { id, method, params } = request;
        let answer = if self.cancelled.remove(&id) {
            Err((ErrorCode::RequestCanceled, "cancelled by the client".to_owned()))
        } else {
            self.answer(&method, params)
        };
        let result = answer.map_err(|(code, message)| lsp_server::ResponseError {
            code: code as i32,
            message,
            data: None,
        });
        self.send(Response { id, response_result: result });
    }

    fn answer(&mut self, method: &str, params: Value) -> Answered {
        match (self.phase, method) {
            (Phase::Fresh, Initialize::METHOD) => {
                self.phase = Phase::Running;
                return value(&introduction());
            }
            (Phase::Fresh, _) => {
                let message = "the first request is `initialize`".to_owned();
                return Err((ErrorCode::ServerNotInitialized, message));
            }
            (Phase::ShutDown, _) => {
                let message = "only `exit` is allowed after `shutdown`".to_owned();
                return Err((ErrorCode::InvalidRequest, message));
            }
            (Phase::Running, Initialize::METHOD) => {
                let message = "`initialize` was received before".to_owned();
                return Err((ErrorCode::InvalidRequest, message));
            }
            (Phase::Running, Shutdown::METHOD) => {
                self.phase = Phase::ShutDown;
                return Ok(Value::Null);
            }
            (Phase::Running, _) => {}
        }
        let documents = &mut self.documents;
        match method {
            HoverRequest::METHOD => ask::<HoverRequest>(documents, params, handlers::hover),
            GotoDefinition::METHOD => {
                ask::<GotoDefinition>(documents, params, handlers::definition)
            }
            DocumentSymbolRequest::METHOD => {
                ask::<DocumentSymbolRequest>(documents, params, handlers::symbols)
            }
            CodeActionRequest::METHOD => {
                ask::<CodeActionRequest>(documents, params, handlers::quick_fixes)
            }
            Completion::METHOD => ask::<Completion>(documents, params, handlers::completions),
            _ => Err((ErrorCode::MethodNotFound, format!("`{method}` is not known here"))),
        }
    }

    /// Handles a notification; malformed ones are ignored.
    fn notification(&mut self, note: Notification) {
        if self.phase != Phase::Running {
            return;
        }
        match note.method.as_str() {
            DidOpenTextDocument::METHOD => {
                if let Some(params) = told::<DidOpenTextDocument>(note.params) {
                    let document = params.text_document;
                    self.documents.open(document.uri, document.version, document.text);
                }
            }
            DidChangeTextDocument::METHOD => {
                if let Some(params) = told::<DidChangeTextDocument>(note.params) {
                    let document = params.text_document;
                    self.documents.change(&document.uri, document.version, params.content_changes);
                }
            }
            DidCloseTextDocument::METHOD => {
                if let Some(params) = told::<DidCloseTextDocument>(note.params) {
                    let uri = params.text_document.uri;
                    self.documents.close(&uri);
                    self.publish_for(PublishDiagnosticsParams::new(uri, Vec::new(), None));
                }
            }
            _ => {}
        }
    }

    /// Publishes the diagnostics of all changed documents.
    fn publish(&mut self) {
        let mut all = Vec::new();
        for document in self.documents.unpublished() {
            document.unpublished = false;
            let (uri, version) = (document.uri.clone(), document.version);
            let analysis = document.analysis();
            let lines = LineIndex::new(analysis.text());
            let problems = analysis.problems().iter();
            let list = problems.map(|problem| convert::diagnostic(problem, &uri, &lines)).collect();
            all.push(PublishDiagnosticsParams::new(uri, list, Some(version)));
        }
        all.into_iter().for_each(|params| self.publish_for(params));
    }

    fn publish_for(&self, params: PublishDiagnosticsParams) {
        if let Ok(params) = serde_json::to_value(params) {
            self.send(Notification { method: PublishDiagnostics::METHOD.to_owned(), params });
        }
    }
}

/// Parses the parameters of a request, calls its handler, and serializes the result.
fn ask<R: Ask>(
    documents: &mut Documents,
    params: Value,
    answer: impl FnOnce(&mut Documents, R::Params) -> Result<R::Result, NotOpen>,
) -> Answered {
    let params = serde_json::from_value(params)
        .map_err(|error| (ErrorCode::InvalidParams, format!("`{}`: {error}", R::METHOD)))?;
    let result = answer(documents, params)
        .map_err(|NotOpen(uri)| (ErrorCode::InvalidParams, format!("{uri} is not open")))?;
    value(&result)
}

fn told<N: Note>(params: Value) -> Option<N::Params> {
    serde_json::from_value(params).ok()
}

fn value(result: &impl serde::Serialize) -> Answered {
    serde_json::to_value(result).map_err(|error| (ErrorCode::InternalError, error.to_string()))
}

/// The server's capabilities.
fn introduction() -> InitializeResult {
    let quick_fixes = CodeActionOptions {
        code_action_kinds: Some(vec![CodeActionKind::QUICKFIX]),
        ..CodeActionOptions::default()
    };
    let capabilities = ServerCapabilities {
        position_encoding: Some(PositionEncodingKind::UTF16),
        text_document_sync: Some(TextDocumentSyncCapability::Kind(
            TextDocumentSyncKind::INCREMENTAL,
        )),
        hover_provider: Some(HoverProviderCapability::Simple(true)),
        definition_provider: Some(OneOf::Left(true)),
        document_symbol_provider: Some(OneOf::Left(true)),
        code_action_provider: Some(CodeActionProviderCapability::Options(quick_fixes)),
        completion_provider: Some(CompletionOptions::default()),
        ..ServerCapabilities::default()
    };
    let server_info = ServerInfo {
        name: "tensorwright".to_owned(),
        version: Some(env!("CARGO_PKG_VERSION").to_owned()),
    };
    InitializeResult { capabilities, server_info: Some(server_info) }
}
