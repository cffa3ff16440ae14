"""A run is stored in place of another: at every moment there is one record, with the files that belong to it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import storage.runs.publish as publish_module
from storage.lease import Lease, LeaseLost, lease
from storage.runs.evidence.verify import verify_run
from storage.runs.folders import RunFolder, StoredRun, stored_runs
from storage.runs.publish import publish
from storage.runs.records import RunRecord
from storage.store import Store

NAME = "run/g/x/0"


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    return RunFolder(Store(str(tmp_path / "store")), "g", "x", 0)


@contextmanager
def held(folder: RunFolder) -> Iterator[Lease]:
    with lease(folder.store, NAME) as mine:
        assert mine is not None
        yield mine


def publish_as(folder: RunFolder, tmp_path: Path, key: str) -> None:
    """Store a run with this key under the lease."""
    with held(folder) as mine:
        publish(folder, record(key), files(tmp_path, key), mine, None)


def record(key: str) -> RunRecord:
    at = datetime(2026, 1, 2, tzinfo=UTC)
    who: dict[str, Any] = {"run_group": "g", "run_id": "g-x-0", "competition_id": "x", "seed": 0, "agent": "a"}
    return RunRecord(**who, edition="v1", key=key, started_at=at, finished_at=at, submission_exists=True)


def files(tmp_path: Path, content: str, *more: str) -> dict[str, Path]:
    made = {name: tmp_path / f"{content}-{name.replace('/', '-')}" for name in ("submission.csv", "logs/a.log", *more)}
    for path in made.values():
        path.write_text(content)
    return made


def require_one_run(folder: RunFolder) -> str:
    """What a reader finds: one run, whose files are those of its evidence. Returns its key."""
    (run,) = stored_runs(folder.store, "g")
    assert [each for each in verify_run(folder, None) if each.where != "grade.json"] == []
    assert folder.store.read(f"{run.source}/submission.csv").decode() == run.record.key
    grade = folder.store.read_json(folder.grade_url())
    assert grade in (None, {"of": run.record.key})
    return run.record.key


def test_the_first_run_lies_in_the_folder_itself(folder: RunFolder, tmp_path: Path) -> None:
    folder.store.write(f"{folder.url}/code/of-a-killed-process", b"x")
    publish_as(folder, tmp_path, "one")
    assert require_one_run(folder) == "one"
    assert folder.store.read(f"{folder.url}/submission.csv") == b"one"
    assert not folder.store.exists(f"{folder.url}/code")


def test_a_reader_finds_the_old_run_or_the_new_one(
    folder: RunFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with held(folder) as mine:
        publish(folder, record("one"), files(tmp_path, "one", "code/only-in-one"), mine, None)
    folder.store.write_json(folder.grade_url(), {"of": "one"})
    seen: list[str] = []

    def watched(owner: Any, name: str) -> None:
        original = getattr(owner, name)

        def call(*arguments: Any, **options: Any) -> Any:
            seen.append(require_one_run(folder))
            result = original(*arguments, **options)
            seen.append(require_one_run(folder))
            return result

        monkeypatch.setattr(owner, name, call)

    for name in ("put_many", "write"):
        watched(Store, name)
    publish_as(folder, tmp_path, "two")
    monkeypatch.undo()
    assert list(dict.fromkeys(seen)) == ["one", "two"]
    assert require_one_run(folder) == "two"
    left = [path for path in (tmp_path / "store" / "runs").rglob("*") if path.is_file()]
    assert {path.name for path in left} == {"run.json", "ledger.jsonl", "submission.csv", "a.log"}, "the old ones went"
    publish_as(folder, tmp_path, "three")
    assert require_one_run(folder) == "three"


def test_a_kill_before_the_switch_leaves_the_old_run(
    folder: RunFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish_as(folder, tmp_path, "one")

    def killed(*_: object) -> None:
        raise SystemExit

    with monkeypatch.context() as patch:
        patch.setattr(publish_module, "seal", killed)
        with pytest.raises(SystemExit):
            publish_as(folder, tmp_path, "two")
    assert require_one_run(folder) == "one"
    publish_as(folder, tmp_path, "two")
    assert require_one_run(folder) == "two"


def test_who_lost_the_lease_without_noticing_replaces_nothing(
    folder: RunFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with held(folder) as slow:
        monkeypatch.setattr(slow, "require_held", lambda: None)  # it was stopped just after it looked
        sealing = publish_module.seal

        def stopped_here(*arguments: Any) -> RunRecord:
            monkeypatch.setattr(publish_module, "seal", sealing)
            folder.store.write_json(
                folder.store.url("locks", NAME, "00000001.json"), {"holder": {"machine": "another"}}
            )
            with lease(folder.store, NAME, stale_after=0.01) as mine:
                assert mine is not None
                assert mine.contested
                publish(folder, record("other"), files(tmp_path, "other"), mine, None)
            return sealing(*arguments)

        monkeypatch.setattr(publish_module, "seal", stopped_here)
        with pytest.raises(LeaseLost, match="another process has stored it"):
            publish(folder, record("slow"), files(tmp_path, "slow"), slow, None)
    assert require_one_run(folder) == "other"
    assert StoredRun(folder, record("x")).source == folder.url
