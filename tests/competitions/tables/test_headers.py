"""Names of columns are those of pandas, or the file is left to it."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from competitions.tables import columns


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Of a file that is read in columns, however short it is."""
    monkeypatch.setattr(columns, "SMALL", 0)
    return tmp_path / "table.csv"


@pytest.mark.parametrize(
    "content",
    [
        b"\xef\xbb\xbfid,p\na,1\n",
        b"id,id\na,1\n",
        b"Unnamed: 1,\na,1\n",
        b",Unnamed: 0\n1,2\n",
        b'"i""d",p\na,1\n',
        b"id\na\n",
        b'"id";"p"\n"a";"1"\n',
        b'"id"\t"p"\n"a"\t"1"\n',
        b'"id" ,p\na,1\n',
        b",p\na\n",
        b",id,p\na,1\n",
        b"id,\na\n",
    ],
)
def test_headers_that_pandas_changes_and_rows_that_are_short_are_left_to_pandas(content: bytes, path: Path) -> None:
    path.write_bytes(content)
    assert columns.read_table(path) is None


@pytest.mark.parametrize(
    "content",
    [
        b",id,p\n0,a,1\n1,b,2\n",
        b'"","id","p"\n"0","a","1"\n',
        b"id,\na,1\n",
        b"id,\na,\n",
        b"id,,p,\na,,1,2.5\n",
        b",\n1,2\n",
        b",\na,2\n",
        b",\n,\n",
        b"Unnamed: 0,\n1,2\n",
        b",id,p\r\n0,a,1\r\n",
    ],
)
def test_columns_without_names_get_those_of_pandas(content: bytes, path: Path) -> None:
    path.write_bytes(content)
    found = columns.read_table(path)
    assert found is not None
    expected = pd.read_csv(path, float_precision="round_trip")
    pd.testing.assert_frame_equal(columns.frame(found, "object"), expected)
