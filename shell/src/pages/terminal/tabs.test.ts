import { expect, test } from "vitest";
import type { Of } from "../../api/client";
import { added, arrange, beside, closed, current, nextLabel, NOTHING, renamed, type Remembered } from "./tabs";

const shell = (id: string, label: string | null, more: Partial<Of<"CommandInfo">> = {}): Of<"CommandInfo"> => ({
  id,
  pid: 1,
  command: "bash",
  label,
  cwd: "/workspace",
  user: "nacre",
  tty: { cols: 80, rows: 24 },
  detached: true,
  clients: 0,
  started_at: 0,
  output_bytes: 0,
  ...more,
});
const exit = { code: 0, timed_out: false, out_of_memory: false };
const one = shell("a", "Terminal 1");
const two = shell("b", "Terminal 2");
const knows = (...ids: string[]): Remembered => ({ tabs: ids.map((id) => ({ id, label: `Label ${id}` })), names: {} });
const ids = (tabs: readonly { id: string }[]) => tabs.map(({ id }) => id);

test("tabs are found again among the commands", () => {
  const server = shell("c", "server", { tty: null });
  expect(arrange([one, server, two], NOTHING)).toEqual([
    { id: "a", name: "Terminal 1", state: "running" },
    { id: "b", name: "Terminal 2", state: "running" },
  ]);
});

test("this window's order comes first, and what ended elsewhere does not come back", () => {
  const over = shell("d", "Terminal 3", { exit });
  expect(ids(arrange([one, two, over], knows("b")))).toEqual(["b", "a"]);
  expect(arrange([over], knows("d"))).toEqual([{ id: "d", name: "Label d", state: "ended" }]);
});

test("what is gone is said while the window is open, and forgotten when it is opened again", () => {
  expect(arrange([one], knows("x", "a")).map(({ state }) => state)).toEqual(["gone", "running"]);
  expect(ids(current(knows("x", "a"), [one]).tabs)).toEqual(["a"]);
});

test("a new one takes the lowest number that is free", () => {
  expect(nextLabel([])).toBe("Terminal 1");
  expect(nextLabel([two, shell("x", null)])).toBe("Terminal 1");
  expect(nextLabel([one, two])).toBe("Terminal 3");
  expect(nextLabel([shell("a", "Terminal 1", { exit }), two])).toBe("Terminal 1");
});

test("a shell that is started again keeps place and name", () => {
  const before = renamed(knows("a", "b"), "a", "  build ");
  const tabs = arrange([one, two], before);
  expect(tabs[0]?.name).toBe("build");
  const after = added(before, tabs, shell("n", "Terminal 3"), "a");
  expect(arrange([two, shell("n", "Terminal 3")], after).map(({ id, name }) => [id, name])).toEqual([
    ["n", "build"],
    ["b", "Label b"],
  ]);
  expect(after.names).toEqual({ n: "build" });
});

test("a new tab comes last, and tabs that were found are known from then on", () => {
  expect(ids(added(NOTHING, arrange([one], NOTHING), two).tabs)).toEqual(["a", "b"]);
});

test("closing forgets, and so does a name of nothing", () => {
  const named = { ...knows("a", "b"), names: { a: "x", b: "y" } };
  expect(closed(named, "a")).toEqual({ tabs: [{ id: "b", label: "Label b" }], names: { b: "y" } });
  expect(renamed(named, "a", " ").names).toEqual({ b: "y" });
});

test("beside a tab is the next, or else the one before", () => {
  const tabs = arrange([one, two], NOTHING);
  expect(beside(tabs, "a")?.id).toBe("b");
  expect(beside(tabs, "b")?.id).toBe("a");
  expect(beside(tabs.slice(0, 1), "a")).toBeUndefined();
});
