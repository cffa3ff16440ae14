"""Attempts to reach the internet, or the operator's stored objects, through a provider of language models."""

from __future__ import annotations

from typing import Any

import pytest

from common.providers import Price, Provider
from sandbox.gateway.dialects import ENDPOINTS
from tests.sandbox.attacks.gateway.plain_requests import (
    AWAY,
    BODIES,
    CHAT,
    CONTENTS,
    COUNT,
    GENERATE,
    MESSAGES,
    RESPONSES,
    Open,
    item,
    part,
    parts,
    post,
    refused,
    said,
    tool,
)
from tests.sandbox.gateway.llm import ScriptedLLM


@pytest.mark.parametrize("path", BODIES)
def test_plain_requests_pass(gateway: Open, path: str) -> None:
    assert set(BODIES) == set(ENDPOINTS)
    assert post(gateway(), path, {}).is_success


@pytest.mark.parametrize("path", BODIES)
@pytest.mark.parametrize(
    "field",
    [
        "search_parameters",
        "web_search",
        "web_search_options",
        "plugins",
        "extra_body",
        "enable_search",
        "tool_resources",
        "container",
        "mcp_servers",
        "models",
        "route",
        "provider",
        "transforms",
        "preset",
        "assistant_id",
        "conversation",
        "previous_response_id",
        "attachments",
        "file_ids",
        "data_sources",
        "citations",
        "search_domain_filter",
        "speed",
        "inference_geo",
        "background",
        "webhook",
        "callback_url",
        "no-such-field",
    ],
)
def test_fields_that_nobody_listed(gateway: Open, llm: ScriptedLLM, path: str, field: str) -> None:
    refused(gateway, llm, path, {field: {"mode": "on", "url": AWAY, "id": "pmpt_1"}})


@pytest.mark.parametrize(
    "model",
    [
        "openai/gpt-4o:online",
        "openai/gpt-4o:nitro",
        "sonar",
        "perplexity/sonar-deep-research",
        "gpt-4o-search-preview",
        "gpt-5-search-api",
        "o3-deep-research",
        "groq/compound",
        "relace/relace-search",
        "x-ai/grok-4.20-multi-agent",
        "openrouter/auto",
        "compound-beta-mini",
        "@preset/of-the-operator",
        "openai/gpt-4o@preset/of-the-operator",
        "ft:gpt-4o:the-operator::abc",
        "GPT-4o-Search-Preview",
    ],
)
def test_models_that_search_the_web_or_belong_to_the_operator(gateway: Open, llm: ScriptedLLM, model: str) -> None:
    gate = gateway()
    for path in (CHAT, RESPONSES):
        assert gate.http.post(path, json={**BODIES[path], "model": model}).status_code == 404
    assert llm.requests == []


@pytest.mark.parametrize(
    ("path", "fields"),
    [
        (CHAT, {"tools": [{"type": "web_search"}]}),
        (CHAT, {"tools": [{"google_search": {}}]}),
        (CHAT, {"tools": [{"type": "function", "function": {"name": "f"}, "google_search": {}}]}),
        (CHAT, {"tools": [{"type": "openrouter:web_search"}]}),
        (CHAT, {"tools": {"type": "web_search"}}),
        (CHAT, {"tools": "web_search"}),
        (RESPONSES, {"tools": [{"type": "shell", "environment": {"type": "container_auto"}}]}),
        (RESPONSES, {"tools": [{"type": "file_search", "vector_store_ids": ["vs_1"]}]}),
        (RESPONSES, {"tools": [{"type": "image_generation"}]}),
        (RESPONSES, {"tools": [{"type": "mcp", "connector_id": "connector_gmail"}]}),
        (MESSAGES, {"tools": [{"type": "web_fetch_20250910", "name": "web_fetch"}]}),
        (MESSAGES, {"tools": [{"type": "code_execution_20250825", "name": "code_execution"}]}),
        (MESSAGES, {"tools": [{"type": "bash_code_execution", "name": "bash"}]}),
        *(
            (GENERATE, tool(**{name: {}}))
            for name in (
                "googleSearch",
                "google_search",
                "google_search_retrieval",
                "urlContext",
                "url_context",
                "codeExecution",
                "code_execution",
                "googleMaps",
                "fileSearch",
                "computerUse",
                "enterpriseWebSearch",
                "retrieval",
                "mcpServers",
                "no_such_tool",
            )
        ),
        (GENERATE, {"tools": {"google_search": {}}}),
        (GENERATE, tool(functionDeclarations=[{"name": "f"}], googleSearch={})),
        (GENERATE, tool(functionDeclarations=[{"name": "f", "googleSearch": {}}])),
        (GENERATE, {"tools": "google_search"}),
        (GENERATE, {"tool_config": {"retrievalConfig": {}}}),
        (GENERATE, {"tool_config": {"include_server_side_tool_invocations": True}}),
        (COUNT, {"generateContentRequest": {**CONTENTS, **tool(googleSearch={})}}),
    ],
)
def test_tools_that_the_provider_runs(gateway: Open, llm: ScriptedLLM, path: str, fields: dict[str, Any]) -> None:
    refused(gateway, llm, path, fields)


