"""The caps of the operator, in the choice of a host, in deployments and before a run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from prefect.utilities.callables import parameter_schema
from pydantic import ByteSize

from common.settings import get_settings
from flows.fleet.pool import PoolAttempts
from flows.forms import Data, Execution, run_request
from flows.unattended import benchmark
from sandbox.host.placement import Need
from sandbox.limits import GIB
from tasks.wiring.context import RunContext
from tasks.wiring.host import need_of
from tasks.wiring.requests import RunRequest

LARGE = "description: x\nlimits: {memory_bytes: 472446402560, cpus: 36, gpus: 4}\n"


@pytest.fixture(autouse=True)
def _fresh(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    monkeypatch.setenv("MLEBENCH_SCRATCH", str(tmp_path / "scratch"))
    get_settings.cache_clear()
    yield
    get_settings.cache_clear()


@pytest.fixture
def large(tmp_path: Path) -> Path:
    """An agent that asks for a large machine."""
    folder = tmp_path / "large"
    folder.mkdir()
    (folder / "start.sh").touch()
    (folder / "agent.yaml").write_text(LARGE)
    return folder


@pytest.fixture
def request_of(large: Path, tmp_path: Path) -> Callable[..., RunRequest]:
    def make(**fields: Any) -> RunRequest:
        return RunRequest(agent=str(large), run_group="g", store=tmp_path.as_uri(), **fields)

    return make


def need(request: RunRequest) -> Need:
    return need_of(RunContext.of(request))


def test_without_stated_caps_a_run_goes_to_a_host_that_has_what_its_agent_asks_for(
    request_of: Callable[..., RunRequest],
) -> None:
    """The default caps are those of one machine, and there may be larger ones."""
    found = need(request_of())
    assert (found.memory_bytes, found.cpus, found.gpus) == (440 * GIB, 36, 4)


def test_hosts_are_chosen_by_the_limits_under_the_stated_caps(
    request_of: Callable[..., RunRequest], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MLEBENCH_AGENT_MEMORY", "64GiB")
    monkeypatch.setenv("MLEBENCH_AGENT_CPUS", "8")
    monkeypatch.setenv("MLEBENCH_AGENT_GPUS", "1")
    get_settings.cache_clear()
    found = need(request_of())
    assert (found.memory_bytes, found.cpus, found.gpus) == (64 * GIB, 8, 1)
    found = need(request_of(max_memory=GIB, max_cpus=16))
    assert (found.memory_bytes, found.cpus) == (GIB, 8), "the smaller one counts"


def test_a_capped_run_waits_in_the_queue_of_smaller_hosts(request_of: Callable[..., RunRequest], large: Path) -> None:
    (large / "agent.yaml").write_text(LARGE.replace(", gpus: 4", ""))
    assert PoolAttempts("pool", RunContext.of(request_of()))._queue == "big"
    assert PoolAttempts("pool", RunContext.of(request_of(max_memory=8 * GIB)))._queue == "cpu"


def test_deployments_take_the_caps_and_show_them_in_their_form(large: Path, tmp_path: Path) -> None:
    execution = Execution.model_validate({"max_memory": "64GiB", "max_cpus": 8, "max_disk": 10**9})
    request = run_request(str(large), "g", 1, Data(store=tmp_path.as_uri()), execution)
    assert (request.max_memory, request.max_cpus, request.max_disk) == (64 * GIB, 8, ByteSize(10**9))
    shown = parameter_schema(benchmark).definitions["Execution"]["properties"]
    assert {"max_memory", "max_cpus", "max_disk"} <= shown.keys()
    with pytest.raises(ValueError, match="less than any agent needs"):
        Execution.model_validate({"max_memory": 0})
