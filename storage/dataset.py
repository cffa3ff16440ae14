"""The value that identifies a prepared dataset."""

from __future__ import annotations

from dataclasses import dataclass

from competitions.editions import Edition


@dataclass(frozen=True)
class Dataset:
    """Identifies a prepared dataset of a store: an edition of a competition, and its content.

    Args:
        edition: edition of the benchmark.
        competition_id: id of the competition.
        key: content key (see `storage.datasets.prepared.prepared_key`); None for the currently committed content.
    """

    edition: Edition
    competition_id: str
    key: str | None = None

    def __str__(self) -> str:
        return f"{self.competition_id} ({self.edition})"
