"""What the checks of a competition look at."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

    from competitions.competition import Competition
    from competitions.editions import Edition
    from grading.selfcheck.trials import Trials

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
        if role == "gold_submission" and self.edition != "v1" and self.competition.facts.submission:
            return self._plain_gold
        return self.prepared / getattr(self.competition.facts.files, role)

    @cached_property
    def _plain_gold(self) -> Path:
        """The gold submission without columns that the sample submission does not have, which v2 refuses."""
        import pandas as pd

        files = self.competition.facts.files
        paths = (self.prepared / files.gold_submission, self.prepared / files.sample_submission)
        header, wanted = (list(pd.read_csv(path, nrows=0).columns) for path in paths)
        names = [files.gold_columns.get(name, name) for name in wanted]
        if set(header) == set(wanted) or not set(names) <= set(header):
            return paths[0]
        path = Path(self._scratch.name) / "gold_submission.csv"
        gold = pd.read_csv(paths[0], usecols=names, dtype=str, keep_default_na=False)[names]
        gold.set_axis(wanted, axis=1).to_csv(path, index=False)
        return path

    @cached_property
    def _scratch(self) -> tempfile.TemporaryDirectory[str]:
        return tempfile.TemporaryDirectory(prefix="mlebench-check-")  # removed with the subject

    @cached_property
    def trials(self) -> Trials:
        """What is wrong with the grading of hostile submissions. They are graded once for all checks."""
        from grading.selfcheck.trials import try_hostile

        return try_hostile(self)

    def score(self, submission: Path) -> float:
        """The score of a submission."""
        return self.competition.score(submission, self.answers, self.edition)

    def declares(self, oddity: str) -> bool:
        """Whether competition.yaml declares this oddity as intended. Declarations apply to edition v1."""
        return self.edition == "v1" and oddity in self.competition.facts.oddities