@pytest.mark.parametrize(
    ("path", "fields"),
    [
        (CHAT, part("image_url", image_url={"url": AWAY})),
        (CHAT, part("image_url", image_url=AWAY)),
        (CHAT, part("image_url", image_url={"url": f" {AWAY}"})),
        (CHAT, part("image_url", image_url={"url": "//evil.example/a.png"})),
        (CHAT, part("image_url", image_url={"url": "gs://bucket/a.png"})),
        (CHAT, part("image_url", image_url={"url": ["https://evil.example"]})),
        (CHAT, part("video_url", video_url={"url": AWAY})),
        (CHAT, part("file", file={"filename": "a.pdf", "file_data": AWAY})),
        (CHAT, part("file", file={"filename": "a.pdf", "file_data": "data:application/pdf;url=x,"})),
        (CHAT, part("something_new", url=AWAY)),
        (CHAT, part("text", text="a", image_url={"url": AWAY})),
        (CHAT, {"messages": [{"role": "tool", "content": [{"type": "image_url", "image_url": {"url": AWAY}}]}]}),
        (CHAT, {"messages": [{"role": "user", "content": {"type": "image_url", "image_url": {"url": AWAY}}}]}),
        (CHAT, {"messages": {"role": "user", "content": [{"type": "image_url", "image_url": {"url": AWAY}}]}}),
        (CHAT, {"messages": [{"role": "user", "content": "a", "attachments": [{"url": AWAY}]}]}),
        (RESPONSES, said("input_image", image_url=AWAY)),
        (RESPONSES, said("input_file", file_url=AWAY)),
        (RESPONSES, said("input_file", file_data=AWAY)),
        (RESPONSES, item("function_call_output", call_id="c", output=[{"type": "input_image", "image_url": AWAY}])),
        (RESPONSES, item("computer_call_output", call_id="c", output={"type": "x", "image_url": AWAY})),
        (RESPONSES, {"messages": "a", **said("input_image", image_url=AWAY)}),
        (MESSAGES, part("image", source={"type": "url", "url": AWAY})),
        (MESSAGES, part("document", source={"type": "url", "url": AWAY})),
        (MESSAGES, part("document", source={"type": "base64", "media_type": "a/b", "data": AWAY})),
        (MESSAGES, part("tool_result", content=[{"type": "image", "source": {"type": "url", "url": AWAY}}])),
        (MESSAGES, {"system": [{"type": "image", "source": {"type": "url", "url": AWAY}}]}),
        (CHAT, {"tools": [{"type": "function", "function": {"name": "f", "parameters": {"$ref": AWAY}}}]}),
        (CHAT, {"functions": [{"name": "f", "parameters": {"properties": {"a": {"$ref": "file:///etc/passwd"}}}}]}),
        (CHAT, {"response_format": {"type": "json_schema", "json_schema": {"schema": {"$dynamicRef": AWAY}}}}),
        (CHAT, {"guided_json": {"anyOf": [{"$ref": AWAY}]}}),
        (RESPONSES, {"text": {"format": {"type": "json_schema", "name": "a", "schema": {"$ref": AWAY}}}}),
        (MESSAGES, {"tools": [{"name": "f", "input_schema": {"$ref": AWAY}}]}),
        (MESSAGES, {"output_format": {"type": "json_schema", "schema": {"$ref": AWAY}}}),
        (GENERATE, parts(fileData={"fileUri": AWAY, "mimeType": "image/png"})),
        (GENERATE, parts(file_data={"file_uri": "https://www.youtube.com/watch?v=1"})),
        (GENERATE, parts(text="a", fileData={"file_uri": "gs://bucket/a.png"})),
        (GENERATE, parts(inlineData={"mimeType": "image/png", "data": AWAY})),
        (GENERATE, parts(inlineData={"mimeType": "image/png", "data": "AAAA", "uri": AWAY})),
        (GENERATE, {"contents": {"parts": {"fileData": {"fileUri": AWAY}}}}),
        (GENERATE, {"systemInstruction": {"parts": [{"file_data": {"file_uri": AWAY}}]}}),
        (GENERATE, {"system_instruction": {}, "systemInstruction": {"parts": [{"text": "a"}]}}),
        (GENERATE, parts(functionResponse={"name": "f", "response": {}, "parts": [{"fileData": {"fileUri": AWAY}}]})),
        (GENERATE, parts(executableCode={"language": "PYTHON", "code": "import urllib"})),
        (GENERATE, parts(text={"fileData": {"fileUri": AWAY}})),
        (GENERATE, {"generationConfig": {"responseJsonSchema": {"$ref": AWAY}}}),
        (GENERATE, tool(function_declarations=[{"name": "f", "parametersJsonSchema": {"$ref": AWAY}}])),
        (COUNT, parts(fileData={"fileUri": AWAY})),
        (COUNT, {"generate_content_request": parts(fileData={"fileUri": AWAY})}),
        ("/v1/embeddings", {"input": [{"type": "image_url", "image_url": {"url": AWAY}}]}),
        ("/v1/completions", {"prompt": [{"type": "image_url", "image_url": {"url": AWAY}}]}),
    ],
)  # fmt: skip
def test_addresses_that_the_provider_would_fetch(
    gateway: Open, llm: ScriptedLLM, path: str, fields: dict[str, Any]
) -> None:
    refused(gateway, llm, path, fields)


