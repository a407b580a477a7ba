// Texts that were changed and not saved. They outlive the page they are written on, and a reload of the
// window, but not the window.

import { useEffect, useSyncExternalStore } from "react";
import { go, to } from "../../app/router";
import { say } from "../../ui/overlay";
import { isWithin, nameOf } from "./paths";

export interface Draft {
  text: string;
  /** Of the version that was changed. */
  etag: string;
}

const KEY = "nacre.drafts";
/** Browsers keep about five megabytes for a site. */
const MOST_KEPT = 1_500_000;
const PAUSE = 400;

const watchers = new Set<() => void>();
let drafts: ReadonlyMap<string, Draft> = kept();
let timer: ReturnType<typeof setTimeout> | undefined;

function kept(): ReadonlyMap<string, Draft> {
  try {
    return new Map(JSON.parse(sessionStorage.getItem(KEY) ?? "[]") as [string, Draft][]);
  } catch {
    return new Map();
  }
}

function keep(): void {
  const small = [...drafts].filter(([, { text }]) => text.length < MOST_KEPT);
  try {
    if (small.length > 0) sessionStorage.setItem(KEY, JSON.stringify(small));
    else sessionStorage.removeItem(KEY);
  } catch {
    // A browser that keeps nothing; the question before leaving is what is left.
  }
}

function set(next: ReadonlyMap<string, Draft>): void {
  drafts = next;
  watchers.forEach((watcher) => watcher());
  clearTimeout(timer);
  timer = setTimeout(keep, PAUSE);
}

export const draftOf = (path: string): Draft | undefined => drafts.get(path);
/** Of every text that was changed, and of those that may be changed right now. */
export const draftPaths = (): string[] => [...new Set([...drafts.keys(), ...edited.keys()])];
export const hasDrafts = (): boolean => drafts.size > 0;

export function setDraft(path: string, draft: Draft | null): void {
  if (!draft && !drafts.has(path)) return;
  const next = new Map(drafts);
  if (draft) next.set(path, draft);
  else next.delete(path);
  set(next);
}

/** Texts that are being edited, by path: each keeps what was typed a moment ago when it is called. */
const edited = new Map<string, () => void>();

/** For as long as a text is edited; returns what ends that. */
export function editing(path: string, keep: () => void): () => void {
  edited.set(path, keep);
  return () => void (edited.get(path) === keep && edited.delete(path));
}

export const isEditing = (path: string, keep: () => void): boolean => edited.get(path) === keep;

/** What was moved keeps what was not saved of it. */
export function moveDrafts(from: string, into: string): void {
  for (const [path, keep] of edited) {
    if (!isWithin(path, from)) continue;
    keep();
    // What is kept under the old name from here on would be of a file that is not there.
    edited.delete(path);
  }
  if (![...drafts.keys()].some((path) => isWithin(path, from))) return;
  set(new Map([...drafts].map(([path, draft]) => [isWithin(path, from) ? into + path.slice(from.length) : path, draft])));
}

export const useDrafts = (): ReadonlyMap<string, Draft> =>
  useSyncExternalStore(
    (watcher) => (watchers.add(watcher), () => void watchers.delete(watcher)),
    () => drafts,
  );

addEventListener("beforeunload", (event) => {
  if (!hasDrafts()) return;
  clearTimeout(timer);
  keep();
  event.preventDefault();
});

/** Says so when the page is left with something unsaved, which is kept. */
export function useParting(): void {
  useEffect(
    () => () => {
      const [path] = [...drafts.keys()];
      if (path === undefined || location.hash.startsWith("#/files")) return;
      const words = drafts.size === 1 ? `${nameOf(path)} has changes that are not saved.` : `${drafts.size} files have changes that are not saved.`;
      say(`${words} They are kept while this window is open.`, { label: "Go back", act: () => go(to("files", path)) });
    },
    [],
  );
}
