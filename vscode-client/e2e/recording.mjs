// SPDX-License-Identifier: Apache-2.0
// What the real client announces, beside the recording that the server's tests use. To record it anew:
//   GPADVISOR_E2E_RECORD=1 make e2e RUNS=restricted
import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { need } from "./code-server.mjs";

const HERE = path.dirname(fileURLToPath(import.meta.url));
const FIXTURE = path.join(HERE, "../../fixtures/lsp/clients/vscode.json");
const CLIENT = path.join(HERE, "../node_modules/vscode-languageclient");

/** Compares with the recording the first message that a server was sent; only what names no machine is kept of it. */
export function checkRecording(sent) {
  const { clientInfo, capabilities } = initializeParams(readFileSync(sent));
  const versions = `code-server ${version(need("CODE_SERVER"))}, vscode-languageclient ${version(CLIENT)}`;
  const recording = {
    client: clientInfo,
    source: `the initialize request of our extension in VS Code (${versions}); vscode-client/e2e/recording.mjs records it`,
    capabilities,
  };
  if (process.env.GPADVISOR_E2E_RECORD) {
    writeFileSync(FIXTURE, `${JSON.stringify(recording, null, 1)}\n`);
  }
  assert.deepEqual(recording, JSON.parse(readFileSync(FIXTURE, "utf8")), "record the client anew, see e2e/recording.mjs");
}

function version(folder) {
  return JSON.parse(readFileSync(path.join(folder, "package.json"), "utf8")).version;
}

function initializeParams(sent) {
  const end = sent.indexOf("\r\n\r\n");
  const length = Number(/Content-Length: (\d+)/i.exec(sent.subarray(0, end).toString())?.[1]);
  const { method, params } = JSON.parse(sent.subarray(end + 4, end + 4 + length).toString());
  assert.equal(method, "initialize");
  return params;
}
