// The checks of a swap as they come, one line each, and at the end what they come to.

import type { Of } from "../../api/client";

export type Check = Of<"SwapCheck">;
export interface Verdict {
  ok: boolean;
  verdict: string;
}
type Line = Check | Verdict;

export interface Seen {
  checks: readonly Check[];
  verdict: Verdict | null;
}

export const UNSEEN: Seen = { checks: [], verdict: null };

/** Those that every swap makes, in their order. */
export const EXPECTED: readonly { name: string; asks: string }[] = [
  { name: "process", asks: "The sandbox runs and is well" },
  { name: "runtime", asks: "The app of nacre.toml is ready" },
  { name: "websocket", asks: "Events can be followed" },
  { name: "page", asks: "The page answers" },
  { name: "assets", asks: "What the page needs loads" },
];

export function hear(seen: Seen, line: Line): Seen {
  if (!("name" in line)) return { ...seen, verdict: line };
  return { ...seen, checks: [...seen.checks.filter(({ name }) => name !== line.name), line] };
}

export interface Row {
  name: string;
  asks: string;
  /** Absent until it is made. */
  check: Check | undefined;
  /** It is being made now. */
  now: boolean;
}

/** A line for each that is expected, so that nothing moves when it is made, and any others after them. */
export function rows({ checks, verdict }: Seen, running: boolean): Row[] {
  const found = (name: string) => checks.find((check) => check.name === name);
  const first = EXPECTED.findIndex(({ name }) => !found(name));
  const expected = EXPECTED.map(({ name, asks }, at) => ({ name, asks, check: found(name), now: running && !verdict && at === first }));
  const others = checks.filter(({ name }) => !EXPECTED.some((one) => one.name === name));
  return [...expected, ...others.map((check) => ({ name: check.name, asks: check.name, check, now: false }))];
}
