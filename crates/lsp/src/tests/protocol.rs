//! Tests of the server over an in-memory connection.

use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::{Ending, run};
use lsp_server::{Connection, ErrorCode, Message, Notification, Request, RequestId, Response};
use serde_json::{Value, json};

const URI: &str = "file:///k.tc";

struct Client {
    connection: Connection,
    server: JoinHandle<Ending>,
    next: i32,
    /// Diagnostics that arrived before a response.
    published: Vec<Value>,
}

impl Client {
    fn new() -> Self {
        let (theirs, connection) = Connection::memory();
        let server = thread::spawn(move || run(&theirs));
        Self { connection, server, next: 0, published: Vec::new() }
    }

    /// A client and the connection of a server that has not started: all messages sent before are
    /// queued when it starts.
    fn waiting() -> (Self, Connection) {
        let (theirs, connection) = Connection::memory();
        let server = thread::spawn(|| Ending::Abrupt);
        let mut client = Self { connection, server, next: 0, published: Vec::new() };
        client.request("initialize", json!({ "capabilities": {} }));
        (client, theirs)
    }

    fn start(&mut self, theirs: Connection) {
        self.server = thread::spawn(move || run(&theirs));
        self.answer(&RequestId::from(1)).unwrap();
    }

    fn initialized() -> Self {
        let mut client = Self::new();
        client.ask("initialize", json!({ "capabilities": {} })).unwrap();
        client.tell("initialized", json!({}));
        client
    }

    fn open(text: &str) -> Self {
        let mut client = Self::initialized();
        client.open_another(URI, text);
        client
    }

    fn open_another(&mut self, uri: &str, text: &str) {
        let document =
            json!({ "uri": uri, "languageId": "tensorwright", "version": 1, "text": text });
        self.tell("textDocument/didOpen", json!({ "textDocument": document }));
    }

    fn send(&self, message: impl Into<Message>) {
        self.connection.sender.send(message.into()).unwrap();
    }

    fn tell(&self, method: &str, params: Value) {
        self.send(Notification { method: method.to_owned(), params });
    }

    fn receive(&self) -> Message {
        self.connection.receiver.recv_timeout(Duration::from_secs(60)).unwrap()
    }

    fn request(&mut self, method: &str, params: Value) -> RequestId {
        self.next += 1;
        let id = RequestId::from(self.next);
        self.send(Request { id: id.clone(), method: method.to_owned(), params });
        id
    }

    /// The response to a request: its result, or its error code and message.
    fn answer(&mut self, id: &RequestId) -> Result<Value, (i32, String)> {
        loop {
            match self.receive() {
                Message::Response(Response { id: other, response_result }) => {
                    assert_eq!(other, *id, "answers come in order");
                    return response_result.map_err(|error| (error.code, error.message));
                }
                Message::Notification(note) => self.published.push(note.params),
                Message::Request(request) => panic!("the server asks nothing: {request:?}"),
            }
        }
    }

    fn ask(&mut self, method: &str, params: Value) -> Result<Value, (i32, String)> {
        let id = self.request(method, params);
        self.answer(&id)
    }

    /// Sends a request about a position.
    fn at(&mut self, method: &str, line: u32, character: u32) -> Value {
        let position = json!({ "line": line, "character": character });
        self.ask(method, json!({ "textDocument": { "uri": URI }, "position": position })).unwrap()
    }

    /// The next diagnostics that the server publishes.
    fn diagnostics(&mut self) -> Value {
        if !self.published.is_empty() {
            return self.published.remove(0);
        }
        match self.receive() {
            Message::Notification(note) => note.params,
            other => panic!("diagnostics are awaited, and came: {other:?}"),
        }
    }

    fn change(&self, version: i32, changes: Value) {
        let document = json!({ "uri": URI, "version": version });
        let params = json!({ "textDocument": document, "contentChanges": changes });
        self.tell("textDocument/didChange", params);
    }

    fn shutdown(mut self) -> Ending {
        assert_eq!(self.ask("shutdown", Value::Null), Ok(Value::Null));
        self.tell("exit", Value::Null);
        self.server.join().unwrap()
    }
}

