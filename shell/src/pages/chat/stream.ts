// The events of one conversation, each once and in order, whatever becomes of the connection.

import type { ConversationEvent } from "./events";

const ROLE_MOVED = 4001;
const SESSION_ENDED = 4002;
const SHORTEST_PAUSE = 400;
const LONGEST_PAUSE = 15_000;
/** An event that others know of comes within this, or the connection is dead without knowing it. */
const LATE = 4000;

/** As much of a WebSocket as is needed. */
export interface Socket {
  addEventListener(type: "open", listener: () => void): void;
  addEventListener(type: "message", listener: (event: { data: unknown }) => void): void;
  addEventListener(type: "close", listener: (event: { code: number }) => void): void;
  close(): void;
}

interface Options {
  after: number;
  /** Opens a connection that gives everything after an event. */
  connect: (after: number) => Socket;
  hear: (event: ConversationEvent) => void;
  /** Whether what is shown is current. */
  connected?: (is: boolean) => void;
}

export class Stream {
  seen: number;
  #options: Options;
  #socket: Socket | null = null;
  #pause = SHORTEST_PAUSE;
  #again: ReturnType<typeof setTimeout> | undefined;
  #late: ReturnType<typeof setTimeout> | undefined;
  /** It had a connection, and waits to have one again. */
  #lost = false;
  #over = false;

  constructor(options: Options) {
    this.#options = options;
    this.seen = options.after;
    // Whoever stops it at once, as React does to try things out, has not connected.
    this.#again = setTimeout(() => this.#connect());
  }

  /** Nothing is heard any more. The turn goes on. */
  stop(): void {
    this.#over = true;
    this.#drop();
  }

  /** The network is back, or somebody looks: no reason to wait any longer. */
  now(): void {
    if (this.#socket || this.#over || !this.#lost) return;
    clearTimeout(this.#again);
    this.#connect();
  }

  /** There is an event of this number. */
  expect(seq: number): void {
    if (seq <= this.seen || this.#over) return;
    this.#late ??= setTimeout(() => {
      this.#late = undefined;
      if (this.seen >= seq || this.#over) return;
      this.#drop();
      this.#connect();
    }, LATE);
  }

  #connect(): void {
    const socket = this.#options.connect(this.seen);
    this.#socket = socket;
    this.#lost = false;
    const current = () => this.#socket === socket;
    socket.addEventListener("open", () => current() && this.#options.connected?.(true));
    socket.addEventListener("message", ({ data }) => current() && this.#message(data));
    socket.addEventListener("close", ({ code }) => current() && this.#closed(code));
  }

  #message(data: unknown): void {
    this.#pause = SHORTEST_PAUSE;
    const event = JSON.parse(String(data)) as ConversationEvent;
    if (event.seq <= this.seen) return;
    if (event.seq > this.seen + 1) {
      // Something was lost on the way: from where it was.
      this.#drop();
      this.#connect();
      return;
    }
    this.seen = event.seq;
    this.#options.hear(event);
  }

  #closed(code: number): void {
    this.#socket = null;
    this.#options.connected?.(false);
    if (this.#over || code === SESSION_ENDED) return;
    if (code === ROLE_MOVED) return this.#connect();
    this.#lost = true;
    // By chance up to twice as long: not all pages come back at the same moment.
    this.#again = setTimeout(() => this.#connect(), this.#pause * (1 + Math.random()));
    this.#pause = Math.min(this.#pause * 2, LONGEST_PAUSE);
  }

  #drop(): void {
    clearTimeout(this.#again);
    clearTimeout(this.#late);
    this.#late = undefined;
    const socket = this.#socket;
    this.#socket = null;
    socket?.close();
  }
}
