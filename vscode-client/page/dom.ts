// SPDX-License-Identifier: Apache-2.0
// Elements from values. What comes from a profile is text: nothing here parses markup.

export type Child = Node | string | null | undefined;
export type Attributes = Readonly<Record<string, string | number | boolean | null | undefined>>;

const SVG = "http://www.w3.org/2000/svg";

/** Sets attributes; true stands alone, false, null and undefined are left out. */
export function set(element: Element, attributes: Attributes): void {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) {
      element.removeAttribute(name);
    } else {
      element.setAttribute(name, value === true ? "" : String(value));
    }
  }
}

export function h<Tag extends keyof HTMLElementTagNameMap>(
  tag: Tag,
  attributes: Attributes = {},
  ...children: Child[]
): HTMLElementTagNameMap[Tag] {
  const element = document.createElement(tag);
  set(element, attributes);
  append(element, children);
  return element;
}

export function svg<Tag extends keyof SVGElementTagNameMap>(
  tag: Tag,
  attributes: Attributes = {},
  ...children: Child[]
): SVGElementTagNameMap[Tag] {
  const element = document.createElementNS(SVG, tag);
  set(element, attributes);
  append(element, children);
  return element;
}

/** Puts children in the place of all that an element has. */
export function fill(element: Element, ...children: Child[]): void {
  element.replaceChildren();
  append(element, children);
}

export function button(label: string, act: () => void, attributes: Attributes = {}): HTMLButtonElement {
  const made = h("button", { type: "button", ...attributes }, label);
  made.addEventListener("click", act);
  return made;
}

/** A table with a caption: columns by title, the first cell of a row is its head. */
export function table(caption: string, titles: readonly string[], rows: readonly (readonly Child[])[]): HTMLElement {
  const head = h("tr", {}, ...titles.map((title) => h("th", { scope: "col" }, title)));
  const body = rows.map((cells) =>
    h("tr", {}, ...cells.map((cell, at) => (at === 0 ? h("th", { scope: "row" }, cell) : h("td", {}, cell)))),
  );
  return h(
    "div",
    { class: "scroll", tabindex: 0, role: "region", "aria-label": caption },
    h("table", {}, h("caption", {}, caption), h("thead", {}, head), h("tbody", {}, ...body)),
  );
}

/** A panel with its heading. */
export function panel(id: string, title: string, ...children: Child[]): HTMLElement {
  return h("section", { id, class: "panel", "aria-labelledby": `${id}-title` }, h("h2", { id: `${id}-title` }, title), ...children);
}

export function details(summary: string, ...children: Child[]): HTMLDetailsElement {
  return h("details", {}, h("summary", {}, summary), ...children);
}

function append(element: Element, children: readonly Child[]): void {
  element.append(...children.filter((child) => child !== null && child !== undefined));
}
