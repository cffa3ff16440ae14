"""Fixtures of the records."""

from __future__ import annotations

from pathlib import Path

import pytest

from storage.store import Store
from tests.storage.runs.older import version_0


@pytest.fixture
def old_store(tmp_path: Path) -> Store:
    return version_0(tmp_path / "store")
