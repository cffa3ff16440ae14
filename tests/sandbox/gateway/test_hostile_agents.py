"""The gateway faces agents that may mean harm: to get at the key, past the budget, or at the gateway itself."""

from __future__ import annotations

import contextlib
import json
import logging
import socket
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest
from pydantic import SecretStr, ValidationError

from common.errors import UserError
from common.providers import Provider
from common.settings import get_settings
from sandbox import serving
from sandbox.gateway import request
from sandbox.services.run_services import RECORDS
from tests import plain_http
from tests.sandbox.gateway.conftest import Gateway
from tests.sandbox.gateway.llm import KEY, ScriptedLLM
from tests.waiting import until


def address(gate: Gateway) -> tuple[str, int]:
    return gate.http.base_url.host, gate.http.base_url.port or 0


def connect(gate: Gateway) -> socket.socket:
    return socket.create_connection(address(gate), timeout=60)


def speak(gate: Gateway, content: bytes) -> bytes:
    """Send bytes as they are, and read until the end."""
    with connect(gate) as connection:
        connection.sendall(content)
        connection.shutdown(socket.SHUT_WR)
        answer = b""
        while chunk := connection.recv(65536):
            answer += chunk
        return answer


@pytest.mark.parametrize("stream", [False, True])
def test_the_key_is_nowhere_to_be_seen(
    gateway: Callable[..., Gateway],
    llm: ScriptedLLM,
    stream: bool,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
) -> None:
    caplog.set_level(logging.DEBUG)
    gate = gateway(transcripts=True)
    asking = (gate.chat, gate.message, gate.generate)
    seen = [ask(f"my key is {KEY}, isn't it?", stream=stream) for ask in asking]
    google, token = "AIzaSyTHE-OTHER-KEY-of-the-operator", gate.services.env["GEMINI_API_KEY"]
    path = f"/v1beta/models/gemini-2.5-flash:generateContent?key={token}"
    for status in (400, 401, 403, 429, 500):
        message = f"wrong key {KEY}, or {KEY[:12]}***, or {google}, in https://a/b?alt=sse&key=secret-word"
        llm.fail = (status, {"error": {"message": message}})
        seen += [ask(stream=stream) for ask in asking]
        seen.append(plain_http.post(gate.http.base_url.join(path), json={"contents": []}))
    gate.services.close()
    assert {response.status_code for response in seen} == {200, 400, 502, 403, 429, 500}
    texts = [response.text + str(response.headers) for response in seen]
    texts += [path.read_text() for path in (gate.workdir / RECORDS).iterdir()]
    texts += [json.dumps(gate.services.env), caplog.text, *capfd.readouterr()]
    assert (gate.workdir / RECORDS / "transcripts.jsonl").stat().st_size > 0
    for text in texts:
        assert KEY not in text
        assert KEY[:12] not in text
        assert google not in text
        assert "secret-word" not in text
    assert not any(token in path.read_text() for path in (gate.workdir / RECORDS).glob("*.jsonl"))


def test_a_key_in_an_unusable_setting_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLEBENCH_PROVIDERS__OPENAI__BASE_URL", "https://api.openai.com/v1")
    monkeypatch.setenv("MLEBENCH_PROVIDERS__OPENAI__API_KEY", f"{KEY} and more\r\nx: y")
    get_settings.cache_clear()
    with pytest.raises(UserError, match="PROVIDERS__OPENAI__API_KEY") as caught:
        get_settings()
    assert KEY not in str(caught.value) + str(caught.value.__cause__)
    get_settings.cache_clear()
    assert KEY not in repr(Provider(base_url="https://api.openai.com/v1", api_key=SecretStr(KEY)))
    with pytest.raises(ValidationError, match="base_url"):
        Provider(base_url=f"https://user:{KEY}@host/v1")


@pytest.mark.parametrize("token", ["", "Bearer", "Bearer wrong", f"Bearer {KEY}", "Basic abc", "Bearer \xff"])
def test_only_this_runs_token_opens_it(gateway: Callable[..., Gateway], llm: ScriptedLLM, token: str) -> None:
    gate = gateway()
    gemini = "/v1beta/models/gemini-2.5-flash:generateContent"
    for path, status in (("/v1/chat/completions", 401), (gemini, 401), (f"{gemini}?key=x", 401), ("/v1/messages", 401)):
        body = {"model": "gpt-4o", "messages": []}
        response = plain_http.post(
            gate.http.base_url.join(path), json=body, headers={b"authorization": token.encode("latin-1")}
        )
        assert response.status_code == status
    assert response.json()["error"]["type"] == "authentication_error"
    assert llm.requests == []


def test_the_token_works_the_way_anthropics_client_sends_it(gateway: Callable[..., Gateway]) -> None:
    gate = gateway()
    body = {"model": "claude-3-5-sonnet-20240620", "messages": [], "max_tokens": 5}
    headers = {"x-api-key": gate.services.env["ANTHROPIC_API_KEY"]}
    assert plain_http.post(gate.http.base_url.join("/v1/messages"), json=body, headers=headers).status_code == 200


