// SPDX-License-Identifier: Apache-2.0
// Where a path that advice names may lie in a workspace.

import path from "node:path/posix";

/** Of a path: no system has longer ones. */
const MOST_LETTERS = 4096;
/** Folders above a file that its ends are made of. */
const MOST_PARTS = 32;

/** Candidates, best first: as named, beside the advice, in the folder; then shorter and shorter ends of it. */
export function placesToLook(named: string, advice: string, folder: string): readonly string[] {
  if (named.length > MOST_LETTERS) {
    return [];
  }
  const clean = named.replaceAll("\\", "/");
  const beside = path.dirname(advice);
  const parts = clean.split("/").filter((part) => part !== "" && part !== ".").slice(-MOST_PARTS);
  const ends = parts.map((_, at) => parts.slice(at).join("/"));
  const places = [
    ...(path.isAbsolute(clean) ? [clean] : []),
    ...ends.flatMap((end) => [path.join(beside, end), path.join(folder, end)]),
  ];
  return [...new Set(places.map((place) => path.normalize(place)))].filter((place) => place.startsWith(`${folder}/`));
}
