"""Whether a test set can be divided is found out once, and what a run began with stays."""

from __future__ import annotations

from pathlib import Path

import pytest

from common.causes import cause_of
from common.settings import get_settings
from grading.feedback.public_scores import PublicPart
from grading.workers import GradingLimits
from sandbox.services.run_services import RECORDS
from storage.dataset import Dataset
from storage.datasets.prepared import committed_key
from tasks.wiring import feedback
from tasks.wiring.requests import RunRequest
from tests.stores import Store, put_dataset


@pytest.fixture
def dataset(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Dataset:
    monkeypatch.setenv("MLEBENCH_SCRATCH", str(tmp_path / "scratch"))
    get_settings.cache_clear()
    put_dataset(store, "diabetes")
    return Dataset("v1", "diabetes", committed_key(store, Dataset("v1", "diabetes")))


def test_limits_do_not_mean_that_it_cannot_be_divided(
    store: Store, dataset: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is tried again, and found out then."""
    for limits in ({"_limits": lambda: GradingLimits(read_seconds=1e-9)}, {"SCORE_SECONDS": 1e-9}):
        with monkeypatch.context() as slow:
            for name, value in limits.items():
                slow.setattr(feedback if name == "_limits" else feedback.scores, name, value)
            with pytest.raises(feedback.DivisionFailed, match="run again when this machine has less to do") as raised:
                feedback.division_of(store, dataset, 0.3)
            assert cause_of(raised.value).passes
    assert feedback.division_of(store, dataset, 0.3) == feedback.Division("id")


@pytest.mark.parametrize("began_with", [PublicPart(0.3, "id", 5), "3 units are too few"])
def test_a_run_that_has_begun_keeps_what_it_began_with(
    store: Store, dataset: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, began_with: PublicPart | str
) -> None:
    """Also on another host that finds out something else."""
    request = RunRequest(agent="dummy", run_group="g", store=store.root, feedback=0.3)
    monkeypatch.setattr(feedback, "division_of", lambda *_: feedback.Division(problem="something else"))
    feedback.note(tmp_path / "kept", began_with)
    feedback.note(tmp_path / "here" / RECORDS, "an earlier try")
    feedback.take_over(tmp_path / "here" / RECORDS, tmp_path / "kept")
    assert feedback.public_part(request, store, dataset, tmp_path / "here") == began_with
    assert feedback.public_part(request, store, dataset) == "something else"
    assert feedback.public_part(request, store, dataset, tmp_path / "no note") == "something else"
