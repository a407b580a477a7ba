// A computer whose providers are one model server, for the tests of a file.

import { after, before } from "node:test";
import { Computer } from "../e2e/computer.js";
import { Aimock } from "./aimock.js";

/** Opens the model server. The gateway alone may know it. */
export const REAL_KEY = "sk-real-canary-6f1d0a7e55c94b1c";

const USAGE = { prompt_tokens: 11, completion_tokens: 7, total_tokens: 18, input_tokens: 11, output_tokens: 7 };

/** What the server says: one sentence, and a tool that is called before another. */
export const FIXTURES = [
  { match: { userMessage: "hello" }, response: { content: "Hello from the model.", usage: USAGE } },
  {
    match: { userMessage: "weather", turnIndex: 0 },
    response: { toolCalls: [{ id: "call_1", name: "weather", arguments: { city: "Bern" } }], usage: USAGE },
  },
  { match: { toolCallId: "call_1" }, response: { content: "It rains in Bern.", usage: USAGE } },
  // A stream that breaks off after some words.
  { match: { userMessage: "broken off" }, response: { content: "Word ".repeat(40), usage: USAGE }, chunkSize: 8, latency: 50, truncateAfterChunks: 4 },
];

/** A nacre.toml with which sandboxes see these places of the machine, besides its system. */
export function shown(...places) {
  const others = [...new Set(places)].filter((place) => place !== "/usr" && !place.startsWith("/usr/"));
  return `[sandboxes]\nhost_directories = ${JSON.stringify(others)}\n`;
}

/** `prepare` gets the computer before the first test; `config` is its nacre.toml. */
export function stage({ fixtures = FIXTURES, prepare = async () => {}, config = "" } = {}) {
  const set = {};
  before(async () => {
    set.server = await Aimock.start({ fixtures, key: REAL_KEY });
    set.computer = await Computer.configured(config);
    addProviders(set.computer, set.server.url);
    set.url = await set.computer.url("/provider/v1");
    set.token = async (...options) => {
      const made = await set.computer.json("provider", "token", "create", ...options);
      return made.token;
    };
    await prepare(set.computer);
  });
  after(async () => {
    await set.computer?.stop();
    set.server?.stop();
  });
  return set;
}

export function addProviders(computer, server) {
  computer.piped(REAL_KEY, "provider", "add", "openai", "--url", `${server}/v1`);
  computer.piped(REAL_KEY, "provider", "add", "anthropic", "--url", server);
}

/** Waits until what was used is written down, which happens just after the client has it. */
export async function calls(computer, count) {
  for (let tries = 0; tries < 200; tries++) {
    const { calls } = await computer.json("usage", "--calls");
    if (calls.length >= count && calls.every(({ state }) => state !== "open")) return calls;
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  throw new Error(`never ${count} calls: ${JSON.stringify(await computer.json("usage", "--calls"))}`);
}
