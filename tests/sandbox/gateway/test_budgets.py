"""A run has a budget of requests, tokens and money; agents are told in their client's words when it is used up."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from sandbox.gateway import budget
from sandbox.services.run_services import RECORDS
from tests.sandbox.gateway.conftest import Gateway
from tests.sandbox.gateway.llm import ScriptedLLM
from tests.waiting import until


def test_requests(gateway: Callable[..., Gateway], llm: ScriptedLLM) -> None:
    gate = gateway(requests=2)
    assert [gate.chat().status_code for _ in range(4)] == [200, 200, 429, 429]
    assert len(llm.requests) == 2
    assert [record["status"] for record in gate.log] == ["ok", "ok", "refused", "refused"]
    assert gate.services.counts()["gateway_requests"] == 2


def test_tokens_as_openai_says_it(gateway: Callable[..., Gateway]) -> None:
    gate = gateway(tokens=1000)
    assert gate.chat().status_code == 200
    refused = gate.chat()
    assert refused.status_code == 429
    assert refused.headers["x-should-retry"] == "false"
    error = refused.json()["error"]
    assert error["code"] == error["type"] == "insufficient_quota"
    assert error["message"] == "the budget of this run, 1,000 tokens of language models, is used up"


def test_money_as_anthropic_says_it(gateway: Callable[..., Gateway]) -> None:
    gate = gateway(dollars=0.001)
    assert gate.message().status_code == 200
    refused = gate.message()
    assert refused.status_code == 402
    assert refused.json() == {
        "type": "error",
        "error": {
            "type": "billing_error",
            "message": "the budget of this run, 0.001 US dollars for language models, is used up",
        },
    }


def test_money_as_gemini_says_it(gateway: Callable[..., Gateway]) -> None:
    gate = gateway(dollars=0.0003)
    assert gate.generate(generationConfig={"maxOutputTokens": 20}).status_code == 200
    refused = gate.generate(generationConfig={"maxOutputTokens": 20})
    assert refused.status_code == 402
    assert refused.json() == {
        "error": {
            "code": 402,
            "message": "the budget of this run, 0.0003 US dollars for language models, is used up",
            "status": "RESOURCE_EXHAUSTED",
        }
    }


def test_a_budget_in_money_needs_prices(gateway: Callable[..., Gateway], llm: ScriptedLLM) -> None:
    refused = gateway(dollars=1.0).chat(model="nobody/knows-the-price")
    assert refused.status_code == 404
    assert "has no price here" in refused.json()["error"]["message"]
    assert llm.requests == []


def test_many_at_once_do_not_slip_through(gateway: Callable[..., Gateway], llm: ScriptedLLM) -> None:
    llm.pause = 0.3
    gate = gateway(requests=3, concurrent=8)
    with ThreadPoolExecutor(8) as pool:
        codes = sorted(response.status_code for response in pool.map(lambda _: gate.chat(), range(8)))
    assert codes == [200] * 3 + [429] * 5
    assert len(llm.requests) == 3


def test_what_is_under_way_counts_with_an_estimate(gateway: Callable[..., Gateway], llm: ScriptedLLM) -> None:
    gate = gateway(tokens=1500, concurrent=8)
    with llm.held(), ThreadPoolExecutor(4) as pool:
        asked = [pool.submit(gate.chat, max_tokens=2000) for _ in range(4)]
        until(lambda: sum(each.done() for each in asked) == 3)
        llm.release()
        responses = [each.result() for each in asked]
    assert sorted(response.status_code for response in responses) == [200, 429, 429, 429]
    waiting = next(response for response in responses if response.status_code == 429)
    assert waiting.headers["x-should-retry"] == "true"
    assert waiting.json()["error"]["code"] == "rate_limit_exceeded"
    assert gate.chat().status_code == 200  # 1050 of 1500 used


def test_only_so_many_at_once(gateway: Callable[..., Gateway], llm: ScriptedLLM) -> None:
    gate = gateway(concurrent=2)
    with llm.held(), ThreadPoolExecutor(8) as pool:
        asked = [pool.submit(gate.chat) for _ in range(8)]
        until(lambda: llm.under_way == 2)
        llm.release()
        assert {each.result().status_code for each in asked} == {200}
    assert llm.most_under_way == 2


def test_a_failed_request_costs_nothing_but_counts(gateway: Callable[..., Gateway], llm: ScriptedLLM) -> None:
    llm.fail = (500, {"error": {"message": "overloaded"}})
    gate = gateway(requests=2, dollars=1.0)
    assert [gate.chat().status_code for _ in range(3)] == [500, 500, 429]
    assert gate.services.counts()["gateway_cost_usd"] == 0


def test_a_restart_keeps_address_token_and_budget(gateway: Callable[..., Gateway]) -> None:
    first = gateway(requests=3)
    first.chat()
    first.chat()
    env = dict(first.services.env)
    first.services.close()
    with (first.workdir / RECORDS / "gateway.jsonl").open("ab") as file:
        file.write(b'{"started_at": "2026-01-01", "torn by a ki')
    second = gateway(requests=3)
    assert second.services.env == env
    assert [second.chat().status_code for _ in range(2)] == [200, 429]
    counts = second.services.counts()
    assert counts["gateway_requests"] == 3
    second.services.close()
    lines = (first.workdir / RECORDS / "gateway.jsonl").read_text().splitlines()
    assert json.loads(lines[-1])["status"] == "refused"


def test_a_run_that_begins_anew_has_its_whole_budget(gateway: Callable[..., Gateway]) -> None:
    gate = gateway(requests=1)
    assert [gate.chat().status_code for _ in range(2)] == [200, 429]
    gate.services.reset_limits()
    assert [gate.chat().status_code for _ in range(2)] == [200, 429]
    gate.services.close()
    again = gateway(requests=1)
    assert again.chat().status_code == 429
    assert again.services.counts()["gateway_requests"] == 2  # what was spent was spent


def test_an_agent_that_does_not_listen_fills_no_disk(
    gateway: Callable[..., Gateway], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(budget, "REFUSALS_RECORDED", 3)
    gate = gateway(requests=0)
    assert {gate.chat().status_code for _ in range(5)} == {429}
    assert len(gate.log) == 3


def test_an_answer_takes_milliseconds(gateway: Callable[..., Gateway]) -> None:
    gate = gateway(requests=0)
    took = []
    for _ in range(20):
        began = time.monotonic()
        gate.chat()
        took.append(time.monotonic() - began)
    assert min(took[1:]) < 0.035  # with a delayed acknowledgement each would take 40 ms at least


def test_agents_can_ask_what_is_left(gateway: Callable[..., Gateway]) -> None:
    gate = gateway(requests=2, tokens=100_000)
    assert gate.http.get("/v1/budget", headers={"authorization": "Bearer other"}).status_code == 401
    assert gate.chat().status_code == 200
    [record] = gate.log
    used = record["input_tokens"] + record["output_tokens"]
    left = {"requests": 1, "tokens": 100_000 - used, "dollars": None}
    assert gate.http.get("/v1/budget").json() == {"left": left, "used_up": False}
    assert [gate.chat().status_code for _ in range(2)] == [200, 429]
    answer = gate.http.get("/v1/budget").json()
    assert (answer["left"]["requests"], answer["used_up"]) == (0, True)
    assert len(gate.log) == 3  # asking is not a request to a language model
