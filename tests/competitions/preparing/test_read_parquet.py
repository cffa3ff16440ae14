"""Large Parquet tables are read in pieces, whatever the download is packed in."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pandas as pd
import pytest

from competitions.errors import DownloadError
from competitions.preparing.archives import nested
from competitions.preparing.download import Download

TABLE = pd.DataFrame({"id": range(3000), "value": [i / 7 for i in range(3000)], "name": [f"n{i}" for i in range(3000)]})


def packed(root: Path, how: str) -> Download:
    (root / "raw").mkdir()
    TABLE.to_parquet(root / "raw" / "table.parquet", row_group_size=1000)
    if how == "directory":
        return Download.open(str(root / "raw"))
    method = zipfile.ZIP_STORED if how == "stored" else zipfile.ZIP_DEFLATED
    with zipfile.ZipFile(root / "raw.zip", "w", method) as archive:
        archive.write(root / "raw" / "table.parquet", "table.parquet")
    return Download.open(str(root / "raw.zip"))


@pytest.mark.parametrize("how", ["directory", "stored", "deflated", "scratch"])
def test_every_packing_gives_the_same_table_again_and_again(
    how: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if how == "scratch":  # as a table too large for the memory
        monkeypatch.setattr(nested, "IN_MEMORY", 0)
    raw = packed(tmp_path, how)
    for _ in range(2):
        pd.testing.assert_frame_equal(pd.concat(raw.read_parquet("table.parquet"), ignore_index=True), TABLE)


def test_some_columns(tmp_path: Path) -> None:
    frames = list(packed(tmp_path, "directory").read_parquet("table.parquet", ["id", "name"]))
    assert list(frames[0].columns) == ["id", "name"]


def test_a_missing_table_is_a_download_error(tmp_path: Path) -> None:
    with pytest.raises(DownloadError, match=r"no file 'other\.parquet'"):
        list(packed(tmp_path, "directory").read_parquet("other.parquet"))


def test_a_missing_folder_is_a_download_error(tmp_path: Path) -> None:
    with pytest.raises(DownloadError, match="no files below 'images/7'"):
        list(packed(tmp_path, "directory").tree("images/7"))
