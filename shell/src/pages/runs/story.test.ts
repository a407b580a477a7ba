import { expect, test } from "vitest";
import type { Of } from "../../api/client";
import { Story } from "./story";

/** A story of these updates, numbered from 1. */
function story(...updates: object[]): Story {
  const made = new Story();
  updates.forEach((update, at) => made.add({ seq: at + 1, at: 0, ...update } as Of<"RunEvent">));
  return made;
}
const agent = (sessionUpdate: string, more: object = {}) => ({ type: "agent", event: { sessionUpdate, ...more } });
const says = (text: string) => agent("agent_message_chunk", { content: { type: "text", text } });
const call = (id: string, title: string) => agent("tool_call", { toolCallId: id, title, kind: "execute", status: "pending", rawInput: {} });
const update = (id: string, status: string, more: object) => agent("tool_call_update", { toolCallId: id, status, ...more });
const text = (text: string) => ({ content: [{ type: "content", content: { type: "text", text } }] });

test("pieces of what is said become one item", () => {
  expect(story(says("I will "), says("look."), agent("agent_thought_chunk", { content: { text: "hm" } })).items).toEqual([
    { kind: "says", text: "I will look." },
    { kind: "thinks", text: "hm" },
  ]);
});

test("a call gathers what it wrote and how it ended", () => {
  const { items } = story(call("1", "run: make"), update("1", "in_progress", text("a\n")), update("1", "in_progress", text("b\n")), update("1", "failed", { rawOutput: { text: "exit 2" } }));
  expect(items).toEqual([{ kind: "call", id: "1", title: "run: make", tool: "execute", status: "failed", output: "a\nb\n", diffs: [] }]);
});

test("a call that wrote nothing has what the model was told, or its diff", () => {
  expect(story(call("1", "read a"), update("1", "completed", { rawOutput: { text: "content" } })).items[0]).toMatchObject({ output: "content" });
  const edited = update("1", "completed", { content: [{ type: "diff", path: "a", oldText: null, newText: "x" }], rawOutput: { text: "written" } });
  expect(story(call("1", "write a"), edited).items[0]).toMatchObject({ output: "", diffs: [{ path: "a", before: "", after: "x" }] });
});

test("a retry takes back what was begun since the last reply", () => {
  const { items } = story(says("one"), agent("reply", { reply: {} }), says("two, half"), agent("retry", { reason: "overloaded" }), says("two"));
  expect(items).toEqual([
    { kind: "says", text: "one" },
    { kind: "note", text: "The model is asked again: overloaded." },
    { kind: "says", text: "two" },
  ]);
});

test("lines of another agent are kept in order, the last of very many", () => {
  const line = (text: string, stream = "stdout") => ({ type: "output", stream, line: text });
  expect(story(line("a"), line("b"), line("c", "stderr")).items).toMatchObject([{ lines: ["a", "b"] }, { lines: ["c"], stream: "stderr" }]);
  const many = story(...Array.from({ length: 2003 }, (_, at) => line(String(at)))).items[0];
  expect(many).toMatchObject({ left: 3 });
  expect(many?.kind === "output" && [many.lines.length, many.lines[0], many.lines.at(-1)]).toEqual([2000, "3", "2002"]);
});

test("state, plan and use are those of the last event, and an event counts once", () => {
  const made = story({ type: "queued", ahead: 2 }, { type: "state", state: "running" }, agent("plan", { entries: [{ content: "look", status: "completed" }] }));
  made.add({ seq: 2, at: 0, type: "state", state: "starting" });
  expect([made.ahead, made.state, made.plan]).toEqual([2, "running", [{ content: "look", status: "completed" }]]);
  const used = { steps: 3, tool_calls: 2, tokens: 100, dollars: 0.1 };
  made.add({ seq: 4, at: 0, type: "ended", run: { used } as Of<"RunInfo"> });
  expect([made.state, made.used]).toEqual(["ended", used]);
});

test("what is not known changes nothing", () => {
  expect(story({ type: "unknown" }, agent("something_new"), update("no such call", "completed", {})).items).toEqual([]);
});
