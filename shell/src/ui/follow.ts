// Streams of lines that go on: read as they come, and taken up again when the connection breaks.

import { lines, Refusal, request } from "../api/client";

const SHORTEST = 400;
const LONGEST = 15_000;
const A_DAY = 86_400_000;

/** How long to wait after so many failures in a row; by chance up to twice as long. */
export function pauseAfter(failures: number, chance: number = Math.random()): number {
  return Math.min(LONGEST, SHORTEST * 2 ** Math.min(failures, 10)) * (1 + chance);
}

interface Followed<T> {
  path: string;
  /** Asked for at each attempt, so that it can say where to go on. */
  query?: () => Record<string, string | number | boolean | undefined>;
  of?: "sandbox" | "gateway";
  signal: AbortSignal;
  /** Called for each line; `true` ends it. */
  hear: (line: T) => boolean | void;
  /** Called when a connection is made or lost. */
  state?: (connected: boolean) => void;
}

/** Settles when `hear` says so or `signal` does; throws what will be refused again. */
export async function follow<T>({ path, query, of = "sandbox", signal, hear, state }: Followed<T>): Promise<void> {
  let failures = 0;
  while (!signal.aborted) {
    try {
      const response = await request(path, { query: query?.(), of, signal, patience: A_DAY });
      state?.(true);
      for await (const line of lines<T>(response)) {
        failures = 0;
        if (hear(line)) return;
      }
    } catch (error) {
      if (signal.aborted) return;
      if (error instanceof Refusal && error.status < 500) throw error;
    }
    state?.(false);
    await new Promise((resolve) => setTimeout(resolve, pauseAfter(failures++)));
  }
}
