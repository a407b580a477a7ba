// Agents that people use, unchanged, by `nacre run --agent`: each does a task in a sandbox of its own, with
// nothing to open its model but the token of the run.

import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { fileURLToPath } from "node:url";
import { calls, stage } from "./stage.js";

const USAGE = { prompt_tokens: 100, completion_tokens: 20, total_tokens: 120, input_tokens: 100, output_tokens: 20 };
const make = (name) => `echo made by ${name} > ${name}.txt`;
const modules = fileURLToPath(new URL("node_modules/", import.meta.url));
const vendor = join(modules, "@openai/codex-linux-x64/vendor");
const places = [join(vendor, readdirSync(vendor)[0], "bin"), join(modules, "opencode-linux-x64/bin"), join(modules, "@anthropic-ai/claude-code-linux-x64")];

const set = stage({
  // The packages are not installed in the system, so sandboxes are shown where they are.
  config: [
    "[agent]", 'model = "openai/gpt-4o"',
    "[sandboxes]", `host_directories = ${JSON.stringify([modules])}`,
    "[runs]", `path = ${JSON.stringify(places)}`, "timeout_seconds = 120",
  ].join("\n"),
  fixtures: [
    // Before anything else, opencode wants a name for what is going on.
    { match: { userMessage: "Generate a title" }, response: { content: "A title", usage: USAGE } },
    {
      match: { userMessage: "codex, make the file", turnIndex: 0 },
      response: { toolCalls: [{ id: "call_codex", name: "exec_command", arguments: { cmd: make("codex") } }], usage: USAGE },
    },
    { match: { toolCallId: "call_codex" }, response: { content: "Codex is done.", usage: USAGE } },
    {
      match: { userMessage: "claude, make the file", turnIndex: 0 },
      response: {
        reasoning: "A file is wanted.",
        toolCalls: [{ id: "call_claude", name: "Bash", arguments: { command: make("claude"), description: "Makes it" } }],
        usage: USAGE,
      },
    },
    { match: { toolCallId: "call_claude" }, response: { content: "Claude is done.", usage: USAGE } },
    {
      match: { userMessage: "opencode, make the file", turnIndex: 0 },
      response: {
        toolCalls: [{ id: "call_opencode", name: "bash", arguments: { command: make("opencode"), description: "Makes it" } }],
        usage: USAGE,
      },
    },
    { match: { toolCallId: "call_opencode" }, response: { content: "Opencode is done.", usage: USAGE } },
  ],
});

const folder = mkdtempSync(join(tmpdir(), "nacre-run-agents-"));
after(() => rmSync(folder, { recursive: true, force: true }));

async function completes(agent, words, ...options) {
  const [spec, out] = [join(folder, `${agent}.txt`), join(folder, agent)];
  writeFileSync(spec, `${agent}, make the file`);
  const said = (await set.computer.nacre("run", spec, "--agent", agent, "--out", out, ...options)).toString();
  assert.match(said, words);
  assert.equal(readFileSync(join(out, `${agent}.txt`), "utf8"), `made by ${agent}\n`);
  const { runs } = await set.computer.json("runs");
  assert.deepEqual([runs[0].agent, runs[0].outcome.how], [agent, "done"]);
  const own = (await calls(set.computer, 2)).filter((call) => call.run === runs[0].id);
  assert.ok(own.length >= 2, "every call counts for the run");
  assert.ok(runs[0].used.dollars > 0);
}

test("Codex completes a task", () => completes("codex", /Codex is done\./));

test("Claude Code completes a task, within what a run costs by default", async () => {
  await completes("claude", /Claude is done\./, "--model", "anthropic/claude-sonnet-4-5");
  // Left to itself it would also tell its maker how it is used.
  const { records } = await set.computer.json("egress", "log");
  assert.deepEqual(records.filter(({ host }) => host.endsWith("anthropic.com")), []);
});

test("opencode completes a task", () => completes("opencode", /Opencode is done\./));

test("a command of one's own finds its task and its model", async () => {
  const files = join(folder, "own");
  const { mkdirSync } = await import("node:fs");
  mkdirSync(files);
  writeFileSync(join(files, "agent.sh"), [
    'test "$1" = "$NACRE_SPEC" || exit 3',
    'echo "task: $(cat "$1")"',
    'echo "model: $NACRE_MODEL"',
    'case "$OPENAI_API_KEY" in nacre_model_*) echo "a token of the run";; esac',
    'test "$OPENAI_API_KEY" = "$NACRE_PROVIDER_TOKEN" && echo result > result.txt',
  ].join("\n"));
  const spec = join(folder, "own.txt");
  writeFileSync(spec, "be yourself");
  const words = ["run", spec, "--agent", "sh agent.sh", "--files", files, "--out", join(folder, "own-out")];
  const said = (await set.computer.nacre(...words)).toString();
  assert.equal(said, "task: be yourself\nmodel: gpt-4o\na token of the run\n");
  assert.deepEqual(readdirSync(join(folder, "own-out")), ["result.txt"]);
});

