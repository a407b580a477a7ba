// The official SDKs for Node, through the gateway, in every wire format.

import assert from "node:assert/strict";
import { dirname } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import Anthropic from "@anthropic-ai/sdk";
import OpenAI from "openai";
import { REAL_KEY, calls, shown, stage } from "./stage.js";

const folder = fileURLToPath(new URL(".", import.meta.url));
const set = stage({ config: shown(folder, dirname(dirname(process.execPath))) });
const MODEL = { openai: "gpt-4o-mini", anthropic: "claude-haiku-4-5" };
const WORDS = "Hello from the model.";
const hello = [{ role: "user", content: "hello" }];

const openai = (apiKey, options = {}) => new OpenAI({ apiKey, baseURL: `${set.url}/openai`, ...options });
const anthropic = (authToken, options = {}) =>
  new Anthropic({ authToken, apiKey: null, baseURL: `${set.url}/anthropic`, ...options });

test("the server opens for the real key alone", async () => {
  const direct = (apiKey) => new OpenAI({ apiKey, baseURL: `${set.server.url}/v1`, maxRetries: 0 });
  const ask = (client) => client.chat.completions.create({ model: MODEL.openai, messages: hello });
  await assert.rejects(ask(direct(await set.token())), { status: 401 });
  assert.equal((await ask(direct(REAL_KEY))).choices[0].message.content, WORDS);
});

test("chat completions, whole and streamed, are counted alike", async () => {
  const before = (await set.computer.json("usage", "--calls")).calls.length;
  const client = openai(await set.token());
  const whole = await client.chat.completions.create({ model: MODEL.openai, messages: hello });
  assert.equal(whole.choices[0].message.content, WORDS);
  const stream = await client.chat.completions.create({ model: MODEL.openai, messages: hello, stream: true });
  let text = "";
  for await (const piece of stream) text += piece.choices[0]?.delta?.content ?? "";
  assert.equal(text, WORDS);
  await counted(before, 2);
});

test("responses, whole and streamed", async () => {
  const before = (await set.computer.json("usage", "--calls")).calls.length;
  const client = openai(await set.token());
  const whole = await client.responses.create({ model: MODEL.openai, input: "hello" });
  assert.equal(whole.output_text, WORDS);
  let text = "";
  for await (const event of await client.responses.create({ model: MODEL.openai, input: "hello", stream: true })) {
    if (event.type === "response.output_text.delta") text += event.delta;
  }
  assert.equal(text, WORDS);
  await counted(before, 2);
});

test("messages, whole and streamed, with either kind of header", async () => {
  const before = (await set.computer.json("usage", "--calls")).calls.length;
  const token = await set.token();
  const ask = { model: MODEL.anthropic, max_tokens: 50, messages: hello };
  const whole = await anthropic(token).messages.create(ask);
  assert.equal(whole.content[0].text, WORDS);
  const keyed = new Anthropic({ apiKey: token, authToken: null, baseURL: `${set.url}/anthropic` });
  const stream = keyed.messages.stream(ask);
  assert.equal(await stream.finalText(), WORDS);
  await counted(before, 2);
});

async function counted(before, more) {
  const all = await calls(set.computer, before + more);
  for (const call of all.slice(0, all.length - before)) {
    assert.deepEqual([call.state, call.input_tokens, call.output_tokens], ["settled", 11, 7], JSON.stringify(call));
  }
}

test("a tool is called and its result goes back", async () => {
  const client = openai(await set.token());
  const tools = [
    { type: "function", function: { name: "weather", parameters: { type: "object", properties: { city: { type: "string" } } } } },
  ];
  const messages = [{ role: "user", content: "weather" }];
  const first = await client.chat.completions.create({ model: MODEL.openai, messages, tools });
  const [call] = first.choices[0].message.tool_calls;
  assert.deepEqual([call.function.name, JSON.parse(call.function.arguments)], ["weather", { city: "Bern" }]);
  messages.push(first.choices[0].message, { role: "tool", tool_call_id: call.id, content: "rain" });
  const second = await client.chat.completions.create({ model: MODEL.openai, messages, tools });
  assert.equal(second.choices[0].message.content, "It rains in Bern.");
});

