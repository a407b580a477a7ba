import { expect, test, vi } from "vitest";

vi.mock("../api/client", () => ({}));
const { pauseAfter } = await import("./follow");

test("pauses grow up to an end, and differ by chance", () => {
  expect([0, 1, 2].map((failures) => pauseAfter(failures, 0))).toEqual([400, 800, 1600]);
  expect(pauseAfter(50, 0)).toBe(15_000);
  expect(pauseAfter(1, 0.5)).toBe(1200);
});
