"""Downloads generated from data in installed libraries, without network or account."""

from __future__ import annotations

from pathlib import Path

from competitions.competition import Competition
from storage.sources.source import BUNDLED, Report


class Bundled:
    """Creates the archive with the competition's bundle.py."""

    name = BUNDLED

    def version(self, competition: Competition) -> str | None:
        """Fingerprint of the code that creates the archive."""
        return competition.fingerprint("bundle")

    def at_hand(self, competition: Competition) -> bool:
        """Always: code makes it."""
        return True

    def fetch(self, competition: Competition, folder: Path, report: Report = lambda _: None) -> Path:
        """Write the archive to `folder`."""
        path = folder / f"{competition.id}.zip"
        path.write_bytes(competition.bundle())
        return path
