// The tree of this page: what is loaded of it, what is open, and the requests that go on for it. There
// is one, and it outlives the page, so that coming back finds it as it was left, and current.

import { useSyncExternalStore } from "react";
import { Refusal, type Of } from "../../../api/client";
import { events } from "../../../api/events";
import * as calls from "../calls";
import { above, isWithin, join, parentOf, relative, shown } from "../paths";
import { amended, applied, placed, type Entry, type Model } from "./model";

type Change = Of<"Change">;

export interface Snapshot {
  model: Model;
  expanded: ReadonlySet<string>;
  /** Folders that could not be listed. */
  troubles: ReadonlyMap<string, unknown>;
}

/** Links of one page whose ends are asked for at once, before anybody opens them. */
const LINKS_AT_ONCE = 30;
const LARGEST_PAGE = 10_000;
/** Between two looks at the tree while folder after folder comes in. */
const RARELY = 250;

class Tree {
  #state: Snapshot = { model: new Map(), expanded: new Set(), troubles: new Map() };
  #watchers = new Set<() => void>();
  #loading = new Map<string, Promise<void>>();
  /** What was told while pages were on their way: they may be older than it. */
  #meanwhile: Change[] = [];
  #told = false;
  searching = false;

  constructor() {
    const off = [
      events.on("files", (message) => message.type === "files" && this.changed(message.changes)),
      ...(["gap", "hello", "files_lost", "restored"] as const).map((type) => events.on(type, () => this.refresh())),
    ];
    import.meta.hot?.dispose(() => off.forEach((end) => end()));
  }

  get = (): Snapshot => this.#state;

  watch = (watcher: () => void): (() => void) => {
    this.#watchers.add(watcher);
    return () => void this.#watchers.delete(watcher);
  };

  #set(change: Partial<Snapshot>): void {
    this.#state = { ...this.#state, ...change };
    if (this.#told) return;
    this.#told = true;
    // Many pages may come within one frame, and thousands while a filter looks everywhere.
    const tell = () => {
      this.#told = false;
      this.#watchers.forEach((watcher) => watcher());
    };
    if (this.searching) setTimeout(tell, RARELY);
    else queueMicrotask(tell);
  }

  changed(changes: readonly Change[]): void {
    if (this.#loading.size > 0) this.#meanwhile.push(...changes);
    this.#set({ model: applied(this.#state.model, changes), expanded: followed(this.#state.expanded, changes) });
    const created = changes.flatMap(({ kind, directory, path }) => (kind === "create" && !directory ? (relative(path) ?? []) : []));
    const loaded = created.filter((path) => this.#state.model.has(parentOf(path)));
    for (const path of loaded.slice(0, LINKS_AT_ONCE)) void this.#look(path);
  }

  /** Whether what came is a link: events do not tell. */
  async #look(path: string): Promise<void> {
    const stat = await calls.stat(path, false).catch(() => null);
    if (stat?.kind !== "symlink") return;
    this.#set({ model: amended(this.#state.model, path, { kind: "symlink", ...(stat.target ? { target: shown(stat.target) } : {}) }) });
    void this.leadsTo(path);
  }

  /** Lists a folder, unless it is known. */
  load(path: string): Promise<void> {
    if (this.#state.model.has(path)) return Promise.resolve();
    return this.#ask(path, "first");
  }

  more(path: string): Promise<void> {
    return this.#state.model.get(path)?.next == null ? Promise.resolve() : this.#ask(path, "later");
  }

  retry(path: string): Promise<void> {
    return this.#ask(path, "first");
  }

  #ask(path: string, which: "first" | "later", limit?: number): Promise<void> {
    const known = this.#loading.get(path);
    if (known) return known;
    const after = which === "later" ? this.#state.model.get(path)?.next : null;
    const asked = calls
      .list(path, after, limit)
      .then((page) => {
        this.#set({ model: applied(placed(this.#state.model, path, page, which), this.#meanwhile), troubles: without(this.#state.troubles, path) });
        this.#follow(path);
      })
      .catch((error: unknown) => {
        // A folder that is gone will be told of; what it held is not there either.
        const gone = error instanceof Refusal && error.status === 404 && path !== "";
        if (gone) this.close(path);
        else this.#set({ troubles: new Map(this.#state.troubles).set(path, error) });
      })
      .finally(() => {
        this.#loading.delete(path);
        if (this.#loading.size === 0) this.#meanwhile = [];
      });
    this.#loading.set(path, asked);
    return asked;
  }

  /** Finds out what the links of a folder lead to. */
  #follow(path: string): void {
    const links = this.#state.model.get(path)?.entries.filter((entry) => entry.kind === "symlink" && !entry.leads && !entry.odd) ?? [];
    for (const link of links.slice(0, LINKS_AT_ONCE)) void this.leadsTo(join(path, link.name));
  }

  async leadsTo(path: string): Promise<NonNullable<Entry["leads"]>> {
    const leads = await calls.stat(path).then(
      ({ kind }) => (kind === "directory" ? ("directory" as const) : ("file" as const)),
      () => "nowhere" as const,
    );
    this.#set({ model: amended(this.#state.model, path, { leads }) });
    return leads;
  }

  open(path: string): void {
    this.#set({ expanded: new Set(this.#state.expanded).add(path) });
    void this.load(path);
  }

  close(path: string): void {
    const expanded = new Set(this.#state.expanded);
    expanded.delete(path);
    this.#set({ expanded });
  }

  closeAll(): void {
    this.#set({ expanded: new Set() });
  }

  /** Opens every folder above a path. */
  async reveal(path: string): Promise<void> {
    const folders = above(path);
    this.#set({ expanded: new Set([...this.#state.expanded, ...folders]) });
    for (const folder of ["", ...folders]) await this.load(folder);
  }

  /** Asks again for all that is open; what is not will be asked for when it is opened. */
  refresh(): void {
    const { model, expanded } = this.#state;
    const isShown = (path: string) => path === "" || (expanded.has(path) && above(path).every((folder) => expanded.has(folder)));
    const kept = [...model].filter(([path]) => isShown(path));
    this.#set({ model: new Map(kept) });
    for (const [path, { entries }] of kept) void this.#ask(path, "first", Math.min(LARGEST_PAGE, Math.max(calls.PAGE, entries.length)));
  }
}

/** A folder that moves stays open under its new name. */
function followed(expanded: ReadonlySet<string>, changes: readonly Change[]): ReadonlySet<string> {
  let now = expanded;
  for (const { kind, path, from } of changes) {
    const [old, moved] = [from ? relative(from) : null, relative(path)];
    if (kind !== "move" || old === null || moved === null) continue;
    now = new Set(Array.from(now, (open) => (isWithin(open, old) ? moved + open.slice(old.length) : open)));
  }
  return now;
}

function without<T>(map: ReadonlyMap<string, T>, key: string): ReadonlyMap<string, T> {
  if (!map.has(key)) return map;
  const rest = new Map(map);
  rest.delete(key);
  return rest;
}

export const tree = new Tree();

export const useTree = (): Snapshot => useSyncExternalStore(tree.watch, tree.get);
