// Looks into folder after folder, so that a filter finds what nobody has opened.

import { useEffect, useState } from "react";
import { join } from "../paths";
import { isHeavy } from "./model";
import { tree } from "./store";

const MOST_FOLDERS = 3000;
const AT_ONCE = 6;
/** Until somebody has stopped typing. */
const PAUSE = 250;
/** Folders between two numbers that are shown. */
const RARELY = 50;

/** Lists every folder that is not known yet, nearest first. */
export async function search(signal: AbortSignal, tell: (folders: number) => void): Promise<void> {
  let [level, seen] = [[""], 0];
  while (level.length > 0 && seen < MOST_FOLDERS) {
    const below: string[] = [];
    for (let at = 0; at < level.length && seen < MOST_FOLDERS; at += AT_ONCE) {
      const some = level.slice(at, at + AT_ONCE);
      await Promise.all(some.map((path) => tree.load(path)));
      if (signal.aborted) return;
      seen += some.length;
      tell(seen);
      below.push(...some.flatMap(foldersIn));
    }
    level = below;
  }
}

function foldersIn(path: string): string[] {
  const entries = tree.get().model.get(path)?.entries ?? [];
  return entries.filter(({ kind, odd, name }) => kind === "directory" && !odd && !isHeavy(name)).map(({ name }) => join(path, name));
}

/** How many folders were looked into for a filter, while that goes on; null otherwise. */
export function useSearch(filter: string): number | null {
  const [seen, setSeen] = useState<number | null>(null);
  const active = filter.trim() !== "";
  useEffect(() => {
    if (!active) return;
    const control = new AbortController();
    let last = 0;
    const tell = (folders: number) => {
      if (folders - last < RARELY) return;
      last = folders;
      setSeen(folders);
    };
    const timer = setTimeout(() => {
      setSeen(0);
      tree.searching = true;
      void search(control.signal, tell).finally(() => {
        if (control.signal.aborted) return;
        tree.searching = false;
        setSeen(null);
      });
    }, PAUSE);
    return () => {
      clearTimeout(timer);
      control.abort();
      tree.searching = false;
      setSeen(null);
    };
  }, [active]);
  return seen;
}
