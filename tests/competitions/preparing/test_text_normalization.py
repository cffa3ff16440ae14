"""Both languages share one preparation; the sentences decide the split, and pandas' missing values the editions."""

from __future__ import annotations

import csv
import io
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from competitions import registry
from competitions.editions import Edition
from competitions.preparing.download import Download
from competitions.preparing.text_normalization import prepare_language
from storage.datasets.execute import execute
from storage.datasets.plan import group_copies
from storage.writers import Destination


@pytest.fixture
def tokens() -> pd.DataFrame:
    rows = [(3 * s, t, "PLAIN", word, word.upper()) for s in range(20) for t, word in enumerate(["null", "x", "7"])]
    return pd.DataFrame(rows, columns=["sentence_id", "token_id", "class", "before", "after"])


@pytest.fixture
def prepared(tmp_path: Path, tokens: Any) -> Callable[[Edition], dict[str, str]]:
    with zipfile.ZipFile(tmp_path / "xx_train.csv.zip", "w") as archive:
        archive.writestr("xx_train.csv", tokens.to_csv(index=False, quoting=csv.QUOTE_NONNUMERIC))

    def prepare(edition: Edition) -> dict[str, str]:
        raw, out = Download.open(str(tmp_path)), tmp_path / edition
        preparation = prepare_language(raw, edition, "xx")
        tasks = group_copies(preparation.operations())
        execute(tasks, registry.get("text-normalization-challenge-english-language"), raw, Destination(str(out)))
        files = {path.name: path.read_text() for path in out.glob("private/*.csv")}
        for path in out.glob("public/*.zip"):
            with zipfile.ZipFile(path) as archive:
                files |= {name: archive.read(name).decode() for name in archive.namelist()}
        return files

    return prepare


def test_every_tenth_sentence_is_for_testing_and_both_parts_are_numbered_anew(
    prepared: Callable[[Edition], dict[str, str]],
) -> None:
    files = prepared("v1")
    train, test = (pd.read_csv(io.StringIO(files[name])) for name in ("xx_train.csv", "xx_test_2.csv"))
    assert train["sentence_id"].unique().tolist() == list(range(18))
    assert test["sentence_id"].unique().tolist() == [0, 1]
    assert list(test.columns) == ["sentence_id", "token_id", "before"]
    assert files["xx_sample_submission_2.csv"] == files["sample_submission.csv"]


def test_v1_blanks_what_spells_a_missing_value_and_v2_does_not(prepared: Callable[[Edition], dict[str, str]]) -> None:
    assert prepared("v1")["answers.csv"].splitlines()[:4] == ['"id","after"', '"0_0",""', '"0_1","X"', '"0_2","7"']
    assert prepared("v2")["answers.csv"].splitlines()[1] == '"0_0","NULL"'
