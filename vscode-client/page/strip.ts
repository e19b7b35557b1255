// SPDX-License-Identifier: Apache-2.0
// The picture of a traced run along the clock: a lane for each stream and each thread, closer and wider.

import { AXIS, axis, LABEL, type View } from "./clock";
import { fill, h } from "./dom";
import { duration } from "./figures";
import type { Store } from "./store";
import { decode, nearest, pieces, type Events, type Run } from "./stripData";

const LANE = 20;
const BAR = 14;
const FASTEST = 20; // nanoseconds across the picture
export const KERNELS = ["--c2", "--c3", "--c5"];
export const COLOURS: Readonly<Record<string, string>> = {
  copy: "--c4",
  set: "--c4",
  wait: "--c1",
  launch: "--share",
  application: "--ink",
  call: "--c6",
  several: "--c6",
};
export class Strip {
  readonly canvas = h("canvas", { tabindex: 0, role: "img", "aria-label": "Streams and threads along the clock" });
  readonly range = h("span", { class: "quiet" });
  readonly status = h("p", { role: "status" }, "Point at something to see what it is.");
  readonly #lanes: readonly Events[];
  #view: View;
  #drag: { readonly from: number; to: number } | null = null;
  #waiting = false;

  constructor(private readonly store: Store, private readonly run: Run) {
    this.#lanes = run.lanes.map(decode);
    this.#view = { from: 0, to: run.span_ns };
    this.canvas.style.height = `${AXIS + run.lanes.length * LANE}px`;
    this.#hear();
    new ResizeObserver(() => { this.#redraw(); }).observe(this.canvas);
    window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { this.#redraw(); });
  }

  zoom(factor: number, around = (this.#view.from + this.#view.to) / 2): void {
    const { from, to } = this.#view;
    this.show({ from: around - (around - from) * factor, to: around + (to - around) * factor });
  }

  show({ from, to }: View): void {
    const length = Math.min(this.run.span_ns, Math.max(FASTEST, to - from));
    const first = Math.min(Math.max(0, from), this.run.span_ns - length);
    this.#view = { from: first, to: first + length };
    this.#redraw();
  }

  #move(share: number): void {
    const by = share * (this.#view.to - this.#view.from);
    this.show({ from: this.#view.from + by, to: this.#view.to + by });
  }

  #hear(): void {
    const { canvas } = this;
    canvas.addEventListener("wheel", (event) => {
      if (event.ctrlKey || event.metaKey) {
        event.preventDefault();
        this.zoom(event.deltaY > 0 ? 1.25 : 0.8, this.#time(event.offsetX));
      } else if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
        event.preventDefault();
        this.#move(event.deltaX / 800);
      }
    }, { passive: false });
    canvas.addEventListener("pointerdown", (event) => {
      if (event.offsetX > LABEL) {
        canvas.setPointerCapture(event.pointerId);
        this.#drag = { from: event.offsetX, to: event.offsetX };
      }
    });
    canvas.addEventListener("pointermove", (event) => {
      if (this.#drag !== null) {
        this.#drag.to = event.offsetX;
        this.#redraw();
      }
      this.#tell(event.offsetX, event.offsetY);
    });
    canvas.addEventListener("pointerup", (event) => {
      const drag = this.#drag;
      this.#drag = null;
      if (drag === null) { return; }
      const [from, to] = [this.#time(Math.min(drag.from, drag.to)), this.#time(Math.max(drag.from, drag.to))];
      if (Math.abs(drag.to - drag.from) > 4) {
        this.show({ from, to });
      } else {
        this.#pick(event.offsetX, event.offsetY);
        this.#redraw();
      }
    });
    canvas.addEventListener("keydown", ({ key }) => { this.#press(key); });
  }

  #press(key: string): void {
    const [closer, by] = [{ "+": 0.5, "-": 2 }[key], { ArrowLeft: -0.2, ArrowRight: 0.2 }[key]];
    if (closer !== undefined) {
      this.zoom(closer);
    } else if (by !== undefined) {
      this.#move(by);
    } else if (key === "Home") {
      this.show({ from: 0, to: this.run.span_ns });
    }
  }

  get #width(): number {
    return Math.max(50, this.canvas.clientWidth - LABEL);
  }

  #time(x: number): number {
    const { from, to } = this.#view;
    return from + ((x - LABEL) / this.#width) * (to - from);
  }

  #at(x: number, y: number): { readonly lane: number; readonly event: number } | null {
    const lane = Math.floor((y - AXIS) / LANE);
    const events = this.#lanes[lane];
    const pixel = (this.#view.to - this.#view.from) / this.#width;
    const event = x < LABEL || events === undefined ? null : nearest(events, this.#time(x), 3 * pixel);
    return event === null ? null : { lane, event };
  }

  #tell(x: number, y: number): void {
    const found = this.#at(x, y);
    const events = found === null ? undefined : this.#lanes[found.lane];
    if (found === null || events === undefined) {
      return;
    }
    const [name, kind] = this.run.names[events.name[found.event] ?? 0] ?? ["", ""];
    const lane = this.run.lanes[found.lane];
    const [start, end] = [events.start[found.event] ?? 0, events.end[found.event] ?? 0];
    const idle = lane?.kind === "idle" && kind !== "several";
    const what = idle ? `idle for ${duration(end - start)}, most of it: ${name}` : `${name}, ${duration(end - start)}`;
    fill(this.status, `${lane?.label ?? ""} at ${duration(start)}: ${what}`);
  }

  /** A kernel's advice, where the report has it. */
  #pick(x: number, y: number): void {
    const found = this.#at(x, y);
    const [name] = found === null ? [] : this.run.names[this.#lanes[found.lane]?.name[found.event] ?? 0] ?? [];
    const kernel = this.store.document.advice.kernels.findIndex((one) => one.name === name);
    if (kernel >= 0) {
      this.store.pickKernel(kernel);
    }
  }

  #redraw(): void {
    if (!this.#waiting) {
      this.#waiting = true;
      requestAnimationFrame(() => {
        this.#waiting = false;
        this.#draw();
      });
    }
  }

  #draw(): void {
    const { from, to } = this.#view;
    const ratio = window.devicePixelRatio || 1;
    const [width, height] = [this.canvas.clientWidth, AXIS + this.#lanes.length * LANE];
    this.canvas.width = Math.round(width * ratio);
    this.canvas.height = Math.round(height * ratio);
    const pen = this.canvas.getContext("2d");
    if (pen === null) { return; }
    pen.scale(ratio, ratio);
    const style = getComputedStyle(this.canvas);
    const colour = (name: string): string => style.getPropertyValue(name).trim() || "gray";
    pen.font = "11.5px system-ui, sans-serif";
    pen.textBaseline = "middle";
    axis(pen, this.#view, this.#width, height, colour);
    this.#lanes.forEach((events, lane) => {
      const top = AXIS + lane * LANE;
      const { kind = "", label = "" } = this.run.lanes[lane] ?? {};
      pen.globalAlpha = 1;
      pen.fillStyle = colour(kind === "idle" ? "--ink" : "--quiet");
      pen.fillText(label, 2, top + LANE / 2, LABEL - 8);
      pen.strokeStyle = colour("--edge");
      pen.strokeRect(LABEL, top + LANE - 0.5, this.#width, 0);
      for (const { x, width: wide, event, cover } of pieces(events, from, to, this.#width)) {
        const name = events.name[event] ?? 0;
        pen.globalAlpha = this.run.names[name]?.[1] === "several" ? 0.35 : 0.25 + 0.75 * cover;
        pen.fillStyle = colour(colourOf(this.run, name));
        pen.fillRect(LABEL + x, top + (LANE - BAR) / 2, Math.max(wide > 3 ? wide - 0.5 : wide, 0.5), BAR);
      }
    });
    pen.globalAlpha = 0.25;
    pen.fillStyle = colour("--focus");
    if (this.#drag !== null) {
      pen.fillRect(Math.min(this.#drag.from, this.#drag.to), 0, Math.abs(this.#drag.to - this.#drag.from), height);
    }
    fill(this.range, `${duration(to - from)} from ${duration(from)} on, of ${duration(this.run.span_ns)}`);
  }
}

function colourOf(run: Run, name: number): string {
  const kind = run.names[name]?.[1] ?? "";
  return COLOURS[kind] ?? KERNELS[name % KERNELS.length] ?? "--c2";
}
