import { expect, test } from "vitest";
import { read } from "../../app/router";
import { addressOf, shownAt, type Shown } from "./place";

const nothing: Shown = { id: null, path: "", who: "all", named: false, conversation: "", compare: null };

const again = (shown: Shown) => {
  const { rest, query } = read(addressOf(shown));
  return shownAt(rest, query);
};

test("what is shown survives its address", () => {
  const all: Shown[] = [nothing, { ...nothing, id: 12, compare: "now" }, { id: 7, path: "a b/ü.txt", who: "agent", named: true, conversation: "c1", compare: 3 }];
  for (const shown of all) expect(again(shown)).toEqual(shown);
});

test("an odd address shows the list", () => {
  expect(shownAt("x/y", new URLSearchParams("who=toString&compare=-1"))).toEqual(nothing);
});
