import { expect, test } from "vitest";
import type { Of } from "../../api/client";
import { whereabouts } from "./followed";

const change = (kind: Of<"ChangeKind">, path: string, from?: string): Of<"Change"> => ({ kind, path: `/workspace/${path}`, ...(from ? { from: `/workspace/${from}` } : {}) });

test("a file that is moved is followed, with what is above it and as often as it is moved", () => {
  expect(whereabouts("a.txt", [change("move", "b.txt", "a.txt")])).toBe("b.txt");
  expect(whereabouts("src/a.txt", [change("move", "lib", "src"), change("move", "lib/b.txt", "lib/a.txt")])).toBe("lib/b.txt");
  expect(whereabouts("a.txt", [change("move", "ab.txt", "a"), change("modify", "a.txt")])).toBe("a.txt");
});

test("a file that vim saves stays where it is, in whatever order that is told", () => {
  const [aside, anew, gone] = [change("move", "a.txt~", "a.txt"), change("create", "a.txt"), change("delete", "a.txt~")];
  for (const told of [[aside, anew, gone], [aside, gone, anew], [aside, anew]]) expect(whereabouts("a.txt", told)).toBe("a.txt");
});

test("a file that another takes the place of stays where it is", () => {
  expect(whereabouts("a.txt", [change("move", "a.txt~", "a.txt"), change("move", "a.txt", "4913")])).toBe("a.txt");
});
