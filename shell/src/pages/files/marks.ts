// Marks on what changed in the last minutes: what happened, when, and who did it.
//
// Changes are told twice: at once by name, and a moment later as a checkpoint, which knows who was at
// work. Either may come first. Pure; marks.live.ts feeds it.

import type { Of } from "../../api/client";
import { deedOf, whoOf, type Checkpoint, type Deed, type Who } from "../timeline/words";
import { above, isWithin, relative, shown } from "./paths";

export interface Mark {
  deed: Deed;
  /** Milliseconds since 1970. */
  at: number;
  folder?: boolean;
  who?: Who;
  checkpoint?: number;
}

export type Marks = ReadonlyMap<string, Mark>;

export const KEPT = 10 * 60_000;
const MOST = 2000;
/** Within this a change by name and a checkpoint are about the same. */
const TOGETHER = 3000;

const DEEDS = { create: "added", modify: "changed", move: "moved", delete: "removed" } as const;

/** Changes by name, as they happen. */
export function noticed(marks: Marks, changes: readonly Of<"Change">[], now: number): Marks {
  const next = new Map(marks);
  for (const { kind, path, from, directory } of changes) {
    const [name, old] = [relative(path), from ? relative(from) : null];
    if (old !== null) drop(next, old);
    if (name === null) continue;
    if (kind === "delete") drop(next, name);
    const known = next.get(name);
    if (known?.checkpoint !== undefined && now - known.at < TOGETHER) continue;
    // What is new stays new while it is being written.
    const deed = kind === "modify" && known?.deed === "added" && now - known.at < KEPT ? "added" : DEEDS[kind];
    put(next, name, { deed, at: now, ...(directory ? { folder: true } : {}) });
  }
  return next;
}

/** A checkpoint with the names it changed; without them, it is taken to be all that nobody is known for. */
export function recorded(marks: Marks, checkpoint: Checkpoint, changes: readonly Of<"FileChange">[] | null, at: number): Marks {
  const next = new Map(marks);
  const who = whoOf(checkpoint);
  if (changes === null) {
    for (const [path, mark] of marks) if (mark.checkpoint === undefined && mark.at <= at) next.set(path, { ...mark, who, checkpoint: checkpoint.id });
    return next;
  }
  for (const change of changes) {
    const path = shown(change.path);
    const known = next.get(path);
    if ((known?.checkpoint ?? 0) > checkpoint.id) continue;
    // The folder that a file came into has changed as well; that is not worth a mark.
    if (deedOf(change) === "changed" && change.new?.kind === "directory") continue;
    const folder = (change.new ?? change.old)?.kind === "directory";
    put(next, path, { deed: deedOf(change), at: known && known.checkpoint === undefined ? known.at : at, ...(folder ? { folder } : {}), who, checkpoint: checkpoint.id });
  }
  return next;
}

/** Without what is no longer new. */
export function faded(marks: Marks, now: number): Marks {
  const fresh = [...marks].filter(([, { at }]) => now - at < KEPT).slice(-MOST);
  return fresh.length === marks.size ? marks : new Map(fresh);
}

/** For each folder, the newest mark of what is below it. */
export function upwards(marks: Marks): Marks {
  const folders = new Map<string, Mark>();
  for (const [path, mark] of marks) {
    for (const folder of above(path)) if ((folders.get(folder)?.at ?? 0) <= mark.at) folders.set(folder, mark);
  }
  return folders;
}

/** The newest stand last. */
function put(marks: Map<string, Mark>, path: string, mark: Mark): void {
  marks.delete(path);
  marks.set(path, mark);
}

function drop(marks: Map<string, Mark>, path: string): void {
  for (const known of marks.keys()) if (isWithin(known, path)) marks.delete(known);
}
