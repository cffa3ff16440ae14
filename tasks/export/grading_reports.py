"""The grading report of runs in the published format, or one for each seed, as the public leaderboard requires."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pandas as pd

from grading.report import summarise
from tasks.report import reports_of


def write_reports(grades: pd.DataFrame, folder: Path, by_seed: bool) -> Iterator[Path]:
    """Write `<time>_grading_report.json` into a folder, or `<time>_seed_<n>_...` for each seed; yields the paths.

    Runs whose grading failed are left out, because their result is not known.
    """
    grades = grades[grades["outcome"] != "failed"].sort_values(["seed", "competition_id"])
    parts = {f"seed_{seed}_": part for seed, part in grades.groupby("seed", sort=True)} if by_seed else {"": grades}
    for name, part in parts.items():
        yield summarise(reports_of(part)).write(folder, name)
