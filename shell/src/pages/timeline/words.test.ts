import { expect, test } from "vitest";
import { titleOf, whoOf, type Author, type Checkpoint } from "./words";

const info = (more: Partial<Checkpoint>): Checkpoint => ({ id: 7, time: 0, cause: { kind: "change" }, authors: [], added: 0, changed: 1, removed: 0, ...more });
const api: Author = { kind: "api", call: "write src/a b.txt" };
const command: Author = { kind: "command", id: "1", line: "\nnpm test \nls" };
const agent: Author = { kind: "conversation", id: "c1", call: "1.5" };
const ssh: Author = { kind: "ssh", session: "s" };

test("each change is put down to somebody", () => {
  const who = (...authors: Author[]) => whoOf(info({ authors })).kind;
  expect([who(), who(api), who(command), who(api, agent), who(command, agent), who(command, ssh)]).toEqual(["unknown", "you", "command", "agent", "agent", "ssh"]);
  expect(whoOf(info({ authors: [api, agent] })).conversation).toBe("c1");
});

test("what was taken back says so, whoever did it", () => {
  expect([whoOf(info({ cause: { kind: "undo", of: [3] } })).kind, whoOf(info({ cause: { kind: "restore", to: 3 } })).words]).toEqual(["undo", "restore to #3"]);
});

test("a title tells what happened", () => {
  expect(titleOf(info({ authors: [api] }))).toBe("You saved a b.txt");
  expect(titleOf(info({ authors: [{ kind: "api", call: "remove" }] }), "notes/old.txt")).toBe("You deleted old.txt");
  expect(titleOf(info({ authors: [command] }))).toBe("$ npm test");
  expect(titleOf(info({ authors: [agent] }), undefined, new Map([["c1", "Make it blue"]]))).toBe("Make it blue");
  expect(titleOf(info({ authors: [agent] }))).toBe("The agent");
  expect(titleOf(info({ cause: { kind: "undo", of: [1, 2, 3, 4] } }))).toBe("Undo of 4 changes");
  expect(titleOf(info({ authors: [{ kind: "api", call: "seed the desktop" }] }))).toBe("Seed the desktop");
  expect(titleOf(info({}))).toBe("Something in the background");
});
