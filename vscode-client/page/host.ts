// SPDX-License-Identifier: Apache-2.0
// Where the page is: in a browser its address keeps the selection; in an editor, that does, and opens lines.

import type { Store } from "./store";

interface Editor {
  postMessage(message: unknown): void;
  getState(): unknown;
  setState(state: unknown): void;
}

declare const acquireVsCodeApi: (() => Editor) | undefined;

/** What the editor sends. */
export type Message =
  | { readonly type: "select"; readonly file: number; readonly line: number }
  | { readonly type: "document"; readonly document: string };

export interface Host {
  readonly inEditor: boolean;
  /** Opens a line of a file, by its number in the document. */
  readonly open: (file: number, line: number) => void;
  /** Asks for the document. */
  ready(): void;
  restore(store: Store): void;
  remember(store: Store): void;
}

export function findHost(hear: (message: Message) => void): Host {
  if (typeof acquireVsCodeApi !== "function") {
    return {
      inEditor: false,
      open: () => undefined,
      ready: () => undefined,
      restore: (store) => { store.restore(location.hash.slice(1)); },
      remember: (store) => {
        try {
          history.replaceState(null, "", `#${store.hash}`);
        } catch {
          // A frame without an address of its own keeps none.
        }
      },
    };
  }
  const editor = acquireVsCodeApi();
  window.addEventListener("message", ({ data }: MessageEvent<Message>) => { hear(data); });
  return {
    inEditor: true,
    open: (file, line) => { editor.postMessage({ type: "open", file, line }); },
    ready: () => { editor.postMessage({ type: "ready" }); },
    restore: (store) => {
      const state = editor.getState();
      store.restore(typeof state === "string" ? state : "");
    },
    remember: (store) => { editor.setState(store.hash); },
  };
}
