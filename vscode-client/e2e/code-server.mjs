// SPDX-License-Identifier: Apache-2.0
// Starts code-server (which is VS Code) with the packaged extension, and headless Chromium, in throw-away folders.
// Needs CODE_SERVER, NODE24, CHROMIUM (e2e/setup.sh prints them) and PYTHON, which runs the language server.
import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";

const HERE = path.dirname(fileURLToPath(import.meta.url));
export const SHOTS = path.join(HERE, "../shots");
const START_MILLISECONDS = 60_000;

/** For what the page will show: generous, as the machine may be busy with other things; E2E_SECONDS gives it more. */
export const WAIT = { timeout: 1000 * Number(process.env["E2E_SECONDS"] ?? 90) };

/** An environment variable that has to be set. */
export function need(name) {
  return process.env[name] ?? assert.fail(`${name} is not set`);
}

const SETTINGS = {
  "workbench.startupEditor": "none",
  "workbench.tips.enabled": false,
  "workbench.secondarySideBar.defaultVisibility": "hidden",
  "telemetry.telemetryLevel": "off",
  "update.mode": "none",
  "extensions.autoCheckUpdates": false,
  "extensions.autoUpdate": false,
  "extensions.ignoreRecommendations": true,
  "chat.disableAIFeatures": true,
  "git.enabled": false,
  "editor.minimap.enabled": false,
  "editor.accessibilitySupport": "off",
  "files.autoSave": "off",
};

const CHROMIUM_FLAGS = [
  ...["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"],
  ...["--disable-background-networking", "--disable-component-update", "--disable-sync"],
];

/**
 * In every page: code-server's own service worker is left out. It can come to control the page of a webview in place of
 * VS Code's, and then no picture of that webview is ever answered.
 */
function withoutOwnWorker() {
  const workers = globalThis.navigator.serviceWorker;
  const register = workers?.register.bind(workers);
  if (register) {
    workers.register = (url, options) =>
      String(url).endsWith("/out/browser/serviceWorker.js") ? new Promise(() => undefined) : register(url, options);
  }
}

async function freePort() {
  const server = createServer();
  await new Promise((resolve, reject) => server.once("error", reject).listen(0, "127.0.0.1", resolve));
  const { port } = server.address();
  await new Promise((resolve) => server.close(resolve));
  return port;
}