@pytest.mark.parametrize(
    ("path", "fields"),
    [
        (CHAT, part("file", file={"file_id": "file-of-the-operator"})),
        (CHAT, part("image_url", image_url={"url": "data:image/png;base64,AAAA", "file_id": "file-1"})),
        (CHAT, {"messages": [{"role": "assistant", "audio": {"id": "audio_of_another"}}]}),
        (RESPONSES, said("input_image", file_id="file-1")),
        (RESPONSES, said("input_file", file_id="file-1")),
        (RESPONSES, item("item_reference", id="msg_of_another_run")),
        (RESPONSES, {"input": [{"id": "msg_of_another_run"}]}),
        (RESPONSES, {"prompt": {"id": "pmpt_of_the_operator", "version": "1"}}),
        (RESPONSES, {"conversation": "conv_of_another_run"}),
        (RESPONSES, {"previous_response_id": "resp_of_another_run"}),
        (MESSAGES, part("document", source={"type": "file", "file_id": "file_1"})),
        (MESSAGES, part("container_upload", file_id="file_1")),
        (MESSAGES, {"container": "container_of_the_operator"}),
        (GENERATE, {"cachedContent": "cachedContents/of-the-operator"}),
        (GENERATE, {"cached_content": "cachedContents/of-the-operator"}),
        (GENERATE, {"model": "tunedModels%2Fof-the-operator"}),
        (GENERATE, parts(fileData={"fileUri": "https://generativelanguage.googleapis.com/v1beta/files/abc"})),
        (COUNT, {"generateContentRequest": {"cachedContent": "cachedContents/of-the-operator"}}),
    ],
)
def test_objects_stored_in_the_operators_account(
    gateway: Open, llm: ScriptedLLM, path: str, fields: dict[str, Any]
) -> None:
    refused(gateway, llm, path, fields)


