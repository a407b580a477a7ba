// What happens in the sandbox, as it happens: one socket at `/ws` for the whole page.
//
// A connection that ends is made again, later and later, and goes on where it was. When the role moves
// to another sandbox (4001) it is made again once, at once.

import { useEffect, useSyncExternalStore } from "react";
import type { Of } from "./client";
import { socketAddress } from "./mount";

export type EventMessage = Of<"EventMessage">;
type Type = EventMessage["type"];
export type Message<T extends Type> = Extract<EventMessage, { type: T }>;
type Listener = (message: EventMessage) => void;
export type Connection = "connecting" | "open" | "lost" | "signed-out";

const ROLE_MOVED = 4001;
const SESSION_ENDED = 4002;
const SHORTEST_PAUSE = 400;
const LONGEST_PAUSE = 15_000;
/**
 * Pages do not see pings, and a line that goes quiet is told by nobody. So the supervisor sends a beat every
 * 15 seconds; an older one sends none, and then silence means nothing.
 */
const SILENCE = 45_000;

class Hub {
  #listeners = new Map<string, Set<Listener>>();
  #watchers = new Set<() => void>();
  #socket: WebSocket | null = null;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #pause = SHORTEST_PAUSE;
  #run: string | null = null;
  #seen = 0;
  /** Runs out when a socket that had beats goes quiet. */
  #quiet: ReturnType<typeof setTimeout> | undefined;
  state: Connection = "connecting";

  start(): void {
    addEventListener("online", () => this.#now());
    document.addEventListener("visibilitychange", () => document.hidden || this.#now());
    this.#connect();
  }

  /** Calls back for every event of a type; `*` for all of them. Returns what ends that. */
  on(type: Type | "*", listener: Listener): () => void {
    const set = this.#listeners.get(type) ?? new Set();
    this.#listeners.set(type, set.add(listener));
    return () => void set.delete(listener);
  }

  watch = (watcher: () => void): (() => void) => {
    this.#watchers.add(watcher);
    return () => void this.#watchers.delete(watcher);
  };

  #now(): void {
    if (this.#socket || this.state === "signed-out") return;
    clearTimeout(this.#timer);
    this.#connect();
  }

  #connect(): void {
    const socket = new WebSocket(socketAddress("/ws", this.#run ? { after: this.#seen, run: this.#run } : {}));
    this.#socket = socket;
    let beats = false;
    socket.addEventListener("message", ({ data }) => {
      // One that was given up may still have had something on its way.
      if (this.#socket !== socket) return;
      const message = JSON.parse(data as string) as EventMessage;
      beats ||= message.type === "beat";
      if (beats) this.#expectMore(socket);
      if (message.type !== "beat") this.#hear(message);
    });
    socket.addEventListener("close", ({ code }) => this.#socket === socket && this.#closed(code));
  }

  #expectMore(socket: WebSocket): void {
    clearTimeout(this.#quiet);
    this.#quiet = setTimeout(() => {
      // Saying goodbye over a dead line takes its time, which nobody has to wait for.
      this.#closed(0);
      socket.close();
    }, SILENCE);
  }

  #closed(code: number): void {
    clearTimeout(this.#quiet);
    this.#socket = null;
    if (code === SESSION_ENDED) return this.#become("signed-out");
    this.#become("lost");
    if (code === ROLE_MOVED) {
      // Another sandbox, so other numbers; everything that is shown is asked for again.
      this.#run = null;
      this.#connect();
      return;
    }
    // By chance up to twice as long: not all pages come back at the same moment.
    this.#timer = setTimeout(() => this.#connect(), this.#pause * (1 + Math.random()));
    this.#pause = Math.min(this.#pause * 2, LONGEST_PAUSE);
  }

  #hear(message: EventMessage): void {
    if (message.type === "hello") {
      const first = this.#run === null;
      this.#pause = SHORTEST_PAUSE;
      this.#run = message.run;
      this.#become("open");
      if (first) this.#seen = message.seq;
      if (first) this.#tell(message);
      return;
    }
    this.#seen = message.seq;
    this.#tell(message);
  }

  #tell(message: EventMessage): void {
    for (const type of [message.type, "*"]) this.#listeners.get(type)?.forEach((listener) => listener(message));
  }

  #become(state: Connection): void {
    if (this.state === state) return;
    this.state = state;
    this.#watchers.forEach((watcher) => watcher());
  }
}

export const events = new Hub();

/** Calls back for each event of this type while the component is there. `listener` must be stable or cheap. */
export function useEvent<T extends Type>(type: T, listener: (message: Message<T>) => void): void {
  useEffect(() => events.on(type, (message) => listener(message as Message<T>)), [type, listener]);
}

export const useConnection = (): Connection => useSyncExternalStore(events.watch, () => events.state);
