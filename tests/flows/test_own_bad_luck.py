"""What happens to one competition, to the report or to the disk costs nothing else."""

from __future__ import annotations

import errno
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from flows import evaluate as evaluating
from flows import prepare as preparing
from flows.full_benchmark import full_benchmark
from flows.prepare import prepare
from flows.unattended import grading
from flows.watching.outcome import Outcome, PartlyFailed
from storage.tables import read_table
from tasks.wiring.requests import RunRequest
from tests.stores import Store

IDS = ["diabetes", "digits"]


def benchmark(store: Store, group: str, agent: str = "dummy") -> dict[str, Outcome]:
    try:
        outcomes = full_benchmark(IDS, RunRequest(agent=agent, run_group=group, store=store.root))
    except PartlyFailed as error:
        outcomes = error.outcomes
    return {each.what: each for each in outcomes}


def failing_for(unlucky: str, name: str, module: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have a function of a flow fail for one competition, as it does when a listing of its folder fails."""
    plain = getattr(module, name)

    def call(*arguments: Any, **options: Any) -> Any:
        if any(unlucky in str(each) for each in arguments):
            raise OSError(errno.EIO, "Input/output error", unlucky)
        return plain(*arguments, **options)

    monkeypatch.setattr(module, name, call)


def test_each_step_may_fail_for_one_competition(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        failing_for("digits", "already_prepared", preparing, patch)
        outcomes = benchmark(store, "first")
    assert {name: each.result for name, each in outcomes.items()} == {
        "diabetes": "done",
        "digits": "failed",
        "diabetes seed 0": "done",
    }
    assert outcomes["digits"].message.startswith("Input/output error: digits")
    prepare(IDS, store.root)
    for name, failed in (
        ("attempts_of", "digits"),
        ("finished_run", "digits seed 0"),
        ("grade_request", "digits seed 0"),
    ):
        with monkeypatch.context() as patch:
            failing_for("digits", name, evaluating, patch)
            outcomes = benchmark(store, "second")
        assert {what for what, each in outcomes.items() if each.result == "failed"} == {failed}, name
        assert outcomes["diabetes seed 0"].result in ("done", "reused")


def test_a_damaged_record_keeps_no_other_run_from_being_graded(store: Store) -> None:
    benchmark(store, "group")
    (store.local("runs", "group", "digits", "0") / "run.json").write_text("{")
    (store.local("runs", "group", "diabetes", "0") / "grade.json").unlink()
    with pytest.raises(PartlyFailed) as caught:
        grading("group", store=store.root)
    outcomes = {each.what: each.result for each in caught.value.outcomes}
    assert outcomes["diabetes seed 0"] == "done"
    assert outcomes["digits seed 0"] == "failed"


def test_a_failing_report_does_not_lose_the_outcomes(store: Store) -> None:
    store.local().mkdir()
    (store.local() / "tables").write_text("a file in the place of the folder")
    outcomes = benchmark(store, "group")
    assert {name: each.result for name, each in outcomes.items()} == {
        "diabetes": "done",
        "digits": "done",
        "diabetes seed 0": "done",
        "digits seed 0": "done",
        "tables and report of group": "failed",
    }
    (store.local() / "tables").unlink()
    assert {each.result for each in benchmark(store, "group").values()} == {"reused"}
    assert len(read_table(store, "grades")) == 2


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 20 MB. Needs root, and the right to mount."""
    place = tmp_path / "disk"
    place.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=20m", "tmpfs", str(place)]
    mounted = subprocess.run(command, capture_output=True, text=True, check=False)
    if mounted.returncode:
        pytest.skip(f"no file system can be mounted here: {mounted.stderr.strip()}")
    yield place
    subprocess.run(["umount", str(place)], check=True)


def test_a_full_disk_is_one_line_and_the_agents_work_is_kept(tmp_path: Path, small_disk: Path) -> None:
    agent = tmp_path / "large"
    agent.mkdir()
    (agent / "agent.yaml").write_text("name: large\ndescription: leaves much\ntrusted: true\n")
    (agent / "start.sh").write_text(
        f"""#!/bin/bash
echo start >> {tmp_path}/starts-$COMPETITION_ID
cp "$SAMPLE_SUBMISSION" "$SUBMISSION_DIR/submission.csv"
[ $COMPETITION_ID = diabetes ] || head -c 30M /dev/urandom > "$CODE_DIR/weights.bin"
"""
    )
    store = Store(str(small_disk / "store"))
    outcomes = benchmark(store, "full", str(agent))
    failed = {what: each.message for what, each in outcomes.items() if each.result == "failed"}
    assert "digits seed 0" in failed, outcomes
    assert failed["digits seed 0"].startswith("No space left on device")
    assert "mlebench gc" in failed["digits seed 0"]
    subprocess.run(["mount", "-o", "remount,size=200m", str(small_disk)], check=True)
    outcomes = benchmark(store, "full", str(agent))
    assert {each.result for each in outcomes.values()} <= {"done", "reused"}, outcomes
    assert (tmp_path / "starts-digits").read_text() == "start\n", "its agent did not run again"
    assert (store.local("runs", "full", "digits", "0") / "code" / "weights.bin").stat().st_size == 30 << 20
