// SPDX-License-Identifier: Apache-2.0
// Where a path that advice names may lie in a workspace.

import path from "node:path/posix";

/** Candidates, best first: as named, beside the advice, in the folder; then shorter and shorter ends of it. */
export function placesToLook(named: string, advice: string, folder: string): readonly string[] {
  const clean = named.replaceAll("\\", "/");
  const beside = path.dirname(advice);
  const parts = clean.split("/").filter((part) => part !== "" && part !== ".");
  const ends = parts.map((_, at) => parts.slice(at).join("/"));
  const places = [
    ...(path.isAbsolute(clean) ? [clean] : []),
    ...ends.flatMap((end) => [path.join(beside, end), path.join(folder, end)]),
  ];
  return [...new Set(places.map((place) => path.normalize(place)))].filter((place) => place.startsWith(`${folder}/`));
}
