"""What v2 leaves out of the training data is recorded with the dataset, and `mlebench prepare` tells it."""

from __future__ import annotations

from pathlib import Path

import pytest

from flows.cli import main
from storage.dataset import Dataset
from storage.datasets.prepared import left_out
from tests.kaggle_server import KaggleServer
from tests.stores import Store

NAME = "text-normalization-challenge-english-language"


def test_training_data_that_repeat_the_test_set_are_counted(
    kaggle: KaggleServer, packs: Path, store: Store, capfd: pytest.CaptureFixture[str]
) -> None:
    kaggle.archives[NAME] = (packs / NAME / "raw.zip").read_bytes()
    arguments = ["prepare", "-c", NAME, "--edition", "both", "--skip-verification", "--store", store.root]
    for _ in ("preparing", "prepared already"):
        assert main(arguments) == 0
        assert "v2 leaves 9 of 95 sentences out of train (sentences-on-both-sides)" in capfd.readouterr().out
    assert left_out(store, Dataset("v1", NAME)) == []
    assert [each.count for each in left_out(store, Dataset("v2", NAME))] == [9]
