// `nacre-agent` itself, in front of a model server in every wire format: whole conversations, and what goes
// wrong in them. What runs it in a sandbox is tested elsewhere.

import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { Aimock } from "./aimock.js";
import { kinds, run, workspace } from "./run-agent.js";

const KEY = "sk-library";
const USAGE = { prompt_tokens: 100, completion_tokens: 20, total_tokens: 120, input_tokens: 100, output_tokens: 20 };
const FORMATS = { chat: "gpt-4o-mini", responses: "gpt-4o-mini", messages: "claude-haiku-4-5" };

const call = (id, name, args) => ({ toolCalls: [{ id, name, arguments: args }], usage: USAGE });
const says = (content) => ({ content, usage: USAGE });
const write = (id, path) => call(id, "write_file", { path, content: `${path}\n` });
const shell = (id, command) => call(id, "run_command", { command });
const long = (id, path) => call(id, "write_file", { path, content: `${path}\n`.repeat(1000) });
/** A reply that says how full the window is by now. */
const filling = (response) => ({ ...response, usage: { ...USAGE, prompt_tokens: 15_000, input_tokens: 15_000, total_tokens: 15_020 } });
const LONG = "The quick brown fox jumps over the lazy dog, again and again and again.";

const FIXTURES = [
  { match: { userMessage: "write and check", turnIndex: 0 }, response: write("call_w", "notes/a.txt") },
  { match: { toolCallId: "call_w" }, response: shell("call_r", "cat notes/a.txt; exit 3") },
  { match: { toolCallId: "call_r", toolResultContains: "[exit code 3]" }, response: says("It is written.") },

  { match: { userMessage: "one slip", turnIndex: 0 }, response: call("call_s1", "write_file", { path: "slip.txt" }) },
  { match: { toolCallId: "call_s1", toolResultContains: "content" }, response: write("call_s2", "slip.txt") },
  { match: { toolCallId: "call_s2" }, response: says("Repaired.") },

  { match: { userMessage: "two slips", turnIndex: 0 }, response: call("call_t1", "write_file", { path: 1, content: "x" }) },
  { match: { toolCallId: "call_t1" }, response: call("call_t2", "launch_rocket", {}) },
  { match: { toolCallId: "call_t2" }, response: write("call_t3", "never.txt") },

  { match: { userMessage: "too busy", sequenceIndex: 0 }, response: { error: { message: "slow down", type: "rate_limit_error" }, status: 429, retryAfter: 2 } },
  { match: { userMessage: "too busy" }, response: says("Now I have time.") },

  { match: { userMessage: "broken off", sequenceIndex: 0 }, response: says(LONG), chunkSize: 8, truncateAfterChunks: 4 },
  { match: { userMessage: "broken off" }, response: says(LONG) },

  { match: { userMessage: "broken call", sequenceIndex: 0 }, response: write("call_b0", "half.txt"), chunkSize: 4, truncateAfterChunks: 3 },
  { match: { userMessage: "broken call", turnIndex: 0 }, response: write("call_b1", "whole.txt") },
  { match: { toolCallId: "call_b1" }, response: says("Whole.") },

  { match: { userMessage: "no quota" }, response: { error: { message: "you have used it up", type: "insufficient_quota", code: "insufficient_quota" }, status: 429 } },

  { match: { userMessage: "fill the window", turnIndex: 0 }, response: shell("call_f1", "seq 1 4000") },
  { match: { toolCallId: "call_f1" }, response: shell("call_f2", "seq 5000 9000") },
  { match: { toolCallId: "call_f2" }, response: filling(shell("call_f3", "seq 1 1500")) },
  { match: { toolCallId: "call_f3" }, response: says("Three numbers.") },

  { match: { systemMessage: "You keep the memory of an agent" }, response: says("The owner wants three files; two are there.") },
  { match: { userMessage: "tell it in short", turnIndex: 0 }, response: long("call_g1", "one.txt") },
  { match: { toolCallId: "call_g1" }, response: long("call_g2", "two.txt") },
  { match: { toolCallId: "call_g2" }, response: filling(long("call_g3", "three.txt")) },
  { match: { toolCallId: "call_g3", turnIndex: 1 }, response: says("Three files.") },

  { match: { userMessage: "refused as too long", turnIndex: 0 }, response: shell("call_l1", "seq 1 3000") },
  { match: { toolCallId: "call_l1", toolResultContains: "put aside" }, response: says("Shorter.") },
  {
    match: { toolCallId: "call_l1" },
    response: { error: { message: "prompt is too long: 9 tokens > 8 maximum", type: "invalid_request_error", code: "context_length_exceeded" }, status: 400 },
  },

  { match: { userMessage: "plan it", turnIndex: 0 }, response: call("call_p1", "adopt_plan", { name: "Hypothesis -> Design -> Research" }) },
  { match: { toolCallId: "call_p1", toolResultContains: "prove it wrong" }, response: write("call_p2", "forbidden.txt") },
  { match: { toolCallId: "call_p2", toolResultContains: "while planning" }, response: says("That is the plan.") },

  // Last: it answers whatever follows it in the same way.
  { match: { userMessage: "for ever" }, response: shell("call_e", "echo again >> log") },
];

