import { expect, test } from "vitest";
import { EXPECTED, hear, rows, UNSEEN, type Check } from "./checks";

const check = (name: string, ok = true): Check => ({ name, ok, detail: `${name} was looked at` });

test("each line turns one row, in its place", () => {
  const seen = [check("process"), check("page", false)].reduce(hear, UNSEEN);
  const list = rows(seen, true);
  expect(list.map(({ name }) => name)).toEqual(EXPECTED.map(({ name }) => name));
  expect(list.map(({ check }) => check?.ok)).toEqual([true, undefined, undefined, false, undefined]);
  expect(list.filter(({ now }) => now).map(({ name }) => name)).toEqual(["runtime"]);
});

test("a check that this page does not know comes after the others", () => {
  expect(rows(hear(UNSEEN, check("weather")), false).at(-1)).toMatchObject({ name: "weather", now: false });
});

test("the verdict is the last, and nothing is under way after it", () => {
  const seen = hear(hear(UNSEEN, check("process")), { ok: true, verdict: "dev can become live" });
  expect(seen.verdict?.ok).toBe(true);
  expect(rows(seen, true).some(({ now }) => now)).toBe(false);
});

test("a check that is made again replaces what it found before", () => {
  expect(hear(hear(UNSEEN, check("page", false)), check("page")).checks).toEqual([check("page")]);
});
