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
        key: content key, which names its folder; None for whichever content is current (see
            `storage.datasets.current.find`).
        files_of: the edition in whose folder it lies, if it is that of another edition with the same files.
    """

    edition: Edition
    competition_id: str
    key: str | None = None
    files_of: Edition | None = None

    @property
    def home(self) -> Edition:
        """The edition in whose folder it lies."""
        return self.files_of or self.edition

    def __str__(self) -> str:
        return f"{self.competition_id} ({self.edition})"