@pytest.mark.parametrize("where", ["header", "query"])
def test_the_token_works_the_way_googles_clients_send_it(gateway: Callable[..., Gateway], where: str) -> None:
    gate = gateway()
    token = gate.services.env["GEMINI_API_KEY"]
    url = gate.http.base_url.join("/v1beta/models/gemini-2.5-flash:generateContent")
    sent = {"headers": {"x-goog-api-key": token}} if where == "header" else {"params": {"key": token}}
    assert plain_http.post(url, json={"contents": []}, **sent).status_code == 200  # type: ignore[arg-type]


def test_runs_have_different_tokens(gateway: Callable[..., Gateway]) -> None:
    assert (
        gateway(workdir="one").services.env["OPENAI_API_KEY"] != gateway(workdir="two").services.env["OPENAI_API_KEY"]
    )


@pytest.mark.parametrize(
    "path",
    [
        "/v1/files",
        "/v1/organization/api_keys",
        "/v1/chat/completions/../../organization",
        "/v1/models/..%2f..%2fadmin",
        "/v1/models/%2e%2e",
        "/v1/responses/resp_123",
        "//v1/models",
        "/v1/models/",
        "http://169.254.169.254/v1/models",
        "/",
        "/v1beta/cachedContents",
        "/v1beta/files/abc",
        "/upload/v1beta/files",
        "/v1beta/files:register",
        "/v1beta/batches",
        "/v1beta/corpora",
        "/v1beta/fileSearchStores",
        "/v1beta/interactions",
        "/v1beta/operations/1",
        "/v1beta/models",
        "/v1beta/tunedModels/of-the-operator:generateContent",
        "/v1beta/dynamic/x:generateContent",
        "/v1beta/models/gemini-2.5-flash",
        "/v1beta/models/gemini-2.5-flash:batchGenerateContent",
        "/v1beta/models/gemini-2.5-flash:asyncBatchEmbedContent",
        "/v1beta/models/gemini-2.5-flash:embedContent",
        "/v1beta/models/gemini-2.5-flash:predictLongRunning",
        "/v1beta/models/gemini-2.5-flash:generateAnswer",
        "/v1beta/models/gemini-2.5-flash:generateContent/..",
        "/v1beta/models/..%2f..%2ffiles:generateContent",
        "/v1beta/models/%2e%2e:generateContent",
        "/v1beta/models/a%3fkey=1%23:generateContent",
        "/v1beta/models/a:countTokens:generateContent",
        "/v1beta/models/a%0d%0ax-evil:generateContent",
        "/v1beta/models/:generateContent",
        "/v1alpha/models/gemini-2.5-flash:generateContent",
        "/v1beta/models/gemini-2.5-flash:streamGenerateContent",
        "/ws/google.ai.generativelanguage.v1beta.GenerativeService.BidiGenerateContent",
        "/v1beta1/projects/p/locations/l/publishers/google/models/gemini-2.5-flash:generateContent",
    ],
)
def test_no_path_but_the_known_ones(gateway: Callable[..., Gateway], llm: ScriptedLLM, path: str) -> None:
    gate = gateway(models=["*"])
    token = gate.services.env["OPENAI_API_KEY"]
    body = b'{"model": "gpt-4o", "contents": []}'
    for method in ("GET", "POST"):
        head = f"{method} {path} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {token}\r\nConnection: close\r\n"
        sent = f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body
        assert speak(gate, sent).split(b" ", 2)[1] in (b"404", b"400", b"405")
    assert llm.requests == []


def test_no_header_is_smuggled(gateway: Callable[..., Gateway], llm: ScriptedLLM) -> None:
    gate = gateway()
    body = json.dumps({"model": "gpt-4o\r\nx-evil: 1", "messages": []}).encode()
    token = gate.services.env["OPENAI_API_KEY"].encode()
    head = b"POST /v1/chat/completions HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer " + token + b"\r\n"
    length = b"Content-Length: %d\r\n" % len(body)
    assert b" 400 " in speak(gate, head + length + b"\r\n" + body).split(b"\r\n")[0]
    two = b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
    assert b" 400 " in speak(gate, head + two).split(b"\r\n")[0]
    assert b" 400 " in speak(gate, head + b"anthropic-beta: a\x00b\r\n" + length + b"\r\n" + body).split(b"\r\n")[0]
    assert llm.requests == []


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"nonsense",
        b"[1, 2]",
        b'{"messages": []}',
        b'{"model": 5}',
        b'{"model": "gpt-4o", "temperature": NaN}',
        b'{"model": "gpt-4o", "x": 1e999}',
        b"\xff\xfe",
        b'{"model": "gpt-4o", "x": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        b'{"model": "' + b"a" * 300 + b'"}',
        b'{"model": "gpt-4o", "background": true}',
    ],
)
def test_bodies_that_are_no_requests(gateway: Callable[..., Gateway], llm: ScriptedLLM, body: bytes) -> None:
    gate = gateway()
    response = gate.http.post("/v1/responses", content=body)
    assert response.status_code == 400
    assert response.json()["error"]["type"] == "invalid_request_error"
    assert llm.requests == []


