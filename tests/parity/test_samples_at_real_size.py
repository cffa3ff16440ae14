"""Sample submissions that follow from the number of rows alone have, at real size, the published checksums.

No real data is here: the rows of these files depend on nothing but their number, in two of them by the random split of
so many rows. The checksums are those that the published benchmark records for the files of the real data.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from competitions import registry
from competitions.preparing.declaration import Content
from competitions.preparing.download import Download

MD5 = {
    "playground-series-s3e18": "9bb782a52ccbfd6873f9a1e9cc3e97d3",
    "tabular-playground-series-dec-2021": "d7b1e1f35677df7cce6942a8c053633f",
    "tabular-playground-series-may-2022": "353457517aa847e701141e00a7a774eb",
    "ventilator-pressure-prediction": "6ab5162be2a03922cfc6068befc31c22",
}


def playground(rows: int) -> pd.DataFrame:
    columns = ["id", *(f"feature_{number}" for number in range(31)), *(f"EC{number}" for number in range(1, 7))]
    return pd.DataFrame(0, np.arange(rows), columns).assign(id=range(rows))


def covers(rows: int) -> pd.DataFrame:
    return pd.DataFrame({"Id": np.arange(rows), "Cover_Type": 2})


def states(rows: int) -> pd.DataFrame:
    return pd.DataFrame({"id": np.arange(rows), "target": 0})


def breaths(rows: int) -> pd.DataFrame:
    """80 steps of each breath."""
    ids = np.arange(rows)
    zeros = dict.fromkeys(("R", "C", "time_step", "u_in", "u_out", "pressure"), 0)
    return pd.DataFrame({"id": ids + 1, "breath_id": ids // 80 + 1, **zeros})


REAL: dict[str, tuple[int, Callable[[int], pd.DataFrame]]] = {
    "playground-series-s3e18": (14_838, playground),
    "tabular-playground-series-dec-2021": (4_000_000, covers),
    "tabular-playground-series-may-2022": (900_000, states),
    "ventilator-pressure-prediction": (6_036_000, breaths),
}
"""The number of rows of the real train.csv, and a table of so many."""


@pytest.mark.parametrize("competition_id", REAL)
def test_has_the_published_checksum(competition_id: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows, table = REAL[competition_id]
    competition = registry.get(competition_id)
    monkeypatch.setattr(Download, "read_csv", lambda *_args, **_options: table(rows))
    (tmp_path / "train.csv").touch()
    sample = competition.declare(Download.open(str(tmp_path))).public.operations["sample_submission.csv"]
    assert isinstance(sample, Content)
    found = hashlib.md5()
    for piece in sample.pieces():
        found.update(piece)
    assert found.hexdigest() == MD5[competition_id]
