// SPDX-License-Identifier: Apache-2.0
// How often a server that ends by itself is started again.

/** Allows a number of restarts within a span of time. */
export class RestartBudget {
  readonly #times: number[] = [];

  public constructor(
    private readonly most = 4,
    private readonly spanMilliseconds = 180_000,
  ) {}

  /** Whether the server that ended `now` is to be started again. */
  public spend(now: number): boolean {
    const from = now - this.spanMilliseconds;
    while (this.#times[0] !== undefined && this.#times[0] < from) {
      this.#times.shift();
    }
    this.#times.push(now);
    return this.#times.length <= this.most;
  }
}
