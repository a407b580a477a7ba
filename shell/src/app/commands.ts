// What the palette offers besides pages. A page adds its own while it is shown.

import { useEffect, useSyncExternalStore } from "react";
import type { IconName } from "../ui/icons";

export interface Command {
  id: string;
  name: string;
  icon: IconName;
  /** Words that find it too. */
  also?: string;
  keys?: string;
  act: () => void;
}

let commands: readonly Command[] = [];
const watchers = new Set<() => void>();

function change(next: readonly Command[]): void {
  commands = next;
  watchers.forEach((watcher) => watcher());
}

/** Offers commands for as long as the component is shown. `list` must be stable (useMemo). */
export function useCommands(list: readonly Command[]): void {
  useEffect(() => {
    change([...commands, ...list]);
    return () => change(commands.filter((command) => !list.includes(command)));
  }, [list]);
}

export const useOffered = (): readonly Command[] =>
  useSyncExternalStore(
    (watcher) => (watchers.add(watcher), () => void watchers.delete(watcher)),
    () => commands,
  );
