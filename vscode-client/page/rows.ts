// SPDX-License-Identifier: Apache-2.0
// A grid of very many rows of one height: only those in sight are in the document, on paper more of them.

import { h, set } from "./dom";
import { count } from "./figures";
import { ROW, Scroll } from "./scroll";

const MARGIN = 4;
const PRINTED = 400;

export interface Column {
  readonly title: string;
  readonly kind: string; // class of its cells
  readonly sort?: () => void;
}

export interface RowsOptions {
  readonly id: string;
  readonly label: string;
  readonly columns: readonly Column[];
  /** Fills the cells of a row; what it returns is the row's class. */
  readonly draw: (row: number, cells: readonly HTMLElement[]) => string;
  readonly pick: (row: number) => void;
  readonly open?: (row: number) => void;
}

interface Drawn {
  readonly element: HTMLElement;
  readonly cells: readonly HTMLElement[];
}

export class Rows {
  public readonly element: HTMLElement;
  /** Drawn over the rows, in their coordinates. */
  public readonly layer: HTMLElement;
  public readonly scroll: Scroll;
  public onScroll: () => void = () => undefined;
  readonly #body: HTMLElement;
  readonly #drawn = new Map<number, Drawn>();
  readonly #heads: readonly HTMLElement[];
  #count = 0;
  #current = -1;
  #waiting = false;
  #printing = false;

  public constructor(private readonly options: RowsOptions) {
    this.#heads = options.columns.map(({ title, kind, sort }) => {
      const head = h("div", { role: "columnheader", class: `cell ${kind}` });
      if (sort === undefined) {
        head.textContent = title;
      } else {
        const by = h("button", { type: "button", tabindex: -1 }, title);
        by.addEventListener("click", sort);
        head.append(by);
      }
      return head;
    });
    const head = h("div", { role: "rowgroup", class: "head" }, h("div", { role: "row", class: "row", "aria-rowindex": 1 }, ...this.#heads));
    this.#body = h("div", { role: "rowgroup", class: "body" });
    this.layer = h("div", { class: "layer", "aria-hidden": "true" });
    const attributes = { role: "grid", tabindex: 0, class: "rows", id: options.id, "aria-label": options.label };
    this.element = h("div", attributes, head, this.#body);
    this.scroll = new Scroll(this.element);
    this.element.addEventListener("scroll", () => { this.#soon(); }, { passive: true });
    this.element.addEventListener("keydown", (event) => { this.#key(event); });
    this.#body.addEventListener("click", (event) => { this.#clicked(event, options.pick); });
    this.#body.addEventListener("dblclick", (event) => { this.#clicked(event, options.open ?? options.pick); });
    window.addEventListener("beforeprint", () => { this.#print(); });
    window.addEventListener("afterprint", () => { this.#printed(); });
    new ResizeObserver(() => { this.#soon(); }).observe(this.element);
  }

  public get count(): number {
    return this.#count;
  }

  /** Shows another number of rows, from the first on. */
  public reset(count: number): void {
    this.#count = count;
    this.#current = -1;
    set(this.element, { "aria-rowcount": count + 1, "aria-activedescendant": null });
    this.#body.style.height = `${this.scroll.reset(count)}px`;
    this.refresh();
  }

  /** Draws what is in sight again. */
  public refresh(): void {
    if (this.#printing) {
      this.#print();
      return;
    }
    this.#drawn.clear();
    this.#body.replaceChildren(this.layer);
    this.#draw();
  }

  public sorted(column: number, direction: "ascending" | "descending"): void {
    this.#heads.forEach((head, at) => { set(head, { "aria-sort": at === column ? direction : null }); });
  }

  /** Marks a row as the current one and brings it into sight; -1 for none. */
  public show(row: number): void {
    this.#current = row;
    set(this.element, { "aria-activedescendant": row < 0 ? null : this.#id(row) });
    if (row >= 0) {
      this.scroll.show(row);
    }
    this.refresh();
  }

  /** All rows, of very many those around the current one. */
  #print(): void {
    const first = Math.max(0, Math.min(this.#count - PRINTED, this.#current - PRINTED / 2));
    const last = Math.min(this.#count, first + PRINTED);
    this.#printing = true;
    this.#drawn.clear();
    this.#body.replaceChildren();
    this.element.classList.add("printing");
    for (let row = first; row < last; row += 1) {
      this.#make(row);
    }
    if (last - first < this.#count) {
      this.#body.append(h("div", { class: "quiet" }, `rows ${count(first + 1)} to ${count(last)} of ${count(this.#count)}`));
    }
  }

  #printed(): void {
    this.#printing = false;
    this.element.classList.remove("printing");
    this.refresh();
  }

  #id(row: number): string {
    return `${this.options.id}-${row}`;
  }

  #soon(): void {
    if (!this.#waiting) {
      this.#waiting = true;
      requestAnimationFrame(() => {
        this.#waiting = false;
        this.#draw();
      });
    }
  }

  #draw(): void {
    if (this.#printing) {
      return;
    }
    this.scroll.look();
    const [top, bottom] = this.scroll.sight;
    const first = Math.max(0, Math.floor(top / ROW) - MARGIN);
    const last = Math.min(this.#count, Math.ceil(bottom / ROW) + MARGIN);
    for (const [row, { element }] of this.#drawn) {
      if (row < first || row >= last) {
        element.remove();
        this.#drawn.delete(row);
      }
    }
    const { raised } = this.scroll;
    for (let row = first; row < last; row += 1) {
      const drawn = this.#drawn.get(row) ?? this.#make(row);
      drawn.element.style.top = `${row * ROW - raised}px`;
      this.#drawn.set(row, drawn);
    }
    this.onScroll();
  }

  #make(row: number): Drawn {
    const cells = this.options.columns.map(({ kind }) => h("div", { role: "gridcell", class: `cell ${kind}` }));
    const kind = this.options.draw(row, cells);
    const current = row === this.#current;
    const element = h(
      "div",
      {
        role: "row",
        id: this.#id(row),
        class: `row ${kind}${current ? " current" : ""}`,
        "aria-rowindex": row + 2,
        "aria-selected": String(current),
        "data-row": row,
      },
      ...cells,
    );
    this.#body.append(element);
    return { element, cells };
  }

  #clicked(event: MouseEvent, act: (row: number) => void): void {
    const row = event.target instanceof Element ? event.target.closest("[data-row]")?.getAttribute("data-row") : null;
    if (row !== null && row !== undefined) {
      act(Number(row));
    }
  }

  #key(event: KeyboardEvent): void {
    const page = Math.max(1, Math.floor(this.element.clientHeight / ROW) - 2);
    const steps: Record<string, number> = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -this.#count, End: this.#count };
    const step = steps[event.key];
    if (event.key === "Enter" && this.#current >= 0) {
      (this.options.open ?? this.options.pick)(this.#current);
    } else if (step !== undefined && this.#count > 0 && event.target === this.element) {
      event.preventDefault();
      this.options.pick(Math.min(this.#count - 1, Math.max(0, this.#current + step)));
    }
  }
}
