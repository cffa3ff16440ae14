"""What only runs of this backend have; what they share with others is tested in `process` and `confinement`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from sandbox.backend import RunSpec
from sandbox.errors import BackendError
from sandbox.process.backend import ProcessBackend
from sandbox.rootless import bubblewrap
from sandbox.supervision import control

pytestmark = pytest.mark.service("rootless")
ASK = """
ask() { [ "$(curl --silent --output /dev/null --write-out '%{http_code}' http://services:5000/)" = 503 ]; }
ask && echo answered
while [ ! -e go ]; do sleep 0.02; done
until ask; do sleep 0.05; done
echo again
"""


@pytest.fixture
def backend_name() -> str:
    return "rootless"


def test_a_forwarder_that_was_killed_is_started_again(
    backend: ProcessBackend, make_spec: Callable[..., RunSpec]
) -> None:
    spec, lines = make_spec(ASK), list[str]()

    def on_log(line: str) -> None:
        lines.append(line)
        if line == "answered":
            supervisor = control.read(control.Layout(spec.workdir).supervisor, control.Supervisor)
            assert supervisor is not None
            children = psutil.Process(supervisor.pid).children()
            [forwarder] = [child for child in children if "forward.py" in " ".join(child.cmdline())]
            forwarder.kill()
            (spec.workdir / "home" / "go").touch()

    assert backend.wait(backend.start(spec), on_log).status == "completed"
    assert lines == ["answered", "again"]


def test_what_bubblewrap_cannot_do_is_one_line_and_nothing_runs(
    backend: ProcessBackend, make_spec: Callable[..., RunSpec], living: Callable, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backend, "_bwrap", "/bin/false")
    spec = make_spec("true")
    with pytest.raises(BackendError, match="run run was not started: ") as caught:
        backend.start(spec)
    assert "\n" not in str(caught.value)
    assert living(spec.workdir) == []


def test_what_bubblewrap_says_after_its_first_process_has_begun_is_told(
    backend: ProcessBackend, make_spec: Callable[..., RunSpec], living: Callable, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "sandbox.rootless.bubblewrap.arguments",
        lambda *given, made=bubblewrap.arguments, **named: [*made(*given, **named), "--ro-bind", "/nowhere", "/x"],
    )
    spec = make_spec("true")
    with pytest.raises(BackendError, match=r"run run was not started: bwrap: .*nowhere"):
        backend.start(spec)
    assert living(spec.workdir) == []


@pytest.mark.parametrize("how", ["late", "killed"])
def test_no_agent_goes_on_without_a_supervisor(
    backend: ProcessBackend,
    make_spec: Callable[..., RunSpec],
    living: Callable,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    how: str,
) -> None:
    """As on a machine that is too busy for the forwarder, or has too little memory."""
    monkeypatch.setattr(backend, "supervisor", "tests.sandbox.rootless.failing_supervisor")
    spec = replace(make_spec("touch began; sleep 1000"), workdir=tmp_path / how)
    with pytest.raises(BackendError, match="run run was not started: ") as caught:
        backend.start(spec)
    assert "\n" not in str(caught.value)
    assert living(spec.workdir) == []
    if how == "late":
        assert str(caught.value).endswith("the forwarder of the run does not start")
        assert not (spec.workdir / "home" / "began").exists()


def test_privileged_agents_are_refused(
    backend: ProcessBackend, make_spec: Callable[..., RunSpec], tmp_path: Path
) -> None:
    spec = make_spec("true")
    agent = spec.agent.model_copy(update={"privileged": True})
    with pytest.raises(BackendError, match="requests a privileged container: use --backend docker"):
        backend.start(replace(spec, agent=agent, workdir=tmp_path / "other"))
