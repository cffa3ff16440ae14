"""Probes of Invasive Species Monitoring."""

from __future__ import annotations

from pathlib import PurePosixPath

import py7zr

from tests.competitions.issues._probe import (
    World,
)


def test_empty_archives(v1: World, v2: World) -> None:
    """Without pictures, all that an agent can do is guess."""
    labels = v1.packed("sample_submission.csv.zip", "sample_submission.csv")["name"]

    def pictures(world: World) -> set[str]:
        with py7zr.SevenZipFile(world.public / "test.7z") as archive:
            return {PurePosixPath(name).stem for name in archive.getnames() if name.endswith(".jpg")}

    assert not pictures(v1)
    assert pictures(v2) == {str(name) for name in labels}