test("refusals are the SDK's own errors, with words", async () => {
  const ask = (client) => client.chat.completions.create({ model: MODEL.openai, messages: hello });
  await assert.rejects(ask(openai("nacre_model_wrong")), (error) => {
    assert.ok(error instanceof OpenAI.AuthenticationError);
    return /policy token/.test(error.message);
  });
  const poor = await set.token("--tokens", "10");
  const began = Date.now();
  await assert.rejects(ask(openai(poor)), (error) => {
    assert.ok(error instanceof OpenAI.RateLimitError);
    assert.equal(error.code, "insufficient_quota");
    return /10 tokens/.test(error.message);
  });
  assert.ok(Date.now() - began < 60_000, "it is not tried again and again");
  const narrow = await set.token("--model", "claude-*");
  await assert.rejects(ask(openai(narrow)), (error) => error instanceof OpenAI.PermissionDeniedError);
  const messages = { model: MODEL.anthropic, max_tokens: 50, messages: hello };
  await assert.rejects(anthropic(poor).messages.create(messages), (error) => {
    assert.ok(error instanceof Anthropic.RateLimitError);
    return /10 tokens/.test(error.message);
  });
});

test("faults of the provider reach the client, and a pause that it asks for is made", async () => {
  const ask = (client) => client.chat.completions.create({ model: MODEL.openai, messages: hello });
  const client = openai(await set.token(), { maxRetries: 0 });
  // What broke off may have been paid for; what was refused was not.
  for (const [rates, status, state] of [
    [{ disconnectRate: 1 }, undefined, "kept"],
    [{ malformedRate: 1 }, undefined, "kept"],
    [{ rateLimitRate: 1 }, 429, "failed"],
  ]) {
    const before = (await set.computer.json("usage", "--calls")).calls.length;
    await set.server.chaos(rates);
    const failed = await ask(client).then(
      () => null,
      (error) => error,
    );
    assert.ok(failed, `${JSON.stringify(rates)} went unnoticed`);
    if (status) assert.equal(failed.status, status);
    const [call] = await calls(set.computer, before + 1);
    assert.equal(call.state, state, `${JSON.stringify(rates)}: ${JSON.stringify(call)}`);
  }
  await set.server.chaos(null);
  assert.equal((await ask(client)).choices[0].message.content, WORDS);
});

test("of a stream that breaks off, what was put aside stays used", async () => {
  const before = (await set.computer.json("usage", "--calls")).calls.length;
  const client = openai(await set.token(), { maxRetries: 0 });
  const messages = [{ role: "user", content: "broken off" }];
  let text = "";
  const stream = await client.chat.completions.create({ model: MODEL.openai, messages, max_completion_tokens: 500, stream: true });
  const failed = await (async () => {
    for await (const piece of stream) text += piece.choices[0]?.delta?.content ?? "";
  })().then(
    () => null,
    (error) => error,
  );
  assert.ok(text.startsWith("Word") && text.length < 100, text);
  assert.ok(failed, "half of an answer looked whole");
  const [call] = await calls(set.computer, before + 1);
  assert.deepEqual([call.state, call.output_tokens], ["kept", 500], JSON.stringify(call));
});

test("the same in a sandbox, with nothing but its variables", async () => {
  const before = (await set.computer.json("usage", "--calls")).calls.length;
  const said = (await set.computer.exec(`${process.execPath} ${folder}clients.mjs`)).toString();
  assert.equal(said, "ok chat stream\nok responses stream\nok messages\nok messages stream\n");
  await counted(before, 4);
  const [call] = await calls(set.computer, before + 4);
  assert.ok(call.sandbox, JSON.stringify(call));
});

test("what was used can be seen by model, and the key nowhere", async () => {
  const usage = await set.computer.json("usage", "--by", "model");
  const models = usage.rows.map(({ key }) => key);
  assert.ok(models.includes(MODEL.openai) && models.includes(MODEL.anthropic), JSON.stringify(usage));
  assert.ok(usage.total.dollars > 0);
  const table = (await set.computer.nacre("usage", "--by", "model")).toString();
  assert.match(table, /gpt-4o-mini +\d+/);
  for (const words of [["provider", "list"], ["usage", "--calls"], ["provider", "token", "list"], ["audit"]]) {
    const text = (await set.computer.nacre(...words, "--json")).toString();
    assert.ok(!text.includes(REAL_KEY), words.join(" "));
  }
});

test("nacre provider test says in words what came back", async () => {
  const works = (await set.computer.nacre("provider", "test", "openai", "--model", MODEL.openai).catch((error) => error.stdout)).toString();
  // The script has no answer to its question: the words of the server are told.
  assert.match(works, /status \d+, \d+ ms\): .+/);
  const models = await set.computer.json("provider", "test", "openai");
  assert.equal(models.works, true, JSON.stringify(models));
});
