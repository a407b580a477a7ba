import { expect, test } from "vitest";
import type { Of } from "../../../api/client";
import { amended, applied, entryAt, placed, type Model } from "./model";

type Change = Of<"Change">;
type Stat = Of<"Stat">;

const stat = (name: string, kind: Stat["kind"] = "file"): Stat => ({ path: name, kind, size: 1, mode: 0o644, uid: 0, gid: 0, links: 1, modified_ns: 0, etag: "x" });
const page = (names: string[], next?: string) => ({ entries: names.map((name) => stat(name.replace("/", ""), name.endsWith("/") ? "directory" : "file")), next: next ?? null });
const change = (kind: Change["kind"], path: string, more: Partial<Change> = {}): Change => ({ kind, path: `/workspace/${path}`, ...more });
const moved = (from: string, to: string, directory = false) => change("move", to, { from: `/workspace/${from}`, directory });
const names = (model: Model, path = "") => model.get(path)?.entries.map(({ name }) => name);

const start = (names = ["b.txt", "a10.txt", "a2.txt", "src/"]) => placed(new Map(), "", page(names), "first");

test("a folder of one page has folders first and numbers in order", () => {
  expect(names(start())).toEqual(["src", "a2.txt", "a10.txt", "b.txt"]);
});

test("a large folder keeps the order of its pages", () => {
  const first = placed(new Map(), "", page(["a", "b/"], "b"), "first");
  const all = placed(first, "", page(["c", "d/"]), "later");
  expect(names(all)).toEqual(["a", "b", "c", "d"]);
  expect([first.get("")?.next, all.get("")?.next]).toEqual(["b", null]);
});

test("what is created, changed and removed shows in folders that are loaded", () => {
  const changes = [change("create", "c.txt"), change("create", "lib", { directory: true }), change("modify", "b.txt"), change("delete", "a2.txt"), change("create", "unknown/x")];
  expect(names(applied(start(), changes))).toEqual(["lib", "src", "a10.txt", "b.txt", "c.txt"]);
});

test("changes that are told twice are made once", () => {
  const changes = [change("create", "c.txt"), change("create", "c.txt"), change("delete", "b.txt"), change("delete", "b.txt")];
  expect(names(applied(start(), changes))).toEqual(["src", "a2.txt", "a10.txt", "c.txt"]);
});

test("nothing that is not loaded changes anything", () => {
  const model = start();
  expect(applied(model, [change("create", "far/away.txt"), { kind: "create", path: "/etc/x" }])).toBe(model);
});

test("what lies behind the last page is left to it", () => {
  const model = placed(new Map(), "", page(["a", "m"], "m"), "first");
  expect(names(applied(model, [change("create", "z"), change("create", "c")]))).toEqual(["a", "c", "m"]);
});

test("a folder moves with what is known of it", () => {
  let model = placed(start(), "src", page(["deep/", "main.ts"]), "first");
  model = placed(model, "src/deep", page(["x"]), "first");
  const after = applied(model, [moved("src", "lib", true)]);
  expect(names(after)).toEqual(["lib", "a2.txt", "a10.txt", "b.txt"]);
  expect([names(after, "lib"), names(after, "lib/deep"), names(after, "src")]).toEqual([["deep", "main.ts"], ["x"], undefined]);
});

test("a file that moves over another takes its place", () => {
  expect(names(applied(start(), [moved("a2.txt", "b.txt")]))).toEqual(["src", "a10.txt", "b.txt"]);
});

test("a folder that is removed takes what is below with it, and no namesake", () => {
  let model = placed(start(["src/", "src2/"]), "src", page(["main.ts"]), "first");
  model = placed(model, "src2", page(["other.ts"]), "first");
  const after = applied(model, [change("delete", "src", { directory: true })]);
  expect([...after.keys()]).toEqual(["", "src2"]);
});

test("a file that became a folder is one", () => {
  const after = applied(start(), [change("create", "b.txt", { directory: true })]);
  expect(entryAt(after, "b.txt")?.kind).toBe("directory");
  expect(names(after)).toEqual(["b.txt", "src", "a2.txt", "a10.txt"]);
});

test("what a link leads to is remembered when the folder is listed again", () => {
  const listing = { entries: [{ ...stat("link", "symlink"), target: "/opt" }], next: null };
  const model = amended(placed(new Map(), "", listing, "first"), "link", { leads: "directory" });
  expect(entryAt(placed(model, "", listing, "first"), "link")?.leads).toBe("directory");
});

test("many changes of a large folder are quick", () => {
  const many = Array.from({ length: 100_000 }, (_, index) => `f${String(index).padStart(6, "0")}`);
  const model = placed(new Map(), "", page(many), "first");
  const began = performance.now();
  const changes = Array.from({ length: 500 }, (_, index) => change("create", `g${index}`));
  expect(names(applied(model, changes))).toHaveLength(100_500);
  expect(performance.now() - began).toBeLessThan(4000);
});
