// The connection of one tab to its shell. It is made again when it breaks, later and later, and each time
// the supervisor first sends what the terminal shows, so nothing is lost but the moment in between.
//
//   connecting ──▶ open ──▶ ended
//     ▲   │          │
//     │   ▼          ▼
//     └─ lost ◀──────┘        gone, moved, signed-out: nothing more will come

import { get, Refusal, type Of } from "../../api/client";
import { socketAddress } from "../../api/mount";
import { pauseAfter } from "../../ui/follow";

export type LinkState =
  | { is: "connecting" | "open" | "lost" | "gone" | "moved" | "signed-out" }
  | { is: "ended"; exit: Of<"Exit"> }
  | { is: "refused"; why: string };

type Size = Of<"TtySize">;
type Control = { type: "started" } | { type: "gap" } | ({ type: "exit" } & Of<"Exit">) | { type: "error"; message: string };

/** Where the output goes. */
export interface Screen {
  /** Empty, of the size that what follows was drawn for. */
  blank: (size: Size | null) => void;
  /** `shown` is called when it can be seen. */
  write: (bytes: Uint8Array, shown: () => void) => void;
  /** What the terminal showed has been drawn; it may take its own size. */
  drawn: () => void;
  state: (state: LinkState) => void;
}

const ROLE_MOVED = 4001;
const SESSION_ENDED = 4002;
/** With so much unseen it is quicker to be shown the end than all of it. */
const MOST_UNSEEN = 4 * 1024 * 1024;

export class Link {
  #id: string;
  #screen: Screen;
  #socket: WebSocket | null = null;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #failures = 0;
  #unseen = 0;
  #tooFast = false;
  #closed = false;
  #moved = false;

  constructor(id: string, screen: Screen) {
    this.#id = id;
    this.#screen = screen;
    addEventListener("online", this.now);
    document.addEventListener("visibilitychange", this.now);
    void this.#connect();
  }

  close(): void {
    this.#closed = true;
    removeEventListener("online", this.now);
    document.removeEventListener("visibilitychange", this.now);
    clearTimeout(this.#timer);
    this.#socket?.close();
  }

  send(input: Uint8Array<ArrayBuffer>): void {
    if (this.#socket?.readyState === WebSocket.OPEN) this.#socket.send(input);
  }

  resize({ cols, rows }: Size): void {
    if (this.#socket?.readyState === WebSocket.OPEN) this.#socket.send(JSON.stringify({ type: "resize", cols, rows }));
  }

  /** Tries again without waiting, when it waits. */
  now = (): void => {
    if (document.hidden || this.#timer === undefined) return;
    clearTimeout(this.#timer);
    this.#timer = undefined;
    void this.#connect();
  };

  async #connect(): Promise<void> {
    if (this.#closed) return;
    this.#screen.state({ is: "connecting" });
    let command: Of<"CommandInfo">;
    try {
      command = await get<Of<"CommandInfo">>(`/supervisor/commands/${this.#id}`);
    } catch (error) {
      return this.#closed ? undefined : this.#notFound(error);
    }
    if (!this.#closed && !this.#socket) this.#open(command.tty ?? null);
  }

  #notFound(error: unknown): void {
    if (!(error instanceof Refusal) || error.status >= 500) return this.#later();
    if (error.status !== 404) return this.#finish({ is: "refused", why: error.message });
    this.#finish({ is: this.#moved ? "moved" : "gone" });
  }

  #open(size: Size | null): void {
    const socket = new WebSocket(socketAddress(`/supervisor/commands/${this.#id}/attach`));
    socket.binaryType = "arraybuffer";
    this.#socket = socket;
    let first = true;
    socket.addEventListener("message", ({ data }: MessageEvent<string | ArrayBuffer>) => {
      if (this.#socket !== socket) return;
      if (typeof data === "string") return this.#hear(JSON.parse(data) as Control, size);
      // The first byte names the stream; a terminal has one.
      this.#show(new Uint8Array(data, 1), first);
      first = false;
    });
    socket.addEventListener("close", ({ code }) => this.#socket === socket && this.#lost(code));
  }

  #hear(message: Control, size: Size | null): void {
    switch (message.type) {
      case "started":
        this.#failures = 0;
        this.#moved = false;
        this.#screen.blank(size);
        return this.#screen.state({ is: "open" });
      // The whole screen follows.
      case "gap":
        return this.#screen.blank(null);
      case "exit":
        return this.#finish({ is: "ended", exit: message });
      case "error":
        return this.#finish({ is: "refused", why: message.message });
    }
  }

  #show(bytes: Uint8Array, first: boolean): void {
    const socket = this.#socket;
    this.#unseen += bytes.length;
    this.#screen.write(bytes, () => {
      this.#unseen -= bytes.length;
      if (first && this.#socket === socket) this.#screen.drawn();
      if (this.#tooFast && this.#unseen === 0) this.#caughtUp();
    });
    if (this.#unseen <= MOST_UNSEEN) return;
    // A browser cannot tell a socket to wait. When all of this has been seen, another begins with the screen.
    this.#tooFast = true;
    this.#socket = null;
    socket?.close();
  }

  #caughtUp(): void {
    this.#tooFast = false;
    void this.#connect();
  }

  #lost(code: number): void {
    this.#socket = null;
    if (this.#closed) return;
    if (code === SESSION_ENDED) return this.#finish({ is: "signed-out" });
    if (code !== ROLE_MOVED || this.#moved) return this.#later();
    this.#moved = true;
    void this.#connect();
  }

  #later(): void {
    this.#screen.state({ is: "lost" });
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      void this.#connect();
    }, pauseAfter(this.#failures++));
  }

  #finish(state: LinkState): void {
    const socket = this.#socket;
    this.#socket = null;
    socket?.close();
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#screen.state(state);
  }
}
