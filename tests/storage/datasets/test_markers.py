"""Notes and markers vouch for data: they come after it on the disk, and damaged ones vouch for nothing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from common.causes import cause_of
from storage import writers
from storage.datasets.commit import MARKER
from storage.datasets.executors import Serial
from storage.datasets.job import Job
from storage.datasets.materialise import materialise
from storage.writers import Destination, StoreError


class Stop(Exception):
    pass


@pytest.fixture
def job(tmp_path: Path, digits_zip: Path) -> Job:
    return Job("digits", str(digits_zip), str(tmp_path / "out"), key="k")


def interrupted(job: Job) -> Path:
    """The journal of a preparation that was stopped before its commit."""

    def stop() -> None:
        raise Stop

    with pytest.raises(Stop):
        materialise(job, before_commit=stop)
    return Path(job.out) / ".progress" / "k"


class Counting(Serial):
    """Counts the calls, by function."""

    def __init__(self) -> None:
        self.calls: list[str] = []

    def map(self, function, values, *fixed, heavy=False):  # type: ignore[no-untyped-def]
        for value in values:
            self.calls.append(f"{function.__name__} {value if isinstance(value, int) else ''}".strip())
            yield function(value, *fixed)


def test_data_reach_the_disk_before_what_vouches_for_them(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    events: list[str] = []
    monkeypatch.setattr(writers, "sync_file_system", lambda _: events.append("sync"))
    for name in ("write", "put", "copy", "link"):
        plain: Callable[..., object] = getattr(Destination, name)

        def noted(self: Destination, target: str, *rest: object, plain: Callable[..., object] = plain) -> object:
            events.append(target.rsplit("/", 1)[-1] if ".progress" in target or "/" not in target else "data")
            return plain(self, target, *rest)

        monkeypatch.setattr(Destination, name, noted)
    materialise(job)
    order = [event for at, event in enumerate(events) if at == 0 or event != events[at - 1]]
    for vouching in ("done-declared.json", "sizes.json", "done-0.json", MARKER):
        assert order[order.index(vouching) - 1] == "sync", order
    assert order[-1] == "sync", "the marker too, before anything that it replaces is removed"


@pytest.mark.parametrize("content", [b"", b"\0" * 100, b'[["public"', b'{"a": 1}', b"\xff\xfe"])
@pytest.mark.parametrize(
    ("note", "again"),
    [
        ("done-0.json", ["run_chunk 0"]),
        ("done-declared.json", ["declare"]),
        ("sizes.json", ["declare"]),
    ],
)
def test_a_note_that_cannot_be_read_counts_as_unwritten(job: Job, note: str, again: list[str], content: bytes) -> None:
    notes = interrupted(job)
    (notes / note).write_bytes(content)
    executor = Counting()
    assert len(materialise(job, executor=executor)) == 5
    assert executor.calls[: len(again)] == again


def test_without_damage_nothing_is_done_again(job: Job) -> None:
    interrupted(job)
    executor = Counting()
    assert len(materialise(job, executor=executor)) == 5
    assert executor.calls == []


def test_a_plan_that_cannot_be_read_is_made_again_by_the_next_try(job: Job) -> None:
    notes = interrupted(job)
    (notes / "done-0.json").unlink()
    (notes / "todo-0.json").write_bytes(b"\0" * 100)
    with pytest.raises(StoreError, match="is damaged") as caught:
        materialise(job)
    assert cause_of(caught.value).passes, "the task is tried again"
    assert len(materialise(job)) == 5
