import { expect, test, vi } from "vitest";

vi.mock("./terminal.module.css", () => ({ default: {} }));
const { hex } = await import("./colours");

test.each([
  ["rgb(28, 26, 36)", "#1c1a24"],
  ["rgba(255, 0, 10, 0.5)", "#ff000a"],
  ["color(srgb 1 0.5 0)", "#ff8000"],
  ["color(srgb 1e-7 0 0.2 / 0.3)", "#000033"],
])("%s is %s", (colour, expected) => {
  expect(hex(colour)).toBe(expected);
});
