"""The official clients, which refuse what is not in their types, read the scripted providers and the gateway.

No stream of a real provider is recorded here: scripts stand for them, written by hand. The clients' types are made from
the same specification as the documentation of the APIs.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests import readers
from tests.flows.streaming_model import DONE, StreamingModel, serving
from tests.sandbox.gateway.conftest import Gateway
from tests.sandbox.gateway.llm import KEY, WORDS, ScriptedLLM

pytestmark = pytest.mark.service("readers")
READ = """
import json, sys
from anthropic import Anthropic
from openai import OpenAI

url, key, tool = sys.argv[1:]
options = {"api_key": key, "_strict_response_validation": True, "max_retries": 0}
openai, anthropic = OpenAI(base_url=f"{url}/v1", **options), Anthropic(base_url=url, **options)
schema = {"type": "object", "properties": {"command": {"type": "string"}}}
chats = {"model": "gpt-4o", "messages": [{"role": "user", "content": "a"}]}
responses = {"model": "gpt-4o", "input": "a"}
messages = {"model": "claude-3-5-sonnet-20240620", "max_tokens": 100, "messages": [{"role": "user", "content": "a"}]}
if tool:
    function = {"name": tool, "description": "d", "strict": True, "parameters": schema}
    chats["tools"] = [{"type": "function", "function": function}]
    responses["tools"] = [{"type": "function", **function}]
    messages["tools"] = [{"name": tool, "description": "d", "input_schema": schema}]
found = {}

def said(name, text, calls, usage):
    found[name] = [text, [[called, json.loads(arguments)] for called, arguments in calls], *usage]

def chat(name, whole):
    choice, usage = whole.choices[0], whole.usage
    calls = [(each.function.name, each.function.arguments) for each in choice.message.tool_calls or ()]
    assert choice.finish_reason == ("tool_calls" if calls else "stop")
    said(name, choice.message.content, calls, (usage.prompt_tokens, usage.completion_tokens))

def response(name, whole):
    assert whole.status == "completed"
    calls = [(each.name, each.arguments) for each in whole.output if each.type == "function_call"]
    said(name, whole.output_text, calls, (whole.usage.input_tokens, whole.usage.output_tokens))

def message(name, whole):
    text = "".join(each.text for each in whole.content if each.type == "text")
    calls = [(each.name, json.dumps(each.input)) for each in whole.content if each.type == "tool_use"]
    assert whole.stop_reason == ("tool_use" if calls else "end_turn")
    said(name, text, calls, (whole.usage.input_tokens, whole.usage.output_tokens))

with openai.chat.completions.stream(**chats, stream_options={"include_usage": True}) as stream:
    chat("chat, streamed", stream.get_final_completion())
with openai.responses.stream(**responses) as stream:
    response("responses, streamed", stream.get_final_response())
with anthropic.messages.stream(**messages) as stream:
    message("messages, streamed", stream.get_final_message())
chat("chat", openai.chat.completions.create(**chats))
response("responses", openai.responses.create(**responses))
message("messages", anthropic.messages.create(**messages))
print(json.dumps(found))
"""
NAMES = {f"{name}{how}" for name in ("chat", "responses", "messages") for how in ("", ", streamed")}


def test_through_the_gateway_they_read_what_the_provider_says(
    llm: ScriptedLLM, gateway: Callable[..., Gateway]
) -> None:
    env = gateway().services.env
    direct = readers.read(READ, llm.url, KEY, "")
    assert readers.read(READ, env["OPENAI_BASE_URL"].removesuffix("/v1"), env["OPENAI_API_KEY"], "") == direct
    assert set(direct) == NAMES
    assert {json.dumps(each[:2]) for each in direct.values()} == {json.dumps(["".join(WORDS), []])}


@pytest.mark.parametrize("tool", ["bash", ""])
def test_they_read_the_model_of_todays_agents(tool: str) -> None:
    with serving(StreamingModel, program="ls") as (url, _):
        found: dict[str, Any] = readers.read(READ, url, KEY, tool)
    assert set(found) == NAMES
    calls = [["bash", {"command": "ls", "description": "write a submission"}]] if tool else []
    expected = ["I write a submission." if tool else DONE, calls, 100, 50]
    assert found == dict.fromkeys(NAMES, expected)
