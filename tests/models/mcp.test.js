// A server of tools that others wrote, in front of `nacre-agent`: as a program and at an address.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { createServer, request as httpRequest } from "node:http";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { Aimock } from "./aimock.js";
import { kinds, run } from "./run-agent.js";

const KEY = "sk-mcp";
const here = (path) => fileURLToPath(new URL(path, import.meta.url));
const EVERYTHING = here("node_modules/@modelcontextprotocol/server-everything/dist/index.js");
const LOOPBACK = here("loopback.js");

const call = (id, name, args = {}) => ({ toolCalls: [{ id, name, arguments: args }] });
const FIXTURES = [
  { match: { userMessage: "echo", turnIndex: 0 }, response: call("call_1", "all_echo", { message: "over the sea" }) },
  { match: { toolCallId: "call_1", toolResultContains: "over the sea" }, response: call("call_2", "all_get-sum", { a: "two", b: 3 }) },
  { match: { toolCallId: "call_2", toolResultContains: 'at "a": number is wanted' }, response: call("call_3", "all_get-sum", { a: 2, b: 3 }) },
  { match: { toolCallId: "call_3", toolResultContains: "5" }, response: call("call_4", "all_get-tiny-image") },
  { match: { toolCallId: "call_4", toolResultContains: "an image of" }, response: { content: "All of it works." } },

  { match: { userMessage: "variable", turnIndex: 0 }, response: call("call_v", "all_get-env") },
  { match: { toolCallId: "call_v", toolResultContains: "given-to-it" }, response: { content: "It has it." } },

  { match: { userMessage: "take long", turnIndex: 0 }, response: call("call_t", "all_trigger-long-running-operation", { duration: 600, steps: 2 }) },
  { match: { toolCallId: "call_t", toolResultContains: "did not answer within 2 seconds" }, response: { content: "Then not." } },

  { match: { userMessage: "only plan", turnIndex: 0 }, response: call("call_p", "all_echo", { message: "still heard" }) },
  { match: { toolCallId: "call_p", toolResultContains: "still heard" }, response: call("call_q", "all_gzip-file-as-resource", { name: "x.gz" }) },
  { match: { toolCallId: "call_q", toolResultContains: "while planning" }, response: { content: "I would zip it." } },

  { match: { userMessage: "go on without it" }, response: { content: "Without it." } },

  { match: { userMessage: "ask back", turnIndex: 0 }, response: call("call_a", "all_echo", { message: "x" }) },
  { match: { toolCallId: "call_a", toolResultContains: "does not want" }, response: { content: "So be it." } },
];

let server;
before(async () => (server = await Aimock.start({ fixtures: FIXTURES, key: KEY })));
after(() => server.stop());

const service = () => ({ format: "chat", base: `${server.url}/v1/`, token: KEY, model: "gpt-4o-mini" });
const program = { command: [process.execPath, EVERYTHING, "stdio"] };
const ask = (task, all, rest = {}) => run({ task, service: service(), mcp: { all }, ...rest });

/** The same server at an address of its own, on loopback alone. */
async function atAddress(work) {
  const words = ["--import", LOOPBACK, EVERYTHING, "streamableHttp"];
  const child = spawn(process.execPath, words, { stdio: ["ignore", "pipe", "pipe"] });
  try {
    const port = await new Promise((resolve, reject) => {
      let said = "";
      const read = (piece) => {
        said += piece;
        const found = said.match(/listening on 127\.0\.0\.1:(\d+)/);
        if (found) resolve(found[1]);
      };
      child.stdout.on("data", read);
      child.stderr.on("data", read);
      child.once("exit", () => reject(new Error(`it ended: ${said}`)));
    });
    return await work(`http://127.0.0.1:${port}/mcp`);
  } finally {
    child.kill();
  }
}

async function everythingWorks({ code, events }) {
  assert.equal(code, 0, JSON.stringify(events));
  const image = JSON.stringify(events).match(/is in ([^\]]+\.png)\]/)[1];
  assert.deepEqual([...readFileSync(image).subarray(1, 4)], [...Buffer.from("PNG")]);
  const sum = events.find(({ title }) => title === "all: get-sum");
  assert.equal(sum.sessionUpdate, "tool_call");
}

test("a program's tools are called, and its schema is held to", async () => {
  await everythingWorks(await ask("echo", program));
});

test("so are those at an address", async () => {
  await atAddress(async (url) => everythingWorks(await ask("echo", { url, ask: false })));
});

test("what goes to an address is asked about, and nobody is there to ask", async () => {
  await atAddress(async (url) => {
    const { code, events } = await ask("ask back", { url });
    assert.equal(code, 0, JSON.stringify(events));
    const [asked, said] = ["permission_request", "permission_outcome"].map((kind) => events.find((event) => event.sessionUpdate === kind));
    assert.deepEqual([asked.toolCallId, said.allowed], ["call_a", false]);
  });
});

test("an address is reached by the proxy of the sandbox, which looks its name up", async () => {
  await atAddress(async (url) => {
    const asked = [];
    const proxy = createServer((request, response) => {
      asked.push(request.url);
      const { method, headers } = request;
      const onward = httpRequest(url, { method, headers: { ...headers, host: new URL(url).host } }, (answer) => {
        response.writeHead(answer.statusCode, answer.headers);
        answer.pipe(response);
      });
      onward.on("error", () => response.destroy());
      response.on("close", () => onward.destroy());
      request.pipe(onward);
    });
    await new Promise((resolve) => proxy.listen(0, "127.0.0.1", resolve));
    try {
      const env = { HTTP_PROXY: `http://127.0.0.1:${proxy.address().port}` };
      await everythingWorks(await ask("echo", { url: "http://tools.invalid/mcp", ask: false }, { env }));
      assert.equal(asked[0], "http://tools.invalid/mcp");
    } finally {
      proxy.closeAllConnections();
      proxy.close();
    }
  });
});

test("while planning, what only reads may be called", async () => {
  const { code, events } = await ask("only plan", program, { plan_only: true });
  assert.equal(code, 0, JSON.stringify(events));
});

test("a program gets its variables", async () => {
  const { code, events } = await ask("variable", { ...program, env: { NACRE_TEST: "given-to-it" } });
  assert.equal(code, 0, JSON.stringify(events));
});

test("a call that takes too long is given up", async () => {
  const began = Date.now();
  const { code, events } = await ask("take long", { ...program, timeout_seconds: 2 });
  assert.equal(code, 0, JSON.stringify(events));
  assert.ok(Date.now() - began < 60_000);
});

test("a server that does not start is told of, and the work goes on", async () => {
  for (const all of [{ command: ["/no/such/program"] }, { url: "http://127.0.0.1:9/mcp" }, { command: ["sh", "-c", "echo out of ink >&2"] }]) {
    const { code, events } = await ask("go on without it", all);
    assert.equal(code, 0, JSON.stringify(events));
    const { message } = events[kinds(events).indexOf("notice")];
    assert.match(message, /^the MCP server "all" does not start: /);
  }
});

test("only the tools that the owner wants are offered", async () => {
  const { code } = await ask("go on without it", { ...program, tools: ["echo"] });
  assert.equal(code, 0);
  const { body } = (await server.journal()).at(-1);
  const names = body.tools.map((tool) => tool.function.name).filter((name) => name.startsWith("all_"));
  assert.deepEqual(names, ["all_echo"]);
});
