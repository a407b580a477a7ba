import { expect, test } from "vitest";
import { changed, ending, heading, outputOf, plain, unnumbered } from "./call-words";
import type { Call } from "./view";

const call = (about: Partial<Call>): Call => ({
  kind: "call", seq: 1, id: "1", title: "ls", tool: "execute", input: {}, locations: [], status: "completed", output: "",
  diffs: [], outcome: null, asked: null, at: 0, endedAt: 1, sandbox: "s", checkpoints: [], ...about,
});
const told = (text: string) => ({ call: "1", name: "f", text, failed: false });

test("a call is headed by what it does and to what", () => {
  const at = [{ path: "src/a.ts" }];
  expect(heading(call({ title: "edit src/a.ts", tool: "edit", locations: at }))).toEqual({ verb: "Edit", about: "", path: "src/a.ts" });
  expect(heading(call({ title: "search a b in src/a.ts", tool: "search", locations: at }))).toEqual({ verb: "Search", about: "a b in", path: "src/a.ts" });
  expect(heading(call({ title: "make -j2" }))).toEqual({ verb: "Run", about: "make -j2", path: null });
  expect(heading(call({ title: "edit_file", tool: "other" }))).toEqual({ verb: "Edit file", about: "", path: null });
  expect(heading(call({ title: "remember: otters", tool: "think" }))).toEqual({ verb: "Remember:", about: "otters", path: null });
});

test("a command tells how it ended", () => {
  expect(ending(call({ outcome: told("a\n[exit code 2]") }))).toEqual({ text: "exit code 2", code: 2 });
  expect(ending(call({ outcome: told("[ended after 5 seconds]") }))).toEqual({ text: "ended after 5 seconds", code: null });
  expect(ending(call({ tool: "read", outcome: told("[exit code 2]") }))).toBeNull();
  expect(outputOf(call({ outcome: told("a\n[exit code 0]") }))).toBe("a\n");
  expect(outputOf(call({ output: "as it came", outcome: told("a") }))).toBe("as it came");
});

test("nothing that a command writes moves a cursor", () => {
  expect(plain("\u001b[31mred\u001b[0m \u001b]0;title\u0007x\r\n10%\r100%\nbell\u0007")).toBe("red x\n100%\nbell");
});

test("a file comes without its numbers", () => {
  expect(unnumbered("     2\ta\n     3\tb\n(1 lines more; read on with offset 4)\n")).toEqual({ text: "a\nb", first: 2, lines: 2, rest: "(1 lines more; read on with offset 4)" });
  expect(unnumbered("(the file is empty)")).toBeNull();
});

test("an edit tells how many lines it changed", () => {
  const diff = (oldText: string | null, newText: string) => call({ diffs: [{ type: "diff", path: "a", oldText, newText }] });
  expect(changed(diff(null, "a\nb\n"))).toEqual({ added: 2, cut: 0 });
  expect(changed(diff("a\nb\n", "a\nc\n"))).toEqual({ added: 1, cut: 1 });
  expect(changed(call({}))).toBeNull();
});
