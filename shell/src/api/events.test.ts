import { afterEach, beforeEach, expect, test, vi } from "vitest";

/** A line that the test holds the other end of. */
class Line extends EventTarget {
  static all: Line[] = [];
  closed = false;
  readonly address: string;

  constructor(address: URL) {
    super();
    this.address = address.search;
    Line.all.push(this);
  }

  close(): void {
    this.closed = true;
  }

  says(message: object): void {
    this.dispatchEvent(new MessageEvent("message", { data: JSON.stringify(message) }));
  }
}

beforeEach(() => {
  Line.all = [];
  vi.useFakeTimers();
  vi.resetModules();
  vi.stubGlobal("WebSocket", Line);
  vi.stubGlobal("location", new URL("http://localhost/"));
  vi.stubGlobal("document", new EventTarget());
  vi.stubGlobal("addEventListener", () => {});
});

afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

async function hub() {
  const { events } = await import("./events");
  const heard: string[] = [];
  events.on("*", ({ type }) => heard.push(type));
  events.start();
  Line.all[0]!.says({ type: "hello", run: "r", seq: 7 });
  return { events, heard };
}

test("a line that had beats and goes quiet is made again, and goes on where it was", async () => {
  const { events, heard } = await hub();
  Line.all[0]!.says({ type: "beat", seq: 7 });
  vi.advanceTimersByTime(44_000);
  Line.all[0]!.says({ type: "beat", seq: 7 });
  vi.advanceTimersByTime(44_000);
  expect([Line.all.length, events.state]).toEqual([1, "open"]);
  vi.advanceTimersByTime(3_000);
  expect([Line.all.length, Line.all[0]!.closed, events.state]).toEqual([2, true, "lost"]);
  expect(Line.all[1]!.address).toContain("after=7&run=r");
  // What comes late over the one that was given up was told already, or will be.
  Line.all[0]!.says({ type: "gap", seq: 9 });
  expect(heard).toEqual(["hello"]);
});

test("silence means nothing to a line that never had a beat", async () => {
  const { events } = await hub();
  Line.all[0]!.says({ type: "gap", seq: 8 });
  vi.advanceTimersByTime(600_000);
  expect([Line.all.length, events.state]).toEqual([1, "open"]);
});
