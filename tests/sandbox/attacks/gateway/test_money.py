"""Attempts to spend more on language models than a run may.

`ScriptedLLM.greedy` bills what a real provider may: a token for each byte of text, and all the output that a request
allows, whether its answer arrives or not. Each attack compares that bill with the budget of the run.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest

from sandbox.services.run_services import RECORDS
from tests.sandbox.gateway.conftest import Gateway
from tests.sandbox.gateway.llm import KEY, ScriptedLLM
from tests.waiting import until

BUDGET = 0.05
RATES = {
    "gemini-2.5-flash": (0.3, 2.5),
    "gpt-4o": (2.5, 10.0),
    "claude-3-5-sonnet-20240620": (3.0, 15.0),
    "gpt-4o-2024-05-13": (5.0, 15.0),
}
"""US dollars per million tokens, from the providers' pages."""
Open = Callable[..., Gateway]


def bill(llm: ScriptedLLM) -> float:
    return sum(given * RATES[model][0] + made * RATES[model][1] for model, given, made in llm.billed) / 1e6


def spend(gate: Gateway, path: str = "/v1/chat/completions", **fields: Any) -> httpx.Response:
    """Ask until the gateway refuses; returns the refusal."""
    body: dict[str, Any] = {"model": "gpt-4o", **fields}
    if path == "/v1/chat/completions":
        body.setdefault("messages", [{"role": "user", "content": "Solve it."}])
    for _ in range(100):
        response = gate.http.post(path, json=body)
        if not response.is_success:
            return response
    raise AssertionError("a hundred requests were not enough to use the budget up")


@pytest.mark.parametrize(
    ("path", "fields"),
    [
        ("/v1/chat/completions", {"n": 128, "max_tokens": 4000}),
        ("/v1/chat/completions", {"max_completion_tokens": 100_000}),
        ("/v1/chat/completions", {"max_tokens": 10, "max_completion_tokens": 100_000}),
        ("/v1/chat/completions", {}),
        ("/v1/completions", {"prompt": "a", "best_of": 20, "max_tokens": 4000}),
        ("/v1/completions", {"prompt": ["a"] * 200, "max_tokens": 1000}),
        ("/v1/completions", {"prompt": ["a"] * 20, "max_tokens": 1000, "n": 20}),
        ("/v1/completions", {"prompt": [[1, 2, 3]] * 200, "max_tokens": 1000}),
        ("/v1/completions", {"prompt": "a"}),
        ("/v1/responses", {"input": "a", "max_output_tokens": 100_000}),
        ("/v1/responses", {"input": "a"}),
        ("/v1/embeddings", {"input": ["\N{SNOWMAN}" * 1000] * 20}),
    ],
)
def test_one_request_that_costs_many_times_the_budget(gateway: Open, llm: ScriptedLLM, path: str, fields: Any) -> None:
    llm.greedy = True
    gate = gateway(dollars=BUDGET)
    refused = spend(gate, path, **fields)
    assert refused.status_code in (400, 429)
    assert bill(llm) <= BUDGET


def test_one_message_that_costs_many_times_the_budget(gateway: Open, llm: ScriptedLLM) -> None:
    llm.greedy = True
    gate = gateway(dollars=BUDGET)
    while gate.message(max_tokens=100_000).is_success:
        pass
    assert 0 < bill(llm) <= BUDGET


@pytest.mark.parametrize(
    "settings",
    [{}, {"maxOutputTokens": 100_000}, {"max_output_tokens": 0}, {"candidate_count": 8, "maxOutputTokens": 9000}],
)
def test_generated_content_that_costs_many_times_the_budget(gateway: Open, llm: ScriptedLLM, settings: Any) -> None:
    llm.greedy = True
    gate = gateway(dollars=BUDGET)
    for stream in (False, True):
        while gate.generate(stream=stream, generationConfig=settings).is_success:
            pass
    assert 0 < bill(llm) <= BUDGET


def test_thinking_that_would_leave_no_answer(gateway: Open, llm: ScriptedLLM) -> None:
    thinking = {"type": "enabled", "budget_tokens": 20_000}
    refused = gateway(dollars=BUDGET).message(max_tokens=30_000, thinking=thinking)
    assert refused.status_code == 402
    assert "think less" in refused.json()["error"]["message"]
    assert llm.requests == []


def test_many_requests_at_once_that_each_fit(gateway: Open, llm: ScriptedLLM) -> None:
    llm.greedy = True
    gate = gateway(dollars=BUDGET, concurrent=16)
    with llm.held(), ThreadPoolExecutor(16) as pool:
        asked = [pool.submit(gate.chat, max_tokens=4000) for _ in range(16)]
        until(lambda: llm.under_way + sum(each.done() for each in asked) == 16)
        llm.release()
    assert bill(llm) <= BUDGET


