// Starts `tensorwright lsp` for `.tc` files and connects it with the editor.
"use strict";

const vscode = require("vscode");
const { LanguageClient } = require("vscode-languageclient/node");

let client;

async function start() {
  const command = vscode.workspace.getConfiguration("tensorwright").get("server");
  const run = { command, args: ["lsp"] };
  const documents = { documentSelector: [{ language: "tensorwright" }] };
  client = new LanguageClient("tensorwright", "Tensorwright", run, documents);
  try {
    await client.start();
  } catch (error) {
    client = undefined;
    vscode.window.showErrorMessage(
      `\`${command} lsp\` cannot be started: ${error.message}. ` +
        "Install tensorwright, or say where it is in the setting `tensorwright.server`."
    );
  }
}

async function stop() {
  const running = client;
  client = undefined;
  await running?.stop();
}

async function restart() {
  await stop();
  await start();
}

async function activate(context) {
  context.subscriptions.push(
    vscode.commands.registerCommand("tensorwright.restart", restart),
    vscode.workspace.onDidChangeConfiguration((change) => {
      if (change.affectsConfiguration("tensorwright.server")) return restart();
    })
  );
  await start();
}

module.exports = { activate, deactivate: stop };
