"""What predictions score that know nothing of their rows: constant, shuffled and random ones."""

from __future__ import annotations

import math
import random
import statistics
from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

from competitions.scoring.errors import InvalidSubmission
from grading.competition_checks.csvfile import Row
from grading.competition_checks.subject import Skipped, number_of
from grading.competition_checks.submissions import Rows, number_cells, numbers_of, score_rows
from grading.medals import medal_for
from grading.report import SCORE_DECIMALS

if TYPE_CHECKING:
    from grading.competition_checks.measured import Measured
    from grading.competition_checks.subject import Subject

_DRAWS = 5
"""Of shuffled and of random predictions, whose median score is taken: one draw can be lucky in a small test set."""


def metric(measured: Measured) -> list[str]:
    """The metric tells right answers from constant, shuffled and random ones."""
    right, others = measured.scores_of_chance
    if measured.subject.declares("gold-not-optimal"):
        raise Skipped("competition.yaml says that right answers do not score best")
    return [
        f"{name} predictions score {score:.5g}, the right ones {right:.5g}"
        for name, score in others.items()
        if not math.isnan(score) and not measured.better(right, score)
    ]


def chance(measured: Measured) -> list[str]:
    """Constant, shuffled and random predictions earn no medal."""
    right, others = measured.scores_of_chance
    measured.figures["chance"] = {"right": right, **others}
    medals = {name: medal_for(round(score, SCORE_DECIMALS), measured.thresholds) for name, score in others.items()}
    return [
        f"{name} predictions score {others[name]:.5g}, which earns {medal}"
        for name, medal in medals.items()
        if medal is not None and math.isfinite(others[name])
    ]


def scores_of_chance(subject: Subject, rows: Rows) -> tuple[float, dict[str, float]]:
    """The score of the right answers, and those of constant, shuffled and random predictions that are not right.

    Raises `Skipped` if none of them is a valid submission, as where each class must occur once, and if right answers
    have no score.
    """
    right = number_of(score_rows(subject, rows.header, rows.right), "the right answers")
    scores: dict[str, float] = {}
    refusal = "all answers are equal"
    for name in ("constant", "shuffled", "random"):
        try:
            found = [
                score_rows(subject, rows.header, predictions)
                for predictions in _predictions(rows, name)
                if predictions != rows.right
            ]
        except InvalidSubmission as error:
            refusal = f"{name} predictions are not valid: {error}"
            continue
        if found:
            scores[name] = statistics.median(found)
    if not scores:
        raise Skipped(refusal)
    return right, scores


def _predictions(rows: Rows, name: str) -> Iterator[list[Row]]:
    """Rows of submissions, with the predicted columns made of the right answers.

    constant: of each column the commonest value, of numbers the median. shuffled: the answers of other rows. random:
    numbers between the least and the greatest of a column, and for other columns any of its different values.
    """
    columns = {place: [row[place] for row in rows.right] for place in rows.predicted}
    for seed in range(1 if name == "constant" else _DRAWS):
        draw = random.Random(seed)
        others = draw.sample(range(len(rows.right)), len(rows.right))
        cells = {
            place: [own[other] for other in others]
            if name == "shuffled"
            else (_constant(own) if name == "constant" else _random(own, draw))
            for place, own in columns.items()
        }
        yield [
            [cells[place][number] if place in cells else cell for place, cell in enumerate(row)]
            for number, row in enumerate(rows.right)
        ]


def _constant(cells: list[str]) -> list[str]:
    if numbers_of(cells) is None:
        return [Counter(cells).most_common(1)[0][0]] * len(cells)
    return [sorted(cells, key=float)[len(cells) // 2]] * len(cells)


def _random(cells: list[str], draw: random.Random) -> list[str]:
    numbers = numbers_of(cells)
    if numbers is None:
        return draw.choices(sorted(set(cells)), k=len(cells))
    return number_cells([draw.uniform(min(numbers), max(numbers)) for _ in numbers], numbers)
