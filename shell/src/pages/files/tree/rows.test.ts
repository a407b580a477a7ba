import { expect, test } from "vitest";
import type { Entry, Folder, Model } from "./model";
import { filtered, fits, flatten, namesIn, parentRow, typedAhead, wordsOf, type Row } from "./rows";

const folder = (names: string[], next: string | null = null): Folder => ({
  entries: names.map((name): Entry => ({ name: name.replace("/", ""), kind: name.endsWith("/") ? "directory" : "file" })),
  next,
  order: "folders-first",
});

const model: Model = new Map([
  ["", folder(["docs/", "src/", "readme.md", "run.sh"])],
  ["src", folder(["pages/", "main.ts"])],
  ["src/pages", folder(["chat.tsx", "files.tsx"])],
  ["docs", folder([])],
]);

const draw = (rows: readonly Row[]) => rows.map((row) => `${"  ".repeat(row.level - 1)}${row.kind === "entry" ? row.entry.name + (row.folder ? (row.expanded ? "-" : "+") : "") : row.kind}`);
const open = (...paths: string[]) => new Set(paths);
const none = new Map<string, unknown>();

test("folders that are open show what they hold", () => {
  expect(draw(flatten(model, open("src", "docs"), none))).toEqual(["docs-", "  empty", "src-", "  pages+", "  main.ts", "readme.md", "run.sh"]);
});

test("what is not there yet, goes on, or failed is said in its place", () => {
  const some: Model = new Map([["", folder(["a/", "b/"], "b")]]);
  expect(draw(flatten(some, open("a", "b"), new Map([["b", new Error("no")]])))).toEqual(["a-", "  loading", "b-", "  trouble", "more"]);
  expect(flatten(some, open(), none)[0]).toMatchObject({ size: -1, position: 1 });
});

test("a filter shows what fits and the way to it", () => {
  expect(draw(filtered(model, open(), wordsOf("files")))).toEqual(["src-", "  pages-", "    files.tsx"]);
  expect(draw(filtered(model, open(), wordsOf("src chat")))).toEqual(["src-", "  pages-", "    chat.tsx"]);
  expect(draw(filtered(model, open(), wordsOf("nothing")))).toEqual([]);
});

test("a folder that fits is shown closed, and opens to all it holds", () => {
  expect(draw(filtered(model, open(), wordsOf("pages")))).toEqual(["src-", "  pages+"]);
  expect(draw(filtered(model, open("src/pages"), wordsOf("pages")))).toEqual(["src-", "  pages-", "    chat.tsx", "    files.tsx"]);
});

test("a word with a slash is about the path", () => {
  expect([fits("src/pages/chat.tsx", "chat.tsx", ["pages/ch"]), fits("src/pages/chat.tsx", "chat.tsx", ["src/pages/f"]), fits("src/main.ts", "main.ts", ["src"])]).toEqual([true, false, false]);
});

test("typing goes to the next name that begins so", () => {
  const rows = flatten(model, open(), none);
  expect([typedAhead(rows, 0, "r"), typedAhead(rows, 2, "r"), typedAhead(rows, 3, "r"), typedAhead(rows, 2, "ru"), typedAhead(rows, 2, "rr"), typedAhead(rows, 0, "x")]).toEqual([2, 3, 2, 3, 3, -1]);
});

test("a row knows the folder it is in", () => {
  const rows = flatten(model, open("src", "src/pages"), none);
  expect([parentRow(rows, 0), parentRow(rows, 2), parentRow(rows, 3)]).toEqual([-1, 1, 2]);
});

test("a file is found by its name, the best fit first, and no folder", () => {
  const some: Model = new Map([
    ["", folder(["src/", "node_modules/", "notes.md"])],
    ["src", folder(["deep/", "old-notes.txt"])],
    ["src/deep", folder(["notes.md", "notes"])],
    ["node_modules", folder(["notes.js"])],
  ]);
  expect(namesIn(some, "notes", 9)).toEqual(["src/deep/notes", "notes.md", "src/deep/notes.md", "src/old-notes.txt"]);
  expect(namesIn(some, "deep", 9)).toEqual([]);
  expect(namesIn(some, " ", 9)).toEqual([]);
  expect(namesIn(some, "deep notes", 9)).toEqual(["src/deep/notes", "src/deep/notes.md"]);
  expect(namesIn(some, "src/deep/no", 1)).toHaveLength(1);
});
