import { expect, test } from "vitest";
import { difference, endingOf, indentOf, met, opened, written, type Document } from "./document";

const one = { text: "one", etag: "1" };
const two = { text: "two", etag: "2" };
const clean: Document = { base: one, dirty: false, trouble: null };
const dirty: Document = { base: one, dirty: true, trouble: null };

test("a file that was changed elsewhere reloads while nothing was typed", () => {
  expect(met(clean, "one", two)).toEqual({ document: { base: two, dirty: false, trouble: null }, reload: true });
});

test("what was typed is not lost to a change elsewhere", () => {
  const { document, reload } = met(dirty, "mine", two);
  expect([document, reload]).toEqual([{ base: one, dirty: true, trouble: { kind: "changed", disk: two } }, false]);
  expect(met(document, "mine", two).document.trouble).toEqual({ kind: "changed", disk: two });
  const three = { text: "three", etag: "3" };
  expect(met(document, "mine", three).document.trouble).toEqual({ kind: "changed", disk: three });
});

test("a change of rights alone is taken over without a word", () => {
  expect(met(dirty, "mine", { text: "one", etag: "9" }).document).toEqual({ base: { text: "one", etag: "9" }, dirty: true, trouble: null });
});

test("a file that became what was typed is saved", () => {
  expect(met(dirty, "two", two).document).toEqual({ base: two, dirty: false, trouble: null });
});

test("a file that came back as it was is no trouble any more", () => {
  expect(met({ ...dirty, trouble: { kind: "gone" } }, "mine", one).document.trouble).toBeNull();
});

test("what goes on while it is saved is not saved yet", () => {
  expect([written(two, "two").dirty, written(two, "two and more").dirty]).toEqual([false, true]);
});

test("a draft is opened as it was left, and says when the file is another one", () => {
  expect(opened(one, undefined)).toEqual({ document: clean, text: "one" });
  expect(opened(one, { text: "mine", etag: "1" })).toEqual({ document: dirty, text: "mine" });
  expect(opened(two, { text: "mine", etag: "1" }).document).toMatchObject({ dirty: true, base: { etag: "1" }, trouble: { kind: "changed", disk: two } });
  expect(opened(two, { text: "two", etag: "1" }).document).toEqual({ base: two, dirty: false, trouble: null });
});

test("only the part that differs is replaced", () => {
  const check = (old: string, now: string) => {
    const { from, to, insert } = difference(old, now);
    expect(old.slice(0, from) + insert + old.slice(to)).toBe(now);
    return [from, to, insert];
  };
  expect(check("a b c", "a x c")).toEqual([2, 3, "x"]);
  expect(check("aa", "aaa")).toEqual([2, 2, "a"]);
  expect(check("", "new")).toEqual([0, 0, "new"]);
  expect(check("same", "same")).toEqual([4, 4, ""]);
});

test("ends of lines and indents are those of the text", () => {
  expect([endingOf("a\r\nb\r\n"), endingOf("a\nb"), endingOf("a\r\nb\n"), endingOf("")]).toEqual(["\r\n", "\n", "\n", "\n"]);
  expect([indentOf("a\n    b\n        c"), indentOf("a\n\tb"), indentOf("a:\n  b:\n    c"), indentOf("")]).toEqual(["    ", "\t", "  ", "  "]);
});
