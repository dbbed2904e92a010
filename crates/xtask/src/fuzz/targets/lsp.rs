//! Messages from editors.
//!
//! An input is a conversation with one message per line, so that mutations need not keep lengths
//! consistent.

use serde_json::json;
use tensorwright_lsp::serve;
use tensorwright_testkit::mutate;

use super::{Input, Reached, Target, texts};

pub(super) const TARGET: Target = Target {
    name: "lsp",
    reads: "messages of editors",
    extension: "jsonl",
    seconds: 10.0,
    corpus,
    mutate,
    run,
};

/// The longest text: longer ones are slow and find nothing new.
const LONGEST: usize = 2_000;

/// Conversations about valid and invalid programs.
fn corpus() -> Vec<Vec<u8>> {
    let all = texts::corpus().into_iter().filter(|text| text.len() < LONGEST);
    let conversation = |(number, text): (usize, Vec<u8>)| {
        let text = String::from_utf8_lossy(&text).into_owned();
        let document = json!({ "uri": "file:///a.tc" });
        let place = json!({ "line": number % 5, "character": 3 * number % 40 });
        let at = json!({ "textDocument": document, "position": place });
        let open = json!({ "uri": "file:///a.tc", "languageId": "tc", "version": 1, "text": text });
        let change = json!([{ "text": text.replace('+', "-") }]);
        let versioned = json!({ "uri": "file:///a.tc", "version": 2 });
        let messages = [
            request(1, "initialize", &json!({ "capabilities": {} })),
            notification("initialized", &json!({})),
            notification("textDocument/didOpen", &json!({ "textDocument": open })),
            request(2, "textDocument/hover", &at),
            request(3, "textDocument/completion", &at),
            request(4, "textDocument/definition", &at),
            request(5, "textDocument/documentSymbol", &json!({ "textDocument": document })),
            notification(
                "textDocument/didChange",
                &json!({ "textDocument": versioned, "contentChanges": change }),
            ),
            request(6, "textDocument/hover", &at),
            request(7, "shutdown", &json!(null)),
            notification("exit", &json!(null)),
        ];
        messages.join("\n").into_bytes()
    };
    all.enumerate().map(conversation).collect()
}

fn request(id: i32, method: &str, params: &serde_json::Value) -> String {
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }).to_string()
}

fn notification(method: &str, params: &serde_json::Value) -> String {
    json!({ "jsonrpc": "2.0", "method": method, "params": params }).to_string()
}

fn run(input: &mut Input) -> Reached {
    let mut bytes = Vec::new();
    for line in input.bytes.split(|byte| *byte == b'\n') {
        // Rarely a wrong length.
        let length = if input.rng.percent(1) { line.len() / 2 } else { line.len() };
        bytes.extend(format!("Content-Length: {length}\r\n\r\n").into_bytes());
        bytes.extend(line);
    }
    let mut output = Vec::new();
    match serve(bytes.as_slice(), &mut output) {
        Ok(_) if output.is_empty() => Reached::Read,
        Ok(_) => Reached::Used,
        Err(_) => Reached::Refused,
    }
}
