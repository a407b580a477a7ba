import { expect, test } from "vitest";
import { ALL, byDay, daysUntil, OTHERS, stack, startOf, ticks, type Row } from "./days";

const row = (key: string, dollars: number, calls = 1): Row => ({ key, calls, estimated: 0, input_tokens: 10 * calls, cached_tokens: 0, output_tokens: calls, dollars });

test("days are those of UTC, oldest first, today among them", () => {
  const now = Date.parse("2025-03-01T00:30:00Z");
  expect(daysUntil(now, 3)).toEqual(["2025-02-27", "2025-02-28", "2025-03-01"]);
  expect(startOf("2025-03-01")).toBe(Date.parse("2025-03-01T00:00:00Z"));
});

test("a day's models are what was used since it, less what was used since the next", () => {
  const found = byDay([
    { day: "2025-03-02", rows: [row("a", 1, 1)] },
    { day: "2025-03-01", rows: [row("a", 3, 3), row("b", 5, 2)] },
  ]);
  expect(found.get("2025-03-01")?.map(({ key, dollars, calls }) => [key, dollars, calls])).toEqual([
    ["a", 2, 2],
    ["b", 5, 2],
  ]);
  expect(found.get("2025-03-02")).toEqual([row("a", 1, 1)]);
});

test("somebody who uses more between two questions makes no hole", () => {
  const found = byDay([
    { day: "2025-03-01", rows: [row("a", 1, 1)] },
    { day: "2025-03-02", rows: [row("a", 2, 2)] },
  ]);
  expect(found.get("2025-03-01")).toEqual([]);
});

const DAYS = ["2025-03-01", "2025-03-02"];
const TOTALS = [row(DAYS[1]!, 1), row(DAYS[0]!, 7)];

test("until models are known a bar is whole", () => {
  expect(stack(DAYS, TOTALS, new Map(), "dollars")).toEqual({ days: DAYS, series: [{ name: ALL, values: [7, 1], total: 8 }], totals: [7, 1] });
});

test("models are stacked by what they cost, and what is not known is left over", () => {
  const models = new Map([[DAYS[0]!, [row("cheap", 2), row("dear", 5)]]]);
  const { series } = stack(DAYS, TOTALS, models, "dollars");
  expect(series.map(({ name, values }) => [name, values])).toEqual([
    ["dear", [5, 0]],
    ["cheap", [2, 0]],
    [OTHERS, [0, 1]],
  ]);
});

test("very many models become a few and the others", () => {
  const many = Array.from({ length: 9 }, (_, at) => row(`m${at}`, 1));
  const { series } = stack([DAYS[0]!], [row(DAYS[0]!, 9)], new Map([[DAYS[0]!, many]]), "dollars");
  expect(series.map(({ name, total }) => [name, total])).toEqual([["m0", 1], ["m1", 1], ["m2", 1], ["m3", 1], [OTHERS, 5]]);
});

test("tokens and calls can be stacked as well", () => {
  expect(stack([DAYS[0]!], TOTALS, new Map(), "tokens").totals).toEqual([11]);
  expect(stack([DAYS[0]!], TOTALS, new Map(), "calls").totals).toEqual([1]);
});

test.each([
  [0, [0, 1]],
  [7, [0, 2.5, 5, 7.5]],
  [0.011, [0, 0.005, 0.01, 0.015]],
  [3, [0, 1, 2, 3]],
  [100, [0, 50, 100]],
])("the scale for %d is %j", (largest, expected) => {
  expect(ticks(largest)).toEqual(expected);
});
