"""Where downloads come from: `bundled` (made from installed libraries), `local` (a directory), `kaggle`."""

from __future__ import annotations

from pathlib import Path

from competitions.competition import Competition
from storage.sources.source import Remote, Source, SourceChanged, Tell

__all__ = ["Remote", "Source", "SourceChanged", "Tell", "source_for"]


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
