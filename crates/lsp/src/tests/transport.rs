//! Tests of the server over byte streams.

use crate::{Ending, serve};
use serde_json::{Value, json};

fn message(body: &str) -> Vec<u8> {
    format!("Content-Length: {}\r\n\r\n{body}", body.len()).into_bytes()
}

/// Runs the server on a stream: how it ends, and its responses.
fn conversation(parts: &[Vec<u8>]) -> (Result<Ending, String>, Vec<Value>) {
    let mut output = Vec::new();
    let ending = serve(parts.concat().as_slice(), &mut output).map_err(|error| error.to_string());
    let output = String::from_utf8(output).unwrap();
    let bodies = output.split("Content-Length: ").skip(1).map(|part| {
        let (length, body) = part.split_once("\r\n\r\n").unwrap();
        assert_eq!(length.parse(), Ok(body.len()));
        serde_json::from_str(body).unwrap()
    });
    (ending, bodies.collect())
}

fn request(id: i32, method: &str) -> Vec<u8> {
    message(
        &json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": { "capabilities": {} } })
            .to_string(),
    )
}

fn farewell() -> Vec<u8> {
    [request(99, "shutdown"), message(r#"{"jsonrpc":"2.0","method":"exit"}"#)].concat()
}

#[test]
fn what_is_no_message_is_refused_and_passed_over() {
    let no_json = message(r#"{"jsonrpc": "2.0", "id": 1, "method": "#);
    let no_message = message("[]");
    let no_text = [b"Content-Length: 3\r\n\r\n".to_vec(), vec![0xff, 0xfe, 0xfd]].concat();
    let (ending, answers) =
        conversation(&[request(1, "initialize"), no_json, no_message, no_text, farewell()]);
    assert_eq!(ending, Ok(Ending::Clean));
    let refused = answers.iter().filter(|answer| answer["error"]["code"] == -32700);
    assert_eq!(refused.clone().count(), 3, "{answers:?}");
    for answer in refused {
        assert_eq!(answer["id"], Value::Null);
        assert!(answer["error"]["message"].as_str().unwrap().starts_with("invalid message: "));
    }
    assert!(answers.iter().any(|answer| answer["id"] == 99 && answer["result"].is_null()));
}

#[test]
fn headers_may_come_in_any_order_and_case() {
    let body = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"capabilities":{}}}"#;
    let header = format!(
        "Content-Type: application/vscode-jsonrpc; charset=utf-8\r\ncontent-length:{}\r\n\r\n",
        body.len()
    );
    let (ending, answers) =
        conversation(&[header.into_bytes(), body.as_bytes().to_vec(), farewell()]);
    assert_eq!(ending, Ok(Ending::Clean));
    assert_eq!(answers[0]["result"]["serverInfo"]["name"], "tensorwright");
}

#[test]
fn a_message_that_is_too_long_is_skipped() {
    let long = message(&" ".repeat((64 << 20) + 1));
    let (ending, answers) = conversation(&[request(1, "initialize"), long, farewell()]);
    assert_eq!(ending, Ok(Ending::Clean));
    let message = "invalid message: it has 67108865 bytes, and at most 67108864 are read";
    assert!(answers.iter().any(|answer| answer["error"]["message"] == message), "{answers:?}");
}

#[test]
fn a_stream_that_ends_or_makes_no_sense_ends_the_server() {
    assert_eq!(conversation(&[]).0, Ok(Ending::Abrupt));
    assert_eq!(conversation(&[request(1, "initialize")]).0, Ok(Ending::Abrupt));
    let early = [b"Content-Length: 100\r\n\r\n{}".to_vec()];
    assert_eq!(conversation(&early).0, Ok(Ending::Abrupt));
    let absurd = [b"Content-Length: 18446744073709551615\r\n\r\n{}".to_vec()];
    assert_eq!(conversation(&absurd).0, Ok(Ending::Abrupt));
    for (bytes, error) in [
        (b"GET / HTTP/1.1\r\n\r\n".to_vec(), "a header without `:`"),
        (b"X: y\r\n\r\n{}".to_vec(), "a message without its length"),
        (b"Content-Length: many\r\n\r\n{}".to_vec(), "a message without its length"),
        (vec![b'x'; 10_000], "a header that does not end"),
    ] {
        assert_eq!(conversation(&[bytes]).0, Err(error.to_owned()));
    }
}
