"""Several competitions at one time, and several processes on one competition."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from common.progress import Event, listening
from common.settings import get_settings
from competitions import registry
from flows.prepare import prepare
from storage.dataset import Dataset
from storage.datasets.prepared import committed_key
from tests.bundles import bundle
from tests.flows.test_cli import start, until
from tests.stores import Store

pytestmark = pytest.mark.slow

PREPARE = """\
import os, select
from competitions.preparing.declaration import Preparation

def prepare(raw, edition, params):
    with open({runs!r}, "a") as runs:
        runs.write("prepared\\n")
    gate = os.open({gate!r}, os.O_RDWR)
    ready, _, _ = select.select([gate], [], [], 120)
    assert ready, "nobody opened the gate"
    out = Preparation()
    for tree, name in ((out.public, "sample_submission.csv"), (out.private, "answers.csv")):
        tree.text(name, "id,value\\n")
    return out
"""


class Gated:
    """A competition whose prepare.py notes that it runs, and goes on when it is let go."""

    def __init__(self, folder: Path) -> None:
        self.competitions, self.downloads = folder / "competitions", folder / "downloads"
        self._runs, self._gate = folder / "runs", folder / "gate"
        os.mkfifo(self._gate)
        place = self.competitions / "gated"
        place.mkdir(parents=True)
        digits = registry.get("digits")
        for name in ("description.md", "grade.py"):
            (place / name).write_bytes((digits.folder / name).read_bytes())
        facts = (digits.folder / "competition.yaml").read_text().split("checksums:")[0]
        facts = facts.replace("id: digits", "id: gated").replace("source: bundled\n", "")
        (place / "competition.yaml").write_text(facts)
        (place / "prepare.py").write_text(PREPARE.format(runs=str(self._runs), gate=str(self._gate)))
        self.downloads.mkdir()
        (self.downloads / "gated.zip").write_bytes(bundle("digits"))

    @property
    def runs(self) -> int:
        """How often prepare.py began."""
        return len(self._runs.read_text().splitlines())

    def begun(self) -> bool:
        """Whether prepare.py runs, or has run."""
        return self._runs.exists()

    def let_go(self) -> None:
        """Open the gate, for good."""
        self._held = os.open(self._gate, os.O_RDWR)
        os.write(self._held, b"go")


@pytest.fixture
def gated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Gated:
    made = Gated(tmp_path)
    monkeypatch.setenv("MLEBENCH_COMPETITIONS", str(made.competitions))
    registry.extend([made.competitions])
    return made


@pytest.mark.parametrize("small", [0, 1 << 20], ids=["on Dask", "in this process"])
def test_one_that_is_slow_to_plan_does_not_hold_up_the_others(
    store: Store, gated: Gated, monkeypatch: pytest.MonkeyPatch, small: int
) -> None:
    monkeypatch.setenv("MLEBENCH_DASK_WORKERS", "2")
    monkeypatch.setattr("tasks.wiring.dask_workers.SMALL_DOWNLOAD_BYTES", small)
    get_settings.cache_clear()
    finished_meanwhile = []

    def watch(event: Event) -> None:
        if (event.row, event.state) == ("digits", "checksum"):  # downloaded, split, and at its last stage
            finished_meanwhile.append(committed_key(store, Dataset("v1", "gated")) is None)
            gated.let_go()

    with listening(watch):
        outcomes = prepare(["gated", "digits"], store.root, raw_dir=str(gated.downloads))
    assert [each.result for each in outcomes] == ["done", "done"]
    assert finished_meanwhile == [True]


def test_two_processes_on_one_competition_do_the_work_once(store: Store, gated: Gated) -> None:
    command = ("prepare", "-c", "gated", "--store", store.root, "--raw-dir", str(gated.downloads))
    first = start(*command)
    until(first, lambda line: "split" in line)
    second = start(*command)
    until(second, lambda line: "waiting for another process" in line)
    gated.let_go()
    for process in (first, second):
        output, _ = process.communicate()
        assert process.returncode == 0, output
    assert gated.runs == 1
    assert committed_key(store, Dataset("v1", "gated")) is not None
