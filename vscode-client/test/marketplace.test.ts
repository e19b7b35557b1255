// SPDX-License-Identifier: Apache-2.0
// What the Marketplace and its checklist want of an extension, and what the package has in it.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { existsSync, readFileSync, statSync } from "node:fs";
import { describe, it } from "node:test";

interface Manifest {
  readonly icon: string;
  readonly extensionKind: readonly string[];
  readonly capabilities: { readonly virtualWorkspaces: { readonly supported: boolean } };
  readonly description: string;
  readonly categories: readonly string[];
  readonly keywords: readonly string[];
  readonly galleryBanner: { readonly color: string; readonly theme: string };
  readonly contributes: {
    readonly commands: readonly { readonly command: string; readonly title: string; readonly category: string }[];
    readonly configuration: readonly { readonly title: string; readonly properties: object }[];
    readonly languageModelTools: readonly { readonly name: string; readonly toolReferenceName: string; readonly modelDescription: string; readonly when: string }[];
    readonly keybindings: readonly { readonly when?: string }[];
    readonly menus: Readonly<Record<string, readonly { readonly command?: string; readonly when?: string }[]>>;
    readonly walkthroughs: readonly { readonly steps: readonly { readonly media: Readonly<Record<string, string>> }[] }[];
  };
}

const text = readFileSync("package.json", "utf8");
const manifest = JSON.parse(text) as Manifest;
const { contributes } = manifest;

describe("the manifest", () => {
  it("may be published", () => {
    assert.ok(!("private" in manifest));
    assert.ok(manifest.description.length <= 145, "cut in the list of extensions");
    assert.ok(manifest.keywords.length <= 30);
    assert.match(manifest.galleryBanner.color, /^#[0-9a-f]{6}$/);
  });
  it("says that the web and virtual workspaces are not for it", () => {
    assert.deepEqual(manifest.extensionKind, ["workspace"]);
    assert.ok(!("browser" in manifest));
    assert.equal(manifest.capabilities.virtualWorkspaces.supported, false);
    assert.match(readFileSync("README.md", "utf8"), /not run in the browser .* or in virtual workspaces/);
  });
  it("has an icon that is large enough", () => {
    const png = readFileSync(manifest.icon);
    assert.equal(png.toString("latin1", 1, 4), "PNG");
    assert.ok(png.readUInt32BE(16) >= 128 && png.readUInt32BE(20) >= 128);
  });
  it("has one category for all commands, and titles as VS Code writes them", () => {
    for (const { command, title, category } of contributes.commands) {
      assert.equal(category, "GPAdvisor", command);
      assert.match(title, /^[A-Z]/, command);
      assert.ok(title.length <= 40, title);
    }
    const shown = contributes.commands.filter(({ command }) =>
      contributes.menus["commandPalette"]?.some((entry) => entry.command === command && entry.when !== "false"),
    );
    const titles = shown.map(({ title }) => title);
    assert.equal(new Set(titles).size, titles.length, "told apart in the palette");
  });
  it("has tools whose names VS Code takes, in trusted workspaces", () => {
    assert.ok(contributes.languageModelTools.length >= 11);
    for (const { name, toolReferenceName, modelDescription, when } of contributes.languageModelTools) {
      assert.match(name, /^gpadvisor_[a-z_]+$/);
      assert.match(toolReferenceName, /^[A-Za-z]+$/);
      assert.ok(modelDescription.length <= 1024, name);
      assert.equal(when, "isWorkspaceTrusted");
    }
  });
  it("has no key that works everywhere", () => {
    assert.ok(contributes.keybindings.every(({ when }) => when?.includes("editorTextFocus")));
  });
  it("names in its menus only commands that there are", () => {
    const known = new Set(contributes.commands.map(({ command }) => command));
    for (const [menu, entries] of Object.entries(contributes.menus)) {
      for (const { command } of entries) {
        assert.ok(command === undefined || known.has(command), `${menu}: ${command ?? ""}`);
      }
    }
  });
  it("has the five settings that matter on the first screen", () => {
    const [first] = contributes.configuration;
    assert.equal(first?.title, "Most Used");
    assert.equal(Object.keys(first.properties).length, 5);
  });
  it("has all pictures and pages that it and the README name", () => {
    const readme = readFileSync("README.md", "utf8");
    const pictures = [...readme.matchAll(/!\[([^\]]+)\]\(([^)]+)\)/g)].map(([, , path]) => path ?? "");
    assert.ok(pictures.length >= 3);
    const media = contributes.walkthroughs.flatMap(({ steps }) => steps.flatMap((step) => Object.values(step.media)));
    for (const path of [...pictures, ...media.filter((value) => value.startsWith("media/"))]) {
      assert.ok(existsSync(path), path);
      assert.ok(statSync(path).size < 400_000, path);
    }
  });
});

it("the package has what it needs and nothing else, as vsce lists it", () => {
  const listed = spawnSync("npx", ["--no-install", "vsce", "ls", "--no-dependencies"], { encoding: "utf8" });
  assert.equal(listed.status, 0, listed.stderr);
  const files = listed.stdout.trim().split("\n").map((line) => line.trim());
  for (const file of ["package.json", "README.md", "media/icon.png", "media/view.svg", "media/sass.tmLanguage.json"]) {
    assert.ok(files.includes(file), `${file} is missing in ${files.join(" ")}`);
  }
  const allowed = /^(?:(?:package\.json|README\.md|LICENSE|CHANGELOG\.md)|dist\/(?:extension\.js|page\.(?:js|css)|THIRD-PARTY\.txt)|media\/[\w.-]+\.(?:png|svg|md|json)|bundled\/(?:[\w.-]+\.whl|requirements\.txt|sbom\.json|sample\/[\w.]+))$/;
  assert.deepEqual(files.filter((file) => !allowed.test(file)), []);
  const kept = readFileSync(".vscodeignore", "utf8");
  for (const [, name] of readFileSync("src/environment.ts", "utf8").matchAll(/path\.join\("bundled", "([\w.-]+)"\)/g)) {
    assert.ok(kept.includes(`!bundled/${name ?? ""}\n`), `${name ?? ""}, which the set-up reads, is left out`);
  }
});
