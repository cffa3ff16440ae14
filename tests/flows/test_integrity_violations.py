"""`mlebench violations` with and without a language model, which is asked through the gateway."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from common.settings import get_settings
from flows.cli import main
from sandbox.serving import ServerThread, listen_tcp
from storage.tables import read_table
from tasks.language_model import MAX_ANSWER_TOKENS, LanguageModel
from tests.flows.test_integrity_plagiarism import add_run
from tests.grading.integrity.test_questions import attentive
from tests.sandbox.gateway.llm import KEY, OPENAI_USAGE, ScriptedLLM
from tests.stores import Store

LOG = "training\n$ find / -name 'answers*.csv' 2>/dev/null\nnothing there\n"
CODE = "from sklearn.linear_model import Ridge\nimport requests\nRidge().fit(X, y)\n"


class Reader(ScriptedLLM):
    """Answers as the attentive model of the tests does."""

    def _whole(self, path: str, body: Any) -> Any:
        text = attentive(body["messages"][0]["content"])
        if path == "/v1/messages":
            return {"type": "message", "content": [{"type": "text", "text": text}], "usage": {"input_tokens": 5}}
        return {"choices": [{"index": 0, "message": {"role": "assistant", "content": text}}], "usage": OPENAI_USAGE}


@contextmanager
def provided(llm: ScriptedLLM, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Serve a scripted model and name it in the settings."""
    listener = listen_tcp("127.0.0.1", None)
    llm.url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    with ServerThread() as thread:
        thread.serve(llm.app(), listener)
        configure(monkeypatch, llm, "openai")
        yield


@pytest.fixture
def llm(monkeypatch: pytest.MonkeyPatch) -> Iterator[Reader]:
    reader = Reader()
    with provided(reader, monkeypatch):
        yield reader


def configure(monkeypatch: pytest.MonkeyPatch, reader: ScriptedLLM, api: str) -> None:
    monkeypatch.setenv("MLEBENCH_PROVIDERS__JUDGE__BASE_URL", reader.url + ("/v1" if api == "openai" else ""))
    monkeypatch.setenv("MLEBENCH_PROVIDERS__JUDGE__API", api)
    monkeypatch.setenv("MLEBENCH_PROVIDERS__JUDGE__API_KEY", KEY)
    monkeypatch.setenv("MLEBENCH_INTEGRITY_MODEL", "gpt-4o" if api == "openai" else "claude-3-5-sonnet-20240620")
    get_settings.cache_clear()


def examine(store: Store, capfd: pytest.CaptureFixture[str], code: int = 0) -> tuple[str, str]:
    capfd.readouterr()
    assert main(["examine", "--only", "violations", "g", "--store", store.root]) == code
    return capfd.readouterr()


def test_without_a_model_the_static_detectors_speak_and_it_is_said(
    store: Store, capfd: pytest.CaptureFixture[str]
) -> None:
    add_run(store, "g", "a", {"main.py": CODE}, {"agent.log": LOG})
    out, _ = examine(store, capfd)
    assert "main.py:2: accesses the network: imports requests [static]\n    | import requests" in out
    assert "no language model asked" in out
    assert out.splitlines()[-1] == "1 run examined, 1 to look at, 0 notices"
    assert read_table(store, "violations")["rule"].tolist() == ["network"]


