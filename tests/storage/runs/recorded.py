"""A store as version 1 of the records and tables writes it.

`version_1/` has runs of the agent dummy on digits as a process (old-process, with --integrity) and in a container
(old-docker, with --obfuscated), the first regraded as v2 under another name (old-copy), its published report imported
(old-import), `mlebench compare` of the two, and a run that asked language models (old-services). The store was
/srv/mlebench.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from storage.runs.evidence.group_manifest import append, heads_of
from tests.stores import Store

GROUPS = ("old-copy", "old-docker", "old-import", "old-process", "old-services")


@pytest.fixture
def recorded_store(tmp_path: Path) -> Store:
    """A copy of the store, as if it had been made there."""
    shutil.copytree(Path(__file__).parent / "version_1", tmp_path / "store")
    store = Store(str(tmp_path / "store"))
    for path in store.local("runs").rglob("*.json"):
        path.write_bytes(path.read_bytes().replace(b"file:///srv/mlebench", store.root.encode()))
    # The hash of the copy covers the URL of the run that it is a copy of.
    (head,) = heads_of(store, "old-copy").values()
    append(store, "old-copy", None, "copied", run="digits/0", head=head)
    return store