LOOK_ALIKES = [
    (CHAT, tool(type="function_web_search", function={"name": "f"})),
    (CHAT, tool(type="functions", function={"name": "f"})),
    (CHAT, tool(type="function", function={"name": "f", "store": True})),
    (CHAT, tool(type="function", function={"name": "f"}, server_url=AWAY)),
    (CHAT, tool(type="function", function="f")),
    (CHAT, tool(type="custom", custom={"name": "f", "format": {"type": "grammar", "grammar": {"url": AWAY}}})),
    (CHAT, tool(type="local_shell", environment={"type": "container_auto"})),
    (CHAT, tool(type=["function"], function={"name": "f"})),
    (CHAT, {"functions": [{"name": "f", "web_search": True}]}),
    (CHAT, {"tool_choice": {"type": "web_search"}}),
    (CHAT, {"tool_choice": {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": [{"type": "mcp"}]}}}),
    (RESPONSES, tool(type="custom_web_search", name="f")),
    (RESPONSES, tool(type="computer_hosted")),
    (RESPONSES, tool(type="apply_patch_remote")),
    (RESPONSES, tool(type="function", name="f", environment={"type": "container_auto"})),
    (RESPONSES, {"tool_choice": {"type": "mcp", "server_label": "a"}}),
    (MESSAGES, tool(type="bash_2web", name="bash")),
    (MESSAGES, tool(type="bash_20991231", name="bash")),
    (MESSAGES, tool(type="computer_20250124_hosted", name="computer")),
    (MESSAGES, tool(type="memory_20250818", name="memory", store=True)),
    (MESSAGES, tool(type="custom_web", name="f")),
    (MESSAGES, tool(name="f", allowed_callers=["code_execution_20250825"])),
    (MESSAGES, {"tool_choice": {"type": "web_search"}}),
    (MESSAGES, part("document", source={"type": "text", "media_type": "text/plain", "data": "a", "store": True})),
    (MESSAGES, part("document", source={"type": "text", "media_type": "text/plain", "data": {"url": AWAY}})),
    (MESSAGES, part("document", source={"type": "content", "content": "a", "url": AWAY})),
    (MESSAGES, part("document", source={"type": ["base64"], "media_type": "application/pdf", "data": "AAAA"})),
    (MESSAGES, part("document", source={"type": "base64", "media_type": "audio/wav", "data": "AAAA"})),
    (MESSAGES, part("image", source={"type": "text", "media_type": "text/plain", "data": "a"})),
    (MESSAGES, part("image", source={"type": "base64", "media_type": "image/svg+xml", "data": "AAAA"})),
    *(
        (CHAT, part("image_url", image_url={"url": f"data:{kind};base64,AAAA"}))
        for kind in ("application/pdf", "image/svg+xml", "video/mp4", "text/html", "image/png;url=x", "image/pngx", "")
    ),
    (RESPONSES, said("input_image", image_url="data:application/octet-stream;base64,AAAA")),
    (RESPONSES, said("input_file", file_data="data:video/mp4;base64,AAAA")),
    (RESPONSES, {"input": [{"type": ["message"], "role": "user", "content": "a"}]}),
    (MESSAGES, part("image", source={"type": "base64", "media_type": ["image/png"], "data": "AAAA"})),
    (GENERATE, parts(inlineData={"mimeType": "image/svg+xml", "data": "AAAA"})),
    (GENERATE, parts(inlineData={"mimeType": "text/../video/mp4", "data": "AAAA"})),
    (GENERATE, parts(inlineData={"mimeType": "application/pdfx", "data": "AAAA"})),
]


@pytest.mark.parametrize(("path", "fields"), LOOK_ALIKES)
def test_names_that_begin_like_those_that_are_allowed(
    gateway: Open, llm: ScriptedLLM, path: str, fields: dict[str, Any]
) -> None:
    """Types of tools, sources and data are compared whole, and their objects have no other fields than their own."""
    refused(gateway, llm, path, fields)


@pytest.mark.parametrize("path", [CHAT, RESPONSES])
def test_answers_that_are_kept_in_the_operators_account(gateway: Open, llm: ScriptedLLM, path: str) -> None:
    refused(gateway, llm, path, {"store": True})
    keeping = Provider(base_url=f"{llm.url}/v1", fields=["store"])
    assert post(gateway(workdir="keeping", providers={"kind": keeping}), path, {"store": True}).is_success


def test_features_that_a_header_turns_on(gateway: Open, llm: ScriptedLLM) -> None:
    betas = "files-api-2025-04-14,mcp-client-2025-04-04,prompt-caching-2024-07-31,web-fetch-2025-09-10"
    betas += ",prompt-caching-web-2025-01-01,computer-use-2025-01-24-hosted,context-1m-"
    headers = {"anthropic-version": "2023-06-01", "anthropic-beta": betas, "openai-beta": "assistants=v2"}
    gateway().http.post(MESSAGES, json=BODIES[MESSAGES], headers=headers)
    assert llm.requests[0].headers["anthropic-beta"] == "prompt-caching-2024-07-31"
    assert "openai-beta" not in llm.requests[0].headers


@pytest.mark.parametrize(
    ("path", "fields"),
    [
        (CHAT, {"temperature": 0, "n": 2, "max_tokens": 5, "stop": ["a"], "response_format": {"type": "text"}}),
        (CHAT, {"tools": [{"type": "function", "function": {"name": "fetch", "parameters": {"url": AWAY}}}]}),
        (CHAT, {"response_format": {"type": "json_schema", "json_schema": {"name": "a", "schema": {
            "$defs": {"a": {"type": "string"}}, "properties": {"$ref": {"$ref": "#/$defs/a"}}}}}}),
        (CHAT, {"messages": [{"role": "user", "content": f"read {AWAY}"}], "background": None, "plugins": []}),
        (CHAT, {"messages": [{"role": "assistant", "content": None, "tool_calls": [
            {"id": "c", "type": "function", "function": {"name": "fetch", "arguments": f'{{"url": "{AWAY}"}}'}}]}]}),
        (CHAT, part("image_url", image_url={"url": "data:image/png;base64,AAAA", "detail": "low"})),
        (CHAT, part("image_url", image_url={"url": "data:image/JPEG;base64,/9j/AAAA"})),
        (CHAT, part("file", file={"filename": "a.pdf", "file_data": "data:application/pdf;base64,AAAA"})),
        (CHAT, tool(type="function", function={"name": "f", "description": "d", "parameters": {}, "strict": True})),
        (CHAT, tool(type="custom", custom={"name": "f", "format": {"type": "grammar", "grammar": {
            "syntax": "lark", "definition": "start: a"}}})),
        (CHAT, {**tool(type="function", function={"name": "f"}),
            "tool_choice": {"type": "function", "function": {"name": "f"}}}),
        (RESPONSES, {"tool_choice": {"type": "allowed_tools", "mode": "auto", "tools": [
            {"type": "function", "name": "f"}]}}),
        (RESPONSES, {"tools": [{"type": "local_shell"}, {"type": "apply_patch"},
            {"type": "custom", "name": "p", "description": "d", "format": {
                "type": "grammar", "syntax": "lark", "definition": "start: a"}},
            {"type": "function", "name": "f", "description": "d", "strict": False, "parameters": {}}]}),
        (RESPONSES, said("input_image", image_url="data:image/webp;base64,AAAA", detail="low")),
        (RESPONSES, said("input_file", filename="a.csv", file_data="data:text/csv;base64,AAAA")),
        (MESSAGES, {"tools": [{"type": "text_editor_20250728", "name": "str_replace_based_edit_tool",
            "max_characters": 100}, {"type": "custom", "name": "f", "input_schema": {"type": "object"},
            "cache_control": {"type": "ephemeral"}, "eager_input_streaming": True}],
            "tool_choice": {"type": "auto", "disable_parallel_tool_use": True}}),
        (MESSAGES, part("document", source={"type": "text", "media_type": "text/plain", "data": "a: b"})),
        (MESSAGES, part("document", source={"type": "content", "content": [{"type": "text", "text": "a"}]})),
        (MESSAGES, part("document", source={"type": "base64", "media_type": "application/pdf", "data": "AAAA"})),
        (RESPONSES, said("input_text", text=AWAY)),
        (RESPONSES, item("function_call", call_id="c", name="f", arguments=AWAY)),
        (RESPONSES, item("function_call_output", call_id="c", output=AWAY)),
        (RESPONSES, {"input": [{"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "AAAA"}]}),
        (RESPONSES, {"reasoning": {"effort": "low"}, "text": {"format": {"type": "text"}}, "store": False}),
        (MESSAGES, {"system": [{"type": "text", "text": "a", "cache_control": {"type": "ephemeral"}}]}),
        (MESSAGES, part("image", source={"type": "base64", "media_type": "image/png", "data": "AAAA"})),
        (MESSAGES, part("tool_result", tool_use_id="t", content=AWAY)),
        (MESSAGES, part("tool_use", id="t", name="fetch", input={"type": "image", "url": AWAY})),
        (MESSAGES, {"thinking": {"type": "enabled", "budget_tokens": 1024}, "max_tokens": 2000}),
        (GENERATE, parts(inline_data={"mime_type": "image/png", "data": "AAAA"})),
        (GENERATE, parts(functionResponse={"id": "1", "name": "f", "response": {"fileData": {"fileUri": AWAY}}})),
        (GENERATE, parts(functionCall={"name": "fetch", "args": {"url": AWAY}}, thoughtSignature="AAAA")),
        (GENERATE, tool(functionDeclarations=[{"name": "f", "parameters": {"type": "OBJECT"}}])),
        (GENERATE, {"generationConfig": {"thinkingConfig": {"thinkingBudget": -1, "includeThoughts": True},
            "stopSequences": ["a"], "responseMimeType": "application/json", "responseSchema": {"type": "STRING"}}}),
        (GENERATE, {"safetySettings": [{"category": "A", "threshold": "OFF"}], "cachedContent": None,
            "toolConfig": {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["f"]}}}),
        ("/v1/completions", {"echo": True, "logprobs": 1, "max_tokens": 0, "prompt": ["a", "b"]}),
    ],
)  # fmt: skip
def test_what_honest_agents_send_passes(gateway: Open, llm: ScriptedLLM, path: str, fields: dict[str, Any]) -> None:
    response = post(gateway(), path, fields)
    assert response.is_success, response.text


def test_the_operator_may_allow_googles_tools(gateway: Open, llm: ScriptedLLM) -> None:
    fields = tool(googleSearch={}) | parts(fileData={"fileUri": AWAY})
    assert post(gateway(hosted_tools=True), GENERATE, fields).is_success
    assert llm.requests[0].body == fields


@pytest.mark.parametrize(
    ("path", "model"),
    [(CHAT, "web-of-tomorrow"), (MESSAGES, "claude-with-a-browser"), (GENERATE, "gem-of-tomorrow")],
)
def test_models_that_nobody_listed(gateway: Open, llm: ScriptedLLM, path: str, model: str) -> None:
    """A provider's next model may search by itself. Those with list prices pass, and those that the operator names."""
    refused(gateway, llm, path, {"model": model})
    named = gateway(workdir="named", models=["*-of-tomorrow", "claude-*"])
    assert post(named, path, {"model": model}).is_success
    priced = gateway(workdir="priced", prices={model: Price(input=1, output=1)})
    assert post(priced, path, {"model": model}).is_success


def test_names_that_only_look_like_search_pass(gateway: Open) -> None:
    assert gateway(models=["nousresearch/*"]).chat(model="nousresearch/hermes-4-70b").is_success


def test_the_operator_may_allow_fields_and_models(gateway: Open, llm: ScriptedLLM) -> None:
    kind = Provider(base_url=f"{llm.url}/v1", models=["sonar", "*"], fields=["search_parameters"])
    gate = gateway(providers={"kind": kind})
    assert gate.chat(model="sonar", search_parameters={"mode": "on"}).is_success
    assert gate.chat(model="sonar-pro").status_code == 404
