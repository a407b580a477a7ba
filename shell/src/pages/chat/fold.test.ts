import { expect, test } from "vitest";
import type { ConversationEvent, Update } from "./events";
import { fold } from "./fold";
import { EMPTY, mark, type Call, type View } from "./view";

/** Folds updates as events 1, 2, 3 ..., ten milliseconds apart. */
const seen = (updates: Update[], from: View = EMPTY) =>
  updates.map((update, index) => ({ seq: from.seq + index + 1, at: (from.seq + index + 1) * 10, ...update }) as ConversationEvent).reduce(fold, from);

const begins = (turn = 1): Update => ({ sessionUpdate: "turn_begins", turn, role: "dev", sandbox: "sb-1", mode: "auto", model: "openai/m" });
const user = (text: string): Update => ({ sessionUpdate: "user_message_chunk", content: { type: "text", text } });
const says = (text: string): Update => ({ sessionUpdate: "agent_message_chunk", content: { type: "text", text } });
const thinks = (text: string): Update => ({ sessionUpdate: "agent_thought_chunk", content: { type: "text", text } });
const reply = (text = ""): Update => ({ sessionUpdate: "reply", reply: { text } });
const call = (id: string, title = "ls", kind: "execute" | "edit" = "execute"): Update => ({ sessionUpdate: "tool_call", toolCallId: id, title, kind, status: "pending", rawInput: {} });
const output = (id: string, text: string): Update => ({ sessionUpdate: "tool_call_update", toolCallId: id, status: "in_progress", content: [{ type: "content", content: { type: "text", text } }] });
const finished = (id: string, text = "", failed = false): Update => ({ sessionUpdate: "tool_call_update", toolCallId: id, status: failed ? "failed" : "completed", rawOutput: { call: id, name: "f", text, failed } });
const ended = (reason: "done" | "cancelled" | "interrupted" = "done"): Update => ({ sessionUpdate: "ended", how: { reason } });
const START = [begins(), user("go")];

const steps = (view: View) => view.turns.at(-1)?.steps ?? [];
const words = (view: View) => steps(view).flatMap((step) => (step.kind === "text" || step.kind === "thought" ? [`${step.kind}: ${step.text}`] : []));
const calls = (view: View) => steps(view).filter((step): step is Call => step.kind === "call");

test("a turn is what the owner said, and what came of it", () => {
  const view = seen([...START, thinks("hm"), says("He"), says("llo"), reply("Hello"), ended()]);
  expect(view.turns).toHaveLength(1);
  expect(view.turns[0]).toMatchObject({ text: "go", number: 1, role: "dev", sandbox: "sb-1", seq: 1, last: 7, ended: { reason: "done" }, endedAt: 70 });
  expect(words(view)).toEqual(["thought: hm", "text: Hello"]);
  expect([view.working, view.replies, view.seq]).toEqual([false, 1, 7]);
});

test("an event that was seen changes nothing", () => {
  const view = seen([...START, says("a")]);
  expect(fold(view, { seq: 3, at: 0, ...says("a") } as ConversationEvent)).toBe(view);
});

test("what is not touched stays the same object", () => {
  const before = seen([...START, call("1"), finished("1"), ended(), begins(2), user("on"), call("1")]);
  const after = seen([output("1", "x")], before);
  expect(after.turns[0]).toBe(before.turns[0]);
  expect(after.turns[1]).not.toBe(before.turns[1]);
});

test("a retry voids what came since the last reply, and no more", () => {
  const view = seen([...START, says("one"), reply("one"), call("1"), finished("1"), thinks("x"), says("half a wo"), { sessionUpdate: "retry", reason: "busy" }, { sessionUpdate: "retry", reason: "still busy" }, says("two"), reply("two")]);
  expect(words(view)).toEqual(["text: one", "text: two"]);
  expect(steps(view).filter(({ kind }) => kind === "note")).toEqual([{ kind: "note", about: "retry", seq: 10, at: 100, text: "still busy" }]);
});

test("the whole reply is right where its pieces were not", () => {
  expect(words(seen([...START, reply("never in pieces")]))).toEqual(["text: never in pieces"]);
  expect(words(seen([...START, says("wro"), thinks("t"), says("ng"), reply("right")]))).toEqual(["text: right", "thought: t"]);
  expect(words(seen([...START, thinks("t"), says(" \n"), reply("")]))).toEqual(["thought: t"]);
});

test("a call gathers its output and tells how it went", () => {
  const view = seen([...START, reply(), call("1"), output("1", "a\n"), output("1", "b\n"), finished("1", "a\nb\n[exit code 1]", true)]);
  expect(calls(view)).toMatchObject([{ seq: 4, output: "a\nb\n", status: "failed", at: 40, endedAt: 70, outcome: { text: "a\nb\n[exit code 1]" } }]);
});