def test_a_request_that_outlasts_the_gateways_patience(gateway: Open, llm: ScriptedLLM) -> None:
    """The provider finishes and bills what the gateway no longer waits for."""
    llm.greedy = llm.hang = True
    gate = gateway(dollars=BUDGET, silence_seconds=0.1)
    for _ in range(30):
        gate.chat(max_tokens=1000)
    assert bill(llm) <= BUDGET


@pytest.mark.parametrize("stream", [False, True])
def test_an_answer_that_does_not_say_what_it_used(gateway: Open, llm: ScriptedLLM, stream: bool) -> None:
    """Reasoning is billed, and not in the text."""
    llm.greedy, llm.report_usage = True, False
    gate = gateway(dollars=BUDGET)
    spend(gate, max_tokens=1000, stream=stream)
    while gate.generate(stream=stream).is_success:
        pass
    assert bill(llm) <= BUDGET


def test_a_stream_that_ends_early(gateway: Open, llm: ScriptedLLM) -> None:
    llm.greedy, llm.breaks_off = True, 1
    gate = gateway(dollars=BUDGET)
    spend(gate, max_tokens=1000, stream=True)
    while gate.generate(stream=True).is_success:
        pass
    assert bill(llm) <= BUDGET


def test_a_gateway_of_the_provider_that_gives_up(gateway: Open, llm: ScriptedLLM) -> None:
    """A proxy in front of the provider answers 504 to a long request that the provider finishes."""
    llm.greedy, llm.fail = True, (504, {"error": "upstream timed out"})
    gate = gateway(dollars=BUDGET)
    for _ in range(30):
        gate.chat(max_tokens=1000)
    assert bill(llm) <= BUDGET


def test_requests_that_a_crash_forgets(llm: ScriptedLLM, gateway: Open, tmp_path: Path) -> None:
    """The orchestrator is killed while the provider works, again and again."""
    llm.greedy = True
    script = f"""
import sys, time
from pydantic import SecretStr
from common.providers import Price, Provider
from sandbox.gateway.policy import Budget, GatewayPolicy
from sandbox.services.run_services import RunServices
from pathlib import Path
policy = GatewayPolicy(
    providers={{"openai": Provider(base_url="{llm.url}/v1", api_key=SecretStr("{KEY}"))}},
    prices={{"gpt-4o": Price(input=2.5, output=10)}}, budget=Budget(dollars={BUDGET}))
with RunServices(Path({str(tmp_path / "run")!r}), gateway=policy) as services:
    print(services.env["OPENAI_BASE_URL"], services.env["OPENAI_API_KEY"], flush=True)
    time.sleep(600)
"""
    with llm.held():
        for _ in range(3):
            ask_and_kill([sys.executable, "-c", script], llm)
    assert 0 < bill(llm) <= BUDGET


def ask_and_kill(orchestrator: list[str], llm: ScriptedLLM) -> None:
    """Start an orchestrator, and kill it once its request has reached the provider, or was refused."""
    with subprocess.Popen(orchestrator, stdout=subprocess.PIPE, text=True, start_new_session=True) as process:
        assert process.stdout
        url, token = process.stdout.readline().split()
        before = len(llm.billed)
        body = {"model": "gpt-4o", "messages": [{"role": "user", "content": "a"}], "max_tokens": 3000}
        headers = {"authorization": f"Bearer {token}"}
        with ThreadPoolExecutor(1) as pool:
            asked = pool.submit(httpx.post, f"{url}/chat/completions", json=body, headers=headers, timeout=60)
            until(lambda: len(llm.billed) > before or asked.done())
            os.killpg(process.pid, signal.SIGKILL)
            with contextlib.suppress(httpx.HTTPError):
                asked.result()


def test_a_dearer_tier_at_the_plain_price(gateway: Open, llm: ScriptedLLM) -> None:
    llm.tier = "priority"
    gate = gateway(dollars=1.0)
    refused = gate.chat(service_tier="priority")
    assert refused.status_code == 400
    gate.chat(service_tier="auto")  # the operator's project may be set to it
    assert gate.log[-1]["cost_usd"] == pytest.approx((600 * 4.25 + 400 * 2.125 + 50 * 17) / 1e6)


def test_an_old_dearer_model_under_a_newer_ones_name(gateway: Open, llm: ScriptedLLM) -> None:
    llm.greedy = True
    gate = gateway(dollars=BUDGET)
    spend(gate, model="gpt-4o-2024-05-13", max_tokens=1000)
    assert bill(llm) <= BUDGET


