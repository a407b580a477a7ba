// Feeds the marks: from the last minutes of history when the page is opened, then from what is told.

import { useSyncExternalStore } from "react";
import { events } from "../../api/events";
import { listHistory, show } from "../timeline/calls";
import type { Checkpoint } from "../timeline/words";
import { faded, KEPT, noticed, recorded, upwards, type Marks } from "./marks";

export interface Marked {
  files: Marks;
  /** Folders by the newest of what is below them. */
  folders: Marks;
}

/** Names asked for of one checkpoint; one with more is taken as a whole. */
const MOST_NAMES = 300;
const FIRST_CHECKPOINTS = 40;
const OFTEN = 20_000;

class LiveMarks {
  #now: Marked = { files: new Map(), folders: new Map() };
  #watchers = new Set<() => void>();
  #began = false;

  get = (): Marked => this.#now;

  watch = (watcher: () => void): (() => void) => {
    this.#watchers.add(watcher);
    if (!this.#began) this.#begin();
    return () => void this.#watchers.delete(watcher);
  };

  #begin(): void {
    this.#began = true;
    const off = [
      events.on("files", (message) => message.type === "files" && this.#set(noticed(this.#now.files, message.changes, Date.now()))),
      events.on("checkpoint", (message) => message.type === "checkpoint" && void this.#record(message.checkpoint, Date.now())),
    ];
    const timer = setInterval(() => this.#set(faded(this.#now.files, Date.now())), OFTEN);
    import.meta.hot?.dispose(() => (clearInterval(timer), off.forEach((end) => end())));
    void this.#past();
  }

  #set(files: Marks): void {
    if (files === this.#now.files) return;
    this.#now = { files, folders: upwards(files) };
    this.#watchers.forEach((watcher) => watcher());
  }

  async #past(): Promise<void> {
    const page = await listHistory({ since: Date.now() - KEPT, limit: FIRST_CHECKPOINTS }).catch(() => null);
    for (const checkpoint of page?.checkpoints.reverse() ?? []) if (checkpoint.cause.kind !== "first") await this.#record(checkpoint, checkpoint.time);
  }

  async #record(checkpoint: Checkpoint, at: number): Promise<void> {
    const changes = await show(checkpoint.id, { limit: MOST_NAMES }).catch(() => null);
    const whole = changes !== null && changes.total <= MOST_NAMES;
    this.#set(recorded(this.#now.files, checkpoint, whole ? changes.changes : null, at));
  }
}

const live = new LiveMarks();

export const useMarks = (): Marked => useSyncExternalStore(live.watch, live.get);
