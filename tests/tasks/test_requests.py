"""Requests are values: frozen, validated, and the same after a journey through JSON, as Prefect's server keeps them."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import ValidationError

from common.errors import UserError
from flows.evaluate import evaluate
from flows.unattended import benchmark
from sandbox.isolation import Isolation
from tasks.wiring.attempts import attempts_of
from tasks.wiring.context import RunContext
from tasks.wiring.requests import Attempt, RunRequest


@pytest.fixture
def request_(tmp_path: Path) -> RunRequest:
    isolation = Isolation("docker", "none", allow_privileged=True)
    return RunRequest(agent="dummy", run_group="g", store=str(tmp_path), seeds=2, isolation=isolation, obfuscated=True)


def test_they_survive_json(request_: RunRequest) -> None:
    attempt = Attempt(request=request_, competition_id="digits", seed=1, key="k")
    assert Attempt.model_validate_json(attempt.model_dump_json()) == attempt
    assert hash(Attempt.model_validate(attempt.model_dump())) == hash(attempt)


def test_a_flow_takes_them_as_its_server_kept_them(request_: RunRequest) -> None:
    kept = evaluate.serialize_parameters({"competition_ids": ["digits"], "request": request_})
    assert evaluate.validate_parameters(kept)["request"] == request_


def test_they_are_frozen_and_validated(request_: RunRequest) -> None:
    with pytest.raises(ValidationError, match="frozen"):
        request_.seeds = 3
    with pytest.raises(ValidationError, match="seeds"):
        RunRequest(agent="dummy", run_group="g", store="s", seeds=0)
    with pytest.raises(ValidationError, match="Extra inputs"):
        RunRequest.model_validate({**request_.model_dump(), "time_limit": 1})
    with pytest.raises(UserError, match=r"run group '\.\./up'"):
        RunRequest(agent="dummy", run_group="../up", store="s")


def test_the_form_of_a_benchmark_has_titled_sections() -> None:
    schema = benchmark.parameters.model_dump()
    assert list(schema["properties"])[:4] == ["split", "agent", "seeds", "run_group"]
    sections = schema["definitions"]
    assert {each["title"] for each in sections.values()} == {"Execution of agents", "Data and storage"}
    for section in sections.values():
        for field in section["properties"].values():
            assert {"title", "description"} <= field.keys()


def test_v2_refuses_the_web_where_answers_are_public(request_: RunRequest) -> None:
    public, other = "tgs-salt-identification-challenge", "alaska2-image-steganalysis"
    web = request_.model_copy(update={"edition": "v2", "isolation": Isolation("docker", "open")})
    with pytest.raises(UserError, match=f"{public} are public.*--network gateway"):
        web.require_hidden_answers([other, public])
    with pytest.raises(UserError, match=public):
        attempts_of(RunContext.of(web), public)
    web.require_hidden_answers([other])
    web.model_copy(update={"edition": "v1"}).require_hidden_answers([public])
    web.model_copy(update={"isolation": Isolation("docker", "gateway")}).require_hidden_answers([public])