for (const [format, model] of Object.entries(FORMATS)) {
  describe(format, () => {
    let server;
    before(async () => (server = await Aimock.start({ fixtures: FIXTURES, key: KEY })));
    after(() => server.stop());

    const ask = (task, { service = {}, ...rest } = {}) =>
      run({ task, service: { format, base: `${server.url}/v1/`, token: KEY, model, ...service }, ...rest });

    test("a task of several steps", async () => {
      const { code, events, folder } = await ask("write and check");
      assert.equal(code, 0, JSON.stringify(events));
      assert.equal(readFileSync(join(folder, "notes/a.txt"), "utf8"), "notes/a.txt\n");
      assert.deepEqual(events.map(({ seq }) => seq), events.map((_, index) => index + 1));
      const edit = events.find(({ kind }) => kind === "edit");
      assert.deepEqual(edit.locations, [{ path: "notes/a.txt" }]);
      const diff = events.find(({ content }) => content?.[0]?.type === "diff").content[0];
      assert.deepEqual([diff.path, diff.oldText, diff.newText], ["notes/a.txt", null, "notes/a.txt\n"]);
      const used = events.findLast(({ sessionUpdate }) => sessionUpdate === "usage_update").used;
      assert.deepEqual([used.input, used.output], [300, 60]);
      assert.equal(events.at(-2).sessionUpdate, "usage_update");
      assert.deepEqual(events.at(-1).how, { reason: "done" });
    });

    test("a call that does not fit is given back once", async () => {
      const repaired = await ask("one slip");
      assert.equal(repaired.code, 0, JSON.stringify(repaired.events));
      assert.ok(existsSync(join(repaired.folder, "slip.txt")));
      const { code, events, folder } = await ask("two slips");
      assert.equal(code, 14, JSON.stringify(events));
      assert.deepEqual(events.at(-1).how, { reason: "invalid", message: 'there is no tool "launch_rocket"' });
      assert.ok(!existsSync(join(folder, "never.txt")));
    });

    test("a model that is busy is asked again when it said", async () => {
      const began = Date.now();
      const { code, events } = await ask("too busy");
      assert.equal(code, 0, JSON.stringify(events));
      assert.ok(Date.now() - began >= 2000, "it said two seconds");
      assert.match(events.find(({ sessionUpdate }) => sessionUpdate === "retry").reason, /slow down/);
    });

    test("an answer that breaks off is void", async () => {
      const { code, events } = await ask("broken off");
      assert.equal(code, 0, JSON.stringify(events));
      assert.equal(kinds(events).filter((kind) => kind === "retry").length, 1, kinds(events).join());
      const replies = events.filter(({ sessionUpdate }) => sessionUpdate === "reply");
      assert.deepEqual(replies.map(({ reply }) => reply.text), [LONG]);
      const retried = kinds(events).indexOf("retry");
      const told = events.slice(retried).filter(({ sessionUpdate }) => sessionUpdate === "agent_message_chunk");
      assert.equal(told.map(({ content }) => content.text).join(""), LONG);
    });

    test("a call that breaks off is not made", async () => {
      const { code, events, folder } = await ask("broken call");
      assert.equal(code, 0, JSON.stringify(events));
      assert.ok(!existsSync(join(folder, "half.txt")) && existsSync(join(folder, "whole.txt")));
    });

    test("a budget that is used up ends it at once", async () => {
      const { code, events } = await ask("no quota");
      assert.equal(code, 12, JSON.stringify(events));
      assert.ok(!kinds(events).includes("retry"));
      assert.match(events.at(-1).how.message, /you have used it up/);
    });

    test("a model that goes round in circles is stopped", async () => {
      const { code, events, folder } = await ask("for ever", { max_steps: 4 });
      assert.equal(code, 10, JSON.stringify(events));
      assert.equal(readFileSync(join(folder, "log"), "utf8"), "again\n".repeat(4));
    });

    test("results give way first when the window fills", async () => {
      const { code, events } = await ask("fill the window", { service: { window: 20_000 } });
      assert.equal(code, 0, JSON.stringify(events));
      const [shorter, ...more] = events.filter(({ sessionUpdate }) => sessionUpdate === "compacted");
      assert.deepEqual(more, []);
      assert.ok(shorter.after < shorter.before / 2, JSON.stringify(shorter));
      assert.equal(shorter.change.summary, undefined);
      const path = shorter.change.put_aside[0].text.match(/are in (.+)\]$/)[1];
      assert.match(readFileSync(path, "utf8"), /^1\n2\n/);
    });

    test("then what was said is told in short", async () => {
      const { code, events } = await ask("tell it in short", { service: { window: 20_000 } });
      assert.equal(code, 0, JSON.stringify(events));
      const [{ change }, ...more] = events.filter(({ sessionUpdate }) => sessionUpdate === "compacted");
      assert.deepEqual(more, []);
      assert.match(change.summary.text, /three files; two are there\.\n\nThe owner's last words, in full:\ntell it in short$/);
      const whole = change.summary.text.match(/all of it is in ([^)]+)\)/)[1];
      assert.match(readFileSync(whole, "utf8"), /two\.txt\\ntwo\.txt/);
    });

    test("a model that finds it too long is asked once more, with less", async () => {
      const { code, events } = await ask("refused as too long");
      assert.equal(code, 0, JSON.stringify(events));
      assert.equal(kinds(events).filter((kind) => kind === "compacted").length, 1);
    });

    test("a plan is adopted, and while planning nothing is changed", async () => {
      const { code, events, folder } = await ask("plan it", { plan_only: true });
      assert.equal(code, 0, JSON.stringify(events));
      const { entries } = events.find(({ sessionUpdate }) => sessionUpdate === "plan");
      assert.equal(entries.length, 6);
      assert.match(entries[1].content, /^Hypothesis: /);
      assert.ok(!existsSync(join(folder, "forbidden.txt")));
    });
  });
}

test("what is no order is told as such", async () => {
  const { code, stderr } = await run({ task: 1, folder: workspace() });
  assert.equal(code, 125);
  assert.match(stderr, /^error: /);
});
