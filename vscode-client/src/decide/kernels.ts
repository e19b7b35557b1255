// SPDX-License-Identifier: Apache-2.0
// Where a text defines kernels, as far as it can be seen without a compiler.

const HIDDEN = /\/\*[^]*?(?:\*\/|(?![^]))|\/\/.*|"(?:[^"\\\n]|\\.)*"?|^[ \t]*#(?:.*\\\r?\n)*.*/gm;

/** A definition's first line: neither in a comment nor in a directive, with a body and not only declared. */
export function kernelLines(text: string): readonly number[] {
  const code = text.replaceAll(HIDDEN, (hidden) => hidden.replaceAll(/[^\n]/g, " "));
  const lines: number[] = [];
  let line = 0;
  let begun: number | undefined;
  let parameters = false;
  for (const [token] of code.matchAll(/\n|\b__global__\b|[(;{}]/g)) {
    if (token === "\n") {
      line++;
    } else if (token === "__global__") {
      begun ??= line;
    } else if (token === "(") {
      parameters = true;
    } else {
      if (begun !== undefined && parameters && token === "{") {
        lines.push(begun);
      }
      begun = undefined;
      parameters = false;
    }
  }
  return lines;
}
