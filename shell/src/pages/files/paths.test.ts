import { expect, test } from "vitest";
import { above, isWithin, join, nameOf, nameTrouble, parentOf, plain, query, quoted, relative, shown } from "./paths";

test("a path comes apart and together", () => {
  expect([nameOf("a/b.txt"), parentOf("a/b.txt"), parentOf("b.txt"), join("", "b"), join("a", "b")]).toEqual(["b.txt", "a", "", "b", "a/b"]);
  expect(above("a/b/c")).toEqual(["a", "a/b"]);
  expect(above("a")).toEqual([]);
});

test("a folder holds itself and what is below, and no namesake", () => {
  expect([isWithin("a/b", "a"), isWithin("a", "a"), isWithin("ab", "a"), isWithin("x", "")]).toEqual([true, true, false, true]);
});

test("what is typed becomes a path of the workspace", () => {
  expect([plain("/workspace/a//b/"), plain("./a/../b"), plain("/"), plain("../x"), plain("workspace/a")]).toEqual(["a/b", "b", "", null, "workspace/a"]);
});

test("paths of events are below the workspace", () => {
  expect([relative("/workspace/a b"), relative("/workspace"), relative("/etc/passwd"), relative({ base64: "/w==" })]).toEqual(["a b", null, null, null]);
});

test("a space and a plus survive a query, and so do bytes that are no text", () => {
  expect(query({ path: "a b+c/ü", limit: 3, none: undefined, no: false })).toBe("?path=a%20b%2Bc%2F%C3%BC&limit=3");
  expect(quoted({ base64: btoa("a\xff") })).toBe("%61%ff");
  expect(shown({ base64: btoa("a\xff") })).toBe("a\uFFFD");
});

test("a name says why it is none", () => {
  expect(nameTrouble("notes.txt")).toBeNull();
  for (const bad of ["", " ", ".", "..", "a/b", "ü".repeat(200)]) expect(nameTrouble(bad), bad).not.toBeNull();
});
