// How much slower this machine is than by itself, because others work on it too. What is promised to a person
// holds on a computer that has time for them; a test that measures it gives that much more, and says so.

import { createHash } from "node:crypto";
import { setTimeout as pause } from "node:timers/promises";

const WORK = Buffer.alloc(2 << 20);
const PAUSE = 60;

function once() {
  const began = performance.now();
  createHash("sha256").update(WORK).digest();
  return performance.now() - began;
}

/** The least of many: the others were interrupted. */
const ALONE = Math.min(...Array.from({ length: 40 }, once));

export class Slowness {
  #took = [once()];
  #over = false;

  /** Does a little work now and then until it is asked. */
  static watch() {
    const slowness = new Slowness();
    void slowness.#keepAt();
    return slowness;
  }

  async #keepAt() {
    for (;;) {
      const due = performance.now() + PAUSE;
      await pause(PAUSE);
      if (this.#over) return;
      // A timer that comes late is late for the same reason.
      this.#took.push(once() + Math.max(0, performance.now() - due - 1));
    }
  }

  /** 1 on a machine that did nothing else. */
  end() {
    this.#over = true;
    const mean = this.#took.reduce((sum, took) => sum + took, 0) / this.#took.length;
    return Math.max(1, mean / ALONE);
  }
}
