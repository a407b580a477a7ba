import { expect, test } from "vitest";
import { filesOf } from "./patch";

const PATCH = `--- /dev/null
+++ b/new.txt
@@ -0,0 +1,2 @@
+one
+two
--- a/list.md
+++ b/list.md
@@ -1,3 +1,2 @@
 keep
--- an item that looks like a name
-+++ and another
+++ a line that does too
\\ No newline at end of file
--- a/old
+++ /dev/null
@@ -1 +0,0 @@
-x
`;

test("each file has its part", () => {
  expect(filesOf(PATCH).map(({ path, change }) => [path, change])).toEqual([
    ["new.txt", "added"],
    ["list.md", "changed"],
    ["old", "removed"],
  ]);
  expect(filesOf(PATCH)[1]?.diff.split("\n")).toHaveLength(7);
});

test("nothing has no files", () => {
  expect(filesOf("")).toEqual([]);
});
