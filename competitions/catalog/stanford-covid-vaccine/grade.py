import pandas as pd

from competitions.scoring.cells import numbers
from competitions.scoring.checks import align
from competitions.scoring.errors import InvalidSubmission
from competitions.scoring.metrics.regression import mean_columnwise_rmse

SCORED = ["reactivity", "deg_Mg_pH10", "deg_Mg_50C"]
UNSCORED = ["deg_pH10", "deg_50C"]


def grade(submission: pd.DataFrame, answers: pd.DataFrame, edition: str) -> float:
    aligned, truth = align(submission, answers, "id_seqpos", SCORED + UNSCORED)
    keep = truth["keep"]
    if edition == "v2":
        predicted = aligned[keep]
    else:  # rows are picked by their number in the file: they score rightly in the order of the sample only
        if set(submission.index) != set(answers.index):
            raise InvalidSubmission("Every row must have as many cells as the header has names.")
        ordered = submission.sort_values("id_seqpos")
        predicted = ordered[ordered.index.isin(answers.index[answers["keep"]])]
    return mean_columnwise_rmse(truth.loc[keep, SCORED], numbers(predicted, SCORED))
