// Where a name is after changes that were told. Pure.

import type { Of } from "../../api/client";
import { isWithin, relative } from "./paths";

/**
 * Elsewhere when it was moved, unless something else is under its name in the end: editors such as vim
 * move a file aside, write it anew and remove what they moved.
 */
export function whereabouts(path: string, changes: readonly Of<"Change">[]): string {
  let now = path;
  for (const change of changes) {
    const [into, from] = [relative(change.path), change.from ? relative(change.from) : null];
    if (change.kind !== "delete" && into === path) now = path;
    else if (from !== null && into !== null && isWithin(now, from)) now = into + now.slice(from.length);
  }
  return now;
}