def test_reasoning_that_is_billed_beside_the_answer(gateway: Open, llm: ScriptedLLM) -> None:
    llm.usage = {
        "prompt_tokens": 100,
        "completion_tokens": 50,
        "total_tokens": 5150,
        "completion_tokens_details": {"reasoning_tokens": 5000},
    }
    gate = gateway()
    gate.chat()
    assert gate.log[0]["output_tokens"] == 5050


def test_writing_to_the_cache_for_an_hour_at_the_price_of_five_minutes(gateway: Open, llm: ScriptedLLM) -> None:
    creation = {"ephemeral_1h_input_tokens": 100_000, "ephemeral_5m_input_tokens": 0}
    llm.usage = {"input_tokens": 0, "cache_creation_input_tokens": 100_000, "output_tokens": 1}
    llm.usage["cache_creation"] = creation
    gate = gateway()
    gate.message()
    assert gate.log[0]["cost_usd"] == pytest.approx((100_000 * 6 + 15) / 1e6)


def test_a_long_prompt_at_the_price_of_a_short_one(gateway: Open, llm: ScriptedLLM) -> None:
    llm.usage = {"input_tokens": 300_000, "output_tokens": 100}
    gate = gateway()
    gate.message(model="claude-sonnet-4-5")
    assert gate.log[0]["cost_usd"] == pytest.approx((300_000 * 6 + 100 * 22.5) / 1e6)


@pytest.mark.parametrize(
    "fields",
    [
        {"modalities": ["text", "audio"], "audio": {"voice": "a", "format": "wav"}},
        {"messages": [{"role": "user", "content": [{"type": "input_audio", "input_audio": {"data": "AAAA"}}]}]},
        {"prediction": {"type": "content", "content": "rejected tokens are billed as output"}},
        {"max_tokens": True},
        {"max_tokens": 1e9},
        {"max_tokens": "100000"},
        {"n": 2.0},
        {"n": [128]},
        {"stream": "true"},
        {"stream": 1},
    ],
)
def test_what_has_no_price_that_can_be_known_before(gateway: Open, llm: ScriptedLLM, fields: Any) -> None:
    body = {"model": "gpt-4o", "messages": [{"role": "user", "content": "a"}], **fields}
    assert gateway(dollars=1.0).http.post("/v1/chat/completions", json=body).status_code == 400
    assert llm.requests == []


@pytest.mark.parametrize(
    ("model", "fields"),
    [
        ("gemini-2.5-flash", {"generationConfig": {"responseModalities": ["TEXT", "IMAGE"]}}),
        ("gemini-2.5-flash", {"generation_config": {"response_modalities": "AUDIO"}}),
        ("gemini-2.5-flash", {"generationConfig": {"speechConfig": {}}}),
        ("gemini-2.5-flash", {"generationConfig": {"maxOutputTokens": "100000"}}),
        ("gemini-2.5-flash", {"generationConfig": {"maxOutputTokens": 1, "max_output_tokens": 100_000}}),
        ("gemini-2.5-flash", {"generationConfig": {"candidateCount": 2.0}}),
        ("gemini-2.5-flash", {"generationConfig": [{"maxOutputTokens": 1}]}),
        ("gemini-2.5-flash", {"serviceTier": "priority"}),
        ("gemini-2.5-flash", {"contents": {"parts": {"inlineData": {"mimeType": "audio/wav", "data": "AAAA"}}}}),
        ("gemini-2.5-flash-image", {}),
        ("gemini-2.5-flash-preview-tts", {}),
    ],
)
def test_content_that_has_no_price_that_can_be_known_before(
    gateway: Open, llm: ScriptedLLM, model: str, fields: Any
) -> None:
    body = {"contents": [{"parts": [{"text": "a"}]}], **fields}
    answer = gateway(dollars=1.0).http.post(f"/v1beta/models/{model}:generateContent", json=body)
    assert answer.status_code in (400, 404)
    assert llm.requests == []


@pytest.mark.parametrize("policy", [{"dollars": 1.0}, {"refuse_unpriced": True}])
def test_a_model_without_a_price_under_a_budget(gateway: Open, llm: ScriptedLLM, policy: dict[str, Any]) -> None:
    assert gateway(models=["*"], **policy).chat(model="nobody/knows-the-price").status_code == 404
    assert llm.requests == []


