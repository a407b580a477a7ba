import { expect, test, vi } from "vitest";
import { elsewhere, patiently } from "./on-demand";

const lost = () => new TypeError("Failed to fetch dynamically imported module: http://localhost/src/pages/a.tsx?t=1");

test("what could not be fetched is asked for again, at an address that the browser has not given up", async () => {
  const load = vi.fn(() => Promise.reject<string>(lost()));
  const asked: string[] = [];
  const again = (address: string) => (asked.push(address), asked.length < 2 ? Promise.reject(lost()) : Promise.resolve("a page"));
  expect(await patiently(load, again, [0, 0, 0])).toBe("a page");
  expect(load).toHaveBeenCalledTimes(1);
  expect(asked.every((address) => /^http:\/\/localhost\/src\/pages\/a\.tsx\?again=\d{5,}$/.test(address))).toBe(true);
});

test("it ends with what went wrong, and what throws by itself is not tried again", async () => {
  const load = vi.fn(() => Promise.reject(lost()));
  await expect(patiently(load, load, [0, 0])).rejects.toThrow("Failed to fetch");
  expect(load).toHaveBeenCalledTimes(3);
  const broken = vi.fn(() => Promise.reject(new TypeError("x is undefined")));
  await expect(patiently(broken, broken, [0, 0])).rejects.toThrow("x is undefined");
  expect(broken).toHaveBeenCalledTimes(1);
});

test("a browser that names no address asks at the same one", () => {
  expect(elsewhere("Importing a module script failed.", 1)).toBeNull();
});
