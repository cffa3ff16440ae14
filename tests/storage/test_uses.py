"""Who uses data on this machine, while others come and go."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from storage import uses


def test_the_folder_of_users_may_vanish_before_it_is_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, asked = tmp_path / "uses", []
    folder.mkdir()

    def vanished(path: Path, listed: Callable[[Path], Any]) -> Any:
        asked.append(path)
        monkeypatch.undo()
        shutil.rmtree(folder)  # as another user does whose last file it had
        return listed(path)

    for name in ("listdir", "scandir"):  # whichever lists it
        monkeypatch.setattr(os, name, partial(vanished, listed=getattr(os, name)))
    assert not uses.in_use(folder)
    assert len(asked) == 1
