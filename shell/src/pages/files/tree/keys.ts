// The keys of the tree, as people know them from others.

import { useRef } from "react";
import { parentRow, typedAhead, type EntryRow, type Row } from "./rows";
import { tree } from "./store";

/** A pause in typing after which a name begins anew. */
const PAUSE = 700;

export interface KeyActs {
  open: (row: EntryRow) => void;
  rename: (path: string) => void;
  remove: (path: string) => void;
  menu: (row: EntryRow) => void;
}

export function useTreeKeys(rows: readonly Row[], at: number, moveTo: (index: number) => void, page: number, acts: KeyActs) {
  const typed = useRef({ text: "", when: 0 });

  /** Whether the key was ours. */
  const press = (event: React.KeyboardEvent): boolean => {
    const row = rows[at];
    const entry = row?.kind === "entry" ? row : null;
    // What was typed belongs to where it was typed.
    if (event.key.length > 1) typed.current = { text: "", when: 0 };
    const go = (index: number) => (rows.length > 0 && moveTo(Math.max(0, Math.min(rows.length - 1, index))), true);
    switch (event.key) {
      case "ArrowDown":
        return go(at + 1);
      case "ArrowUp":
        return go(at < 0 ? 0 : at - 1);
      case "PageDown":
        return go(at + page);
      case "PageUp":
        return go(at - page);
      case "Home":
        return go(0);
      case "End":
        return go(rows.length - 1);
      case "ArrowRight":
        if (entry?.folder && !entry.expanded && !entry.entry.odd) tree.open(entry.path);
        else if (entry?.expanded) go(at + 1);
        return true;
      case "ArrowLeft": {
        if (entry?.expanded) tree.close(entry.path);
        else if (parentRow(rows, at) >= 0) go(parentRow(rows, at));
        return true;
      }
      case "Enter":
      case " ":
        if (entry) acts.open(entry);
        else if (row?.kind === "trouble") void tree.retry(row.path);
        return true;
      case "F2":
        if (entry && !entry.entry.odd) acts.rename(entry.path);
        return true;
      case "Delete":
        if (entry && !entry.entry.odd) acts.remove(entry.path);
        return true;
      case "ContextMenu":
        if (entry) acts.menu(entry);
        return true;
      case "F10":
        if (event.shiftKey && entry) acts.menu(entry);
        return event.shiftKey;
      default:
        return event.key.length === 1 && type(event.key, event.timeStamp);
    }
  };

  const type = (letter: string, when: number): boolean => {
    const { text, when: before } = typed.current;
    const now = when - before < PAUSE ? text + letter : letter;
    typed.current = { text: now, when };
    const found = typedAhead(rows, at, now);
    if (found >= 0) moveTo(found);
    return true;
  };

  return (event: React.KeyboardEvent) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (!press(event)) return;
    event.preventDefault();
    // A letter here begins a name, and not a way to another page.
    event.stopPropagation();
  };
}
