// One-shot runs with a model server that nobody here wrote: what the command prints, writes and ends with,
// and that nothing of them is left.

import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { calls, stage } from "./stage.js";

const USAGE = { prompt_tokens: 100, completion_tokens: 20, total_tokens: 120, input_tokens: 100, output_tokens: 20 };
const MODEL = "openai/gpt-4o";

const call = (id, name, args) => ({ toolCalls: [{ id, name, arguments: args }], usage: USAGE });
const first = (userMessage, response) => ({ match: { userMessage, turnIndex: 0 }, response });
const next = (toolCallId, response) => ({ match: { toolCallId }, response });
const say = (content) => ({ content, usage: USAGE });

/** A conversation that never ends: each answer calls the same tool again. */
const endless = Array.from({ length: 20 }, (_, n) =>
  (n === 0 ? first("go on for ever", call("loop_0", "run_command", { command: "echo round 0" }))
    : next(`loop_${n - 1}`, call(`loop_${n}`, "run_command", { command: `echo round ${n}` }))));

const set = stage({
  fixtures: [
    // Reads what was there, changes it, makes a file, runs it, and says so.
    first("build the greeting", call("b1", "read_file", { path: "name.txt" })),
    next("b1", call("b2", "write_file", { path: "src/greet.sh", content: "echo Hello, $(cat name.txt)\n" })),
    next("b2", call("b3", "run_command", { command: "sh src/greet.sh | tee out.txt && rm old.txt" })),
    next("b3", say("The greeting is built.")),
    ...endless,
    first("call nonsense", call("n1", "write_file", { path: 7 })),
    next("n1", call("n2", "write_file", { path: 8 })),
    first("one bad call", call("o1", "write_file", { path: 7 })),
    next("o1", say("I see.")),
    first("be busy", { error: { message: "slow down", type: "rate_limit" }, status: 429 }),
    first("take your time", call("t1", "run_command", { command: "echo begun; sleep 600" })),
    first("one of many", call("m1", "run_command", { command: "echo made > made.txt" })),
    next("m1", say("Made.")),
    first("spend it all", call("s1", "run_command", { command: "echo spent" })),
    next("s1", say("Never heard.")),
  ],
});

const folder = mkdtempSync(join(tmpdir(), "nacre-runs-"));
after(() => rmSync(folder, { recursive: true, force: true }));

let specs = 0;
function spec(text) {
  const file = join(folder, `spec-${specs++}.txt`);
  writeFileSync(file, text);
  return file;
}

/** Starts `nacre run`; `until` resolves with the first line of its output that holds a word. */
function begin(text, ...options) {
  const words = ["run", spec(text), "--model", MODEL, ...options];
  const child = set.computer.spawn(...words);
  const process = { child, stdout: "", stderr: "" };
  const waiting = [];
  const look = () => {
    for (const { word, resolve } of waiting) {
      const line = process.stdout.split("\n").find((line) => line.includes(word));
      if (line !== undefined) resolve(line);
    }
  };
  child.stdout.on("data", (piece) => { process.stdout += piece; look(); });
  child.stderr.on("data", (piece) => { process.stderr += piece; });
  process.until = (word) => new Promise((resolve, reject) => {
    waiting.push({ word, resolve });
    look();
    child.once("exit", () => reject(new Error(`it ended without "${word}": ${process.stdout}${process.stderr}`)));
  });
  process.ended = new Promise((resolve) => child.once("close", (code) => resolve({ ...process, code })));
  return process;
}

const run = (text, ...options) => begin(text, ...options).ended;
const events = ({ stdout }) => stdout.trim().split("\n").map((line) => JSON.parse(line));

async function nothingIsLeft() {
  const { sandboxes } = await set.computer.json("sandbox", "list");
  assert.deepEqual(sandboxes.map(({ name }) => name), ["live"]);
  const { tokens } = await set.computer.json("provider", "token", "list");
  assert.deepEqual(tokens.filter((token) => token.run), []);
}

test("a run of several steps begins with files and leaves what it changed", async () => {
  const [files, out] = [join(folder, "in"), join(folder, "out")];
  mkdirSync(files);
  writeFileSync(join(files, "name.txt"), "Bern\n");
  writeFileSync(join(files, "old.txt"), "old\n");
  const ended = await run("build the greeting", "--files", files, "--out", out);
  assert.equal(ended.code, 0, ended.stderr);
  assert.match(ended.stdout, /> .*read.*name\.txt/i);
  assert.match(ended.stdout, /\| Hello, Bern/);
  assert.match(ended.stdout, /The greeting is built\./);
  assert.match(ended.stderr, /Files: 2 added, 0 changed, 1 removed\./);
  assert.equal(readFileSync(join(out, "out.txt"), "utf8"), "Hello, Bern\n");
  assert.deepEqual(readdirSync(out).sort(), ["out.txt", "src"]);
  const { runs } = await set.computer.json("runs");
  assert.equal(runs[0].used.steps, 4);
  assert.equal(runs[0].used.tokens, 480);
  const patch = (await set.computer.nacre("runs", "patch", runs[0].id)).toString();
  assert.match(patch, /\+\+\+ b\/out\.txt\n@@ .* @@\n\+Hello, Bern/);
  assert.match(patch, /--- a\/old\.txt/);
  const made = (await calls(set.computer, 4)).filter((call) => call.run === runs[0].id);
  assert.equal(made.length, 4);
  await nothingIsLeft();
});

