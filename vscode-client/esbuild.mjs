// SPDX-License-Identifier: Apache-2.0
// Bundles the extension into one file; with --tests, the tests of what needs no VS Code; with --page, the page, which
// is in the repository so that nobody needs Node to show one; with --page-check, fails where it is another one.
import { copyFileSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
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

const PAGE = path.join(import.meta.dirname, "../server/gpadvisor/views/page");

/** The page's script and style by the names of their files. */
async function page() {
  const { outputFiles } = await build({
    bundle: true,
    minify: true,
    charset: "ascii",
    platform: "browser",
    target: ["chrome111", "firefox121", "safari16.4"],
    logLevel: "warning",
    entryPoints: { page: "page/main.ts", style: "page/page.css" },
    outdir: "dist",
    write: false,
  });
  const license = "SPDX-License-Identifier: Apache-2.0";
  const made = (suffix) => outputFiles.find((file) => file.path.endsWith(suffix)).text;
  return { "page.js": `// ${license}\n${made("page.js")}`, "page.css": `/* ${license} */\n${made("style.css")}` };
}

if (process.argv.includes("--page")) {
  for (const [name, text] of Object.entries(await page())) {
    writeFileSync(path.join(PAGE, name), text);
  }
} else if (process.argv.includes("--page-check")) {
  for (const [name, text] of Object.entries(await page())) {
    if (readFileSync(path.join(PAGE, name), "utf8") !== text) {
      throw new Error(`${name} is not what vscode-client/page makes: run npm run page there`);
    }
  }
} else if (process.argv.includes("--tests")) {
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
  for (const name of ["page.js", "page.css"]) {
    copyFileSync(path.join(PAGE, name), path.join("dist", name));
  }
  writeFileSync("dist/THIRD-PARTY.txt", notices(metafile.inputs).join(`\n${"-".repeat(80)}\n\n`));
}
