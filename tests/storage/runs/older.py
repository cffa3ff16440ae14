"""A store as version 0 of the records and tables wrote it, that is, before they had a schema version.

`version_0/` was made by the code before `schema_version` existed: runs of the agent dummy on digits as a process
(old-process, with --integrity) and in a container (old-docker, with --obfuscated), the first regraded as v2 under
another name (old-copy), its published report imported (old-import), `mlebench compare` of the two, and a run that
asked language models (old-services). The store was /srv/mlebench.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.stores import Store

GROUPS = ("old-copy", "old-docker", "old-import", "old-process", "old-services")


def version_0(folder: Path) -> Store:
    """A copy in `folder`, as if it had been made there."""
    shutil.copytree(Path(__file__).parent / "version_0", folder)
    store = Store(str(folder))
    for path in (folder / "runs").rglob("*.json"):
        path.write_bytes(path.read_bytes().replace(b"file:///srv/mlebench", store.root.encode()))
    return store


@pytest.fixture
def old_store(tmp_path: Path) -> Store:
    """A store that version 0 wrote."""
    return version_0(tmp_path / "store")
