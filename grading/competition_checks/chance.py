"""Predictions that know nothing of their rows: constant, shuffled and random ones."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

from competitions.scoring.errors import InvalidSubmission
from grading.competition_checks.csvfile import Row
from grading.competition_checks.subject import Skipped
from grading.competition_checks.submissions import Rows, number_cells, numbers_of, score_rows
from grading.medals import medal_for
from grading.report import SCORE_DECIMALS

if TYPE_CHECKING:
    from grading.competition_checks.measured import Measured


def chance(measured: Measured) -> list[str]:
    """Constant, shuffled and random predictions are worse than the right ones, and earn no medal."""
    rows, thresholds = measured.rows, measured.thresholds
    perfect = score_rows(measured.subject, rows.header, rows.right)
    scores: dict[str, float] = {"right": perfect}
    problems, refused = [], []
    for name, predictions in ignorant(rows):
        try:
            score = score_rows(measured.subject, rows.header, predictions)
        except InvalidSubmission as error:  # such as several rows of one class where each must occur once
            refused.append(f"{name} predictions are not valid: {error}")
            continue
        scores[name] = score
        if math.isfinite(score) and predictions != rows.right:
            if not measured.better(perfect, score):
                problems.append(f"{name} predictions score {score:.5g}, the right ones {perfect:.5g}")
            elif medal := medal_for(round(score, SCORE_DECIMALS), thresholds):
                problems.append(f"{name} predictions score {score:.5g}, which earns {medal}")
    measured.figures["chance"] = scores
    if len(scores) == 1:
        raise Skipped(refused[0])
    return problems


def ignorant(rows: Rows) -> Iterator[tuple[str, list[Row]]]:
    """Yield (name, rows of a submission) with the predicted columns filled in from the right answers.

    constant: of each column the commonest value, of numbers the median. shuffled: the answers of other rows. random:
    numbers between the least and the greatest of a column, and for other columns any of its different values.
    """
    draw = random.Random(0)
    columns = {place: [row[place] for row in rows.right] for place in rows.predicted}
    others = draw.sample(range(len(rows.right)), len(rows.right))
    constants, choices = {}, {}
    for place, cells in columns.items():
        numbers = numbers_of(cells)
        if numbers is None:
            distinct = sorted(set(cells))
            constants[place] = Counter(cells).most_common(1)[0][0]
            choices[place] = [draw.choice(distinct) for _ in cells]
        else:
            constants[place] = sorted(cells, key=float)[len(cells) // 2]
            drawn = [draw.uniform(min(numbers), max(numbers)) for _ in numbers]
            choices[place] = number_cells(drawn, numbers)

    def filled(cell_of: dict[int, list[str]]) -> list[Row]:
        return [
            [cell_of[place][number] if place in cell_of else cell for place, cell in enumerate(row)]
            for number, row in enumerate(rows.right)
        ]

    yield "constant", filled({place: [value] * len(rows.right) for place, value in constants.items()})
    yield "shuffled", filled({place: [cells[other] for other in others] for place, cells in columns.items()})
    yield "random", filled(choices)