test("an edit has its diffs", () => {
  const diff = { type: "diff" as const, path: "a", oldText: null, newText: "x" };
  const view = seen([...START, call("1", "edit a", "edit"), { sessionUpdate: "tool_call_update", toolCallId: "1", status: "completed", content: [diff] }]);
  expect(calls(view)[0]?.diffs).toEqual([diff]);
});

test("a name that comes again is the newest call's", () => {
  const view = seen([...START, reply(), call("1", "first"), finished("1", "a"), reply(), call("1", "second"), finished("1", "b")]);
  expect(calls(view).map(({ title, outcome }) => [title, outcome?.text])).toEqual([["first", "a"], ["second", "b"]]);
});

test("a question waits until it is answered, and its time is not the call's", () => {
  const asking = seen([...START, call("1", "rm x"), { sessionUpdate: "permission_request", toolCallId: "1", title: "rm x" }]);
  expect(asking.asking).toEqual({ call: "1", title: "rm x", seq: 4 });
  expect(calls(asking)[0]?.asked).toBe("waiting");
  const answered = seen([{ sessionUpdate: "permission_outcome", toolCallId: "1", allowed: false }], asking);
  expect([answered.asking, calls(answered)[0]?.asked, calls(answered)[0]?.at]).toEqual([null, "denied", 50]);
  expect(seen([ended("cancelled")], asking)).toMatchObject({ asking: null, working: false });
});

test("the plan is the last one", () => {
  const entry = (content: string) => ({ content, status: "pending" as const, priority: "medium" as const });
  const view = seen([...START, { sessionUpdate: "plan", entries: [entry("a")] }, { sessionUpdate: "plan", entries: [entry("b"), entry("c")] }]);
  expect(view.plan.map(({ content }) => content)).toEqual(["b", "c"]);
});

test("checkpoints are the call's, and what was taken back is known", () => {
  const view = seen([...START, call("1"), { sessionUpdate: "checkpoints", toolCallId: "1", sandbox: "sb-1", checkpoints: [3, 4] }, finished("1"), ended(), { sessionUpdate: "undone", sandbox: "sb-1", checkpoints: [3, 4], paths: ["a"] }]);
  expect(calls(view)[0]).toMatchObject({ checkpoints: [3, 4], sandbox: "sb-1" });
  expect(view.undone).toEqual(new Set([mark("sb-1", 3), mark("sb-1", 4)]));
  expect(steps(view).at(-1)).toEqual({ kind: "undone", seq: 7, at: 70, paths: ["a"] });
  expect(view.turns[0]?.last).toBe(6);
});

test("what an interruption cuts off is said to be", () => {
  const view = seen([...START, says("I ru"), call("1"), output("1", "a"), ended("interrupted")]);
  expect(calls(view)[0]).toMatchObject({ status: "cut_off", output: "a" });
  expect(words(view)).toEqual(["text: I ru"]);
  expect(view.turns[0]?.ended).toEqual({ reason: "interrupted" });
});

test("the meter is the conversation's, and the difference the turn's", () => {
  const used = (input: number, output: number): Update => ({ sessionUpdate: "usage_update", used: { input, output } });
  const cost = (dollars: number): Update => ({ sessionUpdate: "cost_update", dollars });
  const first = seen([...START, reply("a"), used(10, 5), cost(0.25), ended()]);
  const second = seen([begins(2), user("on"), reply("b"), used(30, 6), cost(0.75), reply("c"), used(50, 8), ended()], first);
  expect([second.replies, second.used, second.dollars]).toEqual([3, { input: 50, output: 8 }, 0.75]);
  expect(second.turns.map(({ spent }) => spent)).toEqual([
    { replies: 1, tokens: 15, dollars: 0.25 },
    { replies: 2, tokens: 43, dollars: 0.5 },
  ]);
  const fork = seen([begins(3), user("on"), cost(0.125)], second);
  expect(fork.turns[2]?.spent.dollars).toBe(0.125);
});

test("a conversation that was made shorter says so, and what this version does not know is passed over", () => {
  const view = seen([...START, { sessionUpdate: "compacted", before: 90_000, after: 12_000, used: { input: 1, output: 1 } }, { sessionUpdate: "notice", message: "no server" }, { sessionUpdate: "from the future" } as unknown as Update]);
  expect(steps(view).map((step) => step.kind === "note" && [step.about, step.text])).toEqual([["compacted", "from about 90k tokens to 12k"], ["notice", "no server"]]);
  expect(view.seq).toBe(5);
});

test("ten thousand events are no work", () => {
  const turn = (number: number): Update[] => [begins(number), user("go"), ...Array.from({ length: 20 }, (_, index) => [says("word "), says("and more"), reply("word and more"), call(String(index)), output(String(index), "x\n"), finished(String(index))]).flat(), ended()];
  const updates = Array.from({ length: 90 }, (_, index) => turn(index + 1)).flat();
  const begun = performance.now();
  const view = seen(updates);
  expect(updates.length).toBeGreaterThan(10_000);
  expect(view.turns).toHaveLength(90);
  expect(performance.now() - begun).toBeLessThan(1000);
});
