// The official SDKs for Node in a sandbox, with nothing but its variables. Prints a line for each thing that worked.

import assert from "node:assert/strict";
import Anthropic from "@anthropic-ai/sdk";
import OpenAI from "openai";

const WORDS = "Hello from the model.";
const messages = [{ role: "user", content: "hello" }];
const gpt = new OpenAI();
const claude = new Anthropic();

function check(name, found) {
  assert.equal(found, WORDS, name);
  console.log("ok", name);
}

let chat = "";
for await (const piece of await gpt.chat.completions.create({ model: "gpt-4o-mini", messages, stream: true })) {
  chat += piece.choices[0]?.delta?.content ?? "";
}
check("chat stream", chat);

let response = "";
for await (const event of await gpt.responses.create({ model: "gpt-4o-mini", input: "hello", stream: true })) {
  if (event.type === "response.output_text.delta") response += event.delta;
}
check("responses stream", response);

const ask = { model: "claude-haiku-4-5", max_tokens: 50, messages };
check("messages", (await claude.messages.create(ask)).content[0].text);
check("messages stream", await claude.messages.stream(ask).finalText());
