// SPDX-License-Identifier: Apache-2.0
// What a person sees and does: looks, hovers, takes the quick fix, saves. Short: class names are VS Code's own.
import { need, withCodeServer } from "./code-server.mjs";

export async function person(workspace) {
  const settings = { "gpadvisor.interpreter": [need("PYTHON")] };
  await withCodeServer({ name: "person", workspace, settings }, async ({ page, workspace: folder, open, remote, shot }) => {
    await open([["openFile", remote(`${folder}/thermal_stencil.cu`)]]);
    const editor = page.locator(".monaco-editor[data-uri$='thermal_stencil.cu']");
    await editor.locator(".view-line").first().waitFor({ timeout: 60_000 });
    await new Promise((resolve) => setTimeout(resolve, 8000));
    await shot("first");
  });
}
