import { expect, test, vi } from "vitest";

vi.mock("../../api/client", () => ({}));
const { cpuShare } = await import("./data");

test("use of processors is what was used since the last look", () => {
  expect(cpuShare(null, 5_000_000, 1000)).toBeNull();
  expect(cpuShare({ used: 1_000_000, at: 0 }, 1_500_000, 1000)).toBe(50);
  // Another sandbox took the role, and counts from its own beginning.
  expect(cpuShare({ used: 9_000_000, at: 0 }, 1_000, 1000)).toBeNull();
});
