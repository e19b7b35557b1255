// SPDX-License-Identifier: Apache-2.0
// Which part of a grid's rows is in sight. Browsers end an element at some 17 million pixels of the screen, of which a
// zoom makes five for each of ours: a body with more rows is shorter than they are, and each is drawn where it is seen.

export const ROW = 21;
const HIGHEST = 3_000_000;

export class Scroll {
  #whole = 0;
  #at = 0;
  #room = 0;

  public constructor(private readonly element: HTMLElement) {}

  /** Takes another number of rows, from the first on; the height of their body. */
  public reset(rows: number): number {
    this.#whole = rows * ROW;
    this.element.scrollTop = 0;
    return Math.min(this.#whole, HIGHEST);
  }

  /** Asks the browser once, before anything is drawn: later it would have to lay everything out to answer. */
  public look(): void {
    this.#at = this.element.scrollTop;
    this.#room = this.element.clientHeight - ROW;
  }

  /** Brings a row into sight. */
  public show(row: number): void {
    this.look();
    const top = row * ROW;
    const [from, to] = this.sight;
    if (top < from || top + ROW > to) {
      this.element.scrollTop = Math.max(0, top - this.#room / 2) / this.#stretch;
    }
  }

  /** The middle of a row. */
  public middle(row: number): number {
    return row * ROW + ROW / 2;
  }

  /** From where to where among all rows. */
  public get sight(): readonly [number, number] {
    const top = this.#at * this.#stretch;
    return [top, top + this.#room];
  }

  /** How far above its place among all rows each is drawn. */
  public get raised(): number {
    return this.#at * (this.#stretch - 1);
  }

  /** How many pixels of rows a pixel of scrolling stands for. */
  get #stretch(): number {
    return this.#whole <= HIGHEST ? 1 : (this.#whole - this.#room) / (HIGHEST - this.#room);
  }
}
