"""The wheel holds every room, and every file that the code reads by its path."""

from __future__ import annotations

import tomllib
from fnmatch import fnmatch
from typing import Any

import pytest

from tests.test_architecture import ROOMS, ROOT

SETUPTOOLS: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]


@pytest.mark.parametrize("room", ROOMS)
def test_the_room_is_packaged(room: str) -> None:
    assert any(fnmatch(room, pattern) for pattern in SETUPTOOLS["packages"]["find"]["include"])


@pytest.mark.parametrize("room", ROOMS)
def test_files_that_are_no_modules_are_packaged(room: str) -> None:
    patterns = SETUPTOOLS["package-data"]["*"]
    files = [path for path in (ROOT / room).rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    left_out = [
        str(path.relative_to(ROOT)) for path in files if not any(fnmatch(path.name, pattern) for pattern in patterns)
    ]
    assert not left_out
