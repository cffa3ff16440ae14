"""What goes wrong at the provider is passed on faithfully, but nothing of the operator's account with it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import httpx
import pytest
from pydantic import SecretStr

from common.providers import Provider
from tests.sandbox.gateway.conftest import Gateway
from tests.sandbox.gateway.llm import KEY, ScriptedLLM


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (400, {"error": {"message": "max_tokens is too large", "type": "invalid_request_error"}}),
        (403, {"error": {"message": "model not available in your region"}}),
        (429, {"error": {"message": "Rate limit reached", "type": "tokens"}}),
        (529, {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}),
    ],
)
def test_errors_of_the_provider(
    gateway: Callable[..., Gateway], llm: ScriptedLLM, status: int, body: dict[str, Any]
) -> None:
    llm.fail = (status, body)
    gate = gateway()
    response = gate.chat(stream=True)
    assert response.status_code == status
    assert response.json() == body
    assert response.headers["retry-after"] == "7"
    assert gate.log[0]["status"] == "error"
    assert gate.log[0]["http_status"] == status


def test_headers_that_concern_the_account_stay_here(gateway: Callable[..., Gateway], llm: ScriptedLLM) -> None:
    gate = gateway()
    headers = {
        "openai-organization": "another",
        "cookie": "a=b",
        "x-forwarded-for": "10.0.0.1",
        "connection": "x-secret, close",
        "x-secret": "1",
        "user-agent": "agent/1.0",
        "anthropic-beta": "prompt-caching-2024-07-31",
    }
    response = gate.http.post("/v1/chat/completions", json={"model": "gpt-4o", "messages": []}, headers=headers)
    assert response.headers["x-request-id"] == "req-1"
    assert not {"openai-organization", "set-cookie", "server"} & set(response.headers)
    seen = llm.requests[0].headers
    assert not {"openai-organization", "cookie", "x-forwarded-for", "x-secret"} & set(seen)
    assert seen["anthropic-beta"] == "prompt-caching-2024-07-31"
    assert seen["user-agent"] == "mlebench-gateway"


def test_refused_credentials_are_the_operators_business(gateway: Callable[..., Gateway], llm: ScriptedLLM) -> None:
    llm.fail = (401, {"error": {"message": f"Incorrect API key provided: {KEY[:8]}****{KEY[-4:]}"}})
    gate = gateway()
    response = gate.chat()
    assert response.status_code == 502
    assert response.headers["x-should-retry"] == "false"
    assert KEY[-4:] not in response.text
    details = [{"reason": "API_KEY_INVALID", "domain": "googleapis.com"}]
    llm.fail = (400, {"error": {"code": 400, "message": f"API key {KEY} not valid.", "details": details}})
    response = gate.generate()
    assert response.status_code == 502
    assert "credentials" in response.json()["error"]["message"]
    assert KEY[-4:] not in response.text


def test_a_redirection_is_not_followed(gateway: Callable[..., Gateway], llm: ScriptedLLM) -> None:
    llm.redirect = "http://127.0.0.1:9/steal"
    assert gateway().chat().status_code == 502
    assert len(llm.requests) == 1


def test_a_provider_that_is_down(gateway: Callable[..., Gateway]) -> None:
    nowhere = Provider(base_url="http://127.0.0.1:9/v1", api_key=SecretStr(KEY))
    gate = gateway(providers={"openai": nowhere})
    response = gate.chat()
    assert response.status_code == 502
    assert response.headers["x-should-retry"] == "true"
    assert response.json()["error"]["message"] == "the provider cannot be reached"
    assert gate.log[0]["status"] == "unreachable"
    assert gate.log[0]["input_tokens"] == 0


@pytest.mark.parametrize("limit", ["silence_seconds", "request_seconds"])
def test_a_provider_that_does_not_answer(gateway: Callable[..., Gateway], llm: ScriptedLLM, limit: str) -> None:
    llm.hang = True
    gate = gateway(**{limit: 0.3})
    response = gate.message()
    assert response.status_code == 504
    assert response.json()["error"]["type"] == "timeout_error"
    assert gate.log[0]["status"] == "timeout"


def test_a_stream_that_takes_too_long_is_broken_off(gateway: Callable[..., Gateway], llm: ScriptedLLM) -> None:
    llm.pause = 1.5
    gate = gateway(request_seconds=4.0)
    with pytest.raises(httpx.RemoteProtocolError, match=r"incomplete|peer closed"):
        gate.chat(stream=True, max_tokens=77)
    (record,) = gate.log
    assert record["status"] == "timeout"
    assert record["estimated"]
    assert record["output_tokens"] == 77  # what the provider may go on writing, and bill


def test_closing_breaks_off_and_writes_down(gateway: Callable[..., Gateway], llm: ScriptedLLM) -> None:
    llm.pause = 1.0
    gate = gateway()
    body = {"model": "gpt-4o", "messages": [], "stream": True}
    with gate.http.stream("POST", "/v1/chat/completions", json=body) as response:
        next(response.iter_raw())
        gate.services.close()
    assert [record["status"] for record in gate.log] == ["cut"]
    assert gate.services.counts()["gateway_requests"] == 1


def test_providers_are_chosen_by_model(gateway: Callable[..., Gateway], llm: ScriptedLLM) -> None:
    local = Provider(base_url=f"{llm.url}/v1", models=["llama-*"])
    paid = Provider(base_url=f"{llm.url}/v1", api_key=SecretStr(KEY), models=["gpt-*"])
    rest = Provider(base_url="http://127.0.0.1:9/v1", api_key=SecretStr(KEY), models=["gpt*", "*-mini"])
    gate = gateway(providers={"rest": rest, "local": local, "openai": paid})
    gate.chat(model="llama-3")
    assert "authorization" not in llm.requests[0].headers
    gate.chat(model="gpt-4o")
    assert llm.requests[1].headers["authorization"] == f"Bearer {KEY}"
    missing = gate.chat(model="mistral")
    assert missing.status_code == 404
    assert missing.json()["error"]["code"] == "model_not_found"
    assert gate.message().status_code == 404
    assert set(gate.services.env) == {"OPENAI_BASE_URL", "OPENAI_API_BASE", "OPENAI_API_KEY"}
