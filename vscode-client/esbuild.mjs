// SPDX-License-Identifier: Apache-2.0
// Bundles the extension into one file; with --tests, the tests of what needs no VS Code.
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { build } from "esbuild";

const common = { bundle: true, platform: "node", target: "node20", logLevel: "warning" };

/** The licenses of the packages that are in the bundle. */
function notices(inputs) {
  const folders = Object.keys(inputs).map((input) => /^node_modules\/(?:@[^/]+\/)?[^/]+/.exec(input)?.[0]);
  return [...new Set(folders.filter(Boolean))].sort().map((folder) => {
    const { name, version } = JSON.parse(readFileSync(path.join(folder, "package.json"), "utf8"));
    const file = readdirSync(folder).find((entry) => /^licen[cs]e/i.test(entry));
    if (file === undefined) {
      throw new Error(`${folder} has no license file`);
    }
    return `${name} ${version}\n\n${readFileSync(path.join(folder, file), "utf8").trim()}\n`;
  });
}

if (process.argv.includes("--tests")) {
  await build({
    ...common,
    entryPoints: readdirSync("test")
      .filter((name) => name.endsWith(".test.ts"))
      .map((name) => `test/${name}`),
    outdir: "dist/test",
    format: "esm",
    outExtension: { ".js": ".mjs" },
    sourcemap: "inline",
  });
} else {
  const { metafile } = await build({
    ...common,
    entryPoints: ["src/extension.ts"],
    outfile: "dist/extension.js",
    format: "cjs",
    external: ["vscode"],
    minify: true,
    metafile: true,
  });
  writeFileSync("dist/THIRD-PARTY.txt", notices(metafile.inputs).join(`\n${"-".repeat(80)}\n\n`));
}
