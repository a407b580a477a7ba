import { expect, test } from "vitest";
import { arrow, control, localPort } from "./keys";

test.each([
  ["c", "\x03"],
  ["C", "\x03"],
  ["[", "\x1b"],
  [" ", "\0"],
  ["1", "1"],
  ["ä", "ä"],
  ["pasted", "pasted"],
])("Ctrl and %j send %j", (character, sent) => {
  expect(control(character)).toBe(sent);
});

test("arrows follow the mode of the program", () => {
  expect([arrow("A", false), arrow("D", true)]).toEqual(["\x1b[A", "\x1bOD"]);
});

test.each([
  ["http://localhost:3000/a?b#c", { port: 3000, path: "/a?b#c" }],
  ["http://127.0.0.1:5173", { port: 5173, path: "/" }],
  ["http://0.0.0.0:8000/", { port: 8000, path: "/" }],
  ["http://[::1]:81/", { port: 81, path: "/" }],
  ["https://localhost", { port: 443, path: "/" }],
  ["https://example.com:3000/", null],
  ["https://localhost.example/", null],
  ["nonsense", null],
])("%s leads to %j", (uri, expected) => {
  expect(localPort(uri)).toEqual(expected);
});