@pytest.mark.parametrize("api", ["openai", "anthropic"])
def test_a_model_reads_logs_and_code_through_the_gateway(
    store: Store, llm: Reader, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, api: str
) -> None:
    configure(monkeypatch, llm, api)
    add_run(store, "g", "a", {"main.py": CODE}, {"agent.log": LOG})
    out, _ = examine(store, capfd)
    assert "logs/agent.log:2: searched for data or solutions that it must not use" in out
    assert "read 2 pieces" in out
    assert len(llm.requests) == 2
    assert {seen.body["temperature"] for seen in llm.requests} == {0}
    rows = read_table(store, "violations").set_index("rule")
    assert rows.loc["sought-solutions", "quote"] == "$ find / -name 'answers*.csv' 2>/dev/null"
    examine(store, capfd)
    assert len(llm.requests) == 2, "the same texts are not read again"
    store.write(f"{store.run('g', 'spaceship-titanic', 0)}/logs/agent.log", b"another log, all honest\n")
    assert "sought" not in examine(store, capfd)[0]
    assert len(llm.requests) == 4


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The pauses between tries, which are not made."""
    made: list[float] = []
    monkeypatch.setattr("tasks.language_model._pause", made.append)
    return made


def test_a_model_that_cannot_be_asked_costs_no_static_finding(
    store: Store, llm: Reader, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, pauses: list[float]
) -> None:
    add_run(store, "g", "a", {"main.py": CODE}, {"agent.log": LOG})
    llm.fail = (429, {"error": {"message": "slow down", "type": "rate_limit"}})
    _, err = examine(store, capfd, code=1)
    assert "mlebench: 2 of 2 pieces could not be examined: the request to model gpt-4o failed: slow down" in err
    assert KEY not in err
    assert len(pauses) == 2 * 6
    rows = read_table(store, "violations")
    assert sorted(rows["rule"]) == ["network", "not-examined", "not-examined"]
    llm.fail = None
    assert "read 2 pieces" in examine(store, capfd)[0], "the same command asks again"
    assert sorted(read_table(store, "violations")["rule"]) == ["network", "sought-solutions"]
    monkeypatch.setenv("MLEBENCH_PROVIDERS__JUDGE__MODELS", json.dumps(["llama-*"]))
    get_settings.cache_clear()
    assert "no provider serves the model 'gpt-4o'" in examine(store, capfd, code=1)[1]
    assert read_table(store, "violations")["rule"].tolist() == ["network"]


def test_what_passes_is_tried_again(
    store: Store, llm: Reader, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    add_run(store, "g", "a", {"main.py": CODE}, {"agent.log": LOG})
    llm.fail = (503, {"error": {"message": "overloaded"}})
    monkeypatch.setattr("tasks.language_model._pause", lambda seconds: setattr(llm, "fail", None))
    assert "read 2 pieces" in examine(store, capfd)[0]
    assert "sought-solutions" in set(read_table(store, "violations")["rule"])


class Reasoning(Reader):
    """Takes no temperature, as reasoning models do."""

    async def _answer(self, request: Request) -> Response:
        if "temperature" in json.loads(await request.body()):
            return JSONResponse({"error": {"message": "Unsupported value: 'temperature' does not support 0"}}, 400)
        return await super()._answer(request)


def test_reasoning_models_have_room_and_are_given_no_temperature(
    store: Store, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    add_run(store, "g", "a", {"main.py": CODE}, {"agent.log": LOG})
    llm = Reasoning()
    with provided(llm, monkeypatch):
        assert "read 2 pieces" in examine(store, capfd)[0]
    assert [seen.body["max_completion_tokens"] for seen in llm.requests] == [MAX_ANSWER_TOKENS] * 2


def test_pieces_are_read_several_at_a_time(
    store: Store, llm: Reader, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Four requests wait for each other: one by one they would never be answered."""
    together = threading.Barrier(4, timeout=30)

    def ask(self: LanguageModel, prompt: str) -> str:
        together.wait()
        return attentive(prompt)

    monkeypatch.setattr(LanguageModel, "ask", ask)
    add_run(store, "g", "a", {f"{n}.py": f"{CODE}# {n}\n" for n in range(4)})
    assert "read 4 pieces" in examine(store, capfd)[0]


def test_the_ends_of_an_overlong_log_are_read(
    store: Store, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("storage.runs.texts.LOG_BYTES", 4000)
    line = "$ wget https://example.org/answers.zip\n"
    filler = "an honest line of a log\n" * 1000
    add_run(store, "g", "a", {"main.py": CODE.replace("import requests\n", "")}, {"agent.log": filler + line})
    out, _ = examine(store, capfd)
    assert "| $ wget https://example.org/answers.zip" in out
    add_run(store, "g", "a", {"main.py": CODE.replace("import requests\n", "")}, {"agent.log": line + filler})
    assert "agent.log:1: accesses the network: runs wget" in examine(store, capfd)[0]
