// SPDX-License-Identifier: Apache-2.0
// Room around the text of a hint: VS Code's own padding is a third of a letter.

import * as vscode from "vscode";
import type { Middleware } from "vscode-languageclient/node";

const ROOM = " ";

export const spacedHints: NonNullable<Middleware["provideInlayHints"]> = async (document, range, token, next) => {
  const hints = await next(document, range, token);
  for (const hint of hints ?? []) {
    hint.label =
      typeof hint.label === "string"
        ? ROOM + hint.label + ROOM
        : [new vscode.InlayHintLabelPart(ROOM), ...hint.label, new vscode.InlayHintLabelPart(ROOM)];
  }
  return hints;
};
