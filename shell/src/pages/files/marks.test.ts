import { expect, test } from "vitest";
import type { Of } from "../../api/client";
import type { Checkpoint } from "../timeline/words";
import { faded, KEPT, noticed, recorded, upwards, type Marks } from "./marks";

const change = (kind: Of<"ChangeKind">, path: string, from?: string): Of<"Change"> => ({ kind, path: `/workspace/${path}`, ...(from ? { from: `/workspace/${from}` } : {}) });
const checkpoint = (id: number, line: string): Checkpoint => ({ id, time: 0, cause: { kind: "change" }, authors: [{ kind: "command", id: String(id), line }], added: 0, changed: 1, removed: 0 });
const version = (kind = "file"): Of<"FileVersion"> => ({ kind, size: 1, mode: 0, uid: 0, gid: 0, mtime: 0 });
const file = (path: string): Of<"FileChange"> => ({ path, old: version(), new: version() });
const none: Marks = new Map();

test("a change is marked at once, and gets its author with the checkpoint", () => {
  const first = noticed(none, [change("modify", "a.txt")], 1000);
  expect(first.get("a.txt")).toEqual({ deed: "changed", at: 1000 });
  const then = recorded(first, checkpoint(5, "make"), [file("a.txt")], 1400);
  expect(then.get("a.txt")).toMatchObject({ at: 1000, checkpoint: 5, who: { kind: "command", words: "“make”" } });
});

test("a checkpoint that is told before its changes keeps its author", () => {
  const first = recorded(none, checkpoint(5, "make"), [file("a.txt")], 1000);
  expect(noticed(first, [change("modify", "a.txt")], 1200).get("a.txt")?.checkpoint).toBe(5);
  expect(noticed(first, [change("modify", "a.txt")], 9000).get("a.txt")).toEqual({ deed: "changed", at: 9000 });
});

test("an older checkpoint does not replace a newer one", () => {
  const marks = recorded(recorded(none, checkpoint(6, "new"), [file("a")], 2000), checkpoint(5, "old"), [file("a")], 1000);
  expect(marks.get("a")?.checkpoint).toBe(6);
});

test("a checkpoint of too many names takes those that nobody is known for", () => {
  const marks = recorded(noticed(none, [change("create", "a"), change("create", "b")], 1000), checkpoint(9, "npm ci"), null, 1500);
  expect([...marks.values()].map((mark) => mark.checkpoint)).toEqual([9, 9]);
});

test("what is written right after it came is still new", () => {
  const marks = noticed(noticed(none, [change("create", "a")], 1000), [change("modify", "a")], 1010);
  expect(marks.get("a")?.deed).toBe("added");
});

test("what moves or goes takes its marks along", () => {
  const start = noticed(none, [change("create", "src/a"), change("create", "src/b")], 1000);
  expect([...noticed(start, [change("move", "lib", "src")], 2000).keys()]).toEqual(["lib"]);
  expect([...noticed(start, [change("delete", "src")], 2000)]).toEqual([["src", { deed: "removed", at: 2000 }]]);
});

test("a folder is not marked for a file that came into it", () => {
  const folder: Of<"FileChange"> = { path: "src", old: version("directory"), new: version("directory") };
  expect(recorded(none, checkpoint(1, "x"), [folder], 0).size).toBe(0);
});

test("folders show the newest of what is below", () => {
  const marks = noticed(noticed(none, [change("modify", "a/b/c")], 1000), [change("modify", "a/d")], 2000);
  const folders = upwards(marks);
  expect([folders.get("a")?.at, folders.get("a/b")?.at, folders.has("a/d")]).toEqual([2000, 1000, false]);
});

test("marks fade", () => {
  const marks = noticed(noticed(none, [change("modify", "old")], 0), [change("modify", "new")], KEPT - 1);
  expect([...faded(marks, KEPT + 1).keys()]).toEqual(["new"]);
  expect(faded(marks, 10)).toBe(marks);
});
