"""The official SDKs for Python, through the gateway. Prints one line for each thing that worked.

Without an address and a token they find those in the variables that every command of a sandbox has.
"""

import sys

import anthropic
import openai

WORDS = "Hello from the model."
HELLO = [{"role": "user", "content": "hello"}]
MODEL, CLAUDE = "gpt-4o-mini", "claude-haiku-4-5"
if sys.argv[1:]:
    base, token = sys.argv[1:]
    gpt = openai.OpenAI(api_key=token, base_url=f"{base}/openai")
    claude = anthropic.Anthropic(auth_token=token, api_key=None, base_url=f"{base}/anthropic")
else:
    gpt, claude = openai.OpenAI(), anthropic.Anthropic()


def check(name, found, expected=WORDS):
    assert found == expected, f"{name}: {found!r}"
    print("ok", name, flush=True)


chat = gpt.chat.completions.create(model=MODEL, messages=HELLO)
check("chat", chat.choices[0].message.content)
stream = gpt.chat.completions.create(model=MODEL, messages=HELLO, stream=True)
check("chat stream", "".join(c.choices[0].delta.content or "" for c in stream if c.choices))
with_usage = gpt.chat.completions.create(
    model=MODEL, messages=HELLO, stream=True, stream_options={"include_usage": True}
)
check("chat usage", [c.usage.total_tokens for c in with_usage if c.usage], [18])

check("responses", gpt.responses.create(model=MODEL, input="hello").output_text)
events = gpt.responses.create(model=MODEL, input="hello", stream=True)
text = "".join(e.delta for e in events if e.type == "response.output_text.delta")
check("responses stream", text)

ask = {"model": CLAUDE, "max_tokens": 50, "messages": HELLO}
check("messages", claude.messages.create(**ask).content[0].text)
with claude.messages.stream(**ask) as stream:
    check("messages stream", "".join(stream.text_stream))
    check("messages usage", stream.get_final_message().usage.output_tokens, 7)

tool = {"name": "weather", "input_schema": {"type": "object", "properties": {"city": {"type": "string"}}}}
messages = [{"role": "user", "content": "weather"}]
first = claude.messages.create(model=CLAUDE, max_tokens=50, messages=messages, tools=[tool])
use = next(block for block in first.content if block.type == "tool_use")
check("tool", use.input, {"city": "Bern"})
result = {"type": "tool_result", "tool_use_id": use.id, "content": "rain"}
messages += [{"role": "assistant", "content": first.content}, {"role": "user", "content": [result]}]
second = claude.messages.create(model=CLAUDE, max_tokens=50, messages=messages, tools=[tool])
check("tool result", second.content[0].text, "It rains in Bern.")

try:
    gpt.with_options(api_key="nacre_model_no", max_retries=0).models.list()
    raise AssertionError("a wrong token works")
except openai.AuthenticationError as error:
    check("refused", "policy token" in str(error), True)
