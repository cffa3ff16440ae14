"""The parity packs: what the published benchmark does on miniatures of its competitions, unpacked once a session."""

from __future__ import annotations

import tarfile
from pathlib import Path

import pytest

ARCHIVE = Path(__file__).parent / "packs.tar.xz"


@pytest.fixture(scope="session")
def packs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Directory of packs, one folder a competition: raw.zip, submissions/*.csv, expected.json."""
    root = tmp_path_factory.mktemp("parity")
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(root, filter="data")
    return root / "packs"
