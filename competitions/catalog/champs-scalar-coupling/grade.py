import pandas as pd

from competitions.editions import Edition
from competitions.scoring.cells import numbers
from competitions.scoring.checks import align, align_repeated
from competitions.scoring.metrics.regression import group_mean_log_mae
from competitions.scoring.reading import Reads

from .columns import TARGET

READS = Reads(answers=("id", "type", TARGET), texts="arrow")


def grade(submission: pd.DataFrame, answers: pd.DataFrame, edition: Edition) -> float:
    # v1 counts an id as often as it occurs and has no floor, so a type without any error scores minus infinity.
    match = align if edition == "v2" else align_repeated  # v2 fixes repeated-ids
    submission, answers = match(submission, answers, "id", [TARGET])
    floor = 1e-9 if edition == "v2" else 0.0  # v2 fixes no-floor
    return group_mean_log_mae(answers[TARGET], numbers(submission, TARGET), answers["type"], floor)
