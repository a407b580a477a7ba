// What the owner chose for this browser. Kept where they sit, not in the computer.

import { useSyncExternalStore } from "react";

export interface Preferences {
  theme: "system" | "light" | "dark";
  /** The chat beside every page. */
  dock: boolean;
  dockWidth: number;
  /** Names beside the icons of the rail. */
  rail: "icons" | "names";
  editorWrap: boolean;
  terminalSize: number;
}

const DEFAULTS: Preferences = { theme: "system", dock: false, dockWidth: 420, rail: "icons", editorWrap: false, terminalSize: 13 };
const KEY = "nacre.preferences";
const watchers = new Set<() => void>();
let current = stored();

function stored(): Preferences {
  try {
    return { ...DEFAULTS, ...(JSON.parse(localStorage.getItem(KEY) ?? "{}") as Partial<Preferences>) };
  } catch {
    return DEFAULTS;
  }
}

export function prefer(change: Partial<Preferences>): void {
  current = { ...current, ...change };
  try {
    localStorage.setItem(KEY, JSON.stringify(current));
    // index.html reads it before the first paint.
    localStorage.setItem("nacre.theme", current.theme);
  } catch {
    // A browser that keeps nothing: it holds until the page is closed.
  }
  if (current.theme === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = current.theme;
  watchers.forEach((watcher) => watcher());
}

export const usePreferences = (): Preferences =>
  useSyncExternalStore(
    (watcher) => (watchers.add(watcher), () => void watchers.delete(watcher)),
    () => current,
  );
