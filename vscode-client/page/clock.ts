// SPDX-License-Identifier: Apache-2.0
// The times above the lanes of a run.

import { duration } from "./figures";

export const AXIS = 18; // its height
export const LABEL = 150; // width of what stands before the lanes

/** What of the run the picture shows. */
export interface View {
  readonly from: number;
  readonly to: number;
}

/** Times above the lanes, at a step of 1, 2 or 5; since the first one where digits would not tell them apart. */
export function axis(
  pen: CanvasRenderingContext2D, { from, to }: View, width: number, height: number, colour: (name: string) => string,
): void {
  const rough = (to - from) / Math.max(2, width / 120);
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((one) => one * power).find((one) => one >= rough) ?? rough;
  const first = Math.ceil(from / step) * step;
  const words = (time: number): string => first < 100 * step ? duration(time) : `+${duration(time - first)}`;
  for (let time = first; time <= to; time += step) {
    const x = LABEL + ((time - from) / (to - from)) * width;
    pen.fillStyle = colour("--edge");
    pen.fillRect(x, AXIS - 4, 1, height - AXIS + 4);
    pen.fillStyle = colour("--quiet");
    pen.fillText(x < LABEL + width - 50 ? words(time) : "", x + 3, AXIS / 2);
  }
}
