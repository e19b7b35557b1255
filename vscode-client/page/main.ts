// SPDX-License-Identifier: Apache-2.0
// The page: panels around one selection. Made anew where the editor sends other data.

import { advicePanel, stepCards } from "./advice";
import { codePanel } from "./code";
import { comparedPanel } from "./compared";
import type { PageDocument } from "./document";
import { h } from "./dom";
import { baseName } from "./figures";
import { findHost, type Host, type Message } from "./host";
import { kernelsPanel } from "./kernels";
import { notesPanel } from "./notes";
import { potentialPanel } from "./potential";
import { rooflinePanel } from "./roofline";
import { runPanel } from "./run";
import { Store } from "./store";
import { treePanel } from "./tree";

let store: Store | undefined;

const host: Host = findHost((message: Message) => {
  if (message.type === "document") {
    start(JSON.parse(message.document) as PageDocument);
  } else if (store !== undefined && (store.now.file !== message.file || store.now.line !== message.line)) {
    store.pickLine(message.file, message.line);
  }
});

function build(document_: PageDocument): void {
  const made = new Store(document_);
  store = made;
  made.restore("");
  let fromHere = false;
  const main = h(
    "main",
    {},
    kernelsPanel(made),
    runPanel(made),
    comparedPanel(made),
    h("div", { class: "work" }, advicePanel(made), codePanel(made, host.open)),
    h("div", { class: "pair" }, rooflinePanel(made), potentialPanel(made)),
    treePanel(made),
    notesPanel(made),
  );
  document.body.querySelectorAll("header, main").forEach((old) => { old.remove(); });
  document.body.prepend(header(document_), main);
  document.body.classList.toggle("in-editor", host.inEditor);
  main.addEventListener("click", () => { fromHere = true; }, true);
  made.listen((now) => {
    host.remember(made);
    if (fromHere && now.file !== null && now.line !== null) {
      host.open(now.file, now.line);
    }
    fromHere = false;
  });
}

function header({ advice, collected_at }: PageDocument): HTMLElement {
  const { path, collector } = advice.profile;
  const devices = [...new Set(advice.kernels.map(({ device }) => device.name ?? device.arch))];
  const facts = [devices.join(", "), collector, collected_at, `gpadvisor ${advice.tool.version}`];
  return h(
    "header",
    {},
    h("h1", {}, baseName(path)),
    h("p", { class: "quiet" }, facts.filter((one) => one !== null && one !== "").join("; ")),
  );
}

// On paper nothing is folded.
window.addEventListener("beforeprint", () => {
  document.querySelectorAll("details:not([open])").forEach((one) => { one.setAttribute("open", "for print"); });
});
window.addEventListener("afterprint", () => {
  document.querySelectorAll("details[open='for print']").forEach((one) => { one.removeAttribute("open"); });
});

document.addEventListener("keydown", (event) => {
  const typing = event.target instanceof HTMLInputElement || event.target instanceof HTMLSelectElement;
  if (store === undefined || typing || event.ctrlKey || event.metaKey || event.altKey) {
    return;
  }
  if (event.key === "j" || event.key === "k") {
    stepCards(store, event.key === "j" ? 1 : -1);
  } else if (event.key === "/") {
    const filter = document.getElementById("filter");
    filter?.focus();
    if (filter !== null) {
      event.preventDefault();
    }
  }
});

function start(document_: PageDocument): void {
  build(document_);
  if (store !== undefined) {
    host.restore(store);
  }
}

const data = document.getElementById("gpadvisor-data")?.textContent;
if (data) {
  start(JSON.parse(data) as PageDocument);
} else {
  host.ready();
}