def test_images_that_are_small_in_bytes_and_large_in_tokens(gateway: Open, llm: ScriptedLLM) -> None:
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
    gate = gateway(dollars=0.1)
    assert gate.chat([image] * 50, model="gpt-4o", max_tokens=1).status_code == 429
    for kind, many in (("image/png", 50), ("application/pdf", 1)):
        part = {"inline_data": {"mime_type": kind, "data": "AAAA"}}
        assert gate.generate(contents={"parts": [part] * many}).status_code == 402
    assert llm.requests == []


_KINDS: dict[str, tuple[str, ...]] = {
    "chat": ("prompt_tokens", "completion_tokens", "total_tokens"),
    "responses": ("input_tokens", "output_tokens", "total_tokens"),
    "messages": ("input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens"),
    "generate": ("promptTokenCount", "candidatesTokenCount", "thoughtsTokenCount", "totalTokenCount"),
}
_NO_COUNTS = [10**30, 10**9 + 1, -1, 12.5, 1e300, True, "12", "NaN", [12], {"a": 1}]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("kind", _KINDS)
def test_numbers_of_tokens_that_are_none(gateway: Open, llm: ScriptedLLM, kind: str, stream: bool) -> None:
    """Such a request counts as the most that it can have used, as one whose answer reports nothing."""
    gate = gateway()
    ask = {
        "chat": lambda: gate.chat(max_tokens=100, stream=stream),
        "responses": lambda: gate.http.post(
            "/v1/responses", json={"model": "gpt-4o", "input": "a", "max_output_tokens": 100, "stream": stream}
        ),
        "messages": lambda: gate.message(stream=stream),
        "generate": lambda: gate.generate(stream=stream, generationConfig={"maxOutputTokens": 100}),
    }[kind]
    for name in _KINDS[kind]:
        for value in _NO_COUNTS:
            llm.usage = {**dict.fromkeys(_KINDS[kind], 12), name: value}
            assert ask().status_code == 200
    gate.services.close()
    assert len(gate.log) == len(_KINDS[kind]) * len(_NO_COUNTS)
    assert {(each["output_tokens"], each["estimated"]) for each in gate.log} == {(100, True)}
    assert len({(each["input_tokens"], each["cost_usd"]) for each in gate.log}) == 1


def test_a_request_for_more_answers_than_a_table_can_count(gateway: Open, llm: ScriptedLLM) -> None:
    llm.fail = (504, {"error": "upstream timed out"})  # counted as the most that it can have used
    gate = gateway()
    fields = {"prompt": ["a"] * 9, "n": 10**9, "max_tokens": 10**9}
    gate.http.post("/v1/completions", json={"model": "gpt-3.5-turbo-instruct", **fields})
    assert [each["output_tokens"] for each in gate.log] == [10**12]


def test_a_log_that_is_full_and_forgets(gateway: Open, llm: ScriptedLLM) -> None:
    gate = gateway(requests=3)
    gate.chat()
    gate.services.close()
    path = gate.workdir / RECORDS / "gateway.jsonl"
    with path.open("ab") as file:
        file.truncate(256 * 1024 * 1024 - 100)
    gate = gateway(requests=3)
    for _ in range(3):
        gate.chat()
    gate.services.close()
    gate = gateway(requests=3)
    gate.chat()
    assert len(llm.requests) <= 3


def test_an_answer_to_another_runs_request(gateway: Open, llm: ScriptedLLM) -> None:
    """Providers repeat an answer to a request with the same key, whoever asks with the same account."""
    gate = gateway()
    body = {"model": "gpt-4o", "messages": []}
    gate.http.post("/v1/chat/completions", json=body, headers={"idempotency-key": "of-another-run"})
    assert "idempotency-key" not in llm.requests[0].headers


def test_requests_at_any_rate(gateway: Open, llm: ScriptedLLM) -> None:
    gate = gateway(requests_per_minute=5)
    codes = [gate.http.get("/v1/models").status_code for _ in range(10)]
    assert codes == [200] * 5 + [429] * 5
    assert len(llm.requests) == 5
    slower = gateway(workdir="other", tokens_per_minute=1500)
    assert [slower.chat(max_tokens=100).status_code for _ in range(3)] == [200, 200, 429]


def test_the_journal_is_written_before_the_request_is_sent(gateway: Open, llm: ScriptedLLM) -> None:
    gate = gateway(dollars=1.0)
    with llm.held(), ThreadPoolExecutor(1) as pool:
        asked = pool.submit(gate.chat, max_tokens=1000)
        until(lambda: llm.under_way == 1)
        texts = [path.read_text() for path in (gate.workdir / RECORDS).glob("*.jsonl")]
        under_way = [json.loads(line) for text in texts for line in text.splitlines()]
        llm.release()
        asked.result()
    assert [record["model"] for record in under_way] == ["gpt-4o"]
