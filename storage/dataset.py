"""Which prepared dataset is meant."""

from __future__ import annotations

from dataclasses import dataclass

from competitions.editions import Edition


@dataclass(frozen=True)
class Dataset:
    """A prepared dataset of a store: an edition of a competition, and its content.

    Args:
        edition: of the benchmark.
        competition_id: of the competition.
        key: the content key (see `storage.datasets.prepared.prepared_key`); None for what is committed now.
    """

    edition: Edition
    competition_id: str
    key: str | None = None

    def __str__(self) -> str:
        return f"{self.competition_id} ({self.edition})"
