// SPDX-License-Identifier: Apache-2.0
// What a user is shown of a program that a language model wants to run: each word, where it begins and ends.

import { visible } from "./plain";

export function commandOf(words: unknown): string {
  return Array.isArray(words) ? words.map((word) => quoted(visible(String(word)))).join(" ") : "";
}

function quoted(word: string): string {
  return /^[\w./:=+,@%-]+$/.test(word) ? word : `'${word.replaceAll("'", String.raw`'\''`)}'`;
}
