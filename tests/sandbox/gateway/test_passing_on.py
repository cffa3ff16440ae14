"""Requests reach the provider with its key, answers come back as they are, and tokens and money are written down."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from typing import Any

import pytest

from common.providers import Price, Provider
from common.settings import Settings
from sandbox.gateway.prices import PriceList, version_of_prices
from sandbox.gateway.tokens import Usage, reported
from tasks.wiring.services import gateway_policy
from tests.sandbox.gateway.conftest import Gateway
from tests.sandbox.gateway.llm import KEY, WORDS, ScriptedLLM
from tests.waiting import until

# 600 tokens at 2.50, 400 from the cache at 1.25, 50 at 10 dollars a million
CHAT_COST = (600 * 2.5 + 400 * 1.25 + 50 * 10) / 1e6
# 500 at 3, 100 written to the cache at 3.75, 400 read from it at 0.30, 50 at 15
MESSAGE_COST = (500 * 3 + 100 * 3.75 + 400 * 0.3 + 50 * 15) / 1e6
# 600 at 0.30, 400 from the cache at 0.03, 30 of the answer and 20 of thoughts at 2.50
GENERATE_COST = (600 * 0.3 + 400 * 0.03 + 50 * 2.5) / 1e6


def text_of(stream: str) -> str:
    """The text in a stream of any API."""
    text = ""
    for line in stream.splitlines():
        if line.startswith("data: {"):
            event = json.loads(line[6:])
            for each in event.get("candidates", []):
                text += each["content"]["parts"][0]["text"]
            delta = event["choices"][0]["delta"] if event.get("choices") else event.get("delta", {})
            text += delta if isinstance(delta, str) else delta.get("content") or delta.get("text") or ""
    return text


def test_chat(gateway: Callable[..., Gateway], llm: ScriptedLLM) -> None:
    gate = gateway()
    response = gate.chat(temperature=0.25)
    assert response.status_code == 200
    assert response.json()["choices"][0]["message"]["content"] == "".join(WORDS)
    (seen,) = llm.requests
    assert seen.headers["authorization"] == f"Bearer {KEY}"
    assert seen.body == {
        "model": "gpt-4o",
        "messages": [{"role": "user", "content": "Solve it."}],
        "temperature": 0.25,
    }
    (record,) = gate.log
    assert record["input_tokens"] == 1000
    assert record["output_tokens"] == 50
    assert record["cached_tokens"] == 400
    assert record["cost_usd"] == pytest.approx(CHAT_COST)
    assert record["latency_seconds"] >= 0
    assert {name: record[name] for name in ("model", "status", "http_status", "estimated", "provider")} == {
        "model": "gpt-4o",
        "status": "ok",
        "http_status": 200,
        "estimated": False,
        "provider": "openai",
    }
    assert gate.services.counts() == {
        "validation_calls": 0,
        "gateway_requests": 1,
        "gateway_tokens": 1050,
        "gateway_cost_usd": pytest.approx(CHAT_COST),
        "prices": version_of_prices(),
    }


def test_messages(gateway: Callable[..., Gateway], llm: ScriptedLLM) -> None:
    gate = gateway()
    response = gate.message()
    assert response.json()["content"][0]["text"] == "".join(WORDS)
    (seen,) = llm.requests
    assert seen.headers["x-api-key"] == KEY
    assert "authorization" not in seen.headers
    assert seen.headers["anthropic-version"] == "2023-06-01"
    (record,) = gate.log
    assert (record["input_tokens"], record["output_tokens"]) == (1000, 50)
    assert record["cost_usd"] == pytest.approx(MESSAGE_COST)


@pytest.mark.parametrize("stream", [False, True])
def test_generate_content(gateway: Callable[..., Gateway], llm: ScriptedLLM, stream: bool) -> None:
    gate = gateway()
    response = gate.generate(stream=stream, generation_config={"temperature": 0.25})
    given = text_of(response.text) if stream else response.json()["candidates"][0]["content"]["parts"][0]["text"]
    assert given == "".join(WORDS)
    (seen,) = llm.requests
    assert seen.headers["x-goog-api-key"] == KEY
    assert "authorization" not in seen.headers
    assert seen.query == ("alt=sse" if stream else "")
    assert seen.body["generationConfig"] == {"temperature": 0.25}
    (record,) = gate.log
    assert (record["input_tokens"], record["cached_tokens"], record["output_tokens"]) == (1000, 400, 50)
    assert (record["model"], record["provider"], record["stream"]) == ("gemini-2.5-flash", "gemini", stream)
    assert not record["estimated"]
    assert record["cost_usd"] == pytest.approx(GENERATE_COST)


@pytest.mark.parametrize(
    ("path", "fields", "tokens"),
    [
        ("/v1/responses", {"input": "Solve it."}, 1050),
        ("/v1/completions", {"prompt": "def solve"}, 1050),
        ("/v1/embeddings", {"input": ["one", "two"]}, 8),
    ],
)
def test_the_other_paths(gateway: Callable[..., Gateway], path: str, fields: dict[str, Any], tokens: int) -> None:
    gate = gateway()
    response = gate.http.post(path, json={"model": "gpt-4o", **fields})
    assert response.status_code == 200
    assert gate.services.counts()["gateway_tokens"] == tokens


def test_what_identifies_the_client_is_left_out(gateway: Callable[..., Gateway], llm: ScriptedLLM) -> None:
    body = {"model": "gpt-4o", "input": "Solve it.", "client_metadata": {"x-codex-installation-id": "1"}}
    assert gateway().http.post("/v1/responses", json=body).status_code == 200
    assert "client_metadata" not in llm.requests[-1].body
    messages = [{"role": "assistant", "content": "Yes.", "provider_specific_fields": {"refusal": None}}]
    assert gateway(workdir="other").chat(messages=messages).status_code == 200
    assert llm.requests[-1].body["messages"] == [{"role": "assistant", "content": "Yes."}]


def test_models_and_counting_tokens_cost_nothing(gateway: Callable[..., Gateway], llm: ScriptedLLM) -> None:
    gate = gateway(dollars=1.0)
    assert gate.http.get("/v1/models").json()["data"][0]["id"] == "gpt-4o"
    assert gate.http.get("/v1/models/gpt-4o").status_code == 200
    assert gate.http.get("/v1/models", headers={"anthropic-version": "2023-06-01"}).status_code == 200
    assert llm.requests[-1].headers["x-api-key"] == KEY
    body = {"model": "claude-unknown", "messages": []}
    assert gate.http.post("/v1/messages/count_tokens", json=body).json() == {"input_tokens": 12}
    wrapped: dict[str, Any] = {"generateContentRequest": {"model": "models/another", "contents": []}}
    bodies: list[dict[str, Any]] = [{"contents": []}, wrapped]
    for asked in bodies:
        answer = gate.http.post("/v1beta/models/gemini-unknown:countTokens", json=asked)
        assert answer.json() == {"totalTokens": 12}
    assert llm.requests[-1].body["generateContentRequest"]["model"] == "models/gemini-unknown"
    counts = gate.services.counts()
    assert (counts["gateway_requests"], counts["gateway_tokens"], counts["gateway_cost_usd"]) == (6, 0, 0)


@pytest.mark.parametrize("asked", [None, {"include_usage": True}, {"include_usage": False}])
def test_chat_streams_and_reports_its_usage_to_whom_asked(
    gateway: Callable[..., Gateway], llm: ScriptedLLM, asked: dict[str, bool] | None
) -> None:
    gate = gateway()
    fields: dict[str, Any] = {"stream_options": asked} if asked else {}
    response = gate.chat(stream=True, **fields)
    assert response.headers["content-type"].startswith("text/event-stream")
    assert text_of(response.text) == "".join(WORDS)
    assert response.text.endswith("data: [DONE]\n\n")
    assert "\n\n\n" not in response.text
    assert ('"choices": []' in response.text) == bool(asked and asked["include_usage"])
    assert llm.requests[0].body["stream_options"] == {"include_usage": True}
    assert gate.log[0]["cost_usd"] == pytest.approx(CHAT_COST)
    assert not gate.log[0]["estimated"]


@pytest.mark.parametrize("path", ["/v1/messages", "/v1/responses"])
def test_other_streams(gateway: Callable[..., Gateway], path: str) -> None:
    gate = gateway(models=["*"])
    what = {"messages": [], "max_tokens": 9} if path == "/v1/messages" else {"input": "Solve it."}
    body = {"model": "gpt-4o", "stream": True, **what}
    response = gate.http.post(path, json=body)
    assert text_of(response.text) == "".join(WORDS)
    (record,) = gate.log
    assert (record["input_tokens"], record["output_tokens"], record["estimated"]) == (1000, 50, False)


def test_a_stream_comes_as_it_is_written(gateway: Callable[..., Gateway], llm: ScriptedLLM) -> None:
    llm.pause = 0.2
    gate = gateway()
    arrived = 0
    body = {"model": "gpt-4o", "messages": [], "stream": True}
    with gate.http.stream("POST", "/v1/chat/completions", json=body) as response:
        for _ in response.iter_lines():
            arrived += 1
            if arrived == 1:
                assert llm.finished_streams == 0
    assert llm.finished_streams == 1


def test_without_reported_usage_it_is_the_most_that_it_can_be(
    gateway: Callable[..., Gateway], llm: ScriptedLLM
) -> None:
    llm.report_usage = False
    gate = gateway()
    gate.chat("x" * 4000)
    gate.chat("x" * 4000, stream=True)
    for record in gate.log:
        assert record["estimated"]
        assert 4000 <= record["input_tokens"] < 4200
        assert record["output_tokens"] == 128_000  # the window of the model: reasoning is not in the text


def test_hanging_up_saves_nothing(gateway: Callable[..., Gateway], llm: ScriptedLLM) -> None:
    llm.pause = 0.1
    gate = gateway()
    body = {"model": "gpt-4o", "messages": [], "stream": True}
    with gate.http.stream("POST", "/v1/chat/completions", json=body) as response:
        next(response.iter_raw())
    gate.http.close()
    until(lambda: gate.log)
    assert gate.log[0]["cost_usd"] == pytest.approx(CHAT_COST)


def test_list_prices_are_dated_and_belong_to_a_provider() -> None:
    listed, mine = PriceList(), Provider(base_url="https://api.openai.com/v1")
    usage = Usage(1_000_000, 1_000_000)

    def cost(model: str, provider: Provider = mine, at: str = "2026-11-22", tier: str = "") -> float | None:
        rates = listed.rates(provider, model, datetime.fromisoformat(f"{at}T00:00:00+00:00"))
        return rates.cost(usage, tier) if rates else None

    assert cost("gpt-4o") == cost("gpt-4o-2024-08-06") == pytest.approx(12.5)
    assert cost("gpt-4o-2024-05-13") == pytest.approx(20.0)
    assert cost("gpt-4o", tier="priority") == cost("gpt-4o", tier="never-heard-of") == pytest.approx(21.25)
    assert cost("gpt-4o", tier="priority", at="2026-10-01") == pytest.approx(12.5)  # before it had a price
    assert cost("gpt-4o-of-the-future") is None
    anywhere = Provider(base_url="http://127.0.0.1:8000/v1")
    assert cost("gpt-4o", anywhere) is None
    assert cost("gpt-4o", anywhere.model_copy(update={"price_list": "openai"})) == pytest.approx(12.5)
    assert cost("gpt-4o", anywhere.model_copy(update={"price_list": "nobody"})) is None


@pytest.mark.parametrize(
    ("given", "details"), [("prompt_tokens", "prompt_tokens_details"), ("input_tokens", "input_tokens_details")]
)
def test_what_openai_writes_to_its_cache_has_a_price_of_its_own(given: str, details: str) -> None:
    told = {given: 2600, "output_tokens": 300, details: {"cached_tokens": 2000, "cache_write_tokens": 400}}
    usage = reported("openai", told)
    assert usage == Usage(2600, 300, 2000, 400)
    openai = Provider(base_url="https://api.openai.com/v1")
    own = Price(input=4, output=10, cached_input=1, cache_write=5)
    rates = PriceList({"mine": own}).rates(openai, "mine")
    assert rates
    assert rates.cost(usage) == pytest.approx((200 * 4 + 2000 * 1 + 400 * 5 + 300 * 10) / 1e6)
    listed = PriceList().rates(openai, "gpt-6-sol", datetime.fromisoformat("2026-11-22T00:00:00+00:00"))
    assert listed
    # 1.25 times the price of other input, of which the list price is 2.00 dollars a million
    assert listed.cost(usage) - listed.cost(replace(usage, cache_write_tokens=0)) == pytest.approx(400 * 0.5 / 1e6)


def test_contradicting_counts_of_the_cache_are_limited_by_the_input() -> None:
    details = {"cached_tokens": 60, "cache_write_tokens": 70}
    assert reported("openai", {"prompt_tokens": 100, "prompt_tokens_details": details}) == Usage(100, 0, 60, 40)
    assert reported("openai", {"prompt_tokens": 100, "prompt_tokens_details": None}) == Usage(100)


def test_an_operators_price_may_be_for_a_pattern() -> None:
    prices = PriceList({"llama-*": Price(input=1, output=0), "llama-3*": Price(input=3, output=0)})
    here = Provider(base_url="http://127.0.0.1:8000/v1")
    costs = [
        (rates := prices.rates(here, model)) and rates.cost(Usage(1_000_000)) for model in ("llama-2", "llama-3-70b")
    ]
    assert costs == [1.0, 3.0]
    assert prices.rates(here, "mistral") is None


def test_a_model_without_a_price_costs_an_unknown_amount(gateway: Callable[..., Gateway]) -> None:
    """Which is not 0, neither of the request nor of the run."""
    gate = gateway(models=["*"])
    gate.chat()
    assert gate.services.counts()["gateway_cost_usd"] == pytest.approx(CHAT_COST)
    gate.chat(model="somebody/llama-3-70b")
    assert gate.log[1]["cost_usd"] is None
    assert gate.log[1]["input_tokens"] == 1000
    assert gate.services.counts()["gateway_cost_usd"] is None
    gate.services.close()
    assert gateway().services.counts()["gateway_cost_usd"] is None  # as the log has it


def test_the_operators_prices_come_first(gateway: Callable[..., Gateway], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLEBENCH_PRICES", '{"gpt-4o": {"input": 1000, "output": 0}, "mine": {"input": 5, "output": 7}}')
    prices = gateway_policy(Settings()).prices
    assert prices["mine"].output == 7
    gate = gateway(prices=prices)
    gate.chat()
    assert gate.log[0]["cost_usd"] == pytest.approx(1.0)


def test_refusing_unknown_prices_is_the_operators_choice(gateway: Callable[..., Gateway]) -> None:
    assert gateway(workdir="open", models=["*"]).chat(model="somebody/llama-3-70b").is_success
    refused = gateway(refuse_unpriced=True).chat(model="somebody/llama-3-70b")
    assert refused.status_code == 404
    assert "has no price here" in refused.json()["error"]["message"]