fn range(line: u32, from: u32, to: u32) -> Value {
    let at = |character| json!({ "line": line, "character": character });
    json!({ "start": at(from), "end": at(to) })
}

#[test]
fn a_session_from_a_mistake_to_its_fix() {
    let mut client =
        Client::open("# größe 😀\ndef f(float(N) A) -> (B) { B(i) max=! A(2 * i + k) }\n");
    let diagnostics = client.diagnostics();
    insta::assert_json_snapshot!("diagnostics", diagnostics);
    let params = json!({
        "textDocument": { "uri": URI },
        "range": range(1, 40, 41),
        "context": { "diagnostics": [] },
    });
    let actions = client.ask("textDocument/codeAction", params).unwrap();
    insta::assert_json_snapshot!("quick_fix", actions);
    let edit = &actions[0]["edit"]["changes"][URI][0];
    client.change(2, json!([{ "range": edit["range"], "text": edit["newText"] }]));
    let diagnostics = client.diagnostics();
    assert_eq!(diagnostics["version"], 2);
    assert_eq!(diagnostics["diagnostics"], json!([]));
    let hover = client.at("textDocument/hover", 1, 29);
    assert!(hover["contents"]["value"].as_str().unwrap().contains("0 <= i < (N - 2) / 2 + 1"));
    assert_eq!(hover["range"], range(1, 29, 30));
    let definition = client.at("textDocument/definition", 1, 39);
    assert_eq!(definition, json!({ "uri": URI, "range": range(1, 15, 16) }));
    assert_eq!(client.shutdown(), Ending::Clean);
}

#[test]
fn positions_count_utf16_units_on_the_line_itself() {
    // Names are ASCII, so only a comment can shift what stands on its line: the next change does.
    let mut client = Client::open("# ü😀x\ndef f(float(N) A) -> (B) { B(i) = A(i) } # 😀\n");
    assert_eq!(client.diagnostics()["diagnostics"], json!([]));
    // After the emoji: 2 units each for `😀`, one for everything else.
    client.change(2, json!([{ "range": range(0, 5, 6), "text": "\n" }]));
    client.change(3, json!([{ "range": range(2, 43, 45), "text": "\n[" }]));
    loop {
        let diagnostics = client.diagnostics();
        if diagnostics["version"] == 3 {
            assert_eq!(diagnostics["diagnostics"][0]["range"], range(3, 0, 1));
            break;
        }
    }
    assert_eq!(client.shutdown(), Ending::Clean);
}

#[test]
fn the_outline_and_completions_are_answered() {
    let mut client = Client::open("def f(float(N) A) -> (B) {\n  B(i) = A(i) + \n}\n");
    let symbols =
        client.ask("textDocument/documentSymbol", json!({ "textDocument": { "uri": URI } }));
    let symbols = symbols.unwrap();
    assert_eq!(symbols[0]["name"], "f");
    assert_eq!(symbols[0]["selectionRange"], range(0, 4, 5));
    assert_eq!(symbols[0]["children"][0]["detail"], "float(N) A");
    let completions = client.at("textDocument/completion", 1, 16);
    let labels: Vec<&str> = completions
        .as_array()
        .unwrap()
        .iter()
        .map(|item| item["label"].as_str().unwrap())
        .collect();
    assert!(labels.starts_with(&["A", "B"]) && labels.contains(&"sqrt"), "{labels:?}");
    assert_eq!(client.shutdown(), Ending::Clean);
}

