// What is known of the tree: the folders that were listed, kept true by the changes that are told.
//
// Pure: each function takes a model and gives the next one. A folder that fits one page shows folders
// first; a larger one keeps the order in which its pages come, so that nothing moves while they do.

import type { Of } from "../../../api/client";
import { isWithin, nameOf, parentOf, relative, shown, type WirePath } from "../paths";

type Change = Of<"Change">;
type Listing = Of<"Listing">;
type Stat = Of<"Stat">;

export type Kind = "directory" | "file" | "symlink" | "other";

export interface Entry {
  name: string;
  kind: Kind;
  /** What a link leads to, once that was asked. */
  leads?: "directory" | "file" | "nowhere";
  target?: string;
  /** Its name is not text, so it cannot be named in an address. */
  odd?: boolean;
}

export interface Folder {
  entries: readonly Entry[];
  /** Where the next page begins; null when all of it is here. */
  next: WirePath | null;
  order: "folders-first" | "by-name";
}

export type Model = ReadonlyMap<string, Folder>;

export const isFolder = (entry: Entry): boolean => entry.kind === "directory" || entry.leads === "directory";

const KINDS: Partial<Record<Stat["kind"], Kind>> = { directory: "directory", file: "file", symlink: "symlink" };

export function entryOf(stat: Stat): Entry {
  const entry: Entry = { name: nameOf(shown(stat.path)), kind: KINDS[stat.kind] ?? "other" };
  if (stat.target) entry.target = shown(stat.target);
  if (typeof stat.path !== "string") entry.odd = true;
  return entry;
}

const collator = new Intl.Collator("en", { numeric: true, sensitivity: "base" });
const byCode = (a: string, b: string) => (a < b ? -1 : a > b ? 1 : 0);
const byName = (a: Entry, b: Entry) => byCode(a.name, b.name);

function foldersFirst(a: Entry, b: Entry): number {
  // A link to a folder stands with the files: what it leads to is only known later.
  const rank = Number(b.kind === "directory") - Number(a.kind === "directory");
  return rank || collator.compare(a.name, b.name) || byCode(a.name, b.name);
}

const ordering = (order: Folder["order"]) => (order === "by-name" ? byName : foldersFirst);

/** With a page of a folder: the first replaces what was known of it, later ones add to it. */
export function placed(model: Model, path: string, page: Listing, which: "first" | "later"): Model {
  const known = which === "later" ? model.get(path) : undefined;
  const next = page.next ?? null;
  const order = known?.order ?? (next === null ? "folders-first" : "by-name");
  // Pages come in order, and what was told meanwhile was kept out of those to come.
  if (known && order === "by-name") return new Map(model).set(path, { entries: [...known.entries, ...page.entries.map(entryOf)], next, order });
  const found = new Map<string, Entry>();
  // What a link leads to need not be asked again.
  const before = new Map(model.get(path)?.entries.map((entry) => [entry.name, entry]));
  for (const entry of [...(known?.entries ?? []), ...page.entries.map(entryOf)]) {
    const old = before.get(entry.name);
    found.set(entry.name, old?.leads && old.target === entry.target ? { ...entry, leads: old.leads } : entry);
  }
  return new Map(model).set(path, { entries: [...found.values()].sort(ordering(order)), next, order });
}

/** With more about one name: that it is a link, or what a link leads to. */
export function amended(model: Model, path: string, more: Partial<Entry>): Model {
  const folder = model.get(parentOf(path));
  if (!folder || !entryAt(model, path)) return model;
  const entries = folder.entries.map((entry) => (entry.name === nameOf(path) ? { ...entry, ...more } : entry));
  return new Map(model).set(parentOf(path), { ...folder, entries });
}

/** After changes that were told. What is not loaded needs no change: it is asked for when it is shown. */
export function applied(model: Model, changes: readonly Change[]): Model {
  const draft = new Draft(model);
  for (const change of changes) {
    const [path, from] = [relative(change.path), change.from ? relative(change.from) : null];
    if (change.kind === "move" && from !== null && path !== null) draft.move(from, path, change.directory ?? false);
    else if (change.kind === "move" && from !== null) draft.remove(from);
    else if (path !== null && change.kind === "delete") draft.remove(path);
    else if (path !== null) draft.add(path, { name: nameOf(path), kind: change.directory ? "directory" : "file" });
  }
  return draft.model;
}

/** Copies the map once, and each folder that is touched once, however many changes there are. */
class Draft {
  model: Map<string, Folder> | Model;
  #copied = false;
  #own = new Map<string, Entry[]>();

  constructor(model: Model) {
    this.model = model;
  }

  #folders(): Map<string, Folder> {
    if (!this.#copied) this.model = new Map(this.model);
    this.#copied = true;
    return this.model as Map<string, Folder>;
  }

  #entries(path: string, folder: Folder): Entry[] {
    let entries = this.#own.get(path);
    if (!entries) {
      entries = [...folder.entries];
      this.#own.set(path, entries);
      this.#folders().set(path, { ...folder, entries });
    }
    return entries;
  }

  add(path: string, entry: Entry): void {
    const parent = parentOf(path);
    const folder = this.model.get(parent);
    if (!folder) return;
    const there = find(folder, entry.name);
    if (there >= 0) {
      const old = folder.entries[there]!;
      if (old.kind === entry.kind || (old.kind === "symlink" && entry.kind === "file")) return;
      this.remove(path);
    }
    // What lies behind the last page that is loaded comes with its own.
    if (folder.next !== null && byCode(entry.name, shown(folder.next)) > 0) return;
    const current = this.model.get(parent)!;
    this.#entries(parent, current).splice(place(current, entry), 0, entry);
  }

  /** Takes a name away with all that is below it; gives what it was. */
  remove(path: string): Entry | undefined {
    for (const known of this.model.keys()) {
      if (known !== "" && isWithin(known, path)) {
        this.#folders().delete(known);
        this.#own.delete(known);
      }
    }
    const parent = parentOf(path);
    const folder = this.model.get(parent);
    const index = folder ? find(folder, nameOf(path)) : -1;
    return folder && index >= 0 ? this.#entries(parent, folder).splice(index, 1)[0] : undefined;
  }

  move(from: string, to: string, directory: boolean): void {
    const below = [...this.model].filter(([known]) => known !== "" && isWithin(known, from));
    const old = this.remove(from);
    this.remove(to);
    for (const [known, folder] of below) this.#folders().set(to + known.slice(from.length), folder);
    this.add(to, { ...(old ?? { kind: directory ? "directory" : "file" }), name: nameOf(to) });
  }
}

/** Where a name is in a folder, or -1. */
function find(folder: Folder, name: string): number {
  const kinds: Kind[] = folder.order === "by-name" ? ["file"] : ["file", "directory"];
  for (const kind of kinds) {
    const index = place(folder, { name, kind });
    if (folder.entries[index]?.name === name) return index;
  }
  return -1;
}

/** Where an entry is, or would be. */
function place(folder: Folder, entry: Entry): number {
  const compare = ordering(folder.order);
  let [low, high] = [0, folder.entries.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (compare(folder.entries[middle]!, entry) < 0) low = middle + 1;
    else high = middle;
  }
  return low;
}

export function entryAt(model: Model, path: string): Entry | undefined {
  const folder = model.get(parentOf(path));
  const index = folder ? find(folder, nameOf(path)) : -1;
  return index < 0 ? undefined : folder!.entries[index];
}

/** Folders that hold more than anybody reads; they are shown, and never opened by themselves. */
export const isHeavy = (name: string): boolean => name === "node_modules" || name === ".git";
