// SPDX-License-Identifier: Apache-2.0
// What decides knows no VS Code; the manifest offers what the code registers.
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { describe, it } from "node:test";
import { rulesAt } from "../src/decide/rules";

interface Manifest {
  readonly version: string;
  readonly contributes: {
    readonly commands: readonly { readonly command: string }[];
    readonly colors: readonly { readonly id: string }[];
    readonly menus: { readonly commandPalette: readonly { readonly command: string; readonly when: string }[] };
  };
}

const read = (name: string): string => readFileSync(name, "utf8");
const manifest = JSON.parse(read("package.json")) as Manifest;
const sources = readdirSync("src", { recursive: true, encoding: "utf8" })
  .filter((name) => name.endsWith(".ts"))
  .map((name) => [name, read(path.join("src", name))] as const);

describe("the sources", () => {
  for (const [name, text] of sources) {
    if (name.startsWith("decide") || name === "processes.ts") {
      it(`${name} does without VS Code`, () => {
        assert.doesNotMatch(text, /from "(?:vscode|vscode-languageclient.*)"/);
      });
    }
  }
  it("extension.ts is short", () => {
    assert.ok(read("src/extension.ts").split("\n").length <= 80);
  });
  it("no settings or messages are named but in the generated files", () => {
    for (const [name, text] of sources) {
      if (!name.startsWith("generated")) {
        assert.doesNotMatch(text, /"gpadvisor\/|"gpadvisor\.server\./, name);
      }
    }
  });
});

describe("the manifest", () => {
  const offered = manifest.contributes.commands.map(({ command }) => command);
  const text = sources.map(([, content]) => content).join("\n");
  for (const command of offered) {
    it(`${command} is registered, and hidden where it makes no sense`, () => {
      const name = command.replace("gpadvisor.", "");
      assert.match(text, new RegExp(`"${command}"|^    ${name}[,:]`, "m"));
      assert.ok(manifest.contributes.menus.commandPalette.some((entry) => entry.command === command));
    });
  }
  it("has every colour that the ruler uses", () => {
    const colours = new Set(manifest.contributes.colors.map(({ id }) => id));
    for (const id of [1, 2, 3, 4, 5].map((level) => `gpadvisor.heat.level${level}`)) {
      assert.ok(colours.has(id), id);
    }
    assert.ok(colours.has("gpadvisor.heat.stale"));
  });
  it("has the server's version", () => {
    assert.ok(read("../server/gpadvisor/__init__.py").includes(`"${manifest.version}"`));
  });
  it("pins what it is built with, and the lock names no registry", () => {
    const lock = read("package-lock.json");
    assert.doesNotMatch(lock, /"resolved"/);
    const { devDependencies } = JSON.parse(read("package.json")) as { devDependencies: Record<string, string> };
    for (const [name, version] of Object.entries(devDependencies)) {
      assert.match(version, /^\d+\.\d+\.\d+$/, name);
    }
  });
});

describe("rulesAt", () => {
  const advice = [
    { code: "GPA102", message: "a", line: 3 },
    { code: "GPA202", message: "b", line: 9 },
    { code: "GPA202", message: "c", line: 10 },
  ];
  it("are those of the line, else one each of the file", () => {
    assert.deepEqual(rulesAt(advice, 9).map(({ code }) => code), ["GPA202"]);
    assert.deepEqual(rulesAt(advice, 1).map(({ code }) => code), ["GPA102", "GPA202"]);
    assert.deepEqual(rulesAt([], undefined), []);
  });
});
