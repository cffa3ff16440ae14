"""Output and submissions that should keep whoever watches over the limits from doing so."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from sandbox.docker import containers, watch
from sandbox.limits import MIB
from sandbox.supervision import follow, snapshots
from tests.sandbox.attacks.conftest import Hostile


def test_lines_by_the_million(hostile: Hostile, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever shows the lines takes longer for each than the agent. The end of the run waits for a few of them only.

    If the orchestrator came too late, the backstop would end the run instead. It would be lost, and begin anew.
    """
    monkeypatch.setattr(containers, "BACKSTOP_SECONDS", 3.0)
    monkeypatch.setattr(follow, "LINES_PER_CALL", 20)
    monkeypatch.setattr(follow, "MAX_LINES", 50)
    lines: list[str] = []

    def shown(line: str) -> None:
        time.sleep(0.002)
        lines.append(line)

    spec = hostile.spec("yes '' | head -n 100000; sleep 1000", time_limit_seconds=2, grace_seconds=0)
    result = hostile.backend.wait(hostile.backend.start(spec), shown)
    assert result.status == "timeout"
    assert lines[-1] == "[... there is more output in the log of the run ...]"


def test_a_slow_copy_of_a_submission_does_not_delay_the_time_limit(
    hostile: Hostile, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not hostile.contained:
        pytest.skip("the supervisor of the process backend is another process")
    monkeypatch.setattr(containers, "BACKSTOP_SECONDS", 3.0)
    monkeypatch.setattr(snapshots, "CHUNK", 1)
    stop = watch.stop

    def stopping(*arguments: object) -> None:
        snapshots.CHUNK = MIB  # for the last copy, when the agent has ended
        stop(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(watch, "stop", stopping)
    script = 'truncate -s 50M "$SUBMISSION_DIR/submission.csv"; sleep 1000'
    assert (
        hostile.run(script, time_limit_seconds=3, grace_seconds=0, submission_bytes=100 * MIB).result.status
        == "timeout"
    )


def test_a_snapshot_that_is_given_up_is_taken_later(tmp_path: Path) -> None:
    (tmp_path / "home" / "submission").mkdir(parents=True)
    (tmp_path / "home" / "submission" / "submission.csv").write_bytes(bytes(4 * MIB))
    kept = snapshots.Snapshots(tmp_path / "home", tmp_path / "kept", count=10, size=100 * MIB, single=10 * MIB)
    assert not kept.look(1)
    assert not kept.look(2, give_up=lambda: True)
    assert list((tmp_path / "kept").iterdir()) == []
    assert kept.look(3, give_up=lambda: False)
    assert [each.name for each in (tmp_path / "kept").iterdir()] == ["3.0.csv"]
