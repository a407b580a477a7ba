// The list of checkpoints: pages of it, what arrives, and the days it is read by. Pure.

import type { CheckpointPage } from "./calls";
import { whoOf, type Checkpoint, type WhoKind } from "./words";

export type WhoFilter = "all" | "agent" | "command" | "you" | "ssh" | "unknown";

const KINDS: Record<Exclude<WhoFilter, "all">, readonly WhoKind[]> = {
  agent: ["agent"],
  command: ["command"],
  // Nobody but the owner takes back or restores.
  you: ["you", "undo", "redo", "restore"],
  ssh: ["ssh"],
  unknown: ["unknown", "first"],
};

export const isWhoFilter = (word: string | null): word is WhoFilter => word === "all" || (word !== null && Object.hasOwn(KINDS, word));

export const isBy = (checkpoint: Checkpoint, who: WhoFilter): boolean => who === "all" || KINDS[who].includes(whoOf(checkpoint).kind);

/** All pages as one list, newest first, each checkpoint once; where two tell of it, the first is newer. */
export function joined(pages: readonly CheckpointPage[]): Checkpoint[] {
  const found = new Map<number, Checkpoint>();
  for (const { checkpoints } of pages) for (const checkpoint of checkpoints) if (!found.has(checkpoint.id)) found.set(checkpoint.id, checkpoint);
  return [...found.values()].sort((a, b) => b.id - a.id);
}

/** With checkpoints that came after the pages were asked for. */
export function arrived(pages: readonly CheckpointPage[], newer: readonly Checkpoint[]): CheckpointPage[] {
  const [first = { checkpoints: [] }, ...rest] = pages;
  const ids = new Set(newer.map(({ id }) => id));
  const checkpoints = [...newer, ...first.checkpoints.filter(({ id }) => !ids.has(id))].sort((a, b) => b.id - a.id);
  return [{ ...first, checkpoints }, ...rest];
}

/** With one changed, such as by a name it was given. */
export const amended = (pages: readonly CheckpointPage[], id: number, change: Partial<Checkpoint>): CheckpointPage[] =>
  pages.map((page) => ({ ...page, checkpoints: page.checkpoints.map((known) => (known.id === id ? { ...known, ...change } : known)) }));

export type FeedRow = { kind: "day"; words: string } | { kind: "checkpoint"; checkpoint: Checkpoint; last: boolean };

/** With a line for each day. `last` is the end of a day, where the thread between them ends. */
export function byDay(checkpoints: readonly Checkpoint[], now: number): FeedRow[] {
  const rows: FeedRow[] = [];
  let day = "";
  checkpoints.forEach((checkpoint, index) => {
    const words = dayOf(checkpoint.time, now);
    if (words !== day) rows.push({ kind: "day", words });
    day = words;
    const next = checkpoints[index + 1];
    rows.push({ kind: "checkpoint", checkpoint, last: !next || dayOf(next.time, now) !== words });
  });
  return rows;
}

export function dayOf(at: number, now: number): string {
  const [date, today] = [new Date(at), new Date(now)];
  const midnight = (of: Date) => new Date(of.getFullYear(), of.getMonth(), of.getDate()).getTime();
  const days = Math.round((midnight(today) - midnight(date)) / 86_400_000);
  if (days === 0) return "Today";
  if (days === 1) return "Yesterday";
  // Put together here: browsers do not agree on the commas.
  const part = (options: Intl.DateTimeFormatOptions) => date.toLocaleDateString("en-GB", options);
  const year = date.getFullYear() === today.getFullYear() ? "" : ` ${date.getFullYear()}`;
  return `${part({ weekday: "long" })} ${date.getDate()} ${part({ month: "long" })}${year}`;
}

/** Which two moments are compared, the older first; the second is the present when there is none. */
export function moments(id: number, other: number | "now"): { from: number; to: number | undefined } {
  if (other === "now") return { from: id, to: undefined };
  return { from: Math.min(id, other), to: Math.max(id, other) };
}
