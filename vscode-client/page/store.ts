// SPDX-License-Identifier: Apache-2.0
// What is selected: one value that every panel shows, kept in the address of the page or by the editor.

import type { Kernel, PageDocument, Suggestion } from "./document";
import { Listing } from "./listing";

export interface Selection {
  readonly kernel: number;
  readonly suggestion: number | null;
  readonly file: number | null;
  readonly line: number | null;
  readonly row: number | null;
}

type Listener = (now: Selection, before: Selection) => void;

export class Store {
  readonly #listeners: Listener[] = [];
  readonly #listings = new Map<number, Listing>();
  #now: Selection;

  public constructor(public readonly document: PageDocument) {
    this.#now = { kernel: 0, suggestion: null, file: null, line: null, row: null };
  }

  public get now(): Selection {
    return this.#now;
  }

  public get kernel(): Kernel | undefined {
    return this.document.kernels[this.#now.kernel];
  }

  public get advice(): PageDocument["advice"]["kernels"][number] | undefined {
    return this.document.advice.kernels[this.#now.kernel];
  }

  public get suggestion(): Suggestion | undefined {
    const { suggestion } = this.#now;
    return suggestion === null ? undefined : this.advice?.suggestions[suggestion];
  }

  public get listing(): Listing | undefined {
    return this.listingOf(this.#now.kernel);
  }

  public listingOf(kernel: number): Listing | undefined {
    const code = this.document.kernels[kernel]?.code;
    const known = this.#listings.get(kernel);
    if (known !== undefined || code === undefined) {
      return known;
    }
    const made = new Listing(code);
    this.#listings.set(kernel, made);
    return made;
  }

  public listen(listener: Listener): void {
    this.#listeners.push(listener);
  }

  /** Selects a kernel, with the line that most of its samples are on. */
  public pickKernel(kernel: number): void {
    const listing = this.listingOf(kernel);
    const place = this.document.kernels[kernel]?.place ?? null;
    const row = listing?.hottestRow ?? null;
    const at = listing?.place(row) ?? { file: listing?.files[0] ?? place?.[0] ?? null, line: null };
    this.#change({ kernel, suggestion: null, ...at, row });
  }

  /** Selects a suggestion: its heaviest cause, with the line of that. */
  public pickSuggestion(suggestion: number): void {
    const listing = this.listing;
    const hotspot = this.advice?.suggestions[suggestion]?.hotspots[0];
    const code = hotspot?.def ?? hotspot?.use ?? null;
    const row = code === null || listing === undefined ? null : listing.find(code);
    this.#change({ ...this.#now, suggestion, ...(row === null ? { row: null } : this.#placeOf(row)) });
  }

  public pickRow(row: number): void {
    this.#change({ ...this.#now, suggestion: null, ...this.#placeOf(row) });
  }

  /** Selects a line; where this kernel has none there, the first one that has. */
  public pickLine(file: number, line: number): void {
    const kernels = [this.#now.kernel, ...this.document.kernels.keys()];
    const kernel = kernels.find((one) => this.listingOf(one)?.line(file, line) !== undefined) ?? this.#now.kernel;
    const row = this.listingOf(kernel)?.hottest(file, line) ?? null;
    this.#change({ kernel, suggestion: null, file, line, row });
  }

  public pickFile(file: number): void {
    this.#change({ ...this.#now, file, line: null, row: null, suggestion: null });
  }

  /** The selection as an address ends with it. */
  public get hash(): string {
    const { kernel, suggestion, file, line, row } = this.#now;
    const parts = Object.entries({ kernel, suggestion, file, line, row }).filter(([, value]) => value !== null);
    return new URLSearchParams(parts.map(([name, value]) => [name, String(value)])).toString();
  }

  public restore(hash: string): void {
    const wanted = new URLSearchParams(hash);
    const number = (name: string, limit: number): number | null => {
      const text = wanted.get(name) ?? "";
      return /^\d{1,9}$/.test(text) && Number(text) < limit ? Number(text) : null;
    };
    const { kernels, files } = this.document;
    const kernel = number("kernel", kernels.length) ?? 0;
    this.pickKernel(kernel);
    const suggestion = number("suggestion", this.advice?.suggestions.length ?? 0);
    const [row, file, line] = [number("row", this.listing?.rows ?? 0), number("file", files.length), number("line", 1e9)];
    if (suggestion !== null) {
      this.pickSuggestion(suggestion);
    } else if (row !== null) {
      this.pickRow(row);
    } else if (file !== null && line !== null) {
      this.pickLine(file, line);
    } else if (this.advice?.suggestions.length) {
      this.pickSuggestion(0);
    }
  }

  #placeOf(row: number): Pick<Selection, "file" | "line" | "row"> {
    return { ...(this.listing?.place(row) ?? { file: this.#now.file, line: null }), row };
  }

  #change(next: Selection): void {
    const before = this.#now;
    this.#now = next;
    for (const listener of this.#listeners) {
      listener(next, before);
    }
  }
}
