import pandas as pd

from competitions.editions import Edition
from competitions.scoring.cells import probabilities
from competitions.scoring.checks import align
from competitions.scoring.metrics.probability import log_loss
from competitions.scoring.reading import Reads

READS = Reads(texts="arrow")


def grade(submission: pd.DataFrame, answers: pd.DataFrame, edition: Edition) -> float:
    submission, answers = align(submission, answers, "id", ["is_iceberg"])
    return log_loss(answers["is_iceberg"], probabilities(submission, "is_iceberg"))
