// Agents that people use, unchanged, inside a real sandbox: a whole loop of tools through 127.0.0.1:8002,
// with nothing to open it but what is in their environment.

import assert from "node:assert/strict";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { test } from "node:test";
import { REAL_KEY, calls, stage } from "./stage.js";

const USAGE = { prompt_tokens: 100, completion_tokens: 20, total_tokens: 120, input_tokens: 100, output_tokens: 20 };
const make = (name) => `echo made by ${name} > ${name}.txt`;

const modules = fileURLToPath(new URL("node_modules/", import.meta.url));

/** The programs themselves, as the packages carry them. */
function programs() {
  const vendor = join(modules, "@openai/codex-linux-x64/vendor");
  return {
    codex: join(vendor, readdirSync(vendor)[0], "bin/codex"),
    opencode: join(modules, "opencode-linux-x64/bin/opencode"),
  };
}

async function prepare(computer) {
  await computer.exec("mkdir -p /home/nacre/bin");
  for (const [name, file] of Object.entries(programs())) {
    await computer.nacre("cp", file, `live:/home/nacre/bin/${name}`);
  }
  await computer.exec("chmod +x /home/nacre/bin/*");
}

const set = stage({
  prepare,
  fixtures: [
    // Before anything else, opencode wants a name for what is going on.
    { match: { userMessage: "Generate a title" }, response: { content: "A title", usage: USAGE } },
    {
      match: { userMessage: "codex, make the file", turnIndex: 0 },
      response: { toolCalls: [{ id: "call_codex", name: "exec_command", arguments: { cmd: make("codex") } }], usage: USAGE },
    },
    { match: { toolCallId: "call_codex" }, response: { content: "Codex is done.", usage: USAGE } },
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

async function inside(script) {
  return (await set.computer.exec(`export PATH=/home/nacre/bin:$PATH; ${script}`)).toString();
}

async function loopIsCounted(name) {
  assert.equal(await inside(`cat ${name}.txt`), `made by ${name}\n`);
  const id = (await set.computer.json("sandbox", "list")).sandboxes.find((sandbox) => sandbox.name === "live").id;
  const all = await calls(set.computer, 2);
  const loop = all.filter((call) => call.state === "settled" && call.sandbox === id);
  assert.ok(loop.length >= 2, JSON.stringify(all));
  assert.ok(all.every((call) => call.state !== "open"));
}

test("Codex calls a tool and hears its result", async () => {
  const provider = '{name="nacre",base_url="\'$OPENAI_BASE_URL\'",env_key="OPENAI_API_KEY",wire_api="responses"}';
  const said = await inside(
    `mkdir -p ~/.codex && codex exec --json --skip-git-repo-check --dangerously-bypass-approvals-and-sandbox ` +
      `-c model_provider=nacre -c 'model_providers.nacre=${provider}' -m gpt-4o 'codex, make the file' < /dev/null`,
  );
  assert.match(said, /Codex is done\./);
  await loopIsCounted("codex");
});

test("opencode calls a tool and hears its result", async () => {
  const config = {
    model: "nacre/gpt-4o",
    small_model: "nacre/gpt-4o",
    provider: {
      nacre: {
        npm: "@ai-sdk/openai-compatible",
        options: { baseURL: "{env:OPENAI_BASE_URL}", apiKey: "{env:OPENAI_API_KEY}" },
        models: { "gpt-4o": {} },
      },
    },
  };
  const said = await inside(
    `printf '%s' '${JSON.stringify(config)}' > opencode.json; ` +
      `OPENCODE_DISABLE_AUTOUPDATE=1 OPENCODE_DISABLE_MODELS_FETCH=1 opencode run --format json 'opencode, make the file' < /dev/null`,
  );
  assert.match(said, /Opencode is done\./);
  await loopIsCounted("opencode");
});

test("the key of the provider is nowhere that they could have left it", async () => {
  const place = "/workspace /home /tmp";
  // In two parts, so that the command line is not what is found.
  const [first, second] = [REAL_KEY.slice(0, 10), REAL_KEY.slice(10)];
  assert.equal(await inside(`grep -rlF "${first}""${second}" ${place} 2>/dev/null || true`), "");
  const token = (await inside("printenv OPENAI_API_KEY")).trim();
  assert.match(token, /^nacre_model_[0-9a-f]{64}$/);
});
