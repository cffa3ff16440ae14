"""What the checks of a competition look at."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

    from competitions.competition import Competition
    from competitions.editions import Edition

LARGEST_SAMPLE = 32 << 20
"""Size of a sample submission from which hundreds of hostile files are generated; for larger ones they are not."""


class Skipped(Exception):
    """The check would take too long on this dataset."""


@dataclass(frozen=True)
class Subject:
    """A prepared competition under test."""

    competition: Competition
    prepared: Path
    manifest: pd.DataFrame
    edition: Edition = "v1"

    @cached_property
    def answers(self) -> Any:
        """The parsed answers."""
        return self.competition.answers(self.prepared)

    def file(self, role: str) -> Path:
        """The path of the file with a role: answers, sample_submission or gold_submission."""
        return self.prepared / getattr(self.competition.facts.files, role)

    def score(self, submission: Path) -> float:
        """The score of a submission."""
        return self.competition.score(submission, self.answers, self.edition)

    def declares(self, oddity: str) -> bool:
        """Whether competition.yaml declares this oddity as intended. Declarations apply to edition v1."""
        return self.edition == "v1" and oddity in self.competition.facts.oddities