#[test]
fn what_cannot_be_answered_is_refused_and_the_conversation_goes_on() {
    let mut client = Client::new();
    let code = |answer: Result<Value, (i32, String)>| answer.unwrap_err();
    let at = json!({ "textDocument": { "uri": URI }, "position": { "line": 0, "character": 0 } });
    let early = code(client.ask("textDocument/hover", at.clone()));
    assert_eq!(
        early,
        (ErrorCode::ServerNotInitialized as i32, "the first request is `initialize`".to_owned())
    );
    client.ask("initialize", json!({ "capabilities": {} })).unwrap();
    let unknown = code(client.ask("textDocument/hover", at));
    assert_eq!(unknown, (ErrorCode::InvalidParams as i32, format!("{URI} is not open")));
    let strange = code(client.ask("textDocument/strange", Value::Null));
    let message = "`textDocument/strange` is not known here".to_owned();
    assert_eq!(strange, (ErrorCode::MethodNotFound as i32, message));
    let wrong = code(client.ask("textDocument/hover", json!({ "textDocument": 7 })));
    assert_eq!(wrong.0, ErrorCode::InvalidParams as i32);
    client.tell("textDocument/didOpen", json!({ "textDocument": [] }));
    client.tell("textDocument/didChange", json!("?"));
    client.change(3, json!([{ "text": "never opened" }]));
    assert_eq!(client.ask("shutdown", Value::Null), Ok(Value::Null));
    let late = code(client.ask("shutdown", Value::Null));
    assert_eq!(late.0, ErrorCode::InvalidRequest as i32);
    client.tell("exit", Value::Null);
    assert_eq!(client.server.join().unwrap(), Ending::Clean);
}

#[test]
fn a_client_that_goes_away_ends_the_server() {
    let client = Client::open("def f");
    let Client { connection, server, .. } = client;
    drop(connection);
    assert_eq!(server.join().unwrap(), Ending::Abrupt);
    let client = Client::initialized();
    client.tell("exit", Value::Null);
    assert_eq!(client.server.join().unwrap(), Ending::Abrupt, "exit without shutdown");
}

#[test]
fn cancelled_requests_are_answered_as_such() {
    let (mut client, theirs) = Client::waiting();
    client.open_another(URI, "def f(float(N) A) -> (B) { B(i) = A(i) }");
    let at = json!({ "textDocument": { "uri": URI }, "position": { "line": 0, "character": 4 } });
    let cancelled = client.request("textDocument/hover", at.clone());
    client.tell("$/cancelRequest", json!({ "id": 2 }));
    client.tell("$/cancelRequest", json!({ "id": 77 }));
    client.tell("$/cancelRequest", json!("?"));
    let kept = client.request("textDocument/hover", at);
    client.start(theirs);
    let answer = client.answer(&cancelled).unwrap_err();
    assert_eq!(answer, (ErrorCode::RequestCanceled as i32, "cancelled by the client".to_owned()));
    assert!(client.answer(&kept).unwrap()["contents"]["value"].as_str().unwrap().contains("def f"));
    assert_eq!(client.shutdown(), Ending::Clean);
}

#[test]
fn fast_typing_costs_one_analysis() {
    let (mut client, theirs) = Client::waiting();
    client.open_another(URI, "");
    for version in 2..=200 {
        client.change(version, json!([{ "text": "d".repeat(version as usize) }]));
    }
    client.start(theirs);
    assert_eq!(client.diagnostics()["version"], 200);
    assert_eq!(client.shutdown(), Ending::Clean);
}

#[test]
fn huge_texts_are_answered() {
    let def = "def f(float(N) A) -> (B) { B(i) = A(i) }\n";
    let mut client = Client::open(&"x".repeat(5 << 20));
    assert_eq!(client.diagnostics()["diagnostics"][0]["code"], "E0107");
    client.change(2, json!([{ "text": def.repeat((1 << 20) / def.len()) }]));
    assert_eq!(client.diagnostics()["diagnostics"].as_array().unwrap().len(), 50);
    let hover = client.at("textDocument/hover", 20_000, 34);
    assert!(hover["contents"].is_object(), "{hover}");
    client.ask("textDocument/documentSymbol", json!({ "textDocument": { "uri": URI } })).unwrap();
    client.tell("textDocument/didClose", json!({ "textDocument": { "uri": URI } }));
    assert_eq!(client.diagnostics()["diagnostics"], json!([]), "what is closed has no problems");
    assert_eq!(client.shutdown(), Ending::Clean);
}
