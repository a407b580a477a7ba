import { expect, test } from "vitest";
import { compare, readUnified, tally } from "./diff";

const plain = (lines: ReturnType<typeof compare>) =>
  lines.map(({ kind, text }) => ({ same: " ", add: "+", cut: "-", hunk: "@" })[kind] + text);

test("a changed line stands between what surrounds it", () => {
  const lines = compare("a\nb\nc\nd\ne\nf", "a\nb\nc\nX\ne\nf");
  expect(plain(lines)).toEqual([" a", " b", " c", "-d", "+X", " e", " f"]);
  expect(lines[4]).toEqual({ kind: "add", text: "X", after: 4 });
});

test("what is common in the middle stays", () => {
  expect(plain(compare("1\n2\n3", "0\n2\n4"))).toEqual(["-1", "+0", " 2", "-3", "+4"]);
});

test("a text that is new is all added", () => {
  expect(tally(compare("", "a\nb"))).toEqual({ added: 2, cut: 1 });
  expect(compare("same", "same").every(({ kind }) => kind === "same")).toBe(true);
});

test("a unified diff is read with its line numbers", () => {
  const lines = readUnified("--- a/x\n+++ b/x\n@@ -2,2 +2,3 @@\n keep\n-old\n+new\n+more\n");
  expect(lines.map(({ kind }) => kind)).toEqual(["hunk", "same", "cut", "add", "add"]);
  expect(lines[4]).toMatchObject({ after: 4, text: "more" });
});