test("as JSON every event is a line, and the last has the record", async () => {
  const ended = await run("one of many", "--json");
  const all = events(ended);
  assert.equal(ended.code, 0, ended.stderr);
  assert.deepEqual(all.map(({ seq }) => seq), all.map((_, index) => index + 1));
  assert.ok(all.some(({ type, event }) => type === "agent" && event.sessionUpdate === "tool_call"));
  const { run: info } = all.at(-1);
  assert.equal(info.outcome.how, "done");
  assert.deepEqual(info.changes.paths.map(({ path }) => path), ["made.txt"]);
});

test("the same task from the standard input, kept and looked into", async () => {
  const child = set.computer.spawn("run", "-", "--model", MODEL, "--keep", "--json");
  child.stdin.end("one of many");
  let said = "";
  child.stdout.on("data", (piece) => { said += piece; });
  await new Promise((resolve) => child.once("close", resolve));
  const { run: info } = JSON.parse(said.trim().split("\n").at(-1));
  assert.equal((await set.computer.nacre("exec", "-s", info.sandbox, "--", "cat", "made.txt")).toString(), "made\n");
  await set.computer.nacre("sandbox", "destroy", "--yes", info.sandbox);
  await nothingIsLeft();
});

test("an endless loop ends at the limit of steps", async () => {
  const ended = await run("go on for ever", "--max-steps", "4", "--budget", "0");
  assert.equal(ended.code, 10, ended.stderr);
  assert.match(ended.stdout, /round 3/);
  assert.doesNotMatch(ended.stdout, /round 4/);
});

test("a malformed call is given back once, and then the run stops", async () => {
  const twice = await run("call nonsense");
  assert.equal(twice.code, 14, twice.stderr);
  assert.match(twice.stderr, /error: write_file cannot be called like this/);
  const once = await run("one bad call");
  assert.equal(once.code, 0, once.stderr);
  assert.match(once.stdout, /I see\./);
});

test("a model that stays busy, or is never there, is a model that failed", async () => {
  const busy = await run("be busy", "--timeout", "60s");
  assert.equal(busy.code, 13, busy.stderr);
  assert.match(busy.stdout, /! the model is asked again/);
  assert.match(busy.stderr, /slow down/);
  await set.server.chaos({ disconnectRate: 1 });
  try {
    const gone = await run("one of many", "--timeout", "60s");
    assert.equal(gone.code, 13, gone.stderr);
  } finally {
    await set.server.chaos(null);
  }
  await nothingIsLeft();
});

test("time is up", async () => {
  const ended = await run("take your time", "--timeout", "3s");
  assert.equal(ended.code, 11, ended.stderr);
  assert.match(ended.stdout, /begun/);
  await nothingIsLeft();
});

test("a budget is never overdrawn", async () => {
  const ended = await run("spend it all", "--budget", "0.000001");
  assert.equal(ended.code, 12, ended.stderr);
  assert.match(ended.stderr, /error: .*the budget of this run is \$.*; nacre run --budget allows another more/);
});

test("Ctrl-C cancels, and the sandbox is gone when the command returns", async () => {
  const process = begin("take your time");
  await process.until("begun");
  process.child.kill("SIGINT");
  const ended = await process.ended;
  assert.equal(ended.code, 130, ended.stderr);
  await nothingIsLeft();
});

test("who is killed takes the run along; one that is detached goes on", async () => {
  const process = begin("take your time");
  await process.until("begun");
  process.child.kill("SIGKILL");
  await process.ended;
  for (;;) {
    const { runs } = await set.computer.json("runs");
    if (runs[0].outcome) {
      assert.equal(runs[0].outcome.how, "cancelled");
      break;
    }
  }
  const detached = await run("one of many", "--detach");
  const id = detached.stdout.trim();
  assert.match(id, /^run-/);
  await set.computer.nacre("runs", "follow", id);
  assert.equal((await set.computer.json("runs", "show", id)).outcome.how, "done");
  await nothingIsLeft();
});

test("twenty at once queue and all are done", async () => {
  const { at_once: atOnce } = await set.computer.json("runs");
  assert.ok(atOnce < 20, `this machine runs ${atOnce} at once`);
  const all = await Promise.all(Array.from({ length: 20 }, () => run("one of many", "--json")));
  assert.deepEqual(all.map(({ code }) => code), all.map(() => 0), all.map(({ stderr }) => stderr).join(""));
  const waited = all.filter((ended) => events(ended).some(({ type }) => type === "queued"));
  assert.ok(waited.length > 0, "some had to wait");
  await nothingIsLeft();
});

test("what cannot work is refused with what to do", async () => {
  const { stderr, code } = await set.computer.failed("run", spec("x"));
  assert.equal(code, 1);
  assert.match(stderr, /no model is named/);
  assert.match(stderr, /hint: .*\[agent\]/);
});

test("an agent that is not installed is named with how to get it", async () => {
  const { stderr, code } = await set.computer.failed("run", spec("x"), "--agent", "claude", "--model", "anthropic/claude-x");
  assert.equal(code, 17, stderr);
  assert.match(stderr, /error: claude is not installed/);
  assert.match(stderr, /hint: npm install -g @anthropic-ai\/claude-code/);
});

test("a killed gateway leaves no orphan", async () => {
  const process = begin("take your time");
  await process.until("begun");
  const { pid } = await set.computer.json("status");
  globalThis.process.kill(pid, "SIGKILL");
  const ended = await process.ended;
  assert.equal(ended.code, 15, ended.stderr);
  await set.computer.nacre("up", "--detach", "--listen", "127.0.0.1:0");
  await nothingIsLeft();
  const { runs } = await set.computer.json("runs");
  assert.equal(runs[0].outcome.how, "interrupted");
});
