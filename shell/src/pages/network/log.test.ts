import { expect, test } from "vitest";
import { often, ours, pick, portsOf, type Entry } from "./log";

const record = (id: number, host: string, verdict: Entry["verdict"]): Entry => ({ id, at: 0, sandbox: "live", sandbox_id: "s", host, port: 443, address: "1.2.3.4", verdict, sent: 0, received: 0, duration_ms: 0, times: 1 });
const LOG = [record(1, "github.com", "allowed"), record(2, "Tracker.example", "refused"), record(3, "api.github.com", "failed"), record(4, "old.example", "cut"), record(5, "now.example", "open")];

test.each([
  ["all", "", [1, 2, 3, 4, 5]],
  ["made", "", [1, 4, 5]],
  ["refused", "", [2, 4]],
  ["failed", "", [3]],
  ["all", " GitHub ", [1, 3]],
  ["all", "tracker.example:443", [2]],
  ["made", "1.2.3", [1, 4, 5]],
  ["refused", "github", []],
] as const)("%s with %j are %j", (wanted, host, expected) => {
  expect(pick(LOG, wanted, host).map(({ id }) => id)).toEqual(expected);
});

test("a refusal says how often it was", () => {
  expect([1, 7].map((times) => often({ ...record(1, "a.example", "refused"), times }))).toEqual(["", "7 times"]);
});

test("a port that listens in two places is one", () => {
  const ports = portsOf({
    ports: [
      { port: 80, address: "0.0.0.0" },
      { port: 80, address: "::", process: { pid: 1, name: "nginx" } },
      { port: 3000, address: "127.0.0.1", process: { pid: 2, name: "node" } },
    ],
  });
  expect(ports).toEqual([
    { port: 80, address: "0.0.0.0, ::", process: "nginx" },
    { port: 3000, address: "127.0.0.1", process: "node" },
  ]);
  expect(ports.map(ours)).toEqual([undefined, undefined]);
});

test("what Nacre listens for itself is told apart", () => {
  expect(ours({ port: 8002, address: "127.0.0.1", process: null })).toMatch(/^Models/);
  expect(ours({ port: 34977, address: "198.18.0.1", process: null })).toMatch(/^The way out/);
});
