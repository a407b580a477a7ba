import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { Stream, type Socket } from "./stream";

class Fake implements Socket {
  listeners: Record<string, (event: never) => void> = {};
  closed = false;
  constructor(readonly after: number) {}
  addEventListener(type: string, listener: (event: never) => void): void {
    this.listeners[type] = listener;
  }
  tell(type: string, event: unknown): void {
    this.listeners[type]?.(event as never);
  }
  say(...numbers: number[]): void {
    for (const seq of numbers) this.tell("message", { data: JSON.stringify({ seq, at: 0, sessionUpdate: "notice", message: "" }) });
  }
  close(): void {
    this.closed = true;
  }
}

let sockets: Fake[] = [];
let heard: number[] = [];
let stream: Stream;
const last = () => sockets.at(-1)!;

beforeEach(() => {
  vi.useFakeTimers();
  [sockets, heard] = [[], []];
  const connect = (after: number) => {
    sockets.push(new Fake(after));
    return last();
  };
  stream = new Stream({ after: 0, connect, hear: ({ seq }) => heard.push(seq) });
  vi.advanceTimersByTime(1);
});

afterEach(() => {
  stream.stop();
  vi.useRealTimers();
});

test("after a lost connection it goes on where it was, and nothing comes twice", () => {
  last().say(1, 2);
  last().tell("close", { code: 1006 });
  vi.advanceTimersByTime(1000);
  expect(sockets.map(({ after }) => after)).toEqual([0, 2]);
  last().say(2, 3);
  expect(heard).toEqual([1, 2, 3]);
});

test("it waits longer and longer, until something comes", () => {
  const tries = (ms: number) => {
    const before = sockets.length;
    for (let waited = 0; waited < ms; waited += 50) {
      vi.advanceTimersByTime(50);
      last().tell("close", { code: 1006 });
    }
    return sockets.length - before;
  };
  last().tell("close", { code: 1006 });
  expect(tries(60_000)).toBeLessThan(12);
  vi.advanceTimersByTime(40_000);
  last().say(1);
  last().tell("close", { code: 1006 });
  const before = sockets.length;
  vi.advanceTimersByTime(800);
  expect(sockets.length).toBe(before + 1);
});

test("when the role moves it comes back at once, and after the session never", () => {
  last().tell("close", { code: 4001 });
  expect(sockets).toHaveLength(2);
  last().tell("close", { code: 4002 });
  vi.advanceTimersByTime(60_000);
  expect(sockets).toHaveLength(2);
});

test("a gap is asked for again", () => {
  last().say(1, 3);
  expect(heard).toEqual([1]);
  expect(sockets.map(({ after, closed }) => [after, closed])).toEqual([[0, true], [1, false]]);
  sockets[0]!.say(2);
  expect(heard).toEqual([1]);
});

test("an event that others know of and that does not come shows that the connection is dead", () => {
  last().say(1);
  stream.expect(2);
  vi.advanceTimersByTime(1000);
  last().say(2);
  vi.advanceTimersByTime(10_000);
  expect(sockets).toHaveLength(1);
  stream.expect(3);
  vi.advanceTimersByTime(10_000);
  expect(sockets).toHaveLength(2);
});

test("who has stopped hears nothing", () => {
  stream.stop();
  sockets[0]!.say(1);
  sockets[0]!.tell("close", { code: 1006 });
  vi.advanceTimersByTime(60_000);
  expect([heard, sockets.length]).toEqual([[], 1]);
});
