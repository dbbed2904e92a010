// The language server, by the client library that editors use.
"use strict";

const assert = require("node:assert/strict");
const { spawn } = require("node:child_process");
const fs = require("node:fs");
const path = require("node:path");
const test = require("node:test");
const lsp = require("vscode-languageserver-protocol/node");

const EXAMPLES = path.join(__dirname, "../../../examples");

class Session {
  constructor() {
    this.process = spawn(process.env.TENSORWRIGHT, ["lsp"], { stdio: ["pipe", "pipe", "inherit"] });
    this.exited = new Promise((resolve) => this.process.on("exit", resolve));
    this.connection = lsp.createProtocolConnection(
      new lsp.StreamMessageReader(this.process.stdout),
      new lsp.StreamMessageWriter(this.process.stdin)
    );
    this.published = [];
    this.waiting = [];
    this.connection.onNotification(lsp.PublishDiagnosticsNotification.type, (params) => {
      const next = this.waiting.shift();
      next ? next(params) : this.published.push(params);
    });
    this.connection.listen();
  }

  async initialize() {
    const params = { processId: process.pid, rootUri: null, capabilities: {} };
    const result = await this.connection.sendRequest(lsp.InitializeRequest.type, params);
    await this.connection.sendNotification(lsp.InitializedNotification.type, {});
    return result;
  }

  // The next diagnostics that the server publishes.
  diagnostics() {
    const ready = this.published.shift();
    return ready ? Promise.resolve(ready) : new Promise((resolve) => this.waiting.push(resolve));
  }

  open(uri, text) {
    const textDocument = { uri, languageId: "tensorwright", version: 1, text };
    return this.connection.sendNotification(lsp.DidOpenTextDocumentNotification.type, { textDocument });
  }

  change(uri, version, contentChanges) {
    const params = { textDocument: { uri, version }, contentChanges };
    return this.connection.sendNotification(lsp.DidChangeTextDocumentNotification.type, params);
  }

  ask(request, params) {
    return this.connection.sendRequest(request.type, params);
  }

  async end() {
    await this.connection.sendRequest(lsp.ShutdownRequest.type);
    await this.connection.sendNotification(lsp.ExitNotification.type);
    assert.equal(await this.exited, 0);
  }
}

const at = (line, character) => ({ line, character });

test("a session from a mistake to its fix", { timeout: 60_000 }, async () => {
  const session = new Session();
  const { capabilities, serverInfo } = await session.initialize();
  assert.equal(serverInfo.name, "tensorwright");
  assert.equal(capabilities.positionEncoding, "utf-16");

  const uri = "file:///kernels/pool.tc";
  const text = "# Größe 😀\ndef pool(float(N) A) -> (B) { B(i) max=! A(2 * i + k) }\n";
  await session.open(uri, text);
  const { diagnostics } = await session.diagnostics();
  assert.equal(diagnostics.length, 1);
  const [mistake] = diagnostics;
  assert.equal(mistake.code, "E0601");
  assert.deepEqual(mistake.range, { start: at(1, 41), end: at(1, 53) });
  assert.match(mistake.message, /help: settle it, for example with `where k in 0:2`/);

  const textDocument = { uri };
  const context = { diagnostics: [mistake] };
  const [fix] = await session.ask(lsp.CodeActionRequest, { textDocument, range: mistake.range, context });
  assert.equal(fix.title, "Insert `where k in 0:2`");
  const [edit] = fix.edit.changes[uri];
  await session.change(uri, 2, [{ range: edit.range, text: edit.newText }]);
  assert.deepEqual((await session.diagnostics()).diagnostics, []);

  const hover = await session.ask(lsp.HoverRequest, { textDocument, position: at(1, 32) });
  assert.match(hover.contents.value, /0 <= i < \(N - 2\) \/ 2 \+ 1/);
  const definition = await session.ask(lsp.DefinitionRequest, { textDocument, position: at(1, 41) });
  assert.deepEqual(definition.range, { start: at(1, 18), end: at(1, 19) });
  const [symbol] = await session.ask(lsp.DocumentSymbolRequest, { textDocument });
  assert.equal(symbol.name, "pool");
  assert.deepEqual(symbol.children.map((child) => child.name), ["A", "B"]);
  const names = await session.ask(lsp.CompletionRequest, { textDocument, position: at(1, 41) });
  assert.ok(names.some((name) => name.label === "sigmoid"));
  await session.end();
});

test("every example is free of problems", { timeout: 120_000 }, async () => {
  const session = new Session();
  await session.initialize();
  const files = ["kernels", "pipelines"].flatMap((folder) =>
    fs.readdirSync(path.join(EXAMPLES, folder)).map((name) => `${folder}/${name}`));
  for (const name of files.filter((file) => file.endsWith(".tc"))) {
    const uri = `file:///${name}`;
    await session.open(uri, fs.readFileSync(path.join(EXAMPLES, name), "utf8"));
    const { uri: about, diagnostics } = await session.diagnostics();
    assert.equal(about, uri);
    const errors = diagnostics.filter((it) => it.severity === lsp.DiagnosticSeverity.Error);
    assert.deepEqual(errors, [], name);
  }
  await session.end();
});

test("what makes no sense does not end the server", { timeout: 60_000 }, async () => {
  const session = new Session();
  await session.initialize();
  const body = '{"jsonrpc":"2.0","id":';
  session.process.stdin.write(`Content-Length: ${body.length}\r\n\r\n${body}`);
  const unknown = { textDocument: { uri: "file:///nowhere.tc" }, position: at(0, 0) };
  await assert.rejects(session.ask(lsp.HoverRequest, unknown), /file:\/\/\/nowhere\.tc is not open/);
  await assert.rejects(session.connection.sendRequest("textDocument/nothing"), /is not known here/);
  const cancel = new lsp.CancellationTokenSource();
  await session.open("file:///big.tc", "def f(float(N) A) -> (B) { B(i) = A(i) }\n".repeat(2_000));
  const position = { textDocument: { uri: "file:///big.tc" }, position: at(0, 4) };
  const request = session.connection.sendRequest(lsp.HoverRequest.type, position, cancel.token);
  cancel.cancel();
  // Cancelled or answered, whichever comes first; but not silence.
  await request.catch((error) => assert.match(error.message, /cancelled by the client/));
  await session.end();
});

test("a client that goes away ends the server", { timeout: 60_000 }, async () => {
  const session = new Session();
  await session.initialize();
  session.process.stdin.end();
  assert.equal(await session.exited, 1);
});