def test_of_two_equal_names_the_provider_sees_what_was_checked(
    gateway: Callable[..., Gateway], llm: ScriptedLLM
) -> None:
    gateway().http.post("/v1/chat/completions", content=b'{"model": "o1", "model": "gpt-4o", "messages": []}')
    assert llm.requests[0].body["model"] == "gpt-4o"


def test_a_huge_body(gateway: Callable[..., Gateway], llm: ScriptedLLM) -> None:
    gate = gateway(body_bytes=100_000)
    response = gate.chat("x" * 200_000)
    assert response.status_code == 413
    assert "97.66 KiB" in response.json()["error"]["message"]

    def endless() -> Iterator[bytes]:
        for _ in range(100):
            yield b"x" * 10_000

    with contextlib.suppress(httpx.WriteError):  # it was cut off before it had sent everything
        assert gate.http.post("/v1/chat/completions", content=endless()).status_code == 413
    assert llm.requests == []
    assert gate.chat().status_code == 200


@pytest.mark.parametrize(
    "fields",
    [
        {"tools": [{"type": "web_search"}]},
        {"tools": [{"type": "function", "function": {"name": "f"}}, {"type": "code_interpreter"}]},
        {"tools": [{"type": "mcp", "server_url": "https://evil.example"}]},
        {"tools": ["web_search"]},
        {"web_search_options": {}, "mcp_servers": [{"url": "https://evil.example"}]},
        {"model": "gpt-4o-search-preview"},
        {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "https://x.example"}}]}]},
        {"input": [{"role": "user", "content": [{"type": "input_file", "file_url": "http://x.example/a.pdf"}]}]},
    ],
)
def test_providers_do_not_reach_the_internet_for_an_agent(
    gateway: Callable[..., Gateway], llm: ScriptedLLM, fields: dict[str, Any]
) -> None:
    response = gateway().http.post("/v1/responses", json={"model": "gpt-4o", **fields})
    assert response.status_code == (404 if "model" in fields else 400)
    message = response.json()["error"]["message"]
    assert "is not available here" in message or "the field 'file_url' may not be" in message
    assert llm.requests == []
    if "messages" not in fields:
        assert (
            gateway(workdir="free", hosted_tools=True)
            .http.post("/v1/responses", json={"model": "gpt-4o", **fields})
            .is_success
        )


def test_tools_and_images_of_the_agents_own_are_fine(gateway: Callable[..., Gateway], llm: ScriptedLLM) -> None:
    gate = gateway()
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
    tools = [{"type": "function", "function": {"name": "fetch", "parameters": {}}}]
    assert gate.chat([image], tools=tools).is_success
    call = {"type": "tool_use", "name": "fetch", "input": {"url": "https://x.example"}}
    own = [{"name": "run"}, {"type": "bash_20250124", "name": "bash"}]
    assert gate.message([call], tools=own).is_success
    assert not gate.message("Look it up.", tools=[{"type": "web_search_20250305", "name": "web_search"}]).is_success


def closed(connection: socket.socket) -> bool:
    """Whether the server has closed the connection."""
    connection.setblocking(False)
    try:
        return connection.recv(1) == b""
    except BlockingIOError:
        return False
    except ConnectionError:
        return True


def test_slow_and_idle_connections_are_bounded(
    gateway: Callable[..., Gateway], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(serving, "HEADER_SECONDS", 120.0)
    monkeypatch.setattr(request, "BODY_SECONDS", 0.5)
    gate = gateway()
    with contextlib.ExitStack() as stack:
        held = [stack.enter_context(connect(gate)) for _ in range(serving.CONNECTIONS + 40)]
        held[0].sendall(b"POST /v1/chat")
        until(lambda: sum(map(closed, held)) >= 40)
        open_ = len(held) - sum(map(closed, held))
        assert open_ <= serving.CONNECTIONS

    monkeypatch.setattr(serving, "HEADER_SECONDS", 0.5)
    with contextlib.ExitStack() as stack:
        held = [stack.enter_context(connect(gate)) for _ in range(serving.CONNECTIONS)]
        held[0].sendall(b"POST /v1/chat")
        until(lambda: all(map(closed, held)))  # those that sent no request are gone
        assert gate.chat().is_success
    token = gate.services.env["OPENAI_API_KEY"].encode()
    with connect(gate) as slow:
        slow.sendall(b"POST /v1/chat/completions HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer " + token)
        slow.sendall(b"\r\nContent-Length: 100\r\n\r\n{")
        assert b" 400 " in slow.recv(1000)
