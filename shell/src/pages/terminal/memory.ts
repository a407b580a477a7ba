// What the browser remembers of terminals: the tabs of this window, and names for all of its windows.

import { useSyncExternalStore } from "react";
import { role } from "../../api/mount";
import { NOTHING, type Remembered } from "./tabs";

const TABS = `nacre.terminals.${role}`;
const NAMES = `nacre.terminal-names.${role}`;
const watchers = new Set<() => void>();
let known = stored();

function read<T>(storage: () => Storage, key: string, otherwise: T): T {
  try {
    return (JSON.parse(storage().getItem(key) ?? "null") as T | null) ?? otherwise;
  } catch {
    return otherwise;
  }
}

function stored(): Remembered {
  return { tabs: read(() => sessionStorage, TABS, NOTHING.tabs), names: read(() => localStorage, NAMES, NOTHING.names) };
}

export function remember(next: Remembered): void {
  known = next;
  try {
    sessionStorage.setItem(TABS, JSON.stringify(next.tabs));
    localStorage.setItem(NAMES, JSON.stringify(next.names));
  } catch {
    // A browser that keeps nothing: the list of commands is enough to find them again.
  }
  watchers.forEach((watcher) => watcher());
}

export const remembered = (): Remembered => known;

export const useRemembered = (): Remembered =>
  useSyncExternalStore(
    (watcher) => (watchers.add(watcher), () => void watchers.delete(watcher)),
    () => known,
  );
