// The grammar, by the tokenizer that editors use: every example is tokenised, and nothing that has
// a meaning is left without a scope.
"use strict";

const assert = require("node:assert/strict");
const fs = require("node:fs");
const path = require("node:path");
const test = require("node:test");
const oniguruma = require("vscode-oniguruma");
const textmate = require("vscode-textmate");

const ROOT = path.join(__dirname, "../../..");
const FOLDERS = ["examples/kernels", "examples/pipelines"].map((folder) => path.join(ROOT, folder));
const GRAMMAR = path.join(__dirname, "../syntaxes/tensorwright.tmLanguage.json");

async function loadGrammar() {
  const wasm = fs.readFileSync(require.resolve("vscode-oniguruma/release/onig.wasm"));
  await oniguruma.loadWASM(wasm);
  const registry = new textmate.Registry({
    onigLib: Promise.resolve({
      createOnigScanner: (sources) => new oniguruma.OnigScanner(sources),
      createOnigString: (text) => new oniguruma.OnigString(text),
    }),
    loadGrammar: async () => textmate.parseRawGrammar(fs.readFileSync(GRAMMAR, "utf8"), GRAMMAR),
  });
  return registry.loadGrammar("source.tensorwright");
}

const grammar = loadGrammar();

// The pieces of a text that are not blank, each with its innermost scope: `A variable.other.tensor`.
async function tokens(text) {
  const loaded = await grammar;
  const found = [];
  let state = textmate.INITIAL;
  text.split("\n").forEach((line, number) => {
    const result = loaded.tokenizeLine(line, state);
    state = result.ruleStack;
    for (const { startIndex, endIndex, scopes } of result.tokens) {
      const piece = line.slice(startIndex, endIndex).trim();
      const scope = scopes.at(-1).replace(/\.tensorwright$/, "");
      if (piece !== "") found.push({ piece, scope, line: number + 1 });
    }
  });
  return found;
}

async function scopes(text) {
  return (await tokens(text)).map(({ piece, scope }) => `${piece} ${scope}`);
}

