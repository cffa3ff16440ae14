"""Where downloads come from: `bundled` (made from installed libraries), `local` (a directory), `kaggle`."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from competitions.competition import Competition


class Source(Protocol):
    """Fetches a competition's archive."""

    name: str

    def version(self, competition: Competition) -> str | None:
        """What the source would serve now, cheaply (size and time, code); None if only fetching can tell."""
        ...

    def fetch(self, competition: Competition, folder: Path) -> Path:
        """A complete local archive, in `folder` or elsewhere. Raises `DownloadError` naming what to do."""
        ...


def source_for(competition: Competition, raw_dir: Path | None) -> Source:
    """The source of a competition's download: bundled ones are made, `raw_dir` comes before Kaggle."""
    if competition.facts.source == "bundled":
        from storage.sources.bundled import Bundled

        return Bundled()
    if raw_dir is not None:
        from storage.sources.local import Local

        return Local(raw_dir)
    from storage.sources.kaggle import Kaggle

    return Kaggle()
