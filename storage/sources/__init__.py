"""Sources of downloads: `bundled` (generated from installed libraries), `local` (a directory), `kaggle`."""

from __future__ import annotations

from pathlib import Path

from competitions.competition import Competition
from storage.sources.source import BUNDLED, NETWORK_TIMEOUT, Downloadable, RemoteSource, Report, Source, SourceChanged

__all__ = [
    "BUNDLED",
    "NETWORK_TIMEOUT",
    "Downloadable",
    "RemoteSource",
    "Report",
    "Source",
    "SourceChanged",
    "source_for",
]


def source_for(competition: Competition, raw_dir: Path | None, timeout: float = NETWORK_TIMEOUT) -> Source:
    """The source of a competition's download: its bundle, or `raw_dir` if given, or Kaggle.

    `timeout` is the number of seconds without data after which a connection to Kaggle is closed and resumed.
    """
    if competition.facts.source == BUNDLED:
        from storage.sources.bundled import Bundled

        return Bundled()
    if raw_dir is not None:
        from storage.sources.local import Local

        return Local(raw_dir)
    from storage.sources.kaggle import Kaggle

    return Kaggle(timeout)
