// Files by name, for whoever looks for one from elsewhere: in the folders that are known at once, in the
// others as they come in.

import { namesIn } from "./rows";
import { search } from "./search";
import { tree } from "./store";

/** Between two looks while folders come in. */
const RARELY = 250;

/** Tells what is found, and again as there is more; ends when all folders were looked into. */
export async function findNames(typed: string, most: number, signal: AbortSignal, tell: (paths: readonly string[]) => void): Promise<void> {
  let last = 0;
  const look = () => {
    last = Date.now();
    if (!signal.aborted) tell(namesIn(tree.get().model, typed, most));
  };
  look();
  // Folders come in by the hundred, and each look is at all of them.
  await search(signal, () => Date.now() - last > RARELY && look());
  look();
}
