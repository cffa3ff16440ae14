"""What happens to one competition, to the report or to the disk costs nothing else."""

from __future__ import annotations

import errno
from pathlib import Path
from typing import Any

import pytest

from common.settings import get_settings
from flows import evaluate as evaluating
from flows import preparing
from flows.fleet import local
from flows.full_benchmark import full_benchmark
from flows.prepare import prepare
from flows.unattended import grading
from flows.watching.outcome import Outcome, PartlyFailed
from storage.tables import read_table
from tasks.wiring.requests import RunRequest
from tests.agents import noting, write_agent
from tests.competitions.test_registry import copy_of
from tests.disks import SmallDisk
from tests.stores import Store

pytestmark = pytest.mark.slow

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
        failing_for("digits", "data_for", preparing, patch)
        outcomes = benchmark(store, "first")
    assert {name: each.result for name, each in outcomes.items()} == {
        "diabetes": "done",
        "digits": "failed",
        "diabetes seed 0": "done",
    }
    assert outcomes["digits"].message.startswith("Input/output error: digits")
    prepare(IDS, store.root)
    for name, module, failed in (
        ("attempts_of", evaluating, "digits"),
        ("finished_run", local, "digits seed 0"),
        ("grade_request", local, "digits seed 0"),
    ):
        with monkeypatch.context() as patch:
            failing_for("digits", name, module, patch)
            outcomes = benchmark(store, "second")
        assert {what for what, each in outcomes.items() if each.result == "failed"} == {failed}, name
        assert outcomes["diabetes seed 0"].result in ("done", "reused")


def test_a_broken_competition_is_its_own_bad_luck(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = copy_of("digits", tmp_path / "competitions" / "own")
    monkeypatch.setenv("MLEBENCH_COMPETITIONS", str(folder.parent))
    get_settings.cache_clear()
    facts = (folder / "competition.yaml").read_text()
    (folder / "competition.yaml").write_text("name: [")
    with pytest.raises(PartlyFailed) as caught:
        full_benchmark(["diabetes", "own"], RunRequest(agent="dummy", run_group="group", store=store.root))
    outcomes = {each.what: each for each in caught.value.outcomes}
    assert outcomes["diabetes seed 0"].result == "done"
    failed = [each for each in outcomes.values() if each.result == "failed"]
    assert [each.what.split(" ")[0] for each in failed] == ["own"]
    assert "competition.yaml" in failed[0].message
    assert "Traceback" not in failed[0].message
    (folder / "competition.yaml").write_text(facts)


def test_an_archive_that_is_gone_is_its_own_bad_luck(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = copy_of("digits", tmp_path / "competitions" / "own") / "competition.yaml"
    own.write_text(own.read_text().replace("source: bundled", "source: kaggle"))
    monkeypatch.setenv("MLEBENCH_COMPETITIONS", str(own.parents[1]))
    get_settings.cache_clear()
    archives = tmp_path / "archives"
    archives.mkdir()
    with pytest.raises(PartlyFailed) as caught:
        prepare(["diabetes", "own"], store.root, raw_dir=str(archives))
    outcomes = {each.what: each for each in caught.value.outcomes}
    assert {name: each.result for name, each in outcomes.items()} == {"diabetes": "done", "own": "failed"}
    assert "own.zip" in outcomes["own"].message


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


def test_a_full_disk_is_one_line_and_the_agents_work_is_kept(tmp_path: Path, small_disk: SmallDisk) -> None:
    much = '[ $COMPETITION_ID = diabetes ] || head -c 30M /dev/urandom > "$CODE_DIR/weights.bin"\n'
    agent = write_agent(tmp_path / "large", noting(tmp_path, much))
    store = Store(str(small_disk.path / "store"))
    outcomes = benchmark(store, "full", str(agent))
    failed = {what: each.message for what, each in outcomes.items() if each.result == "failed"}
    assert "digits seed 0" in failed, outcomes
    assert failed["digits seed 0"].startswith("No space left on device")
    assert "mlebench gc" in failed["digits seed 0"]
    small_disk.resize(200)
    outcomes = benchmark(store, "full", str(agent))
    assert {each.result for each in outcomes.values()} <= {"done", "reused"}, outcomes
    assert (tmp_path / "starts-digits").read_text() == "start\n", "its agent did not run again"
    assert (store.local("runs", "full", "digits", "0") / "code" / "weights.bin").stat().st_size == 30 << 20
