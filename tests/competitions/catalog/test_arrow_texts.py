"""Competitions whose texts stay in Arrow get the files that plain pandas gives, whatever the texts are."""

from __future__ import annotations

import csv
import io
import zipfile
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pandas as pd
import pytest

from competitions.editions import EDITIONS, Edition
from competitions.preparing import download
from competitions.preparing.download import Download
from competitions.tables import columns, pieces
from storage.datasets import prepare
from tests.prepared import Prepared, PreparedCompetitions

TABLES: dict[str, dict[str, list[str]]] = {
    "chaii-hindi-and-tamil-question-answering": {"train.csv": ["context", "question", "answer_text"]},
    "google-quest-challenge": {"train.csv": ["question_body", "answer", "url", "host"]},
    "jigsaw-toxic-comment-classification-challenge": {
        f"{name}.csv.zip!{name}.csv": ["comment_text"] for name in ("train", "test")
    },
    "jigsaw-unintended-bias-in-toxicity-classification": {"test_private_expanded.csv": ["comment_text", "rating"]},
    "learning-agency-lab-automated-essay-scoring-2": {"train.csv": ["full_text"]},
    "lmsys-chatbot-arena": {"train.csv": ["prompt", "response_a", "response_b"]},
    "nfl-player-contact-detection": {
        "train_labels.csv": ["datetime"],
        "train_player_tracking.csv": ["datetime", "position"],
    },
    "spooky-author-identification": {"train.zip!train.csv": ["text"]},
    "text-normalization-challenge-english-language": {"en_train.csv.zip!en_train.csv": ["before", "after"]},
    "text-normalization-challenge-russian-language": {"ru_train.csv.zip!ru_train.csv": ["before", "after"]},
    "tweet-sentiment-extraction": {"train.csv": ["text", "selected_text"]},
    "us-patent-phrase-to-phrase-matching": {"train.csv": ["anchor", "target"]},
}
"""Tables, within nested archives after `!`, and columns of them that may have any text."""

TEXTS = ["", " ", "NA", "null", "7", "1e5", "True", "a,b", 'say "x"', '"', "two\nlines", "\r\n", "a\tb", "हिन्दी 🤗"]


@pytest.mark.parametrize("edition", EDITIONS)
@pytest.mark.parametrize("name", TABLES)
def test_files_are_those_of_plain_pandas(
    prepared: PreparedCompetitions, name: str, edition: Edition, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    raw, found = tmp_path / "raw.zip", prepared.get(name, "v1")
    _harden(found.raw, raw, TABLES[name])
    monkeypatch.setattr(download, "_SMALL_TABLE_BYTES", 0)
    monkeypatch.setattr(pieces, "PIECE", 1 << 12)  # several of each table
    parsed: list[Any] = []
    read_stream = columns.read_stream

    def noted(*arguments: Any) -> Any:
        parsed.append(read_stream(*arguments))
        return parsed[-1]

    monkeypatch.setattr(columns, "read_stream", noted)
    by_arrow = _files(found, raw, edition, tmp_path / "arrow")
    assert sum(table is not None for table in parsed) >= len(TABLES[name])
    monkeypatch.setattr(Download, "read_csv", _by_pandas)
    by_pandas = _files(found, raw, edition, tmp_path / "pandas")
    assert by_arrow == by_pandas


def _by_pandas(self: Download, name: str, *, texts: str = "object", **options: Any) -> pd.DataFrame:
    with self.open_file(name) as file:
        return pd.read_csv(file, **{"float_precision": "round_trip", **options})


def _files(found: Prepared, raw: Path, edition: Edition, out: Path) -> dict[str, bytes]:
    prepare(found.competition.id, raw, out, edition=edition, params=found.params)
    paths = [path for part in ("public", "private") for path in (out / part).rglob("*") if path.is_file()]
    return {path.relative_to(out).as_posix(): path.read_bytes() for path in paths}


def _harden(raw: Path, to: Path, tables: dict[str, list[str]]) -> None:
    """Write the download with other texts in these columns, half of the cells of which keep their text."""
    with zipfile.ZipFile(raw) as old, zipfile.ZipFile(to, "w") as new:
        for name in old.namelist():
            changed = old.read(name)
            for table, texts in tables.items():
                outer, _, inner = table.rpartition("!")
                if inner and outer == name:
                    changed = _zipped(inner, _hard(zipfile.ZipFile(io.BytesIO(changed)).read(inner), texts))
                elif table == name:
                    changed = _hard(changed, texts)
            new.writestr(name, changed)


def _hard(content: bytes, texts: list[str]) -> bytes:
    random = Random(len(content))
    table = pd.read_csv(io.BytesIO(content), dtype=str, keep_default_na=False)
    for column in texts:
        others = [random.choice(TEXTS) * random.choice([1, 1, 3]) for _ in range(len(table))]
        change = np.array([random.random() < 0.5 for _ in range(len(table))])
        change[::3] = False  # text for certain in what pandas takes for the type of a column
        table[column] = table[column].where(~change, others)
    return table.to_csv(index=False, quoting=csv.QUOTE_ALL).encode()


def _zipped(name: str, content: bytes) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr(name, content)
    return buffer.getvalue()
