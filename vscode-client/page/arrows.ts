// SPDX-License-Identifier: Apache-2.0
// Arrows in the margin of a grid, from a cause to what waits for it; an end that is out of sight is at the edge.

import { fill, svg } from "./dom";
import type { Rows } from "./rows";

export interface Arrow {
  readonly from: number; // row of the cause
  readonly to: number; // row that waits
  readonly weight: number; // 0 to 1
}

const WIDTH = 44;
const LANES = 6;

export class Arrows {
  #arrows: readonly Arrow[] = [];

  public constructor(private readonly rows: Rows) {
    rows.onScroll = () => { this.#draw(); };
  }

  public set(arrows: readonly Arrow[]): void {
    this.#arrows = arrows;
    this.#draw();
  }

  #draw(): void {
    const [top, bottom] = this.rows.scroll.sight;
    const height = Math.max(0, bottom - top);
    const picture = svg("svg", { width: WIDTH, height, viewBox: `0 0 ${WIDTH} ${height}` });
    const at = (row: number): number => Math.min(height - 1, Math.max(1, this.rows.scroll.middle(row) - top));
    [...this.#arrows].slice(0, LANES).forEach(({ from, to, weight }, lane) => {
      const [start, end] = [at(from), at(to)];
      const outside = (start <= 1 && end <= 1) || (start >= height - 1 && end >= height - 1);
      if (outside) {
        return;
      }
      const x = WIDTH - 12 - 5 * lane;
      const wide = 1 + 3 * weight;
      picture.append(
        svg("path", { class: "arrow", d: `M${WIDTH - 3},${start} H${x} V${end} H${WIDTH - 6}`, "stroke-width": wide.toFixed(1) }),
        svg("path", { class: "tip", d: `M${WIDTH - 8},${end - 4} L${WIDTH - 1},${end} L${WIDTH - 8},${end + 4} Z` }),
        svg("circle", { class: "tip", cx: WIDTH - 3, cy: start, r: 2.5 }),
      );
    });
    picture.style.top = `${top - this.rows.scroll.raised}px`;
    fill(this.rows.layer, picture);
  }
}
