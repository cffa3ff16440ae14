"""Files reach the disk before the marker that vouches for them."""

from __future__ import annotations

from pathlib import Path

import pytest

from common.syncing import sync_file_system


def test_a_file_system_is_synced(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("a")
    sync_file_system(tmp_path)


def test_a_folder_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        sync_file_system(tmp_path / "nowhere")
