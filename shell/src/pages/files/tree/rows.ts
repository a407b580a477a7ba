// The tree as the lines that are shown: flat, so that only those in view have to be made.

import { join } from "../paths";
import { isFolder, isHeavy, type Entry, type Folder, type Model } from "./model";

export interface EntryRow {
  kind: "entry";
  path: string;
  level: number;
  entry: Entry;
  folder: boolean;
  expanded: boolean;
  /** Of how many, and which; -1 while it is not known how many. */
  size: number;
  position: number;
}

/** A line that is no file: more to come, nothing there, or what went wrong. */
export interface NoteRow {
  kind: "more" | "loading" | "empty" | "trouble";
  /** The folder it speaks of. */
  path: string;
  level: number;
}

export type Row = EntryRow | NoteRow;

/** Names one row among all. */
export const rowKey = (row: Row): string => (row.kind === "entry" ? row.path : `${row.kind}:${row.path}`);

/** Folders that could not be listed. */
export type Troubles = ReadonlyMap<string, unknown>;

export function flatten(model: Model, expanded: ReadonlySet<string>, troubles: Troubles): Row[] {
  const rows: Row[] = [];
  const walk = (path: string, level: number) => {
    const folder = model.get(path);
    if (troubles.has(path)) rows.push({ kind: "trouble", path, level });
    else if (!folder) rows.push({ kind: "loading", path, level });
    else if (folder.entries.length === 0 && folder.next === null && path !== "") rows.push({ kind: "empty", path, level });
    folder?.entries.forEach((entry, index) => {
      const row = rowOf(folder, entry, path, level, index, expanded);
      rows.push(row);
      if (row.expanded) walk(row.path, level + 1);
    });
    if (folder?.next != null) rows.push({ kind: "more", path, level });
  };
  walk("", 1);
  return rows;
}

function rowOf(folder: Folder, entry: Entry, parent: string, level: number, index: number, expanded: ReadonlySet<string>): EntryRow {
  const path = join(parent, entry.name);
  const isOpen = isFolder(entry) && !entry.odd && expanded.has(path);
  return { kind: "entry", path, level, entry, folder: isFolder(entry), expanded: isOpen, size: folder.next === null ? folder.entries.length : -1, position: index + 1 };
}

/** The words of a filter; empty when nothing is filtered. */
export const wordsOf = (typed: string): string[] => typed.toLowerCase().split(/\s+/).filter(Boolean);

/** All words in the path and one of them in the name; a word with a slash is about the path alone. */
export function fits(path: string, name: string, words: readonly string[]): boolean {
  return fitting(path.slice(0, Math.max(0, path.length - name.length)).toLowerCase(), name.toLowerCase(), words);
}

/** Of a folder with a slash behind it and a name, both in small letters. */
function fitting(folder: string, name: string, words: readonly string[]): boolean {
  const named = (word: string) => name.includes(word.slice(word.lastIndexOf("/") + 1));
  return words.some(named) && words.every((word) => name.includes(word) || folder.includes(word) || (word.includes("/") && (folder + name).includes(word)));
}

/** Only what fits, and the folders that lead to it; a folder that fits itself can be opened. */
export function filtered(model: Model, expanded: ReadonlySet<string>, words: readonly string[]): EntryRow[] {
  const rows: EntryRow[] = [];
  const walk = (parent: string, level: number, all: boolean) => {
    const folder = model.get(parent);
    const before = parent ? `${parent.toLowerCase()}/` : "";
    folder?.entries.forEach((entry, index) => {
      const hit = fitting(before, entry.name.toLowerCase(), words);
      const inner = isFolder(entry) && !entry.odd;
      if (!hit && !all && !inner) return;
      const row = rowOf(folder, entry, parent, level, index, expanded);
      const place = rows.push(row);
      // What is below a folder that is closed is only of interest when it fits.
      if (inner && (!all || row.expanded)) walk(row.path, level + 1, all || (hit && row.expanded));
      row.expanded = rows.length > place;
      if (!hit && !all && !row.expanded) rows.pop();
    });
  };
  walk("", 1, false);
  return rows;
}

/** Those whose names fit best first, then the shorter ones. */
export function namesIn(model: Model, typed: string, most: number): string[] {
  const words = wordsOf(typed);
  const [first = ""] = words;
  const found: { path: string; rank: number }[] = [];
  if (words.length === 0) return [];
  for (const [folder, { entries }] of model) {
    if (folder.split("/").some(isHeavy)) continue;
    for (const entry of entries) {
      const path = join(folder, entry.name);
      if (isFolder(entry) || !fits(path, entry.name, words)) continue;
      const name = entry.name.toLowerCase();
      found.push({ path, rank: name === first ? 0 : name.startsWith(first) ? 1 : 2 });
    }
  }
  found.sort((a, b) => a.rank - b.rank || a.path.length - b.path.length || (a.path < b.path ? -1 : 1));
  return found.slice(0, most).map(({ path }) => path);
}

/** The next row whose name begins with what was typed, from the one behind `from` on and around. */
export function typedAhead(rows: readonly Row[], from: number, typed: string): number {
  const wanted = typed.toLowerCase();
  // One letter again and again goes on to the next; several letters may still mean the same row.
  const same = wanted.length > 1 && [...wanted].every((letter) => letter === wanted[0]);
  const prefix = same ? wanted[0]! : wanted;
  const start = wanted.length > 1 && !same ? from : from + 1;
  for (let step = 0; step < rows.length; step++) {
    const index = (start + step) % rows.length;
    const row = rows[index]!;
    if (row.kind === "entry" && row.entry.name.toLowerCase().startsWith(prefix)) return index;
  }
  return -1;
}

/** The row of the folder that a row is in; -1 at the top. */
export function parentRow(rows: readonly Row[], index: number): number {
  const level = rows[index]?.level ?? 1;
  for (let above = index - 1; above >= 0; above--) if (rows[above]!.level < level) return above;
  return -1;
}
