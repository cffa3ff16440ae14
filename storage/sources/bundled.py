"""Downloads generated from data in installed libraries, without network or account."""

from __future__ import annotations

from pathlib import Path

from competitions import registry
from storage.sources.source import BUNDLED, Downloadable, Report


class Bundled:
    """Creates the archive with the competition's bundle.py."""

    name = BUNDLED

    def version(self, competition: Downloadable) -> str | None:
        """Fingerprint of the code that creates the archive."""
        return registry.get(competition.id).fingerprint("bundle")

    def at_hand(self, competition: Downloadable) -> bool:
        """Always: code makes it."""
        return True

    def fetch(self, competition: Downloadable, folder: Path, report: Report = lambda _: None) -> Path:
        """Write the archive to `folder`."""
        path = folder / f"{competition.id}.zip"
        path.write_bytes(registry.get(competition.id).bundle())
        return path