// All of a text but its comments and blanks, found without the grammar.
function code(text) {
  return text.replace(/#.*/g, "").replace(/\s/g, "");
}

const kernels = FOLDERS.flatMap((folder) => fs.readdirSync(folder).map((name) => path.join(folder, name)))
  .filter((name) => name.endsWith(".tc"));

for (const name of kernels) {
  test(`everything in ${path.basename(name)} has a scope`, async () => {
    const text = fs.readFileSync(name, "utf8");
    const found = await tokens(text);
    for (const { piece, scope, line } of found) {
      assert.notEqual(scope, "source", `line ${line}: ${piece} has no scope`);
      assert.ok(!scope.startsWith("invalid"), `line ${line}: ${piece} is ${scope}`);
    }
    // Nothing is lost: what the grammar names is all that the text has.
    const pieces = found.filter(({ scope }) => !scope.startsWith("comment"));
    assert.equal(pieces.map(({ piece }) => piece.replace(/\s/g, "")).join(""), code(text));
    // Comments are comments, all of them.
    const comments = found.filter(({ scope }) => scope.startsWith("comment"));
    const lines = text.split("\n").filter((line) => line.includes("#"));
    assert.equal(comments.length, lines.length);
    for (const { piece, scope, line } of pieces) {
      if (/^[0-9]+$/.test(piece)) assert.match(scope, /^constant\.numeric/, `line ${line}: ${piece}`);
      if (piece === "def") assert.match(scope, /^keyword\.declaration/, `line ${line}`);
      if (piece === "where") assert.match(scope, /^keyword\.control/, `line ${line}`);
    }
  });
}

test("there are kernels", () => assert.ok(kernels.length > 40, `${kernels.length}`));

test("a definition", async () => {
  const text = "def gemm(float(M,4) A, const half B) -> (C) {\n  C(m) +=! A(m,k) * B # sum\n}";
  assert.deepEqual(await scopes(text), [
    "def keyword.declaration.function",
    "gemm entity.name.function",
    "( punctuation.section.parens",
    "float storage.type",
    "( punctuation.section.parens",
    "M variable.other.size",
    ", punctuation.separator",
    "4 constant.numeric.integer",
    ") punctuation.section.parens",
    "A variable.parameter",
    ", punctuation.separator",
    "const storage.modifier.const",
    "half storage.type",
    "B variable.parameter",
    ") punctuation.section.parens",
    "-> keyword.operator.arrow",
    "( punctuation.section.parens",
    "C variable.parameter",
    ") punctuation.section.parens",
    "{ punctuation.section.block.begin",
    "C variable.other.tensor",
    "( punctuation.section.parens",
    "m variable.other",
    ") punctuation.section.parens",
    "+=! keyword.operator.assignment",
    "A variable.other.tensor",
    "( punctuation.section.parens",
    "m variable.other",
    ", punctuation.separator",
    "k variable.other",
    ") punctuation.section.parens",
    "* keyword.operator.arithmetic",
    "B variable.other",
    "# sum comment.line.number-sign",
    "} punctuation.section.block.end",
  ]);
});

test("numbers, and names that start with digits", async () => {
  for (const number of ["12", "10u", "3L", "0"]) {
    assert.equal((await scopes(`{ ${number} }`))[1], `${number} constant.numeric.integer`);
  }
  for (const number of ["1.5", ".5", "2.", "1e-3", "1.5f", "1.5e+10"]) {
    assert.equal((await scopes(`{ ${number} }`))[1], `${number} constant.numeric.float`);
  }
  assert.equal((await scopes("{ 0x1F }"))[1], "0x1F constant.numeric.hex");
  assert.deepEqual((await scopes("{ 2LUT(3d) }")).slice(1, 4), [
    "2LUT variable.other.tensor",
    "( punctuation.section.parens",
    "3d variable.other",
  ]);
  assert.deepEqual((await scopes("{ A.0 }")).slice(1, 4), [
    "A variable.other.tensor",
    ". punctuation.accessor",
    "0 constant.numeric.dimension",
  ]);
});

test("assignments, comparisons and `in`", async () => {
  const operator = async (text) => (await scopes(`{ a ${text} b }`)).slice(2, -2);
  for (const text of ["=", "+=", "*=", "min=", "max=", "+=!", "*=!", "min=!", "max=!"]) {
    assert.deepEqual(await operator(text), [`${text} keyword.operator.assignment`]);
  }
  for (const text of ["==", "!=", "<", "<=", ">", ">="]) {
    assert.deepEqual(await operator(text), [`${text} keyword.operator.comparison`]);
  }
  const range = await scopes("{ where i in 0:N, j in p:Q }");
  assert.ok(range.includes("in keyword.control.in") && !range.includes("in variable.other"));
  const scan = await scopes("{ y(t) = y(t-1) + x(t) scan t from 0 }");
  assert.ok(scan.includes("scan keyword.control.scan") && scan.includes("from keyword.control.from"));
  const scatter = await scopes("{ count(b) +=! 1 scatter b = bin(i) where b in 0:16 }");
  assert.ok(scatter.includes("scatter keyword.control.scatter"));
  assert.ok((await scopes("{ scatter(i) = 2 * a(i) }")).includes("scatter variable.other.tensor"));
  const words = await scopes("{ scan(i) = 2 * from(i) }");
  assert.ok(words.includes("scan variable.other.tensor") && words.includes("from variable.other.tensor"));
  const name = await scopes("{ out(i) = 2 * in(i) + in }");
  assert.deepEqual(name.filter((it) => it.startsWith("in ")), ["in variable.other.tensor", "in variable.other"]);
});

test("every function, constant and type of the language is known", async () => {
  const source = fs.readFileSync(path.join(ROOT, "crates/lang/src/builtin.rs"), "utf8");
  const builtins = [...source.matchAll(/^ +\w+ "(\w+)" \d \w+ "/gm)].map((match) => match[1]);
  assert.ok(builtins.length > 40);
  for (const name of [...builtins, "concat", "expf", "fmaxf", "fabs", "nearbyint"]) {
    assert.equal((await scopes(`{ ${name}(x) }`))[1], `${name} support.function`);
  }
  for (const [, name] of source.matchAll(/^ +\("(\w+)", /gm)) {
    assert.equal((await scopes(`{ ${name} }`))[1], `${name} constant.language`);
  }
  const rows = fs.readFileSync(path.join(ROOT, "crates/lang/src/dtype/table.rs"), "utf8");
  const names = [...rows.matchAll(/^ +(?:name: |aliases: &\[)(.*?)\]?,$/gm)]
    .flatMap((row) => [...row[1].matchAll(/"(\w+)"/g)])
    .map((name) => name[1]);
  assert.ok(names.length >= 18 && names.includes("float16"), names.join());
  for (const name of names) {
    assert.equal((await scopes(`def f(${name} a)`))[3], `${name} storage.type`);
    assert.equal((await scopes(`{ ${name}(x) }`))[1], `${name} storage.type`);
  }
});

test("a definition that is not finished does not spoil the next", async () => {
  const found = await scopes("def f(float(N) A\ndef g(float(N) A) -> (B) {\n  B(i) =\ndef h() -> (C) { }");
  assert.deepEqual(found.filter((it) => it.endsWith("entity.name.function")), [
    "f entity.name.function",
    "g entity.name.function",
    "h entity.name.function",
  ]);
});