async function listening(origin, server) {
  const until = performance.now() + START_MILLISECONDS;
  while (performance.now() < until && server.exitCode === null) {
    const answer = await fetch(`${origin}/healthz`).catch(() => undefined);
    if (answer?.ok) {
      return;
    }
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  throw new Error("code-server did not start");
}

/** Puts words into the list that is opening, at once, as a list of themes puts on each that is first; once the entry with a text is the one that is chosen, takes it. */
export async function pickFirst(page, words, text, before = () => undefined) {
  await page.locator(".quick-input-widget input:focus").waitFor(WAIT);
  await page.keyboard.insertText(words);
  await page.locator(".quick-input-list .monaco-list-row.focused", { hasText: text }).first().waitFor(WAIT);
  await before();
  await page.keyboard.press("Enter");
}

/**
 * Runs `body` with a fresh VS Code: { page, workspace, open, remote, palette, theme (by its label), shot, root,
 * set (user settings, which hold from the next `open` on) }.
 * options: name (of the run), workspace (folder that is copied), file (a .code-workspace in it, opened in its place),
 * trust (ask for it), settings, machine (settings), path (PATH), hostTests, record (what the server is sent),
 * extension (folder of another one beside ours).
 */
export async function withCodeServer(options, body) {
  const root = mkdtempSync(path.join(tmpdir(), "gpadvisor-e2e-"));
  const folder = (name) => {
    const made = path.join(root, name);
    mkdirSync(made, { recursive: true });
    return made;
  };
  const [user, extensions, workspace, home] = ["user", "extensions", "workspace", "home"].map(folder);
  cpSync(options.workspace, workspace, { recursive: true });
  mkdirSync(path.join(user, "User"));
  const settings = {
    ...SETTINGS,
    "security.workspace.trust.enabled": options.trust ?? false,
    ...options.settings,
  };
  writeFileSync(path.join(user, "User/settings.json"), JSON.stringify(settings, null, 2));
  // Settings that name programs are the machine's: VS Code ignores them among a remote window's user settings.
  mkdirSync(path.join(user, "Machine"));
  const python = recordingPython(root, options.record ?? false);
  const machine = options.machine ?? { "gpadvisor.interpreter": [python] };
  writeFileSync(path.join(user, "Machine/settings.json"), JSON.stringify(machine, null, 2));
  mkdirSync(SHOTS, { recursive: true });

  const environment = {
    ...process.env,
    ...{ HOME: home, XDG_CONFIG_HOME: home, XDG_DATA_HOME: home, XDG_CACHE_HOME: home },
    ...{ EXTENSIONS_GALLERY: "{}", GPADVISOR_CACHE: path.join(root, "cache") },
    GPADVISOR_E2E_STARTED: path.join(root, "started"),
    GPADVISOR_E2E_PYTHON: python,
    PATH: options.path ?? process.env.PATH,
    PYTHONDONTWRITEBYTECODE: undefined, // nobody's editor has that; each process would compile all that it imports
  };
  const entry = path.join(need("CODE_SERVER"), "out/node/entry.js");
  const flags = [
    ...[entry, "--user-data-dir", user, "--extensions-dir", extensions],
    ...["--disable-telemetry", "--disable-update-check", "--disable-getting-started-override"],
    ...(options.trust ? [] : ["--disable-workspace-trust"]),
  ];
  const packages = [need("VSIX"), ...(options.extension ? [packaged(options.extension, root)] : [])];
  const install = packages.flatMap((file) => ["--install-extension", file]);
  const installed = spawnSync(need("NODE24"), [...flags, ...install], { env: environment, encoding: "utf8" });
  assert.equal(installed.status, 0, installed.stdout + installed.stderr);

  const port = await freePort();
  const origin = `http://127.0.0.1:${port}`;
  const server = spawn(
    need("NODE24"),
    [
      ...[...flags, "--auth", "none", "--bind-addr", `127.0.0.1:${port}`, "--idle-timeout-seconds", "300"],
      ...(options.hostTests ? ["--vscode-option", "enable-smoke-test-driver"] : []),
    ],
    { env: environment, stdio: ["ignore", "pipe", "pipe"], detached: true },
  );
  let log = "";
  for (const stream of [server.stdout, server.stderr]) {
    stream.on("data", (text) => (log += text));
  }
  let browser;
  let page;
  const outside = new Set();
  const shot = (name) => page.screenshot({ path: path.join(SHOTS, `${name}.png`), ...WAIT });
  const interrupted = () => {
    process.kill(-server.pid, "SIGTERM");
    process.exit(130);
  };
  process.once("SIGTERM", interrupted).once("SIGINT", interrupted);
  try {
    await listening(origin, server);
    browser = await chromium.launchPersistentContext(folder("chromium"), {
      executablePath: need("CHROMIUM"),
      headless: true,
      viewport: { width: 1280, height: 800 },
      reducedMotion: "reduce",
      args: CHROMIUM_FLAGS,
    });
    await browser.route(
      (url) => url.hostname !== "127.0.0.1",
      (route) => {
        outside.add(new URL(route.request().url()).hostname);
        return route.abort();
      },
    );
    await browser.addInitScript(withoutOwnWorker);
    page = browser.pages()[0] ?? (await browser.newPage());
    const remote = (file) => `vscode-remote://127.0.0.1:${port}${file}`;
    const opened = options.file === undefined ? { folder: workspace } : { workspace: path.join(workspace, options.file) };
    const open = (payload, folder = undefined) =>
      page.goto(`${origin}/?${new URLSearchParams({ ...opened, ...folder, payload: JSON.stringify(payload) })}`, WAIT);
    const set = (more) => writeFileSync(path.join(user, "User/settings.json"), JSON.stringify({ ...settings, ...more }));
    const palette = async (command) => {
      await page.keyboard.press("F1");
      await pickFirst(page, command, command);
    };
    const theme = async (label) => {
      await page.keyboard.press("Control+K"); // in the palette another command comes first
      await page.keyboard.press("Control+T");
      await pickFirst(page, label, label);
    };
    await body({ page, workspace, open, remote, palette, theme, shot, root, set });
    assert.deepEqual([...outside], [], "only the loopback address may be asked");
  } catch (error) {
    await (page && shot(`failed-${options.name}`).catch(() => undefined));
    const said = readFileSync(path.join(root, "said"), { encoding: "utf8", flag: "a+" });
    process.stderr.write(`--- code-server\n${log.slice(-1500)}\n--- language server\n${said.slice(-6000)}\n`);
    throw error;
  } finally {
    process.off("SIGTERM", interrupted).off("SIGINT", interrupted);
    await browser?.close();
    await end(server);
    rmSync(root, { recursive: true, force: true, maxRetries: 20, retryDelay: 250 });
  }
}

/** A folder as an extension that can be installed. */
function packaged(folder, root) {
  const file = path.join(root, "extension.vsix");
  const words = ["--no-install", "vsce", "package", "--allow-missing-repository", "--skip-license", "-o", file];
  const made = spawnSync("npx", words, { cwd: folder, encoding: "utf8" });
  assert.equal(made.status, 0, made.stdout + made.stderr);
  return file;
}

/** A Python that notes the process id of each language server, what that writes to standard error, and what it is sent. */
function recordingPython(root, sent) {
  const script = path.join(root, "python");
  const input = sent ? `< <(tee '${root}/sent' <&3)` : "<&3";
  const lines = [
    "#!/usr/bin/env bash",
    'case " $* " in',
    `*" lsp "*) echo $$ >>'${root}/started'; exec 3<&0; exec '${need("PYTHON")}' "$@" ${input} 3<&- 2>>'${root}/said' ;;`,
    `*) exec '${need("PYTHON")}' "$@" ;;`,
    "esac",
  ];
  writeFileSync(script, `${lines.join("\n")}\n`, { mode: 0o755 });
  return script;
}

/** Ends code-server's own process group. */
async function end(server) {
  const ended = new Promise((resolve) => {
    if (server.exitCode !== null || server.signalCode !== null) {
      resolve();
    } else {
      server.once("exit", resolve);
    }
  });
  try {
    process.kill(-server.pid, "SIGTERM");
  } catch {
    return; // it has ended by itself
  }
  await ended;
}
