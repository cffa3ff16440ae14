"""Agents in containers of Podman, as root: the tests of the Docker backend, on another engine."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from flows.diagnosis import health
from sandbox.backend import RunSpec
from sandbox.docker import engines
from sandbox.docker.backend import DockerBackend
from sandbox.docker.engine import connect
from tests.sandbox.docker import podman
from tests.sandbox.docker.conftest import Run
from tests.sandbox.docker.test_docker_runs import (  # noqa: F401
    test_a_flood_of_output_is_capped,
    test_a_fork_bomb_stays_in_its_container,
    test_a_run_is_stopped,
    test_memory_is_limited,
    test_no_single_file_is_larger_than_the_disk_limit,
    test_shared_memory_is_limited,
    test_the_published_world,
    test_time_is_counted_from_the_start_and_sigterm_may_be_ignored,
)
from tests.sandbox.docker.test_docker_survival import (  # noqa: F401
    killed,
    test_an_orchestrator_that_was_killed_goes_on,
)

pytestmark = [pytest.mark.slow, pytest.mark.service("podman")]


@pytest.fixture(scope="module", autouse=True)
def _podman(small_image: Path) -> Iterator[None]:
    with podman.service(small_image) as url, pytest.MonkeyPatch.context() as patch:
        patch.setenv("DOCKER_HOST", url)
        yield


def test_doctor_says_which_engine_it_is_and_runs_an_agent() -> None:
    [finding] = health.check_docker()
    assert (finding.verdict, finding.message) == ("ok", f"{engines.describe(connect())} runs agents")
    assert finding.message.startswith("podman ")


def test_nothing_of_the_machine_is_shown(
    run: Callable[..., Run], docker_backend: DockerBackend, docker_spec: Callable[..., RunSpec]
) -> None:
    """Podman shows containers the names that the machine knows, its name servers and its proxies."""
    done = run("cat /etc/hosts /etc/resolv.conf; env")
    assert done.lines[:3] == ["127.0.0.1 localhost services agent", "::1 localhost", "nameserver 192.0.2.1"]
    assert "secret" not in done.log


def test_a_process_that_ends_for_another_reason_did_not_run_out_of_memory(run: Callable[..., Run]) -> None:
    assert run("kill -9 $$").result.status == "crashed"
