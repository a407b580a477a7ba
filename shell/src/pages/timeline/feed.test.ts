import { expect, test } from "vitest";
import { amended, arrived, byDay, dayOf, isBy, joined, moments } from "./feed";
import type { Author, Checkpoint } from "./words";

const info = (id: number, more: Partial<Checkpoint> = {}): Checkpoint => ({ id, time: id, cause: { kind: "change" }, authors: [], added: 0, changed: 1, removed: 0, ...more });
const page = (...ids: number[]) => ({ checkpoints: ids.map((id) => info(id)) });
const ids = (list: readonly Checkpoint[]) => list.map(({ id }) => id);

test("pages are one list, newest first, each checkpoint once", () => {
  expect(ids(joined([page(9, 8), page(8, 7)]))).toEqual([9, 8, 7]);
});

test("what arrives stands first, and replaces what was known of it", () => {
  const pages = arrived([{ ...page(8, 7), next: 7 }, page(6)], [info(9), info(8, { label: "x" })]);
  expect([ids(joined(pages)), pages[0]?.next, joined(pages)[1]?.label]).toEqual([[9, 8, 7, 6], 7, "x"]);
  expect(ids(joined(arrived([], [info(1)])))).toEqual([1]);
});

test("a name that was given shows where the checkpoint stands", () => {
  expect(joined(amended([page(2), page(1)], 1, { label: "it works" }))[1]?.label).toBe("it works");
});

test("days have lines of their own", () => {
  const now = new Date(2026, 2, 4, 12).getTime();
  const at = (day: number, hour: number) => new Date(2026, 2, day, hour).getTime();
  const rows = byDay([info(4, { time: at(4, 11) }), info(3, { time: at(4, 1) }), info(2, { time: at(3, 23) }), info(1, { time: at(1, 9) })], now);
  expect(rows.map((row) => (row.kind === "day" ? row.words : `${row.checkpoint.id}${row.last ? "." : ""}`))).toEqual(["Today", "4", "3.", "Yesterday", "2.", "Sunday 1 March", "1."]);
  expect(dayOf(new Date(2025, 11, 31).getTime(), now)).toBe("Wednesday 31 December 2025");
});

test("checkpoints are found by who made them", () => {
  const by = (...authors: Author[]) => info(1, { authors });
  expect(isBy(by({ kind: "api", call: "write a" }), "you")).toBe(true);
  expect(isBy(by({ kind: "api", call: "write a" }, { kind: "conversation", id: "c" }), "you")).toBe(false);
  expect(isBy(info(1, { cause: { kind: "undo", of: [1] } }), "you")).toBe(true);
  expect([isBy(by(), "unknown"), isBy(by(), "agent"), isBy(by(), "all")]).toEqual([true, false, true]);
});

test("two moments are compared from the older to the newer", () => {
  expect([moments(5, 3), moments(3, 5), moments(3, "now")]).toEqual([{ from: 3, to: 5 }, { from: 3, to: 5 }, { from: 3, to: undefined }]);
});
