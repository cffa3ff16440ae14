"""Scores on a common scale: 0 is the sample submission, 1 the gold threshold."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from common.errors import UserError
from competitions import registry
from competitions.editions import Edition
from competitions.errors import UnknownCompetition
from grading.medals import Thresholds
from grading.statistics.seeds import mean
from storage.dataset import Dataset
from storage.datasets.local_copy import local_copy
from storage.store import Store
from tasks.wiring.context import local_cache
from tasks.wiring.grades import process_graders


def normalised(attempts: Iterable[Mapping[Any, Any]], sample: float, gold: float) -> float:
    """Mean normalised score of attempts: rows of the table of grades.

    A score is cut to the range from 0 to 1, so that one that diverged does not decide a mean. An attempt without a
    score counts 0, also if the score is NaN. NaN without attempts, and if the scale has no length.

    >>> normalised([{"score": 0.6}, {"score": None}], sample=0.5, gold=0.9)
    0.125
    """
    scale = gold - sample
    if not math.isfinite(scale) or scale == 0:
        return math.nan
    return mean([_within(attempt["score"], sample, scale) for attempt in attempts])


def _within(score: float | None, sample: float, scale: float) -> float:
    if score is None or math.isnan(score):
        return 0.0
    return round(min(1.0, max(0.0, (score - sample) / scale)), 12)


def normalised_scores(store: Store, grades: Any, edition: Edition) -> dict[str, float]:
    """The mean normalised score of each competition in `grades`, a data frame of attempts in one edition.

    Competitions whose sample submission cannot be scored, because they are not prepared, are left out.
    """
    scores = {}
    for name, part in grades.groupby("competition_id") if len(grades) else ():
        try:
            sample = sample_score(store, str(name), edition)
            gold = Thresholds.of(registry.get(str(name)).facts).gold
        except (UserError, UnknownCompetition):
            continue
        value = normalised(part.to_dict("records"), sample, gold)
        if not math.isnan(value):
            scores[str(name)] = value
    return scores


def sample_score(store: Store, competition_id: str, edition: Edition) -> float:
    """The score of the sample submission with the current dataset; NaN if it has none.

    Raises:
        UserError: the competition is not prepared.
    """
    competition = registry.get(competition_id)
    dataset, sample = Dataset(edition, competition_id), competition.facts.files.sample_submission
    with (
        local_copy(store, dataset, "private", local_cache()) as private,
        local_copy(store, dataset, Path(sample).parts[0], local_cache()) as folder,
        process_graders().grader(competition, private, edition, "") as grader,
    ):
        score = grader.grade(folder / sample).report.score
    return math.nan if score is None else score
